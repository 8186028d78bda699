"""The link by which another thread follows and ends a job."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from blindfit.protos import control_pb2 as pb

OnEvent = Callable[[str, pb.Event], None]


class Stop:
    """The order of another thread to end a job."""

    def __init__(self) -> None:
        self._asked, self._lock = threading.Event(), threading.Lock()
        self._wakes: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        """Order the end of the job; after its end, do nothing."""
        with self._lock:
            self._asked.set()
            if self._wakes is not None:
                loop, task = self._wakes
                loop.call_soon_threadsafe(task.cancel)

    @contextlib.contextmanager
    def cancels(self, task: asyncio.Task[None]) -> Iterator[None]:
        """Cancel a task of this event loop when the job is to end."""
        with self._lock:
            self._wakes = asyncio.get_running_loop(), task
        if self.is_asked:
            task.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._wakes = None

    def check(self) -> None:
        """Raise KeyboardInterrupt: the job is to end."""
        if self.is_asked:
            raise KeyboardInterrupt


def _ignore(_party: str, _event: pb.Event) -> None:
    pass


@dataclass(frozen=True)
class Watcher:
    """The link between a job and another thread, which receives its progress and can end it.

    Attributes:
        on_event: function that takes a party's name and its report; it is called in the job's thread.
        shows: True if the thread shows the job's progress itself.
    """

    on_event: OnEvent = _ignore
    stop: Stop = field(default_factory=Stop)
    shows: bool = False
