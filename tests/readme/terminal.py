"""A reader's terminal: types commands in a folder, as the pages show them, and reads what they print.

Commands of Blindfit and the examples' scripts run in this process, and parties in forks of one that has imported them.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.command import Done, Forked, blindfit
from tests.ports import held_address
from tests.readme.pages import ROOT

DEADLINE_S = 90
SESSION, DIGEST = r"\b(?:walr|taylor)-[0-9a-f]{8}\b", r"(?<=digest )[0-9a-f]{32}\b"
PLACEHOLDERS = {"SESSION": SESSION, "DIGEST": DIGEST}  # replaced by the last output of earlier commands
PORTS = ("localhost:7101", "localhost:7102")  # ports on the pages; another test may listen there
LEFT_OUT = shutil.ignore_patterns("_build", "node_modules", "data", "state", "certificates", "__pycache__")


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Terminal:
    """
    Attributes:
        directory: folder like a fresh clone, in which a reader sees README, docs and examples.
        printed: output of all commands so far.
    """

    directory: Path
    printed: str = ""
    addresses: dict[str, str] = field(default_factory=lambda: {port: held_address() for port in PORTS})
    running: dict[str, Forked] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in ("examples", "docs"):
            shutil.copytree(ROOT / folder, self.directory / folder, ignore=LEFT_OUT)
        for port in PORTS:
            self.edit("examples/walr/submitted.toml", port, self.addresses[port])

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.directory / name).read_text()
        assert old in text, f"{name} has no {old!r}"
        (self.directory / name).write_text(text.replace(old, new))

    def type(self, command: str, answers: str = "") -> Done:
        command = self._filled_in(command)
        with mock.patch.object(sys, "stdin", Keyboard(answers)):
            done = self._in_a_shell(command) if command[0] == "(" else self._run(command)
        self.printed += done.stdout + done.stderr
        return done

    def start(self, command: str, until: str) -> None:
        """Start the command in its own terminal, and return when it has printed this text."""
        log = self.directory / f"{len(self.running)}.log"
        words = shlex.split(self._filled_in(command))
        with log.open("ab") as out:
            process = Forked([sys.executable, "-m", *words], stdout=out, cwd=self.directory)
        self.running[command] = process
        give_up = time.monotonic() + DEADLINE_S
        while not re.search(until, log.read_text()):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.02)
        self.printed += log.read_text()

    def ends(self, command: str) -> int:
        """Wait for the end of a started command, and return its exit code."""
        return self.running.pop(command).wait(DEADLINE_S)

    def close(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(DEADLINE_S)

    def run_cells(self, cells: str) -> Done:
        """Run cells of a notebook from the top, with their own names; commands that they start run in
        this process too.
        """
        code, names = compile(cells, "cells", "exec"), {"__name__": "__main__"}
        with mock.patch.object(subprocess, "run", self._started), imports_from(self.directory, "examples"):
            return blindfit(self.directory, main=lambda: exec(code, names))

    def _filled_in(self, command: str) -> str:
        for port, address in self.addresses.items():
            command = command.replace(port, address)
        for name, pattern in PLACEHOLDERS.items():
            if re.search(rf"[ =]{name}(?= |$)", command):
                command = re.sub(rf"\b{name}\b", re.findall(pattern, self.printed)[-1], command)
        return command

    def _in_a_shell(self, command: str) -> Done:
        return subprocess.run(["sh", "-c", command], cwd=self.directory, capture_output=True, text=True)

    def _run(self, command: str) -> Done:
        command, _, file = command.partition(" > ")
        done = self._run_words(command)
        if file:
            (self.directory / file).write_text(done.stdout)
        return done

    def _run_words(self, command: str) -> Done:
        program, *arguments = shlex.split(command)
        if program == "blindfit":
            return blindfit(self.directory, *arguments)
        if program == "make":
            demo = re.search(rf"^{arguments[0]}:.*\n\t@\$\(BIN\)/python -m (examples\.\w+\.demo)$", MAKEFILE, re.M)
            assert demo is not None, f"{command}: no demo in the Makefile"
            return blindfit(self.directory, *arguments[1:], main=lambda: self._demo(demo[1]))
        assert program == "python", f"{command}: nothing here can run it"
        return blindfit(self.directory, *arguments[1:], main=lambda: script(self.directory / arguments[0]))

    def _demo(self, module: str) -> None:
        """Run the folder's own example; commands that it starts run in this process too."""
        with imports_from(self.directory, "examples"):
            demo = importlib.import_module("examples.demo")
            processes = SimpleNamespace(**{**vars(subprocess), "run": self._started})
            with mock.patch.object(demo, "subprocess", processes):
                runpy.run_module(module, run_name="__main__")

    def _started(
        self,
        words: list[Any],
        *,
        stdout: int | None = None,
        capture_output: bool = False,
        check: bool = False,
        **_: Any,
    ) -> Done:
        """Run a script or Blindfit's command line, in place of `subprocess.run`."""
        program, first, *rest = map(str, words)
        assert program == sys.executable, f"{program}: nothing here can run it"
        if first == "-m":
            assert rest[0] == "blindfit", f"-m {rest[0]}: nothing here can run it"
            done = blindfit(self.directory, *rest[1:])
        else:
            done = blindfit(self.directory, *rest, main=lambda: script(Path(first)))
        if not capture_output:
            sys.stdout.write("" if stdout == subprocess.DEVNULL else done.stdout)
            sys.stderr.write(done.stderr)
        if check:
            done.check_returncode()
        return done


MAKEFILE = (ROOT / "Makefile").read_text()


def script(path: Path) -> None:
    with imports_from(path.parent, *(module.stem for module in path.parent.glob("*.py"))):
        runpy.run_path(str(path), run_name="__main__")


@contextlib.contextmanager
def imports_from(directory: Path, *packages: str) -> Iterator[None]:
    """Import these packages from the directory, even if others were imported before; restore all modules afterwards."""

    def take_out() -> dict[str, Any]:
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in packages}

    before = take_out()
    importlib.invalidate_caches()
    with mock.patch.object(sys, "path", [str(directory), *sys.path]):
        try:
            yield
        finally:
            take_out()
            sys.modules.update(before)


Given = Callable[[Terminal], None]
