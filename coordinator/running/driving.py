"""Run a session to its end, with its progress in the terminal, until it is done or stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from typing import Any, Literal

from rich.console import Console

from blindfit.algorithms.errors import ProtocolError, TransportError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.running.launcher import Launched
from blindfit.coordinator.running.progress import JobProgress
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.terminal.stopped import Stopped

Talk = Literal["quiet", "normal", "verbose"]


def drive(
    job: Job[Any], launched: Launched, console: Console, talk: Talk = "normal", session: JobSession | None = None
) -> JobSession:
    """Raises Stopped: by Ctrl-C or SIGTERM."""
    epochs, verbose, quiet = job.parameters.max_epochs, talk == "verbose", talk == "quiet"
    session = session or JobSession(job, launched.addresses, launched.identity)
    judge = next(iter(job.with_role("key-node")), "")
    with JobProgress(list(job.parties), console, epochs=epochs, judge=judge, verbose=verbose, quiet=quiet) as progress:
        session.on_event = progress.show
        with terminable():
            try:
                asyncio.run(_until_terminated(session.run()))
            except (TransportError, ProtocolError) as error:
                found = launched.find_lost_process(error)
                way_on = _way_on(session, progress)
                found.hint = "; ".join(filter(None, [found.hint, way_on and f"when it is mended, {way_on}"]))
                raise found from None
            except (KeyboardInterrupt, asyncio.CancelledError):
                raise Stopped(f"the parties were told to end {session.id}", _way_on(session, progress)) from None
    return session


async def _until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """SIGTERM cancels `work`, as asyncio lets Ctrl-C do.

    What a handler raises comes up wherever the main thread is: in a callback of gRPC's it would be dropped, and with
    it the callback's wake-up of a task, which would then wait for ever.
    """
    loop, task, before = asyncio.get_running_loop(), asyncio.create_task(work), signal.getsignal(signal.SIGTERM)
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)


def _way_on(session: JobSession, progress: JobProgress) -> str:
    """A training that had come to its first epoch left checkpoints at its parties; one that goes on has found some."""
    asked = session.job.parameters
    kept = progress.epoch_begun or (asked.resumes and "set_up" in session.seconds)
    if not asked.resume_option or not kept:
        return ""
    return f"go on from the last epoch: --set {asked.resume_option}={asked.resumes or session.id}"


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends what no event loop runs as Ctrl-C does: processes are stopped."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
