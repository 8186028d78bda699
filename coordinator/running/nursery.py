"""One warm process from which the parties of `blindfit run` are forked: what all of them import is imported once.

A Nursery is the command's end: it starts the process, asks it for children and hears how each child ends. `serve` is
the process's end. It imports what a party needs and opens nothing: no server, no key and no file of a party. It has no
Python thread; the threads of OpenBLAS and of Arrow's allocator are prepared for a fork by these libraries. Both ends
write lines of JSON:

    to the process    {"child": 1, "words": [...], "systems": [...], "folder": ..., "environment": {...}, "log": ...}
                      {"child": 1, "signal": 15}
    to the command    {"child": 1, "pid": 4711}
                      {"child": 1, "ended": 0}

Only the process sends signals to its children, and it learns itself how they end. A signal therefore never reaches
another process that has the number of a child that has ended. The process and its children end when its standard input
ends, however the command ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import itertools
import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from blindfit.parties.files.private_files import open_private
from blindfit.parties.work import ending, late_arrow

WARM = (
    *("blindfit.parties.node", "blindfit.coordinator.job.file_kinds"),
    *("cryptography.hazmat.backends.openssl", "dateutil.relativedelta", "encodings.idna", "encodings.utf_8_sig"),
)
"""What every party imports before it is up."""

SEATS = {
    "walr": ("walr.consumer", "walr.passive", "walr.server"),
    "label-dp": ("label_dp.consumer", "measurement.seat"),
    "dp-lr": ("dp_lr.trainer",),
    "taylor": ("taylor.data_party", "taylor.key_node"),
    "falcon": ("falcon.data_party", "falcon.key_node"),
    "predict": ("predict.prediction", "predict.key_node"),
    "evaluate": ("evaluate.consumer", "measurement.seat"),
}
"""What a party whose policy allows a system imports too, under blindfit.parties."""

STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR = 0, 1, 2
ENDS_WITHIN_S = 5.0  # the process, after its standard input has ended
CHILDREN_END_WITHIN_S = 2.0  # by themselves, after the process has lost its command
CANNOT_START = 71  # as EX_OSERR of sysexits.h
AT_ONCE_BYTES = 1 << 16
LOOK_S = 0.01


# --- the command's end -----------------------------------------------------------------------------------


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
        """Wait until the process is forked, and return its number; 0 if it never was."""
        self._started.wait()
        return self._pid

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
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

    def hear(self, report: dict[str, int]) -> None:
        """Take what the nursery's process reports of this child."""
        if "pid" in report:
            self._pid = report["pid"]
        else:
            self.returncode = report["ended"]
            self._ended.set()
        self._started.set()


class Nursery:
    """Forks parties as long as it is open. Several threads and several runs may share one.

    Args:
        command: what is this command line, in a process of its own.
        log: a new file, for what goes wrong in the process before it forks.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        self.code: int | None = None  # how the process ended, as `subprocess` has it
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._children: dict[int, Child] = {}
        with open_private(log, "wb") as errors:
            self._process = subprocess.Popen(
                [*command, "nursery"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self.pid = self._process.pid
        self._listening = threading.Thread(target=self._listen, name="blindfit nursery", daemon=True)
        self._listening.start()

    def start(self, words: Sequence[str], systems: Sequence[str], log: Path) -> Child:
        """Start a process with the folder and the environment that this one has now.

        Args:
            words: the words of a command line, without the program's name.
            systems: whose modules the child has from the start.
            log: a file that exists and takes all output.
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
        """End the process, and all children that are left."""
        if not self._children:  # and it may still import
            self._process.kill()
        with self._lock, contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        self._listening.join(ENDS_WITHIN_S)
        self._process.kill()
        self._listening.join()
        _pipe(self._process.stdout).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _send(self, line: dict[str, Any]) -> None:
        pipe = _pipe(self._process.stdin)
        with self._lock, contextlib.suppress(OSError, ValueError):  # it has ended, and `_listen` tells the children
            pipe.write(json.dumps(line).encode() + b"\n")
            pipe.flush()

    def _listen(self) -> None:
        for line in _pipe(self._process.stdout):
            with contextlib.suppress(ValueError):  # a line that a kill has cut
                report = json.loads(line)
                self._children[report["child"]].hear(report)
        code = self._process.wait()
        with self._lock:
            self.code = code
            left = [child for child in self._children.values() if child.returncode is None]
        for child in left:
            child.hear({"ended": code})


def _pipe(pipe: Any) -> Any:
    """Return a pipe that the process was started with."""
    return pipe


# --- the process's end -----------------------------------------------------------------------------------


def serve() -> list[str] | None:
    """Fork a child for each request on standard input.

    Returns:
        In each child the words of its command line. In this process None, once standard input has ended and all
        children with it.
    """
    return _Serving().run()


