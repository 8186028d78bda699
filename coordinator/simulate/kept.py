"""Keep each finished run of a simulation in its folder, so that the same command goes on where it was stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.simulate.asked import ALL
from blindfit.parties.files.written import read_json, write_json

ASKED, RUNS, WORK, REPEAT = "asked.json", "runs", "work", "repeat-"
OURS = re.compile(rf"cut-\d+|({'|'.join(ALL)})(-epsilon-[^-]+(-\d+)?)?-\d+")  # folders in `work`: of cuts and of runs
OTHER_FOLDER = "name another folder with --out, or remove this one"

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """One job of a simulation.

    Attributes:
        epsilon: the privacy budget that the job takes; None for a system that takes none.
        repeat: number of the cut, from 0.
    """

    system: str
    epsilon: float | None
    repeat: int

    @property
    def name(self) -> str:
        setting = "" if self.epsilon is None else f"-epsilon-{self.epsilon!r}"
        return f"{self.system}{setting}-{self.repeat + 1}"


@dataclass(frozen=True)
class Done:
    """Figures of a run that ended well.

    Attributes:
        quality: figures of the held-out rows by name: auc and log_loss, or r2.
        epsilon, delta: budget in the report; None if nothing is charged.
        bits: bits that the run adds to the disclosure accounts, by their subject.
        seconds: time from the start of the processes to the report.
        set_up_s: part of `seconds` that does not grow with rows.
        growth: factor of the rest of the time for ten times the rows, as counted; None if no code counts it.
        protects: sentence on what is protected from whom.
        laid_out: place of the columns among the parties of this system.
        warnings: limits of budgets and accounts that the run passed, if they only warn.
        at_once: number of runs that went at once in its command.
    """

    quality: Mapping[str, float]
    epsilon: float | None
    delta: float | None
    bits: Mapping[str, float]
    rows: int | None
    seconds: float
    set_up_s: float
    growth: float | None
    bytes_sent: int
    messages_sent: int
    peak_memory_mib: Mapping[str, float]
    protects: str
    laid_out: str = ""
    warnings: Sequence[str] = ()
    at_once: int = 1


@dataclass(frozen=True)
class Failed:
    """Reason why a run ended without a result: one line, and what to do."""

    reason: str
    hint: str = ""


@dataclass(frozen=True)
class Repeat:
    """Facts about one cut of the table, which are known before any run.

    Attributes:
        quality: figures of the held-out rows, by the name of the fit that needs no partner or has no privacy.
        not_for: reason why a system cannot fit this label or table, by system.
        private: systems that take an epsilon.
        processes: number of processes of the largest job.
        columns: columns of each party.
        notes: sentences about what the cut did.
    """

    quality: Mapping[str, Mapping[str, float]]
    not_for: Mapping[str, str]
    private: Sequence[str]
    processes: int
    columns: Mapping[str, Sequence[str]]
    notes: Sequence[str] = ()


class Kept:
    """The folder of a simulation.

    Args:
        asked: values that decide the figures of a run, by their names in errors: the table, and options.
    """

    def __init__(self, out: Path, asked: Mapping[str, Any]) -> None:
        self.out, self.work = out, out / WORK
        self._asked = asked

    def open(self) -> None:
        """Check that the folder belongs to this simulation, or take it over.

        A folder is taken over if it is empty, or if another simulation left it before a run of it ended.

        Raises:
            ConfigError: the folder has other content.
        """
        path, runs = self.out / ASKED, self.out / RUNS
        others = sorted(file.name for file in self.out.iterdir())
        if others and not path.exists():
            raise ConfigError(f"--out {self.out} holds {others[0]}, and no simulation", hint=OTHER_FOLDER)
        before = read_json(path) if others else {}
        if not isinstance(before, dict) or (others and not before.keys() & self._asked.keys()):
            raise DataError(f"{path} does not come from a simulation", hint=OTHER_FOLDER)
        for name, value in self._asked.items():
            if before.get(name) != value and any(not file.name.startswith(REPEAT) for file in runs.glob("*")):
                raise ConfigError(f"--out {self.out} has a simulation of another {name}", hint=OTHER_FOLDER)
        self.remove()  # files of a killed command
        if before != self._asked:
            for repeat in runs.glob(f"{REPEAT}*.json"):
                repeat.unlink()
            write_json(path, self._asked)

    # --- runs

    def read(self, run: Run) -> Done | Failed | None:
        """Return the result of a run; None if it never ended.

        Raises:
            DataError: somebody has changed the file.
        """
        path = self._path(run.name)
        if not path.exists():
            return None
        content = read_json(path)
        if isinstance(content, dict) and "reason" in content:
            return _read(Failed, content, path)
        return _read(Done, content, path)

    def write(self, run: Run, ended: Done | Failed) -> None:
        write_json(self._path(run.name), dataclasses.asdict(ended))

    def read_repeat(self, repeat: int) -> Repeat | None:
        """Return the facts of a cut; None if the table was not cut yet.

        Raises:
            DataError: somebody has changed the file.
        """
        path = self._path(_repeat(repeat))
        return _read(Repeat, read_json(path), path) if path.exists() else None

    def write_repeat(self, repeat: int, found: Repeat) -> None:
        write_json(self._path(_repeat(repeat)), dataclasses.asdict(found))

    def _path(self, name: str) -> Path:
        return self.out / RUNS / f"{name}.json"

    # --- temporary folders -----

    def folder(self, name: str) -> Path:
        """Return a folder for large files that are not kept."""
        return self.work / name

    def remove(self, *names: str) -> None:
        """Remove folders by name, or all that a simulation makes; files of somebody else stay."""
        found = [path.name for path in self.work.glob("*") if OURS.fullmatch(path.name)]
        for name in names or found:
            shutil.rmtree(self.work / name, ignore_errors=True)
        if not names:
            with contextlib.suppress(OSError):  # it has files of somebody else, or does not exist
                self.work.rmdir()


def _repeat(number: int) -> str:
    return f"{REPEAT}{number + 1}"


def _read(kind: type[T], content: Any, path: Path) -> T:
    try:
        return kind(**content)
    except TypeError:
        raise DataError(
            f"{path} is not what a simulation wrote", hint="remove the file: its run is done again"
        ) from None
