"""Draw: the data parties of a vertical training together draw the key from which splits and batches follow.

So no party chooses the held-out rows. The draw happens once for the same snapshots and parties, and is used again.

Source: Blum 1983, coin flipping by telephone, with SHA-256 as the commitment.
Model: semi-honest in keeping the key; no party can bias a draw that ends, and a draw that ends early is counted.

    step  who        does                                                       sends
    1     each P_i   looks for an earlier draw                                  Known to every other.
    2     each P_i   unless all have the same: counts a draw, c_i <- 256 bits   Commitment SHA-256(P_i, context, c_i).
    3     each P_i   has every commitment                                       Opening c_i to every other.
    4     each P_i   checks them; key = SHA-256(context, c_1, ..., c_n)         nothing.

Departures: none.
Learns: every data party learns the key. A key node or a coordinator learns nothing of it, so it does not know the place
    of any row.
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
    digest: Octets  # SHA-256 of the key of an earlier draw; empty without one


@dataclass(frozen=True, slots=True)
class Commitment:
    digest: Octets


@dataclass(frozen=True, slots=True)
class Opening:
    drawn: Octets  # public from here on


TABLE = Table(
    "draw",
    Arrow("1", DATA, DATA, Known, ONCE, "whether the sender still has the earlier draw"),
    Arrow("2", DATA, DATA, Commitment, ONCE, "nothing: a commitment", "a new draw"),
    Arrow("3", DATA, DATA, Opening, ONCE, "the sender's part of the draw", "a new draw"),
)


# --- steps ---------------------------------------------------------------------------------------


def digest_of(randomness: PublicRandomness | None) -> bytes:
    """Return the digest by which parties compare their keys; a key has 256 random bits, so it reveals nothing."""
    return b"" if randomness is None else hashlib.sha256(b"blindfit draw known v1/" + randomness.key).digest()


def step_1_check(known: Known, *, sender: str) -> bytes:
    if len(known.digest) not in (0, KEY_BYTES):
        raise MalformedMessage(culprit=sender, field="digest", reason="is not a SHA-256", step="Known")
    return known.digest


def step_2_commit(owner: str, context: bytes, drawn: bytes) -> Commitment:
    parts = (b"blindfit draw commitment v1", owner.encode(), context, drawn)
    return Commitment(hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest())


def step_4_key(context: bytes, drawn: Mapping[str, bytes], commitments: Mapping[str, Commitment]) -> PublicRandomness:
    """Return the key; raise MalformedMessage if a party's opening does not fit its commitment."""
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
    """Return the key that all parties have drawn, now or before.

    Args:
        known: the key of an earlier draw for this context.
        context: purpose of the key; the same at all parties.
        begin: function that is called before a new draw, to count it; it may raise.
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
