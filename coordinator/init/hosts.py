"""The address of each party, for its file and the job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.wire.addresses import ADDRESS, split_address

LOCALHOST, FIRST_PORT = "localhost", 7101
HERE = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Host:
    """Host of a party.

    Args:
        name: host name, or an address in the form of HOST (IPv6 in brackets).
    """

    name: str
    port: int

    @property
    def address(self) -> str:
        return f"{self.name}:{self.port}"

    @property
    def in_certificate(self) -> str:
        """Name that `blindfit certs issue --host` takes."""
        return self.name.strip("[]")

    @property
    def listen(self) -> str:
        """Address at which the party listens: all of its machine, or localhost if all parties share a machine."""
        if self.name in HERE:
            return self.address
        return f"[::]:{self.port}" if self.name.startswith("[") else f"0.0.0.0:{self.port}"

    @property
    def is_here(self) -> bool:
        return self.name in HERE


def hosts_of(names: Sequence[str], given: Sequence[str]) -> dict[str, Host]:
    """Return the host of each party; without a given host, localhost with a separate port.

    Args:
        given: hosts, each as "NAME=HOST[:PORT]".

    Raises:
        ConfigError: a text does not have this form, or no party has this name.
    """
    found = {name: Host(LOCALHOST, FIRST_PORT + number) for number, name in enumerate(names)}
    for text in given:
        name, equals, place = text.partition("=")
        if not equals or name not in found:
            raise ConfigError(
                f"--host {text}: it does not begin with a party and =",
                hint=f"write --host NAME=HOST[:PORT]; the parties are {', '.join(names)}",
            )
        has_port = re.fullmatch(ADDRESS, place) is not None
        address = place if has_port else f"{place}:{found[name].port}"
        split_address(address)
        host, _, port = address.rpartition(":")
        found[name] = Host(host, int(port))
    places = [host.address for host in found.values()]
    if twice := [place for place in places if places.count(place) > 1]:
        raise ConfigError(f"--host: two parties are at {twice[0]}", hint="give one of them another port")
    return found
