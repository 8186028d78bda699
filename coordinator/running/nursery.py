"""One warm process that forks the parties of `blindfit run`: their common imports are made once.

A Nursery is the command's end: it starts the process, orders children and receives how each child ends. The other end
is forking.py. It imports what a party needs and opens nothing: no server, no key and no file of a party. It has no
Python thread; the libraries of OpenBLAS and of Arrow's allocator prepare their threads for a fork. Both ends write
lines of JSON:

    to the process    {"child": 1, "words": [...], "systems": [...], "folder": ..., "environment": {...}, "log": ...}
                      {"child": 1, "signal": 15}
    to the command    {"child": 1, "pid": 4711}
                      {"child": 1, "ended": 0}

Only the process sends signals to its children, and it learns itself how they end. A signal therefore never reaches
another process that has the number of an ended child. The one exception is SIGCONT, which the command sends to
children whose nursery was killed: it changes nothing in a running process. The process and its children end when
standard input ends, for any end of the command.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

BLINDFIT = (sys.executable, "-m", "blindfit")
ENDS_WITHIN_S = 5.0  # the process, after its standard input has ended


class Child:
    """A party's process, as the command sees it. Names and values are those of `subprocess.Popen`."""

    def __init__(self, number: int, words: Sequence[str], send: Callable[[dict[str, Any]], None]) -> None:
        self.args = list(words)
        self.returncode: int | None = None
        self._number, self._send = number, send
        self._pid = 0
        self._started, self._ended = threading.Event(), threading.Event()

    @property
    def pid(self) -> int:
        """Process number, after the process is forked; 0 if it never was."""
        self._started.wait()
        return self._pid

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raise subprocess.TimeoutExpired."""
        if not self._ended.wait(timeout) or self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            self._send({"child": self._number, "signal": int(number)})

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wake(self) -> None:
        """Let a stopped process go on: without its nursery it ends by itself only then."""
        if self._pid and self.returncode is None:
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGCONT)

    def hear(self, report: dict[str, int]) -> None:
        """Receive what the nursery's process reports of this child."""
        if "pid" in report:
            self._pid = report["pid"]
        else:
            self.returncode = report["ended"]
            self._ended.set()
        self._started.set()


class Nursery:
    """Process that forks parties while it is open. Several threads and several runs may share one.

    Args:
        command: command line that starts a process of Blindfit; None means `python -m blindfit`.

    Attributes:
        code: code of `subprocess` for the end of the process; None while it runs.
        said: output of the process before it ended; a child writes into its own log.
    """

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self.code: int | None = None
        self.said = ""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._children: dict[int, Child] = {}  # children that have not ended
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([*(command or BLINDFIT), "nursery"], stdin=pipe, stdout=pipe, stderr=pipe)
        self.pid = self._process.pid
        self._requests: Any = self._process.stdin
        self._reports: Any = self._process.stdout
        self._errors: Any = self._process.stderr
        self._listening = threading.Thread(target=self._listen, name="blindfit nursery", daemon=True)
        self._listening.start()

    def start(self, words: Sequence[str], systems: Sequence[str], log: Path) -> Child:
        """Start a process with the current folder and environment of this process.

        Args:
            words: words of a command line, without the program's name.
            systems: systems whose modules the child has from the start.
            log: existing file for all output.
        """
        asked = {"words": list(words), "systems": list(systems), "folder": os.getcwd(), "environment": dict(os.environ)}
        with self._lock:
            number = next(self._numbers)
            child = self._children[number] = Child(number, words, self._send)
            code = self.code
        if code is not None:
            child.hear({"ended": code})
        self._send({"child": number, **asked, "log": str(log.absolute())})
        return child

    def close(self) -> None:
        """End the process, and all remaining children."""
        if not self._children:  # it has no child to end, and may still import
            self._process.kill()
        with self._lock, contextlib.suppress(OSError):
            self._requests.close()
        self._listening.join(ENDS_WITHIN_S)
        self._process.kill()
        self._listening.join()
        self._reports.close()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _send(self, line: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):  # it has ended, and `_listen` informs the children
            self._requests.write(json.dumps(line).encode() + b"\n")
            self._requests.flush()

    def _listen(self) -> None:
        for line in self._reports:
            with contextlib.suppress(ValueError):  # a kill has cut the line
                self._hear(json.loads(line))
        self.said = self._errors.read().decode(errors="replace")
        code = self._process.wait()
        with self._lock:
            self.code, left = code, list(self._children.values())
        for child in left:
            child.wake()
            child.hear({"ended": code})

    def _hear(self, report: dict[str, int]) -> None:
        with self._lock:
            number = report["child"]
            child = self._children.pop(number) if "ended" in report else self._children[number]
        child.hear(report)
