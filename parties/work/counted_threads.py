"""Threads that know their session: a computation continues in its thread after its session has ended."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")

THREADS_OF_A_SESSION = 4
THREADS_OF_THE_PARTY = 16  # for work of no session: to publish, to describe a budget, to give memory back


class Work:
    """Count of the threads that work for one session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0

    @property
    def goes_on(self) -> bool:
        return self._threads > 0

    def add(self, running: Future[Any]) -> None:
        self._count(1)
        running.add_done_callback(lambda _: self._count(-1))

    def _count(self, more: int) -> None:
        with self._lock:
            self._threads += more


WORK: contextvars.ContextVar[Work | None] = contextvars.ContextVar("blindfit_work", default=None)
"""The work of the current task's session."""


class CountingThreads(ThreadPoolExecutor):
    """Threads that count for the session whose task begins work in them."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        running = super().submit(fn, *args, **kwargs)
        if (work := WORK.get()) is not None:
            work.add(running)
        return running


def threads_for(coordinators: int, running: int) -> CountingThreads:
    """Return threads for as many sessions as can run at once, so that no session waits for another's thread.

    Args:
        running: sessions of one coordinator that run at once.
    """
    count = THREADS_OF_A_SESSION * running * max(1, coordinators) + THREADS_OF_THE_PARTY
    return CountingThreads(count, thread_name_prefix="party")
