"""The command line as most tests run it: in this process, with parties that are forked from one that has imported it.

Two thirds of a small job's time are imports, the same in every test. A forked party is a process as any other, with
memory, files, signals and an exit code of its own; `in_a_process` starts everything from nothing, as a user does.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from multiprocessing import connection
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any
from unittest import mock

import typer.main

from blindfit.coordinator.cli import main as cli
from blindfit.coordinator.running import nursery
from blindfit.parties import node
from blindfit.parties.measurement import fitting
from tests.fork_server import FULL_SIZE_KEYS, PRELOADED, forks
from tests.modules import without_main
from tests.quick_keys import quick_keys

ROOT = Path(__file__).parents[1]
CANVAS = "matplotlib.backends.backend_svg.FigureCanvasSVG"  # imported where it is used: each child imports this module
ENVIRONMENT = {"COLUMNS": "200"}  # no line of an error is broken

# A process has one such server: only for `fitting` it would import less.
fitting._processes.set_forkserver_preload(PRELOADED)

_command_of = cache(typer.main.get_command)  # a command of each function of the command line

Done = subprocess.CompletedProcess[str]


def _not_drawn(_canvas: object, file: IO[str], **_metadata: Any) -> None:
    file.write("<svg></svg>")


def blindfit(directory: Path, *arguments: str, main: Callable[[], None] = cli.main, pictures: bool = False) -> Done:
    """Run `blindfit ARGUMENTS` in a directory, and return its output and exit code; no party with a valid file starts.

    Args:
        pictures: True to draw the pictures of a report. They take a fifth of a second; tests/report draws each kind.
    """
    said, errors, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(directory),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(errors),
        mock.patch.dict(os.environ, ENVIRONMENT),
        mock.patch.object(sys, "argv", ["blindfit", *arguments]),
        forked_parties(),
        mock.patch.object(typer.main, "get_command", _command_of),
        contextlib.nullcontext() if pictures else mock.patch(f"{CANVAS}.print_svg", _not_drawn),
        mock.patch.object(node, "set_up_logs", side_effect=AssertionError("a party makes a process its own")),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Done(arguments, code, said.getvalue(), errors.getvalue())


@contextlib.contextmanager
def forked_parties() -> Iterator[None]:
    """Fork the processes from which parties start, as long as the block runs."""
    with mock.patch.object(nursery, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": Forked})):
        yield


def in_a_process(directory: Path, *arguments: str, module: str = "blindfit", timeout_s: float = 90) -> Done:
    """Run the command between processes that all start from nothing."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,  # nobody sits there to be asked
        timeout=timeout_s,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)},
    )


class Forked:
    """The part of `subprocess.Popen` that tests and the launcher use.

    Args:
        words: an interpreter, -m, a module and its arguments.
        stdout, stderr: files, by default the same, or PIPE.
        stdin: PIPE or nothing.
        text: True for pipes of text.
    """

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        stdout: IO[bytes] | int,
        stderr: IO[bytes] | int | None = None,
        stdin: int = subprocess.DEVNULL,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        text: bool = False,
    ) -> None:
        self.args = [str(word) for word in words]
        assert self.args[1] == "-m"
        place = (str(cwd or Path.cwd()), dict(env or os.environ))
        given = {0: stdin, 1: stdout, 2: stdout if stderr is None else stderr}
        pipes = {number: forks.Pipe(duplex=False) for number, what in given.items() if what == subprocess.PIPE}
        theirs: dict[int, Any] = {number: pipe[number > 0] for number, pipe in pipes.items()}
        ours = {number: _file_of(pipe[number == 0], writes=number == 0, text=text) for number, pipe in pipes.items()}
        self.stdin, self.stdout, self.stderr = (ours.get(number) for number in (0, 1, 2))
        files = {number: _path(what) for number, what in given.items() if not isinstance(what, int)}
        self._process = forks.Process(target=_run, args=(self.args[2:], *place, {**files, **theirs}), daemon=False)
        with without_main():
            self._process.start()
        for pipe in theirs.values():
            pipe.close()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended: another process may have its id by now."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Piped(Forked):
    """A process whose output is read here, as text."""

    stdout: IO[str]
    stderr: IO[str]

    def __init__(self, words: Sequence[str | Path], *, cwd: Path) -> None:
        super().__init__(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, text=True)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)  # the output is shorter than a pipe's buffer
        said = self.stdout.read(), self.stderr.read()
        self.close()
        return said

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()


def _path(file: IO[bytes]) -> Path:
    return Path(f"/proc/self/fd/{file.fileno()}").readlink()


def _file_of(pipe: connection.Connection, *, writes: bool, text: bool) -> IO[Any]:
    """Return a file in the place of an end of a pipe."""
    with pipe:
        return os.fdopen(os.dup(pipe.fileno()), ("w" if writes else "r") + ("" if text else "b"))


def _run(
    words: list[str], directory: str, environment: dict[str, str], files: dict[int, Path | connection.Connection]
) -> None:
    """Run in the child as if it had been started with these words."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    for number, file in files.items():
        if isinstance(file, Path):
            os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), number)
        else:
            os.dup2(file.fileno(), number)
            file.close()
    sys.argv = words
    with contextlib.nullcontext() if FULL_SIZE_KEYS.items() <= environment.items() else quick_keys():
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
