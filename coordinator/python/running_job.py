"""A job that runs in a thread of its own: a program or a notebook goes on, watches it, and can cancel it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rich.console import Console

from blindfit.algorithms.errors import BlindfitError, BlindfitWarning
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.python.result import Result
from blindfit.coordinator.report.kind import Written
from blindfit.coordinator.running.progress import JobProgress
from blindfit.coordinator.running.watcher import Stop, Watcher
from blindfit.coordinator.terminal.stopped import Stopped
from blindfit.coordinator.terminal.wording import plain
from blindfit.protos import control_pb2 as pb

_NOT_YET = RuntimeError("the job has not ended")


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """A report of progress by one party.

    Attributes:
        party: name of the party.
        state: state of the session at the party, such as "running", "done" or "failed".
        step: name of the step that the party works on.
        done: units of the step that are done, such as rows or batches.
        total: all units of the step; None if the party does not know them.
        waiting_for: name of the party or thing that the party waits for; empty if it does not wait.

    Example:
        >>> with blindfit.run("job.toml", wait=False) as running:
        ...     events = list(running.watch())
        >>> {event.party for event in events} == {"shop", "meter"}
        True
    """

    party: str
    state: str
    step: str
    done: int
    total: int | None
    waiting_for: str


def _read_event(party: str, event: pb.Event) -> ProgressEvent:
    """Return the report in a message of the party."""
    progress = event.progress
    state = pb.SessionState.Name(event.state).lower() if event.state in pb.SessionState.values() else "unknown"
    return ProgressEvent(
        party, state, plain(progress.step), progress.done, progress.total or None, plain(progress.waiting_for)
    )


class RunningJob:
    """A job that runs in the background. In a `with` block it is cancelled at the end of the block if it still runs.

    Args:
        job: the job.
        work: function that runs the job to its end, in a thread of this object.
        console: console on which `show` draws.

    Attributes:
        job: the job.

    Example:
        >>> with blindfit.run("job.toml", wait=False) as running:
        ...     result = running.result()
        >>> running.has_ended
        True
    """

    def __init__(self, job: Job[Any], work: Callable[[Watcher], Written], console: Console) -> None:
        self.job = job
        self._work, self._console = work, console
        self._stop, self._news = Stop(), threading.Condition()
        self._heard: list[tuple[str, pb.Event]] = []
        self._end: Written | BaseException = _NOT_YET
        self._thread = threading.Thread(target=self._run, name=f"blindfit {job.name}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<{'ended' if self.has_ended else 'running'} {self.job.protocol} job {self.job.name}>"

    @property
    def has_ended(self) -> bool:
        """True if the job has ended, whether it succeeded or failed."""
        return self._end is not _NOT_YET

    def watch(self) -> Iterator[ProgressEvent]:
        """Yield the reports of progress, from the first one on, until the job has ended.

        An interrupt (Ctrl-C, or a notebook's stop button) cancels the job.
        """
        return (_read_event(party, event) for party, event in self._events())

    def cancel(self) -> None:
        """End the job at every party, and end the processes that were started for it. `result` then raises Stopped."""
        self._stop.ask()

    def show(self) -> None:
        """Draw a bar for each party until the job has ended."""
        job, judge = self.job, next(iter(self.job.with_role("key-node")), "")
        events = self._events()
        first = next(events, None)  # a console has one live display: that of the start is over with the first word
        if first is None:
            return
        with JobProgress(list(job.parties), self._console, epochs=job.parameters.max_epochs, judge=judge) as bars:
            bars.show(*first)
            for party, event in events:
                bars.show(party, event)

    def result(self) -> Result:
        """Return the result of the job, after its end.

        Raises:
            Stopped: the job was cancelled.
            BlindfitError: the job was refused or failed; the message gives the first cause.

        Warns:
            BlindfitWarning: a fault that was asked for never happened.
        """
        self._wait_for()
        self._thread.join()
        if isinstance(self._end, BlindfitError | Stopped):
            raise self._end.with_traceback(None)  # the message says all, and another thread's frames nothing
        if isinstance(self._end, BaseException):
            raise self._end
        for line in self._end.content.get("faults", {}).get("never", ()):
            warnings.warn(line, BlindfitWarning, stacklevel=2)
        return Result(self.job, self._end)

    def __enter__(self) -> RunningJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        self._thread.join()

    # --- the job's thread

    def _run(self) -> None:
        end: Written | BaseException
        try:
            end = self._work(Watcher(self._hear, self._stop, shows=True))
        except BaseException as error:  # noqa: BLE001 - it is raised again where somebody waits for the result
            end = error
        with self._news:
            self._end = end
            self._news.notify_all()

    def _hear(self, party: str, event: pb.Event) -> None:
        with self._news:
            self._heard.append((party, event))
            self._news.notify_all()

    # --- the waiting thread

    def _events(self) -> Iterator[tuple[str, pb.Event]]:
        place = 0
        while True:
            self._wait_for(place + 1)
            if place == len(self._heard):
                return
            yield self._heard[place]
            place += 1

    def _wait_for(self, words: int = 0) -> None:
        """Wait until so many words were heard, or the job has ended; 0: until it has ended."""
        try:
            with self._news:
                self._news.wait_for(lambda: self.has_ended or 0 < words <= len(self._heard))
        except KeyboardInterrupt:
            self.cancel()
            self._thread.join()
            raise
