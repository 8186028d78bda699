"""Work off the event loop, and files that are let go of only after it."""

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

THREADS_OF_A_CONSUMER = 2  # one may fit a mechanism for minutes


class Threads:
    """Each consumer's own: who asks for much at once waits for himself."""

    def __init__(self) -> None:
        self._of: dict[str, ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, THREADS_OF_A_CONSUMER))

    def begin(self, consumer: str, work: Callable[[], R]) -> Future[R]:
        return self._of[consumer].submit(contextvars.copy_context().run, work)


class Background(ABC):
    """One piece of a consumer's work at a time."""

    def __init__(self, threads: Threads, consumer: str) -> None:
        self._threads, self.consumer = threads, consumer
        self._work: Future[Any] | None = None

    async def in_background(self, work: Callable[[], R]) -> R:
        """When the consumer hangs up, work that has begun goes on, as a thread cannot be stopped in the middle; what
        waits for a thread is not done."""
        self._work = running = self._threads.begin(self.consumer, work)
        return await asyncio.wrap_future(running)

    def close(self) -> None:
        """Let go of the files, as soon as no work uses them."""
        if self._work is None:
            self.close_files()
        else:
            self._work.add_done_callback(lambda _: self.close_files())  # at once, where it is done

    @abstractmethod
    def close_files(self) -> None: ...
