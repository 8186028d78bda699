"""When a receiver acknowledges: a moment after a frame came, and then all that have come.

Parties that answer each other send small frames one by one; an acknowledgement of each would be half of all messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

GATHER_S = 0.01  # how long a frame waits for others that are acknowledged with it


class Acknowledgements:
    """Of one stream: comes round whenever one is due, until the stream ends."""

    def __init__(self) -> None:
        self._is_due = asyncio.Event()
        self._clock: asyncio.TimerHandle | None = None  # runs while a frame waits for others
        self._has_ended = False

    def soon(self) -> None:
        if self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(GATHER_S, self.now)

    def now(self) -> None:
        self._stop_clock()
        self._is_due.set()

    def end(self, stream: asyncio.Future[None]) -> None:
        if not stream.cancelled():
            stream.exception()  # has been looked at, also where the handler that would raise it is gone
        self._has_ended = True
        self.now()

    async def __aiter__(self) -> AsyncIterator[None]:
        while True:
            await self._is_due.wait()
            if self._has_ended:
                return
            self._is_due.clear()
            yield

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
