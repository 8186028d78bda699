"""Applies every mutant of the catalogue to a copy of the project, and runs the tests that should notice it.

    python -m tests.mutants.run [--only NAME ...] [--jobs 2] [--timeout 60] [--fresh] [--list]

First the tests themselves run on an unchanged copy: they must pass, or their results for mutants mean nothing. Results
are kept in .mutants/, so a run that was interrupted goes on where it stopped; another tree starts again. It fails when
a mutant survives that is not marked as known, and when a known one is noticed: then the mark can go.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from tests.mutants.mutant import Change, Mutant

ROOT = Path(__file__).parents[2]
OWN = "tests/mutants/"  # no other test depends on it
OF_A_DEADLINE = 3  # the recorded time of a drawn mutant's tests is one part in so many
CONTROL_SHARE = 5  # the tests of a whole file may take this many times as long as those of one mutant
TO_CLEAN_UP_S = 10  # pytest's own deadline ends this much earlier, so that fixtures end what they started

CONTROLS = {"survived": "pass", "noticed": "fail"}  # names of outcomes without a mutant
Outcome = Literal["noticed", "timed out", "survived", "error"]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    key: str
    name: str
    outcome: Outcome
    seconds: float
    output: str = ""  # the test that noticed; or, of an error and of a control, the last of what pytest said


# --- one run of pytest --------------------------------------------------------------------------------


class Children:
    """Running processes; an interrupted run leaves none of them behind."""

    def __init__(self) -> None:
        self._lock, self._running, self._stopped = threading.Lock(), set[int](), False

    def run(self, command: Sequence[str], directory: Path, timeout_s: float) -> tuple[int | None, str]:
        """Run a process; return its exit status, or None past the deadline, and its output."""
        environment = {**os.environ, "PYTHONPATH": str(directory)}
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            with self._lock:
                if self._stopped:
                    return -1, "stopped"
                child = subprocess.Popen(
                    command,
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self._running.add(child.pid)
            try:
                status = child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _kill_group(child.pid)
                child.wait()
                with self._lock:
                    self._running.discard(child.pid)
            output.seek(0)
            return status, output.read()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for pid in self._running:
                _kill_group(pid)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def run_tests(children: Children, directory: Path, tests: Sequence[str], timeout_s: float) -> tuple[Outcome, str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    own_deadline_s = max(timeout_s - TO_CLEAN_UP_S, timeout_s / 2)
    options = [f"--timeout={own_deadline_s:g}", "--hypothesis-seed=0"]
    status, output = children.run([*command, *options, *tests], directory, timeout_s)
    if status is None or (status == 1 and "from pytest-timeout" in output):
        return "timed out", output
    outcomes: dict[int, Outcome] = {0: "survived", 1: "noticed"}
    return outcomes.get(status, "error"), output


def _who_noticed(output: str) -> str:
    found = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - |$)", output, re.MULTILINE)
    return found[1] if found else ""


# --- copies of the project ----------------------------------------------------------------------------


def tracked_files(root: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    names = filter(None, listed.stdout.decode().split("\0"))
    return [name for name in names if (root / name).is_file() or (root / name).is_symlink()]


class Copies:
    """A copy of the project for each job, used repeatedly."""

    def __init__(self, root: Path, files: Sequence[str], count: int) -> None:
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        self._directory = Path(tempfile.mkdtemp(prefix="blindfit-mutants-"))
        for number in range(count):
            copy = self._directory / str(number)
            for name in files:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, copy / name, follow_symlinks=False)
            self._free.put(copy)

    @contextlib.contextmanager
    def one(self, mutant: Change | None = None) -> Iterator[Path]:
        """Yield a copy with the mutant in it, for as long as the block runs."""
        copy = self._free.get()
        try:
            if mutant is None:
                yield copy
                return
            path, mutated = mutant.path_in(copy), mutant.applied_in(copy)
            original = path.read_text("utf-8")
            _rewrite(path, mutated)
            try:
                yield copy
            finally:
                _rewrite(path, original)
        finally:
            self._free.put(copy)

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


def _rewrite(path: Path, text: str) -> None:
    """Write the text and remove cached bytecode, which Python compares by time in seconds and size: a mutant may have
    both.
    """
    path.write_text(text, "utf-8")
    for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        cached.unlink()


# --- what is remembered -------------------------------------------------------------------------------


def digest_of_tree(root: Path, files: Sequence[str], without: str = OWN) -> str:
    """Return the digest of all code and settings outside one folder."""
    state = hashlib.sha256()
    for name in sorted(files):
        if name.endswith((".py", ".toml")) and not name.startswith(without):  # no link to a folder has such a name
            state.update(f"{name}\0{hashlib.sha256((root / name).read_bytes()).hexdigest()}\n".encode())
    return state.hexdigest()


class Memory:
    """Results as one line of JSON each; those of other trees are forgotten."""

    def __init__(self, path: Path, tree: str, *, fresh: bool) -> None:
        self._path, self._tree, self._lock = path, tree, threading.Lock()
        self._known: dict[str, Result] = {}
        lines = [] if fresh or not path.exists() else path.read_text("utf-8").splitlines()
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError):  # a line that was cut off
                content = json.loads(line)
                if content.pop("tree") == tree:
                    result = Result(**content)
                    self._known[result.key] = result
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(map(self._line, self._known.values())), "utf-8")

    def _line(self, result: Result) -> str:
        return json.dumps({"tree": self._tree, **asdict(result)}) + "\n"

    def get(self, key: str) -> Result | None:
        return self._known.get(key)

    def put(self, result: Result) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self._known[result.key] = result
            file.write(self._line(result))


# --- the run ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant and its tests; or, without a mutant, tests that must pass."""

    name: str
    tests: tuple[str, ...]
    mutant: Change | None = None

    @property
    def key(self) -> str:
        m = self.mutant
        change = [] if m is None else [m.place, m.before, m.after]
        return hashlib.sha256(json.dumps([change, self.tests]).encode()).hexdigest()


