"""A bad network: a TCP proxy that delays, cuts, half-closes and truncates, as a seeded schedule says."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Self

CHUNK = 16384


class Proxy:
    """Args:
    schedule: source of what happens to each connection. After `bad` of them the network is good.
    """

    def __init__(self, port: int, schedule: random.Random, bad: int = 12) -> None:
        self._target, self._schedule, self._bad = port, schedule, bad
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):  # only __aexit__ cancels it
                await self._carry(reader, writer)
        finally:
            writer.transport.abort()
            self._connections.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        forth, back = self._fates()
        upstream, downstream = await asyncio.open_connection("127.0.0.1", self._target)
        ways = [asyncio.create_task(way) for way in (forth(reader, downstream), back(upstream, writer))]
        try:
            # A way that ends cleanly was half-closed; the other goes on for a while.
            await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION, timeout=20)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            downstream.transport.abort()

    def _fates(self) -> tuple[Way, Way]:
        """Draw what this connection will suffer in each direction."""
        self._bad -= 1
        if self._bad < 0:
            return Way(), Way()
        dice = self._schedule
        forth, back = (
            Way(
                fate=dice.choice(["carry", "carry", "cut", "half-close", "truncate"]),
                after_bytes=int(10 ** dice.uniform(2, 6)),
                delay_s=dice.choice([0, 0, 0.002, 0.02]),
            )
            for _ in range(2)
        )
        return forth, back


class CutError(Exception):
    """Ends both directions at once."""


class Way:
    """One direction of a connection."""

    def __init__(self, fate: str = "carry", after_bytes: int = 0, delay_s: float = 0) -> None:
        self.fate, self.left, self.delay_s = fate, after_bytes, delay_s

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await asyncio.sleep(self.delay_s)
            if self.fate != "carry" and len(data) >= self.left:
                await self._end(writer, data)
                return
            self.left -= len(data)
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    async def _end(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if self.fate in ("truncate", "half-close"):
            writer.write(data[: self.left])
            await writer.drain()
        if self.fate == "half-close":
            writer.write_eof()
            return
        raise CutError
