"""Relays between real sockets. A bound on a time is a lower one, which holds by construction."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from blindfit.coordinator.job.network import Line
from blindfit.coordinator.running.network.link import MOST_WINDOW_BYTES, Link
from blindfit.coordinator.running.network.relay import Cable, Relay

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CLOCK_S = 1e-3  # two clocks may differ by so much
KIB = 1024


@dataclass
class Site:
    """A party behind a relay, and how another one reaches it."""

    cable: Cable
    relay: Relay
    opened: list[asyncio.StreamWriter] = field(default_factory=list)

    async def dial(self) -> Streams:
        streams = await asyncio.open_connection("127.0.0.1", self.relay.port)
        self.opened.append(streams[1])
        return streams

    @property
    def held_bytes(self) -> int:
        flows = [flow for connection in self.relay.connections for flow in connection._flows]
        return sum(len(data) for flow in flows for _, data in flow._arriving)


@contextlib.asynccontextmanager
async def party(serve: Serve, line: Line, limit: int = 2**16) -> AsyncIterator[Site]:
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=limit)
    cable = Cable(Link(line), Link(line))
    site = Site(cable, Relay(server.sockets[0].getsockname(), cable, loop))
    try:
        yield site
    finally:
        for writer in site.opened:
            writer.close()
        site.relay.close()
        server.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer once the other side has sent all."""
    writer.write(await reader.read())
    writer.write_eof()


async def test_bytes_arrive_whole_and_in_order_after_as_many_latencies_as_tcp_takes() -> None:
    """The first packet, its answer, then the bytes: three latencies before the party has them, four to the answer."""
    latency_s, loop = 0.03, asyncio.get_running_loop()
    sent = bytes(range(256)) * 1024
    arrived = loop.create_future()

    async def note_and_echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(1)
        arrived.set_result(loop.time())
        writer.write(first + await reader.read())
        writer.write_eof()

    async with party(note_and_echo, Line(latency_s, jitter_s=0.005)) as site:
        began = loop.time()
        reader, writer = await site.dial()
        writer.write(sent)
        writer.write_eof()  # the other direction stays open
        assert await reader.read() == sent
        assert loop.time() >= began + 4 * latency_s - CLOCK_S
        assert await arrived >= began + 3 * latency_s - CLOCK_S
        await until(lambda: not site.relay.connections)


async def test_two_connections_share_one_link() -> None:
    bits_per_s, size, loop = 4e6, 25_000, asyncio.get_running_loop()
    async with party(echo, Line(bits_per_s=bits_per_s)) as site:
        began = loop.time()

        async def ask() -> bytes:
            reader, writer = await site.dial()
            writer.write(bytes(size))
            writer.write_eof()
            return await reader.read()

        assert await asyncio.gather(ask(), ask()) == [bytes(size)] * 2
        assert loop.time() - began >= 2 * size * 8 / bits_per_s - CLOCK_S


async def test_a_party_that_reads_nothing_makes_the_sender_wait_and_the_relay_holds_a_window() -> None:
    go_on = asyncio.Event()

    async def read_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await echo(reader, writer)

    sent, some = 0, bytes(256 * KIB)
    async with party(read_late, Line(0.001)) as site:
        reader, writer = await site.dial()
        while not (site.held_bytes and writer.transport.get_write_buffer_size() > 4 * MOST_WINDOW_BYTES):
            writer.write(some)
            sent += len(some)
            assert sent < 256 * MOST_WINDOW_BYTES, "the sender does not wait"
            await asyncio.sleep(0.001)
            assert site.held_bytes <= MOST_WINDOW_BYTES
        for _ in range(100):
            await asyncio.sleep(0.001)
            assert site.held_bytes <= MOST_WINDOW_BYTES
        go_on.set()
        writer.write_eof()
        assert len(await reader.read()) == sent


def reset(writer: asyncio.StreamWriter) -> None:
    end: socket.socket = writer.get_extra_info("socket")
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_a_reset_is_passed_on_in_both_directions() -> None:
    noticed = asyncio.get_running_loop().create_future()

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(1))
        try:
            noticed.set_result(await reader.read())
        except ConnectionError as error:
            noticed.set_result(error)

    async with party(note, Line(0.005)) as site:
        reader, writer = await site.dial()
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        reset(writer)
        assert isinstance(await noticed, ConnectionResetError)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        reset(writer)

    async with party(hang_up, Line(0.005)) as site:
        reader, writer = await site.dial()
        writer.write(b"1")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        await until(lambda: not site.relay.connections)


async def test_nobody_there_is_a_reset() -> None:
    async with party(echo, Line(0.005)) as site:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            site.relay.address = gone.getsockname()
        reader, writer = await site.dial()
        writer.write(b"1")
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_nothing_crosses_a_cable_that_is_cut_and_all_of_it_does_once_it_is_mended() -> None:
    heard = bytearray()

    async def repeat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            heard.extend(data)
            writer.write(data)

    def cut(low: float, _high: float) -> float:
        site.cable.breaker.cut()
        return low

    async with party(repeat, Line(0.005, jitter_s=1e-6)) as site:
        reader, writer = await site.dial()
        writer.write(b"before")
        assert await reader.read(100) == b"before"
        site.cable.there.draw = cut  # the next bytes cut the connection
        writer.write(b"on its way, ")
        await until(lambda: site.cable.breaker.is_open)
        late_reader, late_writer = await site.dial()
        writer.write(b"after")
        late_writer.write(b"late")
        for waiting in (reader, late_reader):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(waiting.read(100), 0.1)
        assert heard == b"before"
        site.cable.there.draw = lambda low, _high: low
        site.cable.breaker.mend()
        assert await reader.readexactly(17) == b"on its way, after"
        assert await late_reader.read(100) == b"late"


async def test_a_reset_does_not_cross_a_cable_that_is_cut() -> None:
    async with party(echo, Line(0.005)) as site:
        reader, _ = await site.dial()
        await until(lambda: site.relay.connections)
        site.cable.breaker.cut()
        (connection,) = site.relay.connections
        connection.reset_when_whole()  # the party has gone
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        site.cable.breaker.mend()
        with pytest.raises(ConnectionResetError):
            await reader.read(1)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.005)
