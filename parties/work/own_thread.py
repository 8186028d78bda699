"""A computation in shares runs in its own thread and event loop: numbers never delay messages."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from blindfit.algorithms.messages import Channel
from blindfit.parties.wire.exchange import ExchangeChannel

T = TypeVar("T")
M = TypeVar("M")


class OuterChannel:
    """The session's channel, for a computation in another thread.

    A message is encoded here, and the computation continues while the message is sent: only the next message to the
    same party waits for it. A wait is two changes of thread, which take longer than a small message.
    """

    def __init__(self, channel: ExchangeChannel, loop: asyncio.AbstractEventLoop) -> None:
        self._channel, self._loop = channel, loop
        self._leaving: dict[str, concurrent.futures.Future[None]] = {}  # last message to each party
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def send(self, to: str, message: object) -> None:
        encoded = self._channel.encode(to, message)
        async with self._turns[to]:
            await self._wait_until_left(to)
            self._leaving[to] = self._there(self._channel.bring(to, encoded))

    async def receive(self, sender: str, kind: type[M]) -> M:
        return await asyncio.wrap_future(self._there(self._receive(list(self._leaving.values()), sender, kind)))

    async def flush(self) -> None:
        """Wait until all messages are on their way. Raise as `send` does."""
        for to in list(self._leaving):
            await self._wait_until_left(to)

    async def _wait_until_left(self, to: str) -> None:
        if to in self._leaving:
            await _over(self._leaving[to])

    async def _receive(self, leaving: Sequence[concurrent.futures.Future[None]], sender: str, kind: type[M]) -> M:
        """Receive in the session's loop. While this party's own message has not left, it waits for no peer and blames
        none.
        """
        for sent in leaving:
            await _over(sent)
        return await self._channel.receive(sender, kind)

    def _there(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _over(sent: concurrent.futures.Future[None]) -> None:
    """Wait for its end, and raise its failure."""
    if sent.done():
        sent.result()
    else:
        await asyncio.wrap_future(sent)


async def in_own_thread(channel: ExchangeChannel, work: Callable[[Channel], Awaitable[T]]) -> T:
    """Await `work` with the channel in a thread; its errors are raised here."""
    outer = OuterChannel(channel, asyncio.get_running_loop())

    async def run() -> T:
        result = await work(outer)
        await outer.flush()
        return result

    return await asyncio.to_thread(lambda: asyncio.run(run()))
