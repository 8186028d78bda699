"""Run the jobs of a simulation, several at once, and keep the result of each run when it ends."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.algorithms.rehearsal import WARNINGS
from blindfit.coordinator.job.job import Job, read_job, read_tables
from blindfit.coordinator.jobs.run import run_here
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.report.kind import Written
from blindfit.coordinator.report.reading import process_of
from blindfit.coordinator.running.driving import terminable
from blindfit.coordinator.running.nursery import Nursery
from blindfit.coordinator.running.rehearsal import Rehearsal
from blindfit.coordinator.running.watcher import Stop, Watcher
from blindfit.coordinator.simulate.cut import Cut, score
from blindfit.coordinator.simulate.disclosed import bits_of
from blindfit.coordinator.simulate.kept import Done, Failed, Kept, Run
from blindfit.coordinator.simulate.quality import quality_of
from blindfit.coordinator.simulate.results import TIMES
from blindfit.coordinator.systems import kind_of, view
from blindfit.coordinator.terminal.stopped import Stopped
from blindfit.coordinator.terminal.terminal import terminal
from blindfit.coordinator.terminal.wording import quantity, size
from blindfit.parties.work.compute import cores

LEAST_FREE = 64 << 20  # bytes; with less, the full disk is the reason of a failure
LOOK_S = 0.2
MOST_REASON_CHARS = 300


@dataclass(frozen=True)
class Settings:
    """Settings of all runs.

    Attributes:
        overrides: options of the jobs, by system, as `--set` of `blindfit run` takes them.
        warn_only: True if limits of budgets and accounts only warn.
        at_once: number of runs at once.
    """

    overrides: Mapping[str, Sequence[str]]
    warn_only: bool
    at_once: int


def choose_number(processes: int) -> int:
    """Return the number of runs at once: as many as this machine has cores for, so that no run waits for another.

    Args:
        processes: number of processes of the largest job.
    """
    return max(1, cores() // processes)


def job_of(cut: Cut, run: Run, settings: Settings) -> Job[Any]:
    """Raise ConfigError: an option is wrong for this system."""
    overrides = list(settings.overrides.get(run.system, ()))
    if run.epsilon is not None:
        overrides.insert(0, f"privacy.epsilon={run.epsilon!r}")
    path = cut.jobs[run.system]
    job: Job[Any] = read_job(read_tables(path, overrides), f"the {run.system} job", path.parent)
    if run.epsilon is not None and job.parameters.privacy.epsilon != run.epsilon:
        raise ConfigError(
            f"--set {run.system}.privacy.epsilon: runs would have another epsilon than the table shows",
            hint="name the epsilons with --epsilon, such as --epsilon 0.5,1,2",
        )
    if run.epsilon is None and job.parameters.privacy is not None:
        raise ConfigError(
            f"--set {run.system}.privacy: a simulation gives {run.system} no budget",
            hint=f"leave it out; to study an epsilon of {run.system}, rehearse your own job: docs/guides/rehearse.md",
        )
    return job


# --- one run --------------------------------------------------------------------------------------------


class Runner:
    """Run a job to its figures. All runs of a simulation share one runner.

    Args:
        kept: store of the results of each run.
        nursery: process that forks the parties of all runs.
    """

    def __init__(self, kept: Kept, settings: Settings, stop: Stop, nursery: Nursery) -> None:
        self._kept, self._settings, self._stop, self._nursery = kept, settings, stop, nursery
        self._rehearsal = Rehearsal(warn_only=settings.warn_only, is_kept=False)
        self._growths: dict[tuple[str, bool], float | None] = {}
        self._lock = threading.Lock()

    def run(self, run: Run, cut: Cut, show_step: Callable[[str], None]) -> Done | Failed:
        """Run one job to its end, keep its figures and remove its files.

        Args:
            show_step: function that receives the current step of the parties, in words.

        Raises:
            Stopped: somebody has interrupted the simulation.
            DataError: the disk is full.
        """
        out = self._kept.folder(run.name)
        try:
            ended = self._try(run, cut, out, show_step)
            self._kept.write(run, ended)
        finally:
            self._kept.remove(run.name)
        return ended

    def _try(self, run: Run, cut: Cut, out: Path, show_step: Callable[[str], None]) -> Done | Failed:
        if why := cut.not_for.get(run.system):  # in this repeat, though the first repeat has a job
            return Failed(why)
        job = job_of(cut, run, self._settings)

        def show(_party: str, event: Any) -> None:
            show_step(event.progress.step)

        watcher = Watcher(show, self._stop, shows=True)
        began = time.monotonic()
        try:
            written = run_here(
                job, out, terminal(quiet=True), None, "quiet", watcher, rehearsal=self._rehearsal, nursery=self._nursery
            )
            return self._figures(run, cut, job, written, out, time.monotonic() - began)
        except BlindfitError as error:
            self._refuse_full_disk()
            return Failed(error.message[:MOST_REASON_CHARS], error.hint)
        except OSError as error:
            self._refuse_full_disk()
            return Failed(f"{error.strerror or type(error).__name__}: {error.filename or self._kept.out}")

    def _figures(self, run: Run, cut: Cut, job: Job[Any], written: Written, out: Path, took_s: float) -> Done:
        content = written.content
        quality = quality_of(cut.held_out.truth, score(cut, run.system, written, out), is_linear=cut.is_linear)
        kind, seconds = kind_of(job.protocol), content["seconds"]
        processes = {name: process_of(content, name) for name in content["parties"]}
        privacy = job.parameters.privacy
        return Done(
            quality=quality.figures,
            epsilon=None if privacy is None else float(privacy.epsilon),
            delta=None if privacy is None else float(job.parameters.delta),
            bits=bits_of(job.on_stage(self._rehearsal.stage_in(out))),
            rows=_count_trained_rows(content),
            seconds=took_s,
            set_up_s=min(took_s, float(seconds.get("launch", 0.0) + seconds.get("set_up", 0.0))),
            growth=self._growth(run, job),
            bytes_sent=sum(process.bytes_sent or 0 for process in processes.values()),
            messages_sent=sum(process.messages_sent or 0 for process in processes.values()),
            peak_memory_mib={name: process.peak_memory_mib or 0.0 for name, process in processes.items()},
            protects=kind.in_short(content),
            laid_out=cut.remarks.get(run.system, ""),
            warnings=list(content.get(WARNINGS, ())),
            at_once=self._settings.at_once,
        )

    def _growth(self, run: Run, job: Job[Any]) -> float | None:
        """Return how the work of a setting grows with rows, counted once."""
        count, key = view(job.protocol).growth, (run.system, run.epsilon is not None)
        if count is None:
            return None
        with self._lock:
            if key not in self._growths:
                here = [PartyHere.of(job, name) for name in job.parties]
                self._growths[key] = count(job, here, TIMES)
            return self._growths[key]

    def _refuse_full_disk(self) -> None:
        """Raise DataError: the disk is full, so every further run would fail too."""
        free = shutil.disk_usage(self._kept.out).free
        if free < LEAST_FREE:
            raise DataError(
                f"--out {self._kept.out}: the disk is full, {size(free)} are left; what is finished stays there",
                hint="free some space, then give the same command again: it goes on with the missing runs",
            )


def _count_trained_rows(content: Mapping[str, Any]) -> int | None:
    """Return the number of rows that the model was fitted to, from the first party that reports it."""
    for party in content["parties"].values():
        rows = party["summary"].get("rows", {})
        if isinstance(rows, Mapping) and isinstance(rows.get("trained"), int):
            return int(rows["trained"])
    return None


# --- all runs -- ----------------------------------------------------------------------------------------


@dataclass
class Watch:
    """State of all runs, for the code that draws it.

    Attributes:
        total: number of runs.
        done: number of runs that have ended, with those of earlier commands.
        doing: current step of each run that goes on, by its name.
        took_s: seconds of runs that ended well in this command, by system.
        began: start of each run that goes on, by its name, in seconds of `time.monotonic`.
        left: runs that have not ended.
    """

    total: int
    done: int
    doing: dict[str, str] = field(default_factory=dict)
    took_s: dict[str, list[float]] = field(default_factory=dict)
    began: dict[str, float] = field(default_factory=dict)
    left: list[Run] = field(default_factory=list)

    def seconds_left(self, at_once: int) -> float | None:
        """Return a forecast from the runs that have ended; None before the first."""
        all_s = [taken for times in self.took_s.values() for taken in times]
        if not all_s:
            return None
        mean_s = sum(all_s) / len(all_s)
        each_s = {system: sum(times) / len(times) for system, times in self.took_s.items()}
        to_come = sum(each_s.get(run.system, mean_s) for run in self.left)
        passed = sum(time.monotonic() - began for began in self.began.values())
        return max(0.0, to_come - passed) / at_once


def run_all(
    todo: Sequence[Run],
    cut_of: Callable[[Run], Cut],
    runner: Runner,
    settings: Settings,
    watch: Watch,
    draw: Callable[[], None],
    stop: Stop,
    on_end: Callable[[Run], None],
) -> dict[Run, Done | Failed]:
    """Run every job; return how each ended.

    Args:
        cut_of: function that makes or finds the files of a run; it is called in this thread.
        draw: function that shows the progress; it is called a few times a second.
        on_end: function that receives each run that has ended, in this thread.

    Raises:
        Stopped: by Ctrl-C or SIGTERM; running jobs are ended first, and finished results stay.
        DataError: the disk is full.
        BlindfitError: a table cannot be cut.
    """
    waiting, ended, n_kept = list(todo), dict[Run, Done | Failed](), watch.done
    going: dict[Future[Done | Failed], Run] = {}
    with ThreadPoolExecutor(settings.at_once, thread_name_prefix="simulate") as pool, terminable():
        try:
            while waiting or going:
                while waiting and len(going) < settings.at_once:
                    run = waiting.pop(0)
                    cut = cut_of(run)
                    watch.doing[run.name], watch.began[run.name] = "starting", time.monotonic()
                    going[pool.submit(runner.run, run, cut, _step_keeper(watch, run.name))] = run
                finished, _ = wait(going, timeout=LOOK_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    run = going.pop(future)
                    began = watch.began.pop(run.name)
                    watch.doing.pop(run.name, None)
                    ended[run] = future.result()
                    watch.left.remove(run)
                    watch.done += 1
                    if isinstance(ended[run], Done):
                        watch.took_s.setdefault(run.system, []).append(time.monotonic() - began)
                    on_end(run)
                draw()
        except (KeyboardInterrupt, Stopped):
            stop.ask()
            finished, _ = wait(going)
            n_kept += sum(isinstance(end, Done) for end in ended.values())
            n_kept += sum(future.exception() is None and isinstance(future.result(), Done) for future in finished)
            raise Stopped(
                f"{quantity(n_kept, 'run')} of {watch.total:,} are finished and kept",
                "the same command goes on with the other runs",
            ) from None
        except BaseException:
            stop.ask()
            wait(going)
            raise
    return ended


def _step_keeper(watch: Watch, name: str) -> Callable[[str], None]:
    def keep(step: str) -> None:
        if step:
            watch.doing[name] = step

    return keep
