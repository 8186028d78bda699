"""A whole protocol through the plumbing: the same numbers, bit for bit, and only messages of its table."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import MalformedMessage, PeerTimeout, UnexpectedStep
from blindfit.parties.wire import codec
from blindfit.parties.wire.channel import LocalNetwork
from tests import toy
from tests.protocols.counts import assert_as_often
from tests.wire.site import sites

N = 50


def uniform(seed: int) -> toy.Uniform:
    return random.Random(seed).randrange


def inputs() -> tuple[tuple[toy.Vector, toy.Vector], tuple[toy.Vector, toy.Vector]]:
    draw = uniform(1)
    x, y = toy.draw(N, draw), toy.draw(N, draw)
    return toy.share(x, draw), toy.share(y, draw)


async def over(channels: dict[str, object]) -> tuple[toy.Vector, toy.Vector]:
    x, y = inputs()
    z0, z1, _ = await asyncio.gather(
        toy.run_party(0, "p1", x[0], y[0], channels["p0"]),
        toy.run_party(1, "p0", x[1], y[1], channels["p1"]),
        toy.run_dealer(N, ("p0", "p1"), uniform(2), channels["dealer"]),
    )
    return z0, z1


def assert_as_specified(result: tuple[toy.Vector, toy.Vector]) -> None:
    expected = toy.run_locally(*inputs(), uniform(2))
    assert [z.tobytes() for z in result] == [z.tobytes() for z in expected]


def test_the_specification_multiplies() -> None:
    (x0, x1), (y0, y1) = inputs()
    z = toy.add(*toy.run_locally((x0, x1), (y0, y1), uniform(2)))
    assert np.array_equal(z, toy.mul(toy.add(x0, x1), toy.add(y0, y1)))


async def test_in_memory_it_equals_the_specification() -> None:
    network = LocalNetwork(toy.ROLES, toy.TABLE)
    assert_as_specified(await over({name: network.channel(name) for name in ("p0", "p1", "dealer")}))
    assert sorted(network.sent) == [
        ("dealer", "p0", "TripleShare"),
        ("dealer", "p1", "TripleShare"),
        ("p0", "p1", "Masked"),
        ("p1", "p0", "Masked"),
    ]
    assert not network.unread
    assert_as_often(toy.TABLE, toy.ROLES, network.sent)


async def test_over_grpc_it_equals_the_specification(authority: Path) -> None:
    async with sites(authority, "p0", "p1", "dealer", tables=[toy.TABLE]) as up:
        channels = {name: site.join("s") for name, site in up.items()}
        assert_as_specified(await over(channels))
        for channel in channels.values():
            await channel.close()


@pytest.mark.parametrize(
    ("tampered", "error", "text"),
    [
        (
            toy.Masked(toy.vector([1]), toy.vector([1])),
            MalformedMessage,
            "p1 sent a malformed message: d: has the wrong length",
        ),
        (toy.TripleShare(*[toy.vector([1])] * 3), UnexpectedStep, "p1 sent TripleShare where Masked was expected"),
    ],
)
async def test_a_tampered_opening_names_the_culprit(tampered: object, error: type[Exception], text: str) -> None:
    def wire(sender: str, receiver: str, step: str, data: bytes) -> bytes:
        return codec.encode(tampered) if (sender, step) == ("p1", "Masked") else data

    network = LocalNetwork(toy.ROLES, toy.TABLE, wire=wire)
    with pytest.raises(error) as caught:
        await over({name: network.channel(name) for name in ("p0", "p1", "dealer")})
    assert str(caught.value) == text
    assert caught.value.culprit == "p1"


async def test_a_dealer_that_says_nothing_is_named() -> None:
    network = LocalNetwork(toy.ROLES, toy.TABLE, timeout_s=0.05)
    x, y = inputs()
    with pytest.raises(PeerTimeout) as caught:
        await toy.run_party(0, "p1", x[0], y[0], network.channel("p0"))
    assert (caught.value.peer, caught.value.step) == ("dealer", "TripleShare")
