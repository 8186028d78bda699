"""The MAC check between parties: digests of the openings, coefficients by commit and reveal, residues likewise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from blindfit.algorithms.errors import MacCheckFailed, MalformedMessage
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols import draw
from blindfit.algorithms.protocols.falcon.messages import CheckCommitment, CheckSeed, Residue, ResidueCommitment
from blindfit.algorithms.protocols.table import DATA, ROUNDS, Arrow
from blindfit.algorithms.randomness import UniformInt
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.mac_check import Opened, adds_up
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Holder

M = TypeVar("M")
DRAWN_BYTES = draw.KEY_BYTES
_OPENED = {
    CheckCommitment: "nothing: digests",
    CheckSeed: "nothing: random bits",
    ResidueCommitment: "nothing: a commitment",
    Residue: "nothing, unless a party cheated: random elements",
}


def arrows_of_check(step: str, only_with: str) -> list[Arrow]:
    """Return the messages of a check between data parties, for the table of a protocol that runs it as this step."""
    return [Arrow(step, DATA, DATA, message, ROUNDS, opened, only_with) for message, opened in _OPENED.items()]


async def exchange_with_all(mine: object, others: Sequence[str], kind: type[M], channel: Channel) -> dict[str, M]:
    """Send one message to every other party, and receive theirs."""
    for other in others:
        await channel.send(other, mine)
    return {other: await channel.receive(other, kind) for other in others}


async def run_check(
    opened: Opened,
    holder: Holder,
    me: str,
    others: Sequence[str],
    context: bytes,
    channel: Channel,
    uniform: UniformInt,
    begun: Callable[[bool], None],
) -> Seed:
    """Raise unless all openings are the sums of the shares; return coefficients that nobody chose.

    Args:
        context: name of this check only.
        begun: function that is called with True before this party's residue leaves, and with False when the check has
            passed. A residue that does not add up reveals the MAC key to a party that knows the change. Unless the
            check passes, no party may use the key again, in any case.

    Raises:
        MacCheckFailed: the residues do not add up.
        MalformedMessage: a party saw other openings, or its opening does not fit its commitment.
    """
    drawn = {me: _draw_bytes(uniform)}
    mine = CheckCommitment(opened.digest(), draw.step_2_commit(me, context, drawn[me]).digest)
    committed = await exchange_with_all(mine, others, CheckCommitment, channel)
    for other, theirs in committed.items():
        _require(theirs.opened == mine.opened, other, "opened", "is of other openings than this party has seen")
    seeds = await exchange_with_all(CheckSeed(drawn[me]), others, CheckSeed, channel)
    drawn |= {other: said.drawn for other, said in seeds.items()}
    commitments = {name: draw.Commitment(said.commitment) for name, said in {**committed, me: mine}.items()}
    coefficients = Seed(draw.step_4_key(context, drawn, commitments).key)
    begun(True)
    residues = await _residues(opened.residue(coefficients, holder), me, others, context, channel, uniform)
    if not adds_up(residues):
        raise MacCheckFailed
    begun(False)
    opened.forget()
    return coefficients


async def _residues(
    mine: Elements, me: str, others: Sequence[str], context: bytes, channel: Channel, uniform: UniformInt
) -> list[Elements]:
    """Return all parties' residues; each was committed to before any was revealed."""
    own = Residue(mine, _draw_bytes(uniform))
    commitment = ResidueCommitment(_commit(me, context, own))
    committed = await exchange_with_all(commitment, others, ResidueCommitment, channel)
    told: Mapping[str, Residue] = await exchange_with_all(own, others, Residue, channel)
    for other, residue in told.items():
        _require(residue.value.shape == (1,), other, "value", "is not one element")
        _require(len(residue.blinding) == DRAWN_BYTES, other, "blinding", "has the wrong length")
        is_it = _commit(other, context, residue) == committed[other].commitment
        _require(is_it, other, "value", "is not what it committed to")
    return [mine, *(residue.value for residue in told.values())]


def _commit(owner: str, context: bytes, residue: Residue) -> bytes:
    told = residue.value.astype("<u8").tobytes() + residue.blinding
    return draw.step_2_commit(owner, hashlib.sha256(b"blindfit residue v1/" + context).digest(), told).digest


def _draw_bytes(uniform: UniformInt) -> bytes:
    return uniform(1 << 8 * DRAWN_BYTES).to_bytes(DRAWN_BYTES, "big")


def _require(condition: bool, culprit: str, field: str, reason: str) -> None:
    if not condition:
        raise MalformedMessage(culprit=culprit, field=field, reason=reason, step="MAC check")
