"""The command line as most tests run it: in this process, with parties that are forked from one that has imported it.

Two thirds of a small job's time are imports, the same in every test. A forked party is a process as any other, with
memory, files, signals and an exit code of its own; `in_a_process` starts everything anew, as a user does.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import connection
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any
from unittest import mock

import typer.main

from blindfit.coordinator.cli import main as cli
from blindfit.coordinator.running import launcher
from blindfit.parties import node
from blindfit.parties.measurement import fitting
from tests.fork_server import FULL_SIZE_KEYS, PRELOADED, forks
from tests.quick_keys import quick_keys

ROOT = Path(__file__).parents[1]
CANVAS = "matplotlib.backends.backend_svg.FigureCanvasSVG"  # imported where it is used: each child imports this module
ENVIRONMENT = {"COLUMNS": "200"}  # no line of an error is broken

# A process has one such server: for `fitting` alone it would import less.
fitting._processes.set_forkserver_preload(PRELOADED)

_command_of = cache(typer.main.get_command)  # a command of each function of the command line

Done = subprocess.CompletedProcess[str]


def _not_drawn(_canvas: object, file: IO[str], **_metadata: Any) -> None:
    file.write("<svg></svg>")


def blindfit(directory: Path, *arguments: str, main: Callable[[], None] = cli.main, pictures: bool = False) -> Done:
    """What `blindfit ARGUMENTS` says and how it ends, in a directory; a party whose file is right is not started.

    Args:
        pictures: are drawn in a report. They take a fifth of a second; tests/report draws each kind.
    """
    said, errors, code = io.StringIO(), io.StringIO(), 0
    processes = SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
    with (
        contextlib.chdir(directory),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(errors),
        mock.patch.dict(os.environ, ENVIRONMENT),
        mock.patch.object(sys, "argv", ["blindfit", *arguments]),
        mock.patch.object(launcher, "subprocess", processes),
        mock.patch.object(typer.main, "get_command", _command_of),
        contextlib.nullcontext() if pictures else mock.patch(f"{CANVAS}.print_svg", _not_drawn),
        mock.patch.object(node, "set_up_logs", side_effect=AssertionError("a party makes a process its own")),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Done(arguments, code, said.getvalue(), errors.getvalue())


def in_a_process(directory: Path, *arguments: str, module: str = "blindfit", timeout_s: float = 90) -> Done:
    """The same between processes that all start from nothing."""
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
    """What tests and the launcher use of `subprocess.Popen`.

    Args:
        words: an interpreter, -m, a module and its arguments.
        stdout, stderr: files, by default the same.
    """

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        stdout: IO[bytes] | Path,
        stderr: IO[bytes] | Path | None = None,
        stdin: int = subprocess.DEVNULL,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        **_same: Any,
    ) -> None:
        self.args = [str(word) for word in words]
        assert self.args[1] == "-m"
        logs = (_path(stdout), _path(stdout if stderr is None else stderr))
        place = (str(cwd or Path.cwd()), logs, dict(env or os.environ))
        read, self.stdin = forks.Pipe(duplex=False) if stdin == subprocess.PIPE else (None, None)
        self._process = forks.Process(target=_run, args=(self.args[2:], *place, read), daemon=False)
        with mock.patch.dict(sys.modules, {"__main__": ModuleType("__main__")}):  # the child has no use for pytest's
            self._process.start()
        if read is not None:
            read.close()

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
        """Of one that has ended the server has taken its leave: its id may be another process's by now."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Piped(Forked):
    """One whose output is read here, as text."""

    def __init__(self, words: Sequence[str | Path], *, cwd: Path) -> None:
        with tempfile.TemporaryDirectory() as directory:
            out, errors = Path(directory, "out"), Path(directory, "errors")
            for pipe in (out, errors):
                os.mkfifo(pipe)
            super().__init__(words, stdout=out, stderr=errors, cwd=cwd)
            self.stdout, self.stderr = out.open(), errors.open()  # each is there when the child has opened it too

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)  # it says less than a pipe holds
        said = self.stdout.read(), self.stderr.read()
        self.close()
        return said

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()


def _path(file: IO[bytes] | Path) -> Path:
    return file if isinstance(file, Path) else Path(f"/proc/self/fd/{file.fileno()}").readlink()


def _run(
    words: list[str],
    directory: str,
    logs: tuple[Path, Path],
    environment: dict[str, str],
    stdin: connection.Connection | None,
) -> None:
    """In the child: from here on as if it had been started with these words."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    for number, log in zip((1, 2), logs, strict=True):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), number)
    if stdin is not None:
        os.dup2(stdin.fileno(), 0)
    sys.argv = words
    with contextlib.nullcontext() if FULL_SIZE_KEYS.items() <= environment.items() else quick_keys():
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
