"""Close connections without a call before they leave no place for a connection with a call.

gRPC accepts no more connections than `limits.connections`. It does not report whose they are, and cannot close one of
them. A peer or stranger that holds many connections, before or after a handshake, would exclude everyone else. So this
process counts its connections regularly. Above three quarters of the limit, it closes connections that carry no
admitted call, the oldest first. Their owners connect again when they next send something.

A connection with a call belongs to its peer, and the limit of calls for each peer bounds their number (guard.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import resource
import socket
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import structlog

from blindfit.parties.wire.limits import Limits

log = structlog.get_logger(__name__)

LOOK_S = 0.1
OPEN_FILES = "/dev/fd"
MOST_FILES = 2**20  # request for a system that sets no limit

Name = str  # name of a connection, in gRPC's form: ipv4:127.0.0.1:40000, ipv6:%5B::1%5D:40000


class Doorkeeper:
    """Closes connections without a call when there are too many.

    Args:
        port: port on which this process listens.
        is_serving: function that returns True if a connection carries an admitted call.
    """

    def __init__(self, port: int, limits: Limits, is_serving: Callable[[Name], bool]) -> None:
        self._port, self._most, self._is_serving = port, limits.connections, is_serving
        self._idle: dict[Name, None] = {}  # idle connections at the last look, in the order in which they came

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self.look()
            except OSError as error:  # the process cannot open even one more file
                log.error("connections cannot be looked at", reason=error.strerror)

    def look(self) -> None:
        if len(os.listdir(OPEN_FILES)) <= self._most // 2:
            self._idle.clear()
            return
        held = dict(self._connections())
        idle = {name: None for name in held if not self._is_serving(name)}
        known = {name: None for name in self._idle if name in idle}
        self._idle = known | idle  # a new connection may be about to make a call, and stays open
        if len(held) > self._most * 3 // 4:
            unused = list(known)[: len(held) - self._most // 2]
            self._tell(list(held), sum(self._close(name, held[name]) for name in unused))

    def _connections(self) -> Iterator[tuple[Name, int]]:
        for number in map(int, os.listdir(OPEN_FILES)):
            with self._connection(number) as (name, _):
                if name:
                    yield name, number

    def _close(self, name: Name, number: int) -> bool:
        """Close a connection. Return True if it was still there."""
        with self._connection(number) as (there, connection), contextlib.suppress(OSError):
            if there == name and connection is not None:
                connection.shutdown(socket.SHUT_RDWR)
                return True
        return False

    @contextlib.contextmanager
    def _connection(self, number: int) -> Iterator[tuple[Name, socket.socket | None]]:
        """Yield the name and a duplicate of a connection: gRPC may close its own and reuse the number meanwhile.

        The name is empty if this is not a connection from outside.
        """
        with contextlib.ExitStack() as stack:
            connection = None
            with contextlib.suppress(OSError):  # no longer there
                copy = os.dup(number)
                if stat.S_ISSOCK(os.fstat(copy).st_mode):
                    connection = stack.enter_context(socket.socket(fileno=copy))
                else:
                    os.close(copy)
            yield (connection and self._name_of(connection)) or "", connection

    def _tell(self, held: list[Name], closed: int) -> None:
        address, count = Counter(name.rpartition(":")[0] for name in held).most_common(1)[0]
        log.warning(
            "too many connections: those without a call are closed",
            connections=len(held),
            limit=self._most,
            closed=closed,
            most_are_from=address,
            of_these=count,
        )

    def _name_of(self, connection: socket.socket) -> Name | None:
        """Return the name of a connection; None if it does not come from outside."""
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return None
        try:
            host, port = connection.getpeername()[:2]
        except OSError:  # it listens, or has ended
            return None
        return name_of(host, port) if connection.getsockname()[1] == self._port else None


def name_of(host: str, port: int) -> Name:
    """Return gRPC's name of a caller at this address."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if address.version == 4 or mapped:
        return f"ipv4:{mapped or address}:{port}"
    return f"ipv6:%5B{address}%5D:{port}"


def raise_open_files() -> int:
    """Raise the limit of open files to the most that the operator allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else hard
    with contextlib.suppress(ValueError, OSError):  # macOS has another limit, and does not report it
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return soft


def fitting(limits: Limits, open_files: int) -> Limits:
    """Return limits with fewer connections if needed, so that at least half of the open files remain for other uses."""
    if limits.connections <= open_files // 2:
        return limits
    fewer = max(open_files // 2, 1)
    log.warning(
        "this process may have few files open, so it takes fewer connections: raise its limit (ulimit -n)",
        open_files=open_files,
        connections=fewer,
    )
    return replace(limits, connections=fewer)
