"""Child processes that tests talk to line by line: how a test starts, orders and kills them, and how they listen."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

import structlog

from tests.command import forks
from tests.modules import without_main

ROOT = Path(__file__).parents[2]

PEAK = """
from tests.measurement.talking import log_to_standard_error
log_to_standard_error()
def peak_mib():
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024
"""

# --- in a test ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Child:
    """A process that is forked from one that has imported all, and the other ends of its standard streams."""

    stdin: IO[str]
    stdout: IO[str]


@contextmanager
def child(module: str, *arguments: str) -> Iterator[Child]:
    (heard, to_child), (from_child, said) = forks.Pipe(False), forks.Pipe(False)
    process = forks.Process(target=_run, args=(module, arguments, heard, said), daemon=False)
    with without_main():
        process.start()
    heard.close()
    said.close()  # otherwise this process would wait for a line of a dead child
    with open(to_child.fileno(), "w", closefd=False) as stdin, open(from_child.fileno(), closefd=False) as stdout:
        try:
            yield Child(stdin, stdout)
        finally:
            to_child.close()
            process.join(60)
            process.kill()
            process.join()
            from_child.close()


def tell(process: Child, line: str) -> None:
    process.stdin.write(line + "\n")
    process.stdin.flush()


def told(process: Child) -> str:
    line = process.stdout.readline()
    assert line, "the child process has died"
    return line.strip()


def await_answers(path: Path, more: int) -> None:
    """Wait for answers, so that kills are spread over the work on any machine; if none is due, the child may still be
    opening.
    """

    def lines() -> int:
        return path.read_bytes().count(b"\n") if path.exists() else 0

    wanted, give_up = lines() + more, time.monotonic() + 60
    while lines() < wanted and time.monotonic() < give_up:
        time.sleep(0.002)


def said_by(script: str, *arguments: object) -> list[str]:
    """Return the words that a script printed; it may call `peak_mib()`, its process's peak memory."""
    run = subprocess.run(
        [sys.executable, "-c", PEAK + textwrap.dedent(script), *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


# --- in a child ---------------------------------------------------------------------------------------


def _run(module: str, arguments: Sequence[str], heard: Connection, said: Connection) -> None:
    """Run the module as if this process had been started with these words."""
    for stream, number in ((heard, 0), (said, 1)):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(releasing: Callable[[Path], None], racing: Callable[[int], None]) -> None:
    log_to_standard_error()
    what, argument = sys.argv[1:]
    if what == "releasing":
        releasing(Path(argument))
    else:
        racing(int(argument))


def log_to_standard_error() -> None:
    """Log to standard error: standard output is for the parent process."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))


def fork_until_killed(work: Callable[[Path], None]) -> None:
    """Fork a child for each line, which is the directory it works in; print its pid, and "dead" once somebody killed
    it.
    """
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            work(Path(line.strip()))
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("dead", flush=True)
