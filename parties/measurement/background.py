"""Work outside the event loop, and files that are closed only after that work."""

from __future__ import annotations

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

R = TypeVar("R")

THREADS_OF_A_CONSUMER = 2  # a mechanism's fit may occupy one for minutes


class Threads:
    """Threads of each active party, so that a party with many requests delays only itself."""

    def __init__(self) -> None:
        self._of: dict[str, ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, THREADS_OF_A_CONSUMER))

    def begin(self, consumer: str, work: Callable[[], R]) -> Future[R]:
        return self._of[consumer].submit(contextvars.copy_context().run, work)


class Background(ABC):
    """One piece of an active party's work at a time."""

    def __init__(self, threads: Threads, consumer: str) -> None:
        self._threads, self.consumer = threads, consumer
        self._work: Future[Any] | None = None

    async def in_background(self, work: Callable[[], R]) -> R:
        """Run work in a thread of the active party.

        If the party closes its call, work that has begun goes on, because a thread cannot be stopped; work that waits
        for a thread is dropped.
        """
        self._work = running = self._threads.begin(self.consumer, work)
        return await asyncio.wrap_future(running)

    def close(self) -> None:
        """Close the files, as soon as no work uses them."""
        if self._work is None:
            self.close_files()
        else:
            self._work.add_done_callback(lambda _: self.close_files())  # at once, if the work is done

    @abstractmethod
    def close_files(self) -> None: ...
