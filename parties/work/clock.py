"""Durations of the parts of a party's work."""

from __future__ import annotations

import time


class Clock:
    def __init__(self) -> None:
        self._last = time.monotonic()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.laps[name], self._last = round(now - self._last, 4), now
