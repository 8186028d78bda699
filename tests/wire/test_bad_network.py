"""A session ends in time on any bad network, with the right result or a typed error."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.messages import Integer, Octets
from blindfit.algorithms.protocols.table import ALL, CHUNKS, Arrow, Table
from blindfit.parties.wire.exchange import ExchangeChannel
from blindfit.parties.wire.link import Timeouts
from tests.wire.site import proxied

TIMEOUTS = Timeouts(step_s=12.0, reconnect_s=6.0)
DEADLINE_S = 60.0  # a step, a cut and the end of a session, and the machine may be busy
MESSAGES = 12
AT_ONCE = 30


@dataclass(frozen=True, slots=True, repr=False)
class Piece:
    number: Integer
    data: Octets
    before: Octets  # hash of everything that its sender has received


TABLE = Table("pieces", Arrow("1", ALL, ALL, Piece, CHUNKS, "all of it"))


def pieces(seed: int, name: str) -> list[bytes]:
    dice = random.Random(f"{seed} {name}")
    return [dice.randbytes(int(10 ** dice.uniform(0, 5.3))) for _ in range(MESSAGES)]


async def talk(me: ExchangeChannel, peer: str, mine: list[bytes]) -> list[tuple[int, bytes]]:
    """Send each message after the peer's previous one arrived: a lost message would be noticed."""
    received, seen = [], hashlib.sha256()
    for number, data in enumerate(mine):
        await me.send(peer, Piece(number, data, seen.digest()))
        piece = await me.receive(peer, Piece)
        seen.update(piece.data)
        received.append((piece.number, piece.data))
    await me.close()
    return received


async def outcome(authority: Path, seed: int) -> str:
    """Return the outcome of one schedule: right, or the typed errors of both sides."""
    async with proxied(authority, "p0", "p1", schedule=random.Random(seed), tables=[TABLE]) as up:
        channels = {name: site.join("s", TIMEOUTS) for name, site in up.items()}
        async with asyncio.timeout(DEADLINE_S):
            ends = await asyncio.gather(*(run(channels[me], peer, seed) for me, peer in (("p0", "p1"), ("p1", "p0"))))
    return ", ".join(sorted(set(ends)))


async def run(channel: ExchangeChannel, peer: str, seed: int) -> str:
    try:
        received = await talk(channel, peer, pieces(seed, channel.name))
    except BlindfitError as error:
        await channel.close(error)
        return type(error).__name__
    assert received == list(enumerate(pieces(seed, peer)))
    return "right"


async def outcomes(authority: Path, seeds: range) -> Counter[str]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> str:
        async with gate:
            return await outcome(authority, seed)

    return Counter(await asyncio.gather(*map(one, seeds)))


async def test_thirty_bad_networks(authority: Path) -> None:
    counted = await outcomes(authority, range(30))
    assert counted.total() == 30
    assert counted["right"] >= 15, counted  # a cut is mended, not merely reported


@pytest.mark.soak
async def test_a_thousand_bad_networks(authority: Path) -> None:
    counted = await outcomes(authority, range(1000))
    assert counted.total() == 1000
    assert counted["right"] >= 500, counted
