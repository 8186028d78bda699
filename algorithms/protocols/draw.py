"""Draw: the data parties of a vertical training draw together what splits and batches follow from, so that nobody
chooses who is held out; once for the same snapshots and parties, and it is used again.

Source: Blum 1983, coin flipping by telephone, with SHA-256 as the commitment.
Model: semi-honest for who keeps what was drawn; no party can bias a draw that ends, and one that ends early is counted.

    step  who        does                                                       sends
    1     each P_i   looks for what was drawn before                            Known to every other
    2     each P_i   unless all have the same: counts a draw, c_i <- 256 bits   Commitment SHA-256(P_i, context, c_i)
    3     each P_i   has every commitment                                       Opening c_i to every other
    4     each P_i   checks them; key = SHA-256(context, c_1, ..., c_n)         --

Departures: none.
Learns: every data party, the key; a key node or a coordinator nothing of it, so that it cannot tell whose row is where.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel, Octets
from blindfit.algorithms.protocols.table import DATA, ONCE, Arrow, Table
from blindfit.algorithms.randomness import PublicRandomness, UniformInt, system_uniform

KEY_BYTES = 32


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    digest: Octets  # SHA-256 of the key that was drawn before; empty: none was


@dataclass(frozen=True, slots=True)
class Commitment:
    digest: Octets


@dataclass(frozen=True, slots=True)
class Opening:
    drawn: Octets  # public from here on


TABLE = Table(
    "draw",
    Arrow("1", DATA, DATA, Known, ONCE, "whether what was drawn before is still there"),
    Arrow("2", DATA, DATA, Commitment, ONCE, "nothing: a commitment", "a new draw"),
    Arrow("3", DATA, DATA, Opening, ONCE, "the sender's part of the draw", "a new draw"),
)


# --- steps ---------------------------------------------------------------------------------------


def digest_of(randomness: PublicRandomness | None) -> bytes:
    """By which parties compare what they have; of 256 random bits, so that it tells nothing of them."""
    return b"" if randomness is None else hashlib.sha256(b"blindfit draw known v1/" + randomness.key).digest()


def step_1_check(known: Known, *, sender: str) -> bytes:
    if len(known.digest) not in (0, KEY_BYTES):
        raise MalformedMessage(culprit=sender, field="digest", reason="is no SHA-256", step="Known")
    return known.digest


def step_2_commit(owner: str, context: bytes, drawn: bytes) -> Commitment:
    parts = (b"blindfit draw commitment v1", owner.encode(), context, drawn)
    return Commitment(hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest())


def step_4_key(context: bytes, drawn: Mapping[str, bytes], commitments: Mapping[str, Commitment]) -> PublicRandomness:
    """Raise MalformedMessage: a party opened other than what it had committed to."""
    for owner, opened in drawn.items():
        if len(opened) != KEY_BYTES or step_2_commit(owner, context, opened) != commitments[owner]:
            raise MalformedMessage(culprit=owner, field="drawn", reason="is not what it committed to", step="Opening")
    parts = [b"blindfit draw v1", hashlib.sha256(context).digest(), *(drawn[owner] for owner in sorted(drawn))]
    return PublicRandomness(hashlib.sha256(b"".join(parts)).digest())


# --- role ----------------------------------------------------------------------------------------


async def run_data_party(
    known: PublicRandomness | None,
    context: bytes,
    me: str,
    others: Sequence[str],
    channel: Channel,
    *,
    begin: Callable[[], None],
    uniform: UniformInt = system_uniform,
) -> PublicRandomness:
    """What all have drawn, now or before.

    Args:
        known: what was drawn for this context before.
        context: what it is drawn for; the same at all parties.
        begin: called before a new draw, to count it; may raise.
    """
    mine = digest_of(known)
    for other in others:
        await channel.send(other, Known(mine))
    theirs = [step_1_check(await channel.receive(other, Known), sender=other) for other in others]
    if known is not None and all(digest == mine for digest in theirs):
        return known
    begin()
    drawn = {me: uniform(1 << 8 * KEY_BYTES).to_bytes(KEY_BYTES, "big")}
    commitments = {me: step_2_commit(me, context, drawn[me])}
    for other in others:
        await channel.send(other, commitments[me])
    for other in others:
        commitments[other] = await channel.receive(other, Commitment)
    for other in others:
        await channel.send(other, Opening(drawn[me]))
    for other in others:
        drawn[other] = (await channel.receive(other, Opening)).drawn
    return step_4_key(context, drawn, commitments)
