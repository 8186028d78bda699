"""The process of relays: who finds whom where, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import permutations

import pytest

from blindfit.algorithms.errors import PeerTimeout, TransportError
from blindfit.coordinator.job.network import NetworkSettings
from blindfit.coordinator.running.network.relays import relays

QUICK = NetworkSettings.model_validate("1ms")


@contextmanager
def parties(count: int) -> Iterator[dict[str, socket.socket]]:
    with ExitStack() as stack:
        yield {f"p{n}": stack.enter_context(socket.create_server(("127.0.0.1", 0))) for n in range(count)}


def addresses(of: dict[str, socket.socket]) -> dict[str, str]:
    return {name: f"127.0.0.1:{there.getsockname()[1]}" for name, there in of.items()}


def dial(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 10)


def accepted(there: socket.socket) -> bytes:
    there.settimeout(10)
    connection, _ = there.accept()
    with connection:
        connection.settimeout(10)
        return connection.recv(100)


def test_sixteen_parties_find_each_other_at_ports_that_are_closed_at_the_end() -> None:
    with parties(16) as there, relays(QUICK) as opened:
        routes = opened.open(addresses(there))
        assert {name: set(of) for name, of in routes.items()} == {name: there.keys() - {name} for name in there}
        assert len({address for of in routes.values() for address in of.values()}) == 240
        for one, other in list(permutations(there, 2))[::29]:
            with dial(routes[one][other]) as client:
                client.sendall(f"{one} to {other}".encode())
                assert accepted(there[other]) == f"{one} to {other}".encode()
    with pytest.raises(ConnectionRefusedError):
        dial(routes["p0"]["p1"])


def test_a_party_without_others_needs_no_relay() -> None:
    with relays(QUICK) as opened:
        assert opened.open({"p0": "127.0.0.1:1"}) == {"p0": {}}
        opened.cut("p0")


def test_relays_lead_to_parties_that_have_moved() -> None:
    with parties(2) as before, parties(2) as after, relays(None) as opened:
        routes = opened.open(addresses(before))
        assert opened.open(addresses(after)) == routes
        with dial(routes["p0"]["p1"]) as client:
            client.sendall(b"hello")
            assert accepted(after["p1"]) == b"hello"


def test_a_party_that_is_cut_off_is_reached_by_nobody_and_the_others_are() -> None:
    with parties(3) as there, relays(QUICK) as opened:
        routes = opened.open(addresses(there))
        opened.cut("p0")
        with dial(routes["p1"]["p0"]) as lost, dial(routes["p1"]["p2"]) as client:
            lost.sendall(b"later")
            client.sendall(b"now")
            assert accepted(there["p2"]) == b"now"
            there["p0"].settimeout(0.1)
            with pytest.raises(TimeoutError):
                there["p0"].accept()
            opened.mend("p0", "p1")
            assert accepted(there["p0"]) == b"later"


def test_a_party_that_is_mended_does_not_mend_the_cables_of_another() -> None:
    with parties(3) as there, relays(QUICK) as opened:
        routes = opened.open(addresses(there))
        opened.cut("p0")
        opened.cut("p1")
        opened.mend("p0", still_cut=["p1"])
        with dial(routes["p0"]["p1"]) as lost, dial(routes["p0"]["p2"]) as client:
            lost.sendall(b"later")
            client.sendall(b"now")
            assert accepted(there["p2"]) == b"now"
            there["p1"].settimeout(0.1)
            with pytest.raises(TimeoutError):
                there["p1"].accept()
            opened.mend("p1")
            assert accepted(there["p1"]) == b"later"


def test_a_process_of_relays_that_is_killed_is_named_as_the_cause() -> None:
    killed = "the simulated network ended with exit code -9"

    def lose_a_party() -> None:
        with parties(2) as there, relays(QUICK) as opened:
            opened.open(addresses(there))
            os.kill(opened._process.pid, signal.SIGKILL)
            opened._process.wait()
            raise PeerTimeout(peer="p1", step="align", timeout_s=1)

    def open_no_relay() -> None:
        with parties(2) as there, relays(QUICK) as opened:
            os.kill(opened._process.pid, signal.SIGKILL)
            opened.open(addresses(there))

    for use in (lose_a_party, open_no_relay):
        with pytest.raises(TransportError, match=killed):
            use()
