"""A party's process never ends without a line in its log that names the reason. If nothing can catch the end, its
launcher reports it.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import multiprocessing
import os
import shutil
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, NoReturn

import structlog

from blindfit.algorithms.errors import NO_MEMORY, BlindfitError, where

log = structlog.get_logger(__name__)

# Signals that end a process by default without a message, and can be caught. The log names the one that came.
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)

STANDARD_INPUT = 0


@contextlib.contextmanager
def log_ending(party: str) -> Iterator[None]:
    """Run a party's process, and log how it ended: no end goes unnoticed.

    A crash of compiled code (a segmentation fault, an illegal instruction) leaves every thread's place in the log.
    """
    faulthandler.enable(sys.stderr)
    threading.excepthook = _log_thread_failure
    for number in _list_heard():
        signal.signal(number, _stop_at_once)
    try:
        yield
    except BlindfitError:  # the command that started the process prints it
        raise
    except BaseException as error:
        log.error("party ended", party=party, **describe_error(error))
        raise
    else:
        log.info("party ended", party=party)


def run(party: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine as asyncio.run does, without the wait for threads at the end: a fit takes minutes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(party)


def leave() -> NoReturn:
    """End the process and the processes that it has started, while threads may still work. Work that is not yet on the
    disk has not happened, as after a kill.
    """
    for child in multiprocessing.active_children():
        child.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def wait_for_stop() -> str:
    """Wait for a signal, and return its name."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_task_failed)
    came: asyncio.Future[str] = loop.create_future()

    def stop(number: signal.Signals) -> None:
        if not came.done():
            came.set_result(number.name)

    for number in _list_heard():
        loop.add_signal_handler(number, stop, number)
    return await came


def end_with_launcher(folder: Path) -> None:
    """End this process as soon as standard input ends, which means that the command that started it has ended.

    No peer is informed: all parties of a run end in this way. Work that is not yet on the disk has not happened.

    Args:
        folder: folder of the launcher, with keys that were made only for this run; it is removed.
    """

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(STANDARD_INPUT, 4096):
                pass
        log.warning("party ends: the command that started it has ended")
        shutil.rmtree(folder, ignore_errors=True)
        leave()

    threading.Thread(target=watch, name="launcher", daemon=True).start()


def _list_heard() -> list[signal.Signals]:
    """Return the signals to wait for. A signal that was ignored from the start, as by nohup, stays ignored."""
    return [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]


def _stop_at_once(number: int, _frame: object) -> None:
    """End the process at once, before the party is running, when there is no work to finish."""
    log.warning("party is stopped", signal=signal.Signals(number).name)
    raise SystemExit(128 + number)


def describe_error(error: BaseException) -> dict[str, str]:
    """Return the parts of an error that a log may have: its place, but not its text if it is foreign, as that may hold
    data.
    """
    if isinstance(error, BlindfitError):
        said = {"error": type(error).__name__, "reason": error.message}
        return {**said, "hint": error.hint} if error.hint else said
    if isinstance(error, MemoryError):
        return {"error": type(error).__name__, "reason": NO_MEMORY, "where": where(error)}
    return {"error": type(error).__name__, "where": where(error)}


def _log_thread_failure(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None:
        name = failed.thread.name if failed.thread is not None else ""
        log.error("thread failed", thread=name, **describe_error(failed.exc_value))


def _task_failed(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log the error of a task that nobody awaited; the process continues."""
    error = context.get("exception")
    about = describe_error(error) if isinstance(error, BaseException) else {}
    log.error("task failed", what=str(context.get("message", ""))[:200], **about)
