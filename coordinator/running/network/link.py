"""Duration of bytes on a link, and the number that TCP lets leave: numbers and times, without a socket or a clock."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from blindfit.coordinator.job.network import Line

PACKET_BYTES, SEGMENT_BYTES = 1500, 1448  # on Ethernet: a whole packet, and its part for TCP's data
FIRST_WINDOW_BYTES = 10 * SEGMENT_BYTES  # RFC 6928
MOST_WINDOW_BYTES = 3 * 2**20  # half of the largest receive buffer that Linux takes by default
QUEUE_S = 0.05  # longest time that a packet waits in the queue of a router
LEAST_QUEUE_BYTES = 30 * PACKET_BYTES
TURN_S = 0.001  # longest time that a connection sends while others wait
MOST_TURN_BYTES = 64 * 1024
IDLE_S = 0.2  # shortest time, beyond a round trip, after which Linux sends a packet again (RFC 6298: 1 s)

_draw = random.SystemRandom().uniform


@dataclass
class Link:
    """One direction between two parties, which all of their connections share.

    Attributes:
        free_at: time at which the last byte that was sent has left.
        draw: function that draws a number between two others.
    """

    line: Line
    free_at: float = 0.0
    draw: Callable[[float, float], float] = field(default=_draw, repr=False)

    @property
    def turn_bytes(self) -> int:
        """Number of bytes that a connection sends at once."""
        if self.line.bits_per_s is None:
            return MOST_TURN_BYTES
        return max(SEGMENT_BYTES, min(MOST_TURN_BYTES, int(self.line.bits_per_s / 8 * TURN_S)))

    def find_room_at(self, now: float) -> float:
        """Return the time at which the router's queue takes more bytes: now, or later."""
        if self.line.bits_per_s is None:
            return now
        queue_s = max(QUEUE_S, LEAST_QUEUE_BYTES * 8 / self.line.bits_per_s)
        return max(now, self.free_at - queue_s)

    def carry(self, size: int, now: float) -> float:
        """Send bytes, and return the time of their arrival."""
        self.free_at = max(self.free_at, now)
        if self.line.bits_per_s is not None:
            on_the_wire = size + math.ceil(size / SEGMENT_BYTES) * (PACKET_BYTES - SEGMENT_BYTES)
            self.free_at += on_the_wire * 8 / self.line.bits_per_s
        late_s = self.draw(0.0, self.line.jitter_s) if self.line.jitter_s else 0.0
        return self.free_at + self.line.latency_s + late_s


@dataclass
class Window:
    """Number of bytes of one direction of a connection that may be on their way: TCP's slow start, as in Linux.

    The window starts at ten packets. It grows by the acknowledged bytes while the connection fills half of it. A
    connection that has been silent for long halves the window, once for each time-out that has passed.
    """

    round_trip_s: float
    size: float = FIRST_WINDOW_BYTES
    sent: int = 0
    acknowledged: int = 0
    _last_sent: float = math.inf
    _peak: int = 0  # most bytes on their way in the newest round trip
    _peak_ends: int = 0  # the round trip ends when so many bytes are acknowledged

    def find_room(self, now: float) -> int:
        """Return how many bytes may leave now."""
        if self.sent == self.acknowledged:
            self._shrink(now)
        return max(0, int(self.size) - (self.sent - self.acknowledged))

    def send(self, size: int, now: float) -> None:
        self.sent += size
        self._last_sent = now
        on_their_way = self.sent - self.acknowledged
        if on_their_way >= self._peak or self.acknowledged >= self._peak_ends:
            self._peak, self._peak_ends = on_their_way, self.sent

    def acknowledge(self, size: int) -> None:
        self.acknowledged += size
        if 2 * self._peak > self.size:
            self.size = min(MOST_WINDOW_BYTES, self.size + size)

    def _shrink(self, now: float) -> None:
        timeout_s = self.round_trip_s + IDLE_S
        while now - self._last_sent > timeout_s and self.size > FIRST_WINDOW_BYTES:
            self.size = max(FIRST_WINDOW_BYTES, self.size / 2)
            self._last_sent += timeout_s