def controls_of(mutants: Sequence[Mutant]) -> list[Trial]:
    """Return one control for each test file, with all tests that the mutants name."""
    by_file: dict[str, set[str]] = {}
    for test in (test for mutant in mutants for test in mutant.tests):
        by_file.setdefault(test.partition("::")[0], set()).add(test)
    return [Trial(file, (file,) if file in tests else tuple(sorted(tests))) for file, tests in sorted(by_file.items())]


class Run:
    """
    Args:
        files: files of the project at `root`, as git lists them.
        without: folder whose changes leave earlier results as they are.
        say: function that prints a line.
    """

    def __init__(
        self,
        root: Path,
        files: Sequence[str],
        state: Path,
        *,
        jobs: int,
        timeout_s: float,
        fresh: bool,
        say: Say,
        without: str = OWN,
    ) -> None:
        self._memory = Memory(state, digest_of_tree(root, files, without), fresh=fresh)
        self._root, self._files, self._jobs, self._timeout_s, self._say = root, files, jobs, timeout_s, say
        self._children = Children()
        self._copies: Copies

    def verdicts(self, mutants: Sequence[Mutant]) -> bool:
        """Return True if everything is as the catalogue states."""
        started = time.monotonic()
        controls = self.results(controls_of(mutants))
        failed = [control for control in controls if control.outcome != "survived"]
        if failed:
            for control in failed:
                self._say(f"\n{control.output}\n{control.name}: does not pass without any mutant ({control.outcome})")
            return False
        took = {control.name: control.seconds for control in controls}
        results = self.results([Trial(mutant.name, mutant.tests, mutant) for mutant in mutants])
        results = [self._not_just_slow(*pair, took) for pair in zip(mutants, results, strict=True)]
        return self._summary(mutants, results, time.monotonic() - started)

    def _not_just_slow(self, mutant: Mutant, result: Result, took: Mapping[str, float]) -> Result:
        """Return the result, but an error if a deadline has passed that is short for the tests themselves."""
        alone_s = sum(took[str(file)] for file in mutant.test_files)
        if result.outcome != "timed out" or 2 * alone_s < self._timeout_s:
            return result
        return replace(result, outcome="error", output=f"without any mutant its tests took up to {alone_s:g} s")

    def results(self, trials: Sequence[Trial]) -> list[Result]:
        """Return their results, in their order."""
        found = {trial.key: result for trial in trials if (result := self._memory.get(trial.key))}
        left = [trial for trial in trials if trial.key not in found]
        if found:
            self._say(f"{len(found)} of {len(trials)} results are those of an earlier run")
        if left:
            self._copies = Copies(self._root, self._files, min(self._jobs, len(left)))
            try:
                self._in_parallel(left, found, len(trials))
            finally:
                self._copies.remove()
        return [found[trial.key] for trial in trials]

    def _in_parallel(self, trials: Sequence[Trial], found: dict[str, Result], total: int) -> None:
        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                for future in as_completed([pool.submit(self._try, trial) for trial in trials]):
                    result = future.result()
                    found[result.key] = result
                    outcome = result.outcome if trials[0].mutant else CONTROLS.get(result.outcome, result.outcome)
                    self._say(f"{len(found):4}/{total}  {outcome:9}  {result.seconds:5.1f} s  {result.name}")
            except BaseException:  # Ctrl-C too: nothing goes on behind our back
                pool.shutdown(wait=False, cancel_futures=True)
                self._children.stop()
                raise

    def _try(self, trial: Trial) -> Result:
        started = time.monotonic()
        share = CONTROL_SHARE if trial.mutant is None else 1
        try:
            with self._copies.one(trial.mutant) as copy:
                outcome, output = run_tests(self._children, copy, trial.tests, share * self._timeout_s)
        except (ValueError, OSError) as error:
            outcome, output = "error", str(error)
        told = output[-3000:] if outcome == "error" or trial.mutant is None else _who_noticed(output)
        result = Result(trial.key, trial.name, outcome, round(time.monotonic() - started, 1), told)
        if outcome == "survived" or (trial.mutant is not None and outcome != "error"):
            self._memory.put(result)  # an error must be mended, and is tried again
        return result

    def _summary(self, mutants: Sequence[Mutant], results: Sequence[Result], seconds: float) -> bool:
        complaints, known = [], 0
        for mutant, result in zip(mutants, results, strict=True):
            if result.outcome == "error":
                complaints.append(f"{result.output}\n{mutant.name}: its tests could not run")
            elif result.outcome == "survived":
                known += mutant.known
                if not mutant.known:
                    complaints.append(f"{mutant.name}: survived {' '.join(mutant.tests)}")
            elif mutant.known:
                complaints.append(f"{mutant.name}: is noticed now; remove its mark `known`")
        outcomes = [result.outcome for result in results]
        late, errors = outcomes.count("timed out"), outcomes.count("error")
        noticed, survived = outcomes.count("noticed") + late, outcomes.count("survived") - known
        for complaint in complaints:
            self._say(complaint)
        self._say(
            f"{len(mutants)} mutants: {noticed} noticed ({late} by a deadline), {known} known, {survived} survived, "
            f"{errors} errors; {seconds:.0f} s"
        )
        return not complaints


