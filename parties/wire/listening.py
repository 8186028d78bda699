"""Check that an address can be listened on, before gRPC tries: gRPC would first print a line of its own."""

from __future__ import annotations

import errno
import socket

from blindfit.algorithms.errors import ConfigError

TAKEN = "is another process using the port?"
OWN = "name an address of this machine, and a port that this user may have"


def check_free(listen: str) -> None:
    """Check that an address is free.

    Args:
        listen: "host:port"; any other form is left to gRPC.

    Raises:
        ConfigError: no address of the host can be bound.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 2**16:
        return
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise cannot_bind(listen, "there is no such host", OWN) from None
    errors = [error for family, _, _, _, address in found if (error := _try_to_bind(family, address))]
    if found and len(errors) == len(found):
        error = errors[0]
        taken = error.errno == errno.EADDRINUSE
        raise cannot_bind(listen, error.strerror or "", TAKEN if taken else OWN)


def cannot_bind(listen: str, reason: str = "", hint: str = TAKEN) -> ConfigError:
    because = f": {reason}" if reason else ""
    return ConfigError(f"listen = {listen}: the address cannot be bound{because}", hint=hint)


def _try_to_bind(family: int, address: object) -> OSError | None:
    """Return the error if the address cannot be bound."""
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # gRPC sets this option too
        try:
            trial.bind(address)  # type: ignore[arg-type]
        except OSError as error:
            return error
    return None
