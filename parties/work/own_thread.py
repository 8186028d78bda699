"""A computation in shares runs in a thread and an event loop of its own: numbers never keep messages waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from blindfit.algorithms.messages import Channel

T = TypeVar("T")
M = TypeVar("M")


class OuterChannel:
    """The session's channel, for a computation in another thread."""

    def __init__(self, channel: Channel, loop: asyncio.AbstractEventLoop) -> None:
        self._channel, self._loop = channel, loop

    async def send(self, to: str, message: object) -> None:
        await self._there(self._channel.send(to, message))

    async def receive(self, sender: str, kind: type[M]) -> M:
        return await self._there(self._channel.receive(sender, kind))

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


async def in_own_thread(channel: Channel, work: Callable[[Channel], Awaitable[T]]) -> T:
    """Awaits `work`, given the channel, in a thread; its errors are raised here."""
    outer = OuterChannel(channel, asyncio.get_running_loop())

    async def run() -> T:
        return await work(outer)

    return await asyncio.to_thread(lambda: asyncio.run(run()))
