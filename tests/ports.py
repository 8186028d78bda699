"""Addresses that are known before their server is running, and stay the same when it starts again."""

from __future__ import annotations

import errno
import socket

_held: list[socket.socket] = []


def held_address() -> str:
    """Return an address whose port the system gives to nobody else while this process lives.

    Servers set SO_REUSEADDR, so they may listen on it together with these sockets, which never listen."""
    while True:
        v4 = _bound("127.0.0.1", 0)
        port: int = v4.getsockname()[1]
        try:
            _held.extend((v4, _bound("::1", port)))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:  # another process has the port in the other family
                continue
            _held.append(v4)  # this machine has no IPv6
        return f"localhost:{port}"


def _bound(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, port))
    return bound
