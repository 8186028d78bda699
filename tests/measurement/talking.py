"""Child processes that tests talk to line by line: how a test starts, tells and kills them, and how they listen."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import structlog

ROOT = Path(__file__).parents[2]

PEAK = """
from tests.measurement.talking import log_to_standard_error
log_to_standard_error()
def peak_mib():
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024
"""

# --- in a test ----------------------------------------------------------------------------------------


@contextmanager
def child(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.stdin.close()  # type: ignore[union-attr]
            process.wait(60)


def tell(process: subprocess.Popen[str], line: str) -> None:
    pipe: IO[str] = process.stdin  # type: ignore[assignment]
    pipe.write(line + "\n")
    pipe.flush()


def told(process: subprocess.Popen[str]) -> str:
    pipe: IO[str] = process.stdout  # type: ignore[assignment]
    line = pipe.readline()
    assert line, "the child process has died"
    return line.strip()


def await_answers(path: Path, more: int) -> None:
    """So that kills are spread over the work on any machine; with none awaited, it may be opening still."""

    def lines() -> int:
        return path.read_bytes().count(b"\n") if path.exists() else 0

    wanted, give_up = lines() + more, time.monotonic() + 60
    while lines() < wanted and time.monotonic() < give_up:
        time.sleep(0.002)


def said_by(script: str, *arguments: object) -> list[str]:
    """The words that a script printed; it may call `peak_mib()`, the most memory that its process had."""
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


def main(releasing: Callable[[Path], None], racing: Callable[[int], None]) -> None:
    log_to_standard_error()
    what, argument = sys.argv[1:]
    if what == "releasing":
        releasing(Path(argument))
    else:
        racing(int(argument))


def log_to_standard_error() -> None:
    """As standard output is for whoever started the child."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))


def fork_until_killed(work: Callable[[Path], None]) -> None:
    """Each line is a directory: a child of our own works in it; prints its pid, and "dead" once somebody killed it."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            work(Path(line.strip()))
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("dead", flush=True)
