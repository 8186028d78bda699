"""Record of the tests: which of them run a line, and how long each takes."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import coverage

from tests.mutants.drawn.draw import FOLDERS, Drawn
from tests.mutants.drawn.recorder import LINES, ROOT, SETTINGS, TIMES, write_settings

PAGES = TIMES.with_name("pages.json")  # the digest of every page when its tests were recorded
LEFT_OUT = ("readme", "mutants", "house", "repository", "benchmarks", "cluster", "oracles")
"""Folders that take long, or that look at the text of the code."""

MOST_FILES = 25  # each that is collected takes a tenth of a second
SHARE_OF_A_FILE = 0.4  # share of the seconds
PHASE = re.compile(r"\|(?:run|setup|teardown)$| \((?:call|setup|teardown)\)$")


def pages() -> list[str]:
    """Return every page of tests whose lines are recorded."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(page.relative_to(ROOT)) for page in found if page.relative_to(ROOT).parts[1] not in LEFT_OUT]


def bring_up_to_date(jobs: int, *, fresh: bool) -> None:
    """Record every page that has changed since its tests were recorded, and all pages if the lines may have moved."""
    code = {name: _digest(name) for folder in FOLDERS for name in _code_of(folder)}
    now = code | {page: _digest(page) for page in pages()}
    before: dict[str, str] = {} if fresh or not PAGES.exists() else json.loads(PAGES.read_text())
    if any(before.get(name) != digest for name, digest in code.items()):
        before = {}
    changed = [page for page in pages() if before.get(page) != now[page]]
    if not changed:
        return
    if not before:
        for old in LINES.parent.glob(f"{LINES.name}*"):
            old.unlink()
    print(f"recording the lines that {len(changed)} pages of tests run (all of them: ten minutes) ...", flush=True)
    _record(changed if before else ["tests", *(f"--ignore=tests/{folder}" for folder in LEFT_OUT)], jobs, bool(before))
    PAGES.write_text(json.dumps(now))


def _record(arguments: Sequence[str], jobs: int, more: bool) -> None:
    known = json.loads(TIMES.read_text()) if more else {}
    if more:
        LINES.rename(LINES.with_name(f"{LINES.name}.before"))  # pytest-cov combines it at the end
    write_settings(FOLDERS)
    options = ["-q", "--no-header", "-n", str(jobs), "--dist", "loadfile", "-p", "no:cacheprovider"]
    options += ["-p", "tests.mutants.drawn.recorder", "--cov", f"--cov-config={SETTINGS}", "--cov-context=test"]
    subprocess.run([sys.executable, "-m", "pytest", *options, "--cov-report=", *arguments], cwd=ROOT, check=False)
    combine_the_late(LINES)
    again = tuple(f"{argument}::" for argument in arguments)
    kept = {test: seconds for test, seconds in known.items() if not test.startswith(again)}
    TIMES.write_text(json.dumps(kept | json.loads(TIMES.read_text())))


def combine_the_late(lines: Path) -> None:
    """Add what processes have saved after pytest-cov had combined the others."""
    whole = coverage.CoverageData(str(lines))
    whole.read()
    for path in lines.parent.glob(f"{lines.name}.*"):
        late = coverage.CoverageData(str(path))
        late.read()
        whole.update(late)
        late.close()
        path.unlink()
    whole.close()


def _code_of(folder: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).rglob("*.py"))]


def _digest(name: str) -> str:
    return hashlib.sha256((ROOT / name).read_bytes()).hexdigest()


class Record:
    """The lines and times that `bring_up_to_date` has left."""

    def __init__(self, lines: Path = LINES, times: Path = TIMES, root: Path = ROOT) -> None:
        self._root, self._data = root, coverage.CoverageData(str(lines))
        self._data.read()
        self.times: dict[str, float] = json.loads(times.read_text())
        self._tests_of_page: dict[str, list[str]] = {}
        for test in self.times:
            self._tests_of_page.setdefault(test.partition("::")[0], []).append(test)

    def tests_of(self, mutant: Drawn) -> set[str]:
        """Return the tests that run a line of its statement.

        A line that only an import runs, or a process that no test is known of, gets the tests of its module; a module
        that no test runs gets the tests of its folder.
        """
        by_line = self._contexts(mutant.file)
        lines = range(mutant.lines[0], mutant.lines[1] + 1)
        ran = set(self._named(context for line in lines for context in by_line.get(line, ())))
        ran = ran or set(self._named(context for contexts in by_line.values() for context in contexts))
        return ran or {test for test in self.times if _folder(test) in Path(mutant.file).parts}

    def _contexts(self, file: str) -> dict[int, list[str]]:
        return _contexts(self._data, str(self._root / file))

    def _named(self, contexts: Iterable[str]) -> Iterator[str]:
        for context in set(contexts):
            test = PHASE.sub("", context)
            if "setup" in context.removeprefix(test):  # a fixture's line, which may be the whole page's
                yield from self._tests_of_page.get(test.partition("::")[0], ())
            elif test in self.times:
                yield test

    def chosen_for(self, mutant: Drawn, seconds: float) -> tuple[str, ...]:
        """Return tests of `seconds` in all, page by page: first those of the mutant's folder, and the quick ones."""
        by_page: dict[str, list[str]] = {}
        for test in self.tests_of(mutant):
            by_page.setdefault(test.partition("::")[0], []).append(test)
        own = Path(mutant.file).parts
        quick = {page: self._quick(tests, seconds * SHARE_OF_A_FILE) for page, tests in by_page.items()}
        chosen: list[str] = []
        left_s = seconds
        for page in sorted(quick, key=lambda page: (_folder(page) not in own, self._seconds(quick[page]), page))[
            :MOST_FILES
        ]:
            if not chosen or self._seconds(quick[page]) <= left_s:
                chosen += quick[page]
                left_s -= self._seconds(quick[page])
        return tuple(chosen)

    def _quick(self, tests: list[str], seconds: float) -> list[str]:
        """Return the quickest tests of a page, in its order."""
        by_time = sorted(tests, key=lambda test: (self.times[test], test))
        fits = [
            test for number, test in enumerate(by_time, 1) if number == 1 or self._seconds(by_time[:number]) <= seconds
        ]
        return [test for test in self._tests_of_page[tests[0].partition("::")[0]] if test in set(fits)]

    def _seconds(self, tests: Iterable[str]) -> float:
        return sum(self.times[test] for test in tests)


@lru_cache(16)
def _contexts(data: coverage.CoverageData, file: str) -> dict[int, list[str]]:
    return data.contexts_by_lineno(file)


def _folder(test: str) -> str:
    return Path(test.partition("::")[0]).parts[1]
