"""Work off the event loop, and files that are let go of only after it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

R = TypeVar("R")


class Background(ABC):
    """One piece of work at a time."""

    def __init__(self) -> None:
        self._work: asyncio.Future[Any] | None = None

    def in_background(self, work: Callable[[], R]) -> Awaitable[R]:
        """Work that has begun goes on when the consumer hangs up: a thread cannot be stopped in the middle."""
        running = asyncio.ensure_future(asyncio.to_thread(work))
        self._work = running
        return asyncio.shield(running)

    def close(self) -> None:
        """Lets go of the files, as soon as no work uses them."""
        if self._work is not None and not self._work.done():
            self._work.add_done_callback(self._close_after)
        else:
            self.close_files()

    def _close_after(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # nobody waits for it any more
        self.close_files()

    @abstractmethod
    def close_files(self) -> None: ...