def import_for(systems: Iterable[str]) -> None:
    """Import what a party imports before it is up, and keep the collector from writing into what children share."""
    for module in (*WARM, *(f"blindfit.parties.{seat}" for system in systems for seat in SEATS.get(system, ()))):
        with contextlib.suppress(ImportError):  # a party that needs the module says so itself
            importlib.import_module(module)
    late_arrow.load_arrow()
    gc.freeze()


def show_as(title: str) -> None:
    """Let `ps` show this text in the place of the command line of this process, as far as that is long enough.

    On Linux only. Nothing else reads these bytes: Python has copied its command line.
    """
    if sys.platform != "linux":
        return
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
    if 0 < start < end:
        ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)


class _Serving:
    def __init__(self) -> None:
        gc.disable()  # nothing that is imported is garbage; each child enables it
        self._numbers: dict[int, int] = {}  # of children, by their process
        # Each child reads it, and nobody writes: it ends with this process.
        self._lifeline, self._held = os.pipe()
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        self._handlers = {number: signal.getsignal(number) for number in (*ending.STOPPING, signal.SIGCHLD)}
        for number in ending.STOPPING:  # a terminal sends them to all processes of a run: the command decides
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        self._waking = waking

    def run(self) -> list[str] | None:
        import_for([])
        rest = b""
        while True:
            ready, _, _ = select.select([STANDARD_INPUT, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, AT_ONCE_BYTES)
                self._reap()
            if STANDARD_INPUT not in ready:
                continue
            read = os.read(STANDARD_INPUT, AT_ONCE_BYTES)
            if not read:
                self._end()
                return None
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                asked = json.loads(line)
                if "signal" in asked:
                    self._send_signal(asked)
                elif (words := self._fork(asked)) is not None:
                    return words

    def _fork(self, asked: dict[str, Any]) -> list[str] | None:
        """Return the words in the child, and None in this process."""
        try:
            log = os.open(asked["log"], os.O_WRONLY | os.O_APPEND)
        except OSError:
            self._report(child=asked["child"], ended=CANNOT_START)
            return None
        import_for(asked["systems"])
        before = signal.pthread_sigmask(signal.SIG_BLOCK, self._handlers)  # until the child has handlers of its own
        try:
            pid = self._fork_or_say_why(asked["child"], log)
            if pid == 0:
                self._become(asked, log)
                return [str(word) for word in asked["words"]]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(log)
        return None

    def _fork_or_say_why(self, number: int, log: int) -> int | None:
        """Return 0 in the child."""
        try:
            pid = os.fork()
        except OSError as error:
            os.write(log, f"error: no process can be started: {error.strerror}\n".encode())
            self._report(child=number, ended=CANNOT_START)
            return None
        if pid:
            self._numbers[pid] = number
            self._report(child=number, pid=pid)
        return pid

    def _become(self, asked: dict[str, Any], log: int) -> None:
        """Leave this child nothing that is of this process or of another child."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for own, taken in ((self._lifeline, STANDARD_INPUT), (log, STANDARD_OUTPUT), (log, STANDARD_ERROR)):
            os.dup2(own, taken)
        for own in (self._lifeline, self._held, self._woken, self._waking):
            os.close(own)
        show_as(" ".join(["blindfit", *(Path(word).name for word in asked["words"][:2])]))
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        multiprocessing.current_process().authkey = os.urandom(32)
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()
        gc.enable()

    def _send_signal(self, asked: dict[str, Any]) -> None:
        for pid, number in self._numbers.items():
            if number == asked["child"]:  # it is there until it is reaped, and so is its process's number
                os.kill(pid, asked["signal"])

    def _reap(self, how: int = os.WNOHANG) -> None:
        """Report children that have ended.

        Args:
            how: as os.waitpid takes it; 0 waits until all have ended.
        """
        while self._numbers:
            pid, status = os.waitpid(-1, how)
            if pid == 0:
                return
            if pid in self._numbers:
                self._report(child=self._numbers.pop(pid), ended=os.waitstatus_to_exitcode(status))

    def _report(self, **line: int) -> None:
        with contextlib.suppress(OSError):  # the command has ended
            os.write(STANDARD_OUTPUT, json.dumps(line).encode() + b"\n")

    def _end(self) -> None:
        """End all children: first let each remove the run's keys, which a stopped one cannot."""
        os.close(self._held)
        give_up = time.monotonic() + CHILDREN_END_WITHIN_S
        while self._numbers and time.monotonic() < give_up:
            self._reap()
            time.sleep(LOOK_S)
        for pid in self._numbers:
            os.kill(pid, signal.SIGKILL)
        self._reap(0)
