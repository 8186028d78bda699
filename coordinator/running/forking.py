"""The process that forks the parties of `blindfit run`: the other end of nursery.py, which explains the reason."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from blindfit.parties.work import ending, late_arrow

WARM = (
    *("blindfit.parties.node", "blindfit.coordinator.job.file_kinds", "blindfit.coordinator.job.overrides"),
    "blindfit.coordinator.job.stage",
    *("cryptography.hazmat.backends.openssl", "dateutil.relativedelta", "encodings.idna", "encodings.utf_8_sig"),
)
"""Modules that every party imports before it serves."""

PARTIES = "blindfit.parties"
SEATS = {
    "walr": (f"{PARTIES}.walr.consumer", f"{PARTIES}.walr.passive", f"{PARTIES}.walr.server"),
    "label-dp": (f"{PARTIES}.label_dp.consumer", f"{PARTIES}.measurement.seat"),
    "dp-lr": (f"{PARTIES}.dp_lr.trainer",),
    "taylor": (f"{PARTIES}.taylor.data_party", f"{PARTIES}.taylor.key_node"),
    "falcon": (f"{PARTIES}.falcon.data_party", f"{PARTIES}.falcon.key_node"),
    "predict": (f"{PARTIES}.predict.prediction", f"{PARTIES}.predict.key_node"),
    "evaluate": (f"{PARTIES}.evaluate.consumer", f"{PARTIES}.measurement.seat"),
}
"""Modules that a party also imports if its policy allows the system."""

STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR = 0, 1, 2
CHILDREN_END_WITHIN_S = 2.0  # without a signal, after the process has lost its command
CANNOT_START = 71  # as EX_OSERR of sysexits.h
AT_ONCE_BYTES = 1 << 16
LOOK_S = 0.01


def serve() -> list[str] | None:
    """Fork a child for each request on standard input.

    Returns:
        The words of its command line in each child. In this process None, after standard input and all children have
        ended.
    """
    return _Serving().run()


def import_for(systems: Iterable[str]) -> None:
    """Import what a party imports before it serves, and keep the collector from writing into what children share."""
    for module in (*WARM, *(seat for system in systems for seat in SEATS.get(system, ()))):
        with contextlib.suppress(ImportError):  # a party that needs the module reports it
            importlib.import_module(module)
    late_arrow.load_arrow()
    gc.freeze()


def show_as(name: str) -> None:
    """Let `ps -e`, `pgrep` and `top` show this name for this process, cut to 15 characters; on Linux only."""
    if sys.platform == "linux":
        Path("/proc/self/comm").write_bytes(name.encode())


class _Serving:
    def __init__(self) -> None:
        gc.disable()  # imported modules stay; each child enables the collector
        self._numbers: dict[int, int] = {}  # numbers of children, by their process
        # Each child reads the pipe, and nobody writes: the pipe ends with this process.
        self._lifeline, self._held = os.pipe()
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        self._handlers = {number: signal.getsignal(number) for number in (*ending.STOPPING, signal.SIGCHLD)}
        for number in ending.STOPPING:  # a terminal signals all processes of a run, and the command decides
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
        before = signal.pthread_sigmask(signal.SIG_BLOCK, self._handlers)  # until the child has its own handlers
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
        """Return 0 in the child, and its process number here; after an error, log it and return None."""
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
        """Remove everything of this process and of other children from this child."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for own, taken in ((self._lifeline, STANDARD_INPUT), (log, STANDARD_OUTPUT), (log, STANDARD_ERROR)):
            os.dup2(own, taken)
        for own in (self._lifeline, self._held, self._woken, self._waking):
            os.close(own)
        show_as("blindfit " + " ".join(Path(word).stem for word in asked["words"][1:2]))
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        multiprocessing.current_process().authkey = os.urandom(32)
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()
        gc.enable()

    def _send_signal(self, asked: dict[str, Any]) -> None:
        for pid, number in self._numbers.items():
            if number == asked["child"]:  # the child keeps its process number until it is reaped
                os.kill(pid, asked["signal"])

    def _reap(self, how: int = os.WNOHANG) -> None:
        """Report children that have ended.

        Args:
            how: option of os.waitpid; 0 waits until all have ended.
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
        """End all children. First let each remove the run's keys, which a stopped child cannot."""
        os.close(self._held)
        give_up = time.monotonic() + CHILDREN_END_WITHIN_S
        while self._numbers and time.monotonic() < give_up:
            self._reap()
            time.sleep(LOOK_S)
        for pid in self._numbers:
            os.kill(pid, signal.SIGKILL)
        self._reap(0)
