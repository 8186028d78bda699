"""What a coordinator proposes, read: who takes part, with what, and the digest by which an operator approves it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from blindfit.algorithms.messages import ParameterValue, canonical_bytes, parameters_digest
from blindfit.algorithms.protocols.handshake import digest_of_agreement
from blindfit.parties.job.parameters import JobParameters, in_digest
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb

# Of a member, what all must have been told alike and what an operator approves: fields of `Member`, each a text that a
# handshake names where it differs. Not its address, which may differ from party to party.
COMPARED = ("role", "dataset")
DIGEST_CHARS = 32  # 128 bits: nobody finds two jobs of one digest
ReadJob = Callable[[Mapping[str, ParameterValue]], JobParameters]


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    role: str
    address: str
    dataset: str


@dataclass(frozen=True)
class Proposed:
    """
    Attributes:
        members: by name; fewer than were proposed where a name came twice.
    """

    session: str
    protocol: str
    proposed_by: str
    members: Mapping[str, Member]
    parameters: Mapping[str, ParameterValue]
    job: JobParameters

    @property
    def digest(self) -> str:
        members = membership(self.members.values(), self.proposed_by)
        return digest_of(self.session, self.protocol, members, self.parameters)

    @property
    def question(self) -> bytes:
        """Return what names the training that a resumed job goes on with, whatever snapshots it reads."""
        return digest_of_question(self.job, self.members.values())


def digest_of_question(
    job: JobParameters, members: Iterable[Member], snapshots: Mapping[str, str] | None = None
) -> bytes:
    """Return SHA-256 of what a job asks of whom: its options, and who takes part in which role with which dataset.

    Not the session's name, nor how long anybody waits, nor what it goes on from: by what somebody chose to call it or
    when it was cut, a job is no other one.

    Args:
        snapshots: those that the members read, by name; without them two jobs on other snapshots ask the same.
    """
    read = snapshots or {}
    about = {f"member.{m.name}": (m.role, m.dataset, read.get(m.name, "")) for m in members}
    return parameters_digest({**job.digest_fields(asides=False), **about})


def read_proposal(proposal: pb.Proposal, proposed_by: str, read_job: ReadJob) -> Proposed:
    """Raise ConfigError, MalformedMessage: the parameters are no job."""
    parameters = codec.parameters_from_pb(proposal.parameters, culprit=proposed_by, step="Propose")
    members = {m.name: Member(m.name, m.role, m.address, m.dataset) for m in proposal.members}
    job = read_job(parameters)
    return Proposed(proposal.session, proposal.protocol, proposed_by, members, parameters, job)


def membership(members: Iterable[Member], proposed_by: str) -> dict[str, ParameterValue]:
    """Who takes part, and with what, as handshake and approval compare it; by a name in words."""
    said = {f"{what} of {member.name}": getattr(member, what) for member in members for what in COMPARED}
    return {"proposer": proposed_by, **said}


def digest_of(
    session: str, protocol: str, members: Mapping[str, ParameterValue], parameters: Mapping[str, ParameterValue]
) -> str:
    """Return the digest of all that an operator approves; two sessions never have the same."""
    head = canonical_bytes({"session": session, "protocol": in_digest({"protocol": protocol})["protocol"]})
    agreed = digest_of_agreement(members, in_digest(parameters))
    return hashlib.sha256(hashlib.sha256(head).digest() + agreed).hexdigest()[:DIGEST_CHARS]
