"""Notice that this process stood still: a signal stopped it, its machine slept, or its own work held it up.

A deadline that passes while a party cannot run proves nothing about the peer for which the party waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

BEAT_S = 0.25
LATE_S = 0.75  # a beat that is later than this means that the process stood still; a busy machine is not enough
KEPT = 64

T = TypeVar("T")


class Pulse:
    """A heartbeat in this process's event loop, from `start` to `stop`."""

    def __init__(self) -> None:
        self._stood: deque[tuple[float, float]] = deque(maxlen=KEPT)  # when it went on, and for how long it had stood
        self._last: float | None = None
        self._beat: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._last = asyncio.get_running_loop().time()
        self._beat = asyncio.get_running_loop().call_later(BEAT_S, self._on_beat)

    def stop(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        self._last = self._beat = None

    def _on_beat(self) -> None:
        self._look()
        self._beat = asyncio.get_running_loop().call_later(BEAT_S, self._on_beat)

    def _look(self) -> None:
        """Note a beat that is late. The caller may come before that beat."""
        if self._last is not None:
            now = asyncio.get_running_loop().time()
            late = now - self._last - BEAT_S
            if late > LATE_S:
                self._stood.append((now, late))
            if late >= 0:
                self._last = now

    def stood_s(self, since: float) -> float:
        """Return how long the process stood still since a moment of the loop's clock, in total."""
        self._look()
        return sum(min(late, now - since) for now, late in self._stood if now > since)

    async def patient(self, wait: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Wait until the deadline. The time in which this process stood still does not count.

        Args:
            wait: starts to wait; it may be called again.

        Raises:
            TimeoutError
        """
        left_s = timeout_s
        while True:
            since = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(left_s):
                    return await wait()
            except TimeoutError:
                left_s = min(self.stood_s(since), timeout_s)
                if left_s < BEAT_S:
                    raise

    def longest_s(self, since: float) -> float:
        """Return the longest time that the process stood still since a moment of the loop's clock."""
        self._look()
        return max((min(late, now - since) for now, late in self._stood if now > since), default=0.0)