# --- the command --------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these mutants; of drawn ones, FILE:LINE")
    parser.add_argument("--jobs", type=int, default=2, help="at a time (%(default)s)")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="of each (%(default)g)")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    parser.add_argument(
        "--drawn", type=int, metavar="COUNT", help="mutants that a seed draws, not those of the catalogue"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the draw (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        return _drawn(options) if options.drawn else _catalogue(options, parser)
    except KeyboardInterrupt:
        print("interrupted: the next run goes on from here", file=sys.stderr)
        return 130


def _catalogue(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from tests.mutants.catalogue import MUTANTS

    strangers = set(options.only or ()) - {mutant.name for mutant in MUTANTS}
    if strangers:
        parser.error(f"no mutant is named {', '.join(sorted(strangers))}")
    chosen = [mutant for mutant in MUTANTS if options.only is None or mutant.name in options.only]
    if options.list:
        for mutant in chosen:
            promises = ", ".join(map(str, mutant.promises))
            print(f"{mutant.name:50} {promises:10} {mutant.place}{'  (known)' if mutant.known else ''}")
        return 0
    return 0 if _run(options, "results.jsonl", OWN).verdicts(chosen) else 1


def _drawn(options: argparse.Namespace) -> int:
    from tests.mutants.drawn.draw import draw
    from tests.mutants.drawn.equivalents import EQUIVALENT
    from tests.mutants.drawn.record import Record, bring_up_to_date
    from tests.mutants.drawn.score import score

    drawn = draw(ROOT, tracked_files(ROOT), options.drawn, options.seed)
    chosen = [mutant for mutant in drawn if options.only is None or mutant.place in options.only]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.operator:25} {mutant.name}")
        return 0
    bring_up_to_date(max(1, options.jobs), fresh=options.fresh)
    run = _run(options, "drawn.jsonl", "tests/")
    seconds = options.timeout / OF_A_DEADLINE
    return 0 if score(run, chosen, Record(), EQUIVALENT, seconds=seconds, say=_say) else 1


def _run(options: argparse.Namespace, state: str, without: str) -> Run:
    return Run(
        ROOT,
        tracked_files(ROOT),
        ROOT / ".mutants" / state,
        jobs=max(1, options.jobs),
        timeout_s=options.timeout,
        fresh=options.fresh,
        say=_say,
        without=without,
    )


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
