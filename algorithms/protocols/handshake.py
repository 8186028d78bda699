"""Handshake: the parties of a session agree on version, protocol, members and public parameters before any data.

Source: our own.
Model: every party may lie about itself, but it then only learns that the session ends.

    step  who        does                                                           sends
    1     each P_i   its version, protocol, role, members, parameters, their hash   Hello to every other.
    2     each P_i   compare with every Hello; the first difference ends            nothing.

Departures: none. Hello keeps its fields in every version, so that a difference of versions gives a clear error.
Learns: members and public parameters, which every party was proposed anyway.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import HandshakeMismatch, MalformedMessage
from blindfit.algorithms.messages import Channel, Octets, Parameters, ParameterValue, Text, parameters_digest
from blindfit.algorithms.protocols.table import ALL, ONCE, Arrow, Table

MOST_ID = 64  # characters
PROTOCOL_VERSION = "1"  # of all messages; two versions never mix


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    version: Text
    protocol: Text
    role: Text
    members: Parameters  # a name in words, such as "dataset of bank" -> a fact about a member
    parameters: Parameters
    digest: Octets  # `digest_of_agreement` of the two
    snapshot: Text = ""  # the random id of its owner's snapshot; empty at a party without a dataset


TABLE = Table("handshake", Arrow("1", ALL, ALL, Hello, ONCE, "members and public parameters"))


# --- steps ---------------------------------------------------------------------------------------


def digest_of_agreement(members: Mapping[str, ParameterValue], parameters: Mapping[str, ParameterValue]) -> bytes:
    """Return the SHA-256 of the SHA-256 of each in canonical bytes."""
    return hashlib.sha256(parameters_digest(members) + parameters_digest(parameters)).digest()


def step_1_hello(
    protocol: str,
    role: str,
    members: Mapping[str, ParameterValue],
    parameters: Mapping[str, ParameterValue],
    snapshot: str = "",
) -> Hello:
    digest = digest_of_agreement(members, parameters)
    return Hello(PROTOCOL_VERSION, protocol, role, members, parameters, digest, snapshot)


def step_2_compare(mine: Hello, theirs: Hello, *, peer: str, peer_role: str) -> None:
    """Compare a Hello with our own.

    Raises:
        HandshakeMismatch: a field differs; the error names the first one.
        MalformedMessage: the hash is not that of members and parameters.
    """
    _require_equal("protocol version", mine.version, theirs.version, peer)
    _require_equal("protocol", mine.protocol, theirs.protocol, peer)
    _require_equal(f"role of {peer}", peer_role, theirs.role, peer)
    if theirs.digest != digest_of_agreement(theirs.members, theirs.parameters):
        raise MalformedMessage(culprit=peer, field="digest", reason="is not the hash of members and parameters")
    _require_same(mine.members, theirs.members, peer)
    _require_same(mine.parameters, theirs.parameters, peer)
    if not re.fullmatch("[0-9a-f]*", theirs.snapshot) or len(theirs.snapshot) > MOST_ID:
        raise MalformedMessage(culprit=peer, field="snapshot", reason="is not an id of a snapshot")
    _require_equal("hash of the parameters", mine.digest.hex(), theirs.digest.hex(), peer)  # 0.0 and -0.0


def step_2_refuse_twice(mine: Hello, others: Mapping[str, str], snapshot: str, *, peer: str) -> None:
    """Refuse a snapshot id that two parties claim: an id is drawn for one party, and each party is counted separately.

    Raises:
        MalformedMessage: the id is this party's; or another party also claims it, and one of the two lies.
    """
    claims = [f"{other} or {peer}" for other, theirs in others.items() if theirs == snapshot]
    if mine.snapshot == snapshot or claims:
        culprit = peer if mine.snapshot == snapshot else claims[0]
        raise MalformedMessage(culprit=culprit, field="snapshot", reason="is another party's", step="Hello")


def _require_same(ours: Mapping[str, ParameterValue], theirs: Mapping[str, ParameterValue], peer: str) -> None:
    for name in sorted({*ours, *theirs}):
        shown = _brief(name)[1:-1]  # a peer's text, which logs and terminals will show
        _require_equal(shown, ours.get(name), theirs.get(name), peer)


def _require_equal(field: str, ours: object, theirs: object, peer: str) -> None:
    if type(ours) is not type(theirs) or ours != theirs:
        raise HandshakeMismatch(culprit=peer, field=field, ours=_brief(ours), theirs=_brief(theirs))


def _brief(value: object) -> str:
    return "missing" if value is None else repr(value)[:120]


# --- role ----------------------------------------------------------------------------------------


async def run_party(mine: Hello, peers: Sequence[tuple[str, str]], channel: Channel) -> Mapping[str, str]:
    """Do the handshake.

    Args:
        mine: this party's Hello.
        peers: name and expected role of every other party.

    Returns:
        The snapshot that each of the others reads.
    """
    snapshots: dict[str, str] = {}
    for peer, _ in peers:
        await channel.send(peer, mine)
    for peer, role in peers:
        theirs = await channel.receive(peer, Hello)
        step_2_compare(mine, theirs, peer=peer, peer_role=role)
        if theirs.snapshot:
            step_2_refuse_twice(mine, snapshots, theirs.snapshot, peer=peer)
        snapshots[peer] = theirs.snapshot
    return snapshots
