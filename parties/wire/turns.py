"""Turns of peers: a peer that sends much waits for its own earlier messages, and for others while they are served."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from dataclasses import dataclass, field

SHARE = 0.2  # part of the event loop's time that a peer may take while others are served
CALL_S = 0.005  # cost of a call in addition to its messages: to accept it, to answer, to end it
ROUND_S = 0.02  # most that a round counts: this party's own work delayed a longer one
MEMORY_S = 1.0  # older times count little


@dataclass
class _Peer:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    used_s: float = 0.0  # time used in the last MEMORY_S
    last: float = -math.inf

    def time_used(self, now: float) -> float:
        return self.used_s * math.exp((self.last - now) / MEMORY_S)


class Turns:
    """Turns in each round of the event loop: one message of a peer, and fewer for a peer above its share."""

    def __init__(self) -> None:
        self._peers: dict[str, _Peer] = defaultdict(_Peer)

    async def wait(self, name: str, *, is_call: bool = False) -> None:
        """Wait until a call or a message of this peer may be handled."""
        peer, clock = self._peers[name], asyncio.get_running_loop().time
        async with peer.lock:
            began = clock()
            await asyncio.sleep(0)
            now = clock()
            peer.used_s, peer.last = peer.time_used(now) + min(now - began, ROUND_S) + CALL_S * is_call, now
            excess = peer.used_s - SHARE * MEMORY_S
            if excess > 0 and any(now - other.last < MEMORY_S for other in self._peers.values() if other is not peer):
                await asyncio.sleep(excess)
