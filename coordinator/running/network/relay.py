"""Relays between parties: each passes bytes on as late and as slowly as the simulated network would."""

from __future__ import annotations

import asyncio
import contextlib
import select
import selectors
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from blindfit.coordinator.running.network.link import Link, Window

BACKLOG = 128
END = b""  # in place of bytes: the sender has finished
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: to close then resets the connection


class ExactSelector(selectors.DefaultSelector):
    """A selector that waits exactly as long as requested: epoll would round up to the next millisecond."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        found: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        return found


class Breaker:
    """A cut in the cable between two parties. Nothing arrives until it is mended; then TCP sends everything again."""

    def __init__(self) -> None:
        self.is_open = False
        self._waiting: list[Callable[[], None]] = []

    def when_whole(self, act: Callable[[], None]) -> None:
        """Act now, or when the cable is mended."""
        if self.is_open:
            self._waiting.append(act)
        else:
            act()

    def cut(self) -> None:
        self.is_open = True

    def mend(self) -> None:
        self.is_open = False
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            act()


@dataclass(frozen=True)
class Cable:
    """The link between two parties, seen from the one that opens a connection."""

    there: Link
    back: Link
    breaker: Breaker = field(default_factory=Breaker)

    @property
    def round_trip_s(self) -> float:
        return self.there.line.latency_s + self.back.line.latency_s

    def turn(self) -> Cable:
        """Return the same cable, seen from the other party."""
        return Cable(self.back, self.there, self.breaker)


class Flow:
    """One direction of a connection: one socket receives bytes, and the other sends them later.

    Bytes stay in the sender's socket while TCP's window or the router's queue is full.
    """

    def __init__(self, connection: Connection, source: socket.socket, link: Link, starts_at: float) -> None:
        self._connection, self._source, self._link, self._starts_at = connection, source, link, starts_at
        self._breaker, self._loop = connection.cable.breaker, connection.loop
        self._window = Window(connection.cable.round_trip_s)
        self._back_s = connection.cable.round_trip_s - link.line.latency_s
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._target: socket.socket | None = None
        self._last_arrival = 0.0
        self._is_reading = self._is_delivering = self._source_ended = self.has_ended = False

    def open(self, target: socket.socket) -> None:
        """Start, with the socket that sends what arrives."""
        self._target = target
        self._read_on()

    def close(self) -> None:
        self.has_ended = self._source_ended = True
        self._pause()
        if self._target is not None:
            self._loop.remove_writer(self._target)

    # --- the sender's end

    def _read_on(self) -> None:
        """Read when there is space; if the window is full, the next acknowledgement calls again."""
        if self._source_ended:
            return
        if self._breaker.is_open:
            self._pause()
            self._breaker.when_whole(self._read_on)
            return
        now = self._loop.time()
        room_at = max(self._starts_at, self._link.find_room_at(now))
        if room_at > now:
            self._pause()
            self._loop.call_at(room_at, self._read_on)
        elif not self._window.find_room(now):
            self._pause()
        elif not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._source, self._read)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._source)

    def _read(self) -> None:
        now = self._loop.time()
        size = min(self._link.turn_bytes, self._window.find_room(now))
        if size and not self._breaker.is_open and self._link.find_room_at(now) <= now:
            try:
                data = self._source.recv(size)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._source_ended = True
                self._pause()
                self._loop.call_later(self._link.line.latency_s, self._connection.reset_when_whole)
                return
            self._send(data, now)
        self._read_on()

    def _send(self, data: bytes, now: float) -> None:
        self._window.send(len(data), now)
        self._last_arrival = max(self._last_arrival, self._link.carry(len(data), now))
        self._arriving.append((self._last_arrival, data))
        if data == END:
            self._source_ended = True
            self._pause()
        if not self._is_delivering:
            self._is_delivering = True
            self._loop.call_at(self._last_arrival, self._deliver)

    # --- the receiver's end

    def _deliver(self) -> None:
        """Pass on what has arrived, and acknowledge it after the receiver's socket has taken it."""
        if self.has_ended or self._target is None:
            return
        if self._breaker.is_open:
            self._breaker.when_whole(self._deliver)
            return
        while self._arriving and self._arriving[0][0] <= self._loop.time():
            due, data = self._arriving.popleft()
            try:
                taken = self._pass_on(self._target, data)
            except (BlockingIOError, InterruptedError):
                taken = 0
            except OSError:
                self._loop.call_later(self._back_s, self._connection.reset_when_whole)
                self.close()
                return
            if taken:
                self._loop.call_later(self._back_s, self._acknowledge, taken)
            if taken < len(data):
                self._arriving.appendleft((due, data[taken:]))
                self._loop.add_writer(self._target, self._deliver_on)
                return
        self._is_delivering = bool(self._arriving)
        if self._arriving:
            self._loop.call_at(self._arriving[0][0], self._deliver)

    def _deliver_on(self) -> None:
        if self._target is not None:
            self._loop.remove_writer(self._target)
        self._deliver()

    def _pass_on(self, target: socket.socket, data: bytes) -> int:
        if data == END:
            self.has_ended = True
            target.shutdown(socket.SHUT_WR)
            self._connection.end()
            return 0
        return target.send(data)

    def _acknowledge(self, size: int) -> None:
        self._window.acknowledge(size)
        self._read_on()


