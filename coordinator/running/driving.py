"""Run a session to its end, with its progress in the terminal, until it is done or stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterator
from shlex import quote
from typing import Any, Literal

from rich.console import Console

from blindfit.algorithms.errors import ProtocolError, TransportError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.running.launcher import Launched
from blindfit.coordinator.running.progress import JobProgress
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.running.study import Study
from blindfit.coordinator.running.watcher import Stop, Watcher
from blindfit.coordinator.terminal.stopped import Stopped
from blindfit.protos import control_pb2 as pb

Talk = Literal["quiet", "normal", "verbose"]


def drive(
    job: Job[Any],
    launched: Launched,
    console: Console,
    talk: Talk = "normal",
    session: JobSession | None = None,
    watcher: Watcher | None = None,
    study: Study | None = None,
) -> JobSession:
    """Run a session to its end.

    Args:
        study: faults that happen during the session.

    Raises:
        Stopped: by Ctrl-C, SIGTERM or the watcher.
    """
    watcher = watcher or Watcher()
    epochs, verbose, quiet = job.parameters.max_epochs, talk == "verbose", talk == "quiet" or watcher.shows
    session = session or JobSession(job, launched.addresses, launched.identity, routes=launched.routes)
    judge = next(iter(job.with_role("key-node")), "")
    with JobProgress(
        list(job.parties), console, epochs=epochs, judge=judge, verbose=verbose, quiet=quiet or watcher.shows
    ) as progress:

        def show(party: str, event: pb.Event) -> None:
            progress.show(party, event)
            watcher.on_event(party, event)
            if study is not None:
                study.hear(party, event)

        session.on_event = show
        with terminable():
            try:
                work = session.run() if study is None else study.run(session.run(), session.id, launched)
                asyncio.run(_until_terminated(work, watcher.stop))
            except (TransportError, ProtocolError) as error:
                found = launched.find_lost_process(error)
                way_on = _way_on(session, epoch_begun=progress.epoch_begun)
                found.hint = "; ".join(filter(None, [found.hint, way_on and f"after the cause is mended, {way_on}"]))
                raise found from None
            except (KeyboardInterrupt, asyncio.CancelledError):
                raise Stopped(
                    f"the parties received the order to end {session.id}",
                    _way_on(session, epoch_begun=progress.epoch_begun),
                ) from None
    return session


async def _until_terminated(work: Coroutine[Any, Any, None], stop: Stop) -> None:
    """Run `work`; SIGTERM cancels it, as asyncio lets Ctrl-C do, and so can another thread.

    An exception of a signal handler appears wherever the main thread is. In a callback of gRPC it would be dropped, and
    with it the callback's wake-up of a task, which would then wait for ever.
    """
    task = asyncio.create_task(work)
    with _terminates(task), stop.cancels(task):
        await task


@contextlib.contextmanager
def _terminates(task: asyncio.Task[None]) -> Iterator[None]:
    """Let SIGTERM cancel a task; only the main thread receives signals."""
    if not _hears_signals():
        yield
        return
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGTERM)
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)


def _hears_signals() -> bool:
    return threading.current_thread() is threading.main_thread()


def _way_on(session: JobSession, *, epoch_begun: bool) -> str:
    asked = session.job.parameters
    if not can_go_on(session, epoch_begun=epoch_begun):
        return ""
    way = f"go on from the last epoch: --set {asked.resume_option}={asked.resumes or session.id}"
    stage = session.job.stage
    return way if stage is None else f"{way} --rehearse --out {quote(str(stage.folder.parent))}"


def can_go_on(session: JobSession, *, epoch_begun: bool) -> bool:
    """Return True if the parties have checkpoints: an epoch has begun, or the training went on from a checkpoint."""
    asked, stage = session.job.parameters, session.job.stage
    if stage is not None and not stage.is_kept:
        return False
    return asked.can_resume and (epoch_begun or bool(asked.resumes and "set_up" in session.seconds))


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM act like Ctrl-C where no event loop runs: processes are stopped."""
    if not _hears_signals():
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
