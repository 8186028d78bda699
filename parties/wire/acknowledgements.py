"""Time of a receiver's acknowledgement: a moment after a frame arrives, for all frames that have arrived by then.

Parties that answer each other send small frames one by one. An acknowledgement of each would be half of all messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

GATHER_S = 0.01  # time that a frame waits for others that are acknowledged with it


class Acknowledgements:
    """The acknowledgements of one stream: yields whenever one is due, until the stream ends."""

    def __init__(self) -> None:
        self._is_due = asyncio.Event()
        self._clock: asyncio.TimerHandle | None = None  # runs while a frame waits for others
        self._ended_well: bool | None = None  # end of the stream; None while it continues

    def soon(self) -> None:
        if self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(GATHER_S, self.now)

    def now(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        self._is_due.set()

    def end(self, stream: asyncio.Future[None]) -> None:
        """End the stream. If it failed or another stream replaced it, its frames are acknowledged by the next stream,
        if at all.
        """
        self._ended_well = not stream.cancelled() and stream.exception() is None
        self.now()

    async def __aiter__(self) -> AsyncIterator[None]:
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            ended_well = self._ended_well
            if ended_well is not False:
                yield
            if ended_well is not None:
                return
