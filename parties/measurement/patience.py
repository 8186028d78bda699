"""Waiting for what a peer says when it is ready, which may take longer than a step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from blindfit.algorithms.errors import PeerTimeout

T = TypeVar("T")


async def patient(receive: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Begins to receive again until the time is up. Raises PeerTimeout."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + patience_s
    while True:
        try:
            return await receive()
        except PeerTimeout:
            if loop.time() >= give_up:
                raise
