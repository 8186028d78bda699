"""Receive a message that may take longer than a step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from blindfit.algorithms.errors import PeerTimeout

T = TypeVar("T")


async def patient(receive: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Receive again until the time is over; then raise PeerTimeout."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + patience_s
    while True:
        try:
            return await receive()
        except PeerTimeout:
            if loop.time() >= give_up:
                raise


def begin_quietly(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin work whose error is raised when the task is awaited; asyncio would log the error of a task that nobody
    awaits.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
