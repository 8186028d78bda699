"""A coordinator's proposal: its members, their datasets, and the digest by which an operator approves it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from blindfit.algorithms.messages import ParameterValue, canonical_bytes, parameters_digest
from blindfit.algorithms.protocols.handshake import digest_of_agreement
from blindfit.parties.job.parameters import JobParameters, in_digest
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb

# Fields of `Member` that must be the same in every party's proposal and that an operator approves. The handshake names
# a field that differs. A member's address is not among them, because it may differ from party to party.
COMPARED = ("role", "dataset")
DIGEST_CHARS = 32  # 128 bits: nobody can find two jobs with the same digest
ReadJob = Callable[[Mapping[str, ParameterValue]], JobParameters]


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    role: str
    address: str
    dataset: str


@dataclass(frozen=True)
class Proposed:
    """A proposal.

    Attributes:
        members: members by name; fewer than were proposed if a name occurred twice.
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
        """Digest that names the training that a resumed job continues, without the snapshots."""
        return digest_of_question(self.job, self.members.values())


def digest_of_question(
    job: JobParameters, members: Iterable[Member], snapshots: Mapping[str, str] | None = None
) -> bytes:
    """Return SHA-256 of a job's question: its options, and its members with their roles and datasets.

    The digest leaves out the session's name, the timeouts and the training that the job resumes. A job is the same
    under another name, and after a cut.

    Args:
        snapshots: snapshots that the members read, by name; without them the digest does not distinguish snapshots.
    """
    read = snapshots or {}
    about = {f"member.{m.name}": (m.role, m.dataset, read.get(m.name, "")) for m in members}
    return parameters_digest({**job.digest_fields(asides=False), **about})


def read_proposal(proposal: pb.Proposal, proposed_by: str, read_job: ReadJob) -> Proposed:
    """Read a proposal. Raise ConfigError or MalformedMessage if the parameters do not describe a job."""
    parameters = codec.parameters_from_pb(proposal.parameters, culprit=proposed_by, step="Propose")
    members = {m.name: Member(m.name, m.role, m.address, m.dataset) for m in proposal.members}
    job = read_job(parameters)
    return Proposed(proposal.session, proposal.protocol, proposed_by, members, parameters, job)


def membership(members: Iterable[Member], proposed_by: str) -> dict[str, ParameterValue]:
    """Return the members and their datasets, by a descriptive name, for the comparison in handshake and approval."""
    said = {f"{what} of {member.name}": getattr(member, what) for member in members for what in COMPARED}
    return {"proposer": proposed_by, **said}


def digest_of(
    session: str, protocol: str, members: Mapping[str, ParameterValue], parameters: Mapping[str, ParameterValue]
) -> str:
    """Return the digest of everything that an operator approves; two sessions never have the same."""
    head = canonical_bytes({"session": session, "protocol": in_digest({"protocol": protocol})["protocol"]})
    agreed = digest_of_agreement(members, in_digest(parameters))
    return hashlib.sha256(hashlib.sha256(head).digest() + agreed).hexdigest()[:DIGEST_CHARS]
