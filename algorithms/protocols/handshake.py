"""Handshake: the parties of a session agree on version, protocol, members and public parameters before any data.

Source: our own.
Model: every party may lie about itself, but it then only learns that the session ends.

    step  who        does                                                           sends
    1     each P_i   its version, protocol, role, members, parameters, their hash   Hello to every other
    2     each P_i   compare with every Hello; the first difference ends            --

Departures: none. Hello keeps its fields in every version, so that another version is a line and not a riddle.
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
PROTOCOL_VERSION = "1"  # of everything on the wire; two versions never mix


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    version: Text
    protocol: Text
    role: Text
    members: Parameters  # who takes part, and with what, by a name in words: "dataset of bank"
    parameters: Parameters
    digest: Octets  # `digest_of_agreement` of the two
    snapshot: Text = ""  # the random id of what its owner published; empty at a party without a dataset


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
    """Raises:
    HandshakeMismatch: names the first field that differs.
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
        raise MalformedMessage(culprit=peer, field="snapshot", reason="is no id of a snapshot")
    _require_equal("hash of the parameters", mine.digest.hex(), theirs.digest.hex(), peer)  # 0.0 and -0.0


def step_2_refuse_twice(mine: Hello, others: Mapping[str, str], snapshot: str, *, peer: str) -> None:
    """An id is drawn at random for one party: what is counted for it must not be counted for another's.

    Raises:
        MalformedMessage: it is this party's; or another's too, and one of the two lies.
    """
    claims = [f"{other} or {peer}" for other, theirs in others.items() if theirs == snapshot]
    if mine.snapshot == snapshot or claims:
        culprit = peer if mine.snapshot == snapshot else claims[0]
        raise MalformedMessage(culprit=culprit, field="snapshot", reason="is another party's", step="Hello")


def _require_same(ours: Mapping[str, ParameterValue], theirs: Mapping[str, ParameterValue], peer: str) -> None:
    for name in sorted({*ours, *theirs}):
        shown = _brief(name)[1:-1]  # a peer's word, which logs and terminals will show
        _require_equal(shown, ours.get(name), theirs.get(name), peer)


def _require_equal(field: str, ours: object, theirs: object, peer: str) -> None:
    if type(ours) is not type(theirs) or ours != theirs:
        raise HandshakeMismatch(culprit=peer, field=field, ours=_brief(ours), theirs=_brief(theirs))


def _brief(value: object) -> str:
    return "missing" if value is None else repr(value)[:120]


# --- role ----------------------------------------------------------------------------------------


async def run_party(mine: Hello, peers: Sequence[tuple[str, str]], channel: Channel) -> Mapping[str, str]:
    """Args:
    mine: what this party says of itself.
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
