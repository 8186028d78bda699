"""Address of a party, in the form of files and proposals: "host:port"."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator

from blindfit.algorithms.errors import ConfigError

# Labels have 1 to 63 characters, as in DNS: at any other label Python's resolver raises UnicodeError, not OSError.
LABELS = r"[a-zA-Z0-9_-]{1,63}(?:\.[a-zA-Z0-9_-]{1,63})*\.?"
HOST = rf"{LABELS}|\[[0-9a-fA-F:.]+\]"
ADDRESS = re.compile(rf"(?P<host>{HOST}):(?P<port>[0-9]{{1,5}})")
FORM = "write host:port, or [address]:port for IPv6"


def split_address(address: str) -> tuple[str, int]:
    """Return the two parts of 'host:port' or '[IPv6]:port'."""
    match = ADDRESS.fullmatch(address)
    if not match or not 0 < int(match["port"]) < 65536 or not is_host(match["host"]):
        raise ConfigError(f"{address!r} is not an address", hint=FORM)
    return match["host"].strip("[]"), int(match["port"])


def is_host(host: str) -> bool:
    """Return True if a text is a host that can be resolved or is an address.

    Args:
        host: text of the form HOST.
    """
    if not host.startswith("["):
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _check(address: str) -> str:
    try:
        split_address(address)
    except ConfigError as error:
        raise ValueError(f"{error.message}: {FORM}") from None
    return address


Address = Annotated[str, AfterValidator(_check)]  # for an option of a file