class Connection:
    """A connection that one party has opened to another, in two parts: to the relay, and from the relay."""

    def __init__(self, relay: Relay, client: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.cable, self.loop, self._relay, self._client = relay.cable, loop, relay, client
        self._server: socket.socket | None = None
        self._flows: list[Flow] = []
        self._dialling: asyncio.Task[None] | None = None
        self._began, self._is_closed = loop.time(), False
        loop.call_at(self._began + self.cable.there.line.latency_s, self.cable.breaker.when_whole, self._dial)

    def _dial(self) -> None:
        """Ask the other party for a connection: the first packet has arrived."""
        if not self._is_closed:
            self._dialling = self.loop.create_task(self._connect())

    async def _connect(self) -> None:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        server.setblocking(False)
        self._server = server
        try:
            await self.loop.sock_connect(server, self._relay.address)
        except OSError:
            self.loop.call_later(self.cable.back.line.latency_s, self.reset_when_whole)
            return
        for end in (self._client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The client may send when the answer to its first packet is back; the server after the client's next packet.
        opened_at = self._began + self.cable.round_trip_s
        there = Flow(self, self._client, self.cable.there, opened_at)
        back = Flow(self, server, self.cable.back, opened_at + self.cable.there.line.latency_s)
        self._flows = [there, back]
        there.open(server)
        back.open(self._client)

    def end(self) -> None:
        """Close both sockets when neither side sends any more."""
        if all(flow.has_ended for flow in self._flows):
            self.close()

    def reset_when_whole(self) -> None:
        self.cable.breaker.when_whole(self.reset)

    def reset(self) -> None:
        """Close both sockets so that neither side takes it for an end."""
        for end in (self._client, self._server):
            if end is not None and end.fileno() >= 0:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.close()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for flow in self._flows:
            flow.close()
        if self._dialling is not None:
            self._dialling.cancel()
        for end in (self._client, self._server):
            if end is not None:
                end.close()
        self._relay.connections.discard(self)


class Relay:
    """A port on this machine at which one party finds another.

    Attributes:
        address: address of the other party.
    """

    def __init__(self, address: tuple[str, int], cable: Cable, loop: asyncio.AbstractEventLoop) -> None:
        self.address, self.cable, self._loop = address, cable, loop
        self.connections: set[Connection] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._listener.setblocking(False)
        loop.add_reader(self._listener, self._accept)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the client has gone, or this process has no descriptor left
            client, _ = self._listener.accept()
            client.setblocking(False)
            self.connections.add(Connection(self, client, self._loop))

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for connection in tuple(self.connections):
            connection.close()
