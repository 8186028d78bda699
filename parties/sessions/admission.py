"""Checks of a proposal before this party has a session for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

from blindfit.algorithms.errors import ConfigError, LimitExceeded, MalformedMessage, PolicyRefused
from blindfit.algorithms.protocols import handshake
from blindfit.algorithms.protocols.table import list_arrows
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.proposal import Member, Proposed, ReadJob, read_proposal
from blindfit.parties.sessions.session import Part, Session
from blindfit.parties.sessions.state import ENDS
from blindfit.parties.settings import SESSION, PartySettings
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store, stamp
from blindfit.parties.store.receipts import MOST_RECEIPT_BYTES, OwnReceipts
from blindfit.parties.wire.addresses import split_address
from blindfit.parties.wire.exchange import Accounts, ExchangeChannel
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.link import OpenPeer, Timeouts
from blindfit.parties.wire.pulse import Pulse
from blindfit.parties.wire.waits import Waits
from blindfit.protos import control_pb2 as pb

MOST_MEMBERS = 64
MOST_RECEIPTS = 24  # receipts of a proposal, one for each population; all fit into one message
MOST_TEXT_CHARS = 256  # length of one text of a proposal, without its parameters


@dataclass(repr=False)
class Admission:
    """The admission of proposals.

    Args:
        read_job: function from a proposal's parameters to the job of its system.
        parts: parts of this party, by system.
        receipts: receipts of this party's ledger.
    """

    settings: PartySettings
    store: Store
    limits: Limits
    open_peer: OpenPeer
    read_job: ReadJob
    parts: Mapping[str, Part]
    snapshots: Snapshots
    receipts: Callable[[], OwnReceipts]
    pulse: Pulse

    def __post_init__(self) -> None:
        self.accounts = Accounts(self.limits)

    def open_session(
        self, proposal: pb.Proposal, proposed_by: str, known: Mapping[str, Session[JobParameters]]
    ) -> Session[JobParameters]:
        """Return the session of a proposal that this party accepts.

        Args:
            known: sessions that it has, by name.

        Raises:
            PolicyRefused, ConfigError, LimitExceeded: nothing is kept of a refused job.
        """
        asked = self.check(proposal, proposed_by, known)
        members, job, me = asked.members, asked.job, asked.members[self.settings.name]
        timeouts = Timeouts(job.timeouts.step_s, job.timeouts.reconnect_s)
        channel = ExchangeChannel(
            asked.session,
            me.name,
            {m.name: self._address_of(m) for m in members.values() if m is not me},
            {m.name: m.role for m in members.values()},
            list_arrows([handshake.TABLE, *self.parts[job.protocol].tables]),
            self.open_peer,
            self.limits,
            timeouts,
            account_of=self.accounts.of,
            waits=Waits(self.pulse),
        )
        return Session(asked.session, proposed_by, members, asked.parameters, job, channel, me)

    def check(self, proposal: pb.Proposal, proposed_by: str, known: Mapping[str, Session[JobParameters]]) -> Proposed:
        """Read a proposal, and refuse it where `propose` would refuse it. `blindfit check` uses this.

        Args:
            known: sessions that the party has, by name.

        Raises:
            PolicyRefused, ConfigError, LimitExceeded: as in `open_session`.
        """
        _check_size(proposal, proposed_by)
        self._check_name(proposal.session, known)
        self._check_room(proposed_by, known)
        asked = read_proposal(proposal, proposed_by, self.read_job)
        me = asked.members.get(self.settings.name)
        if me is None or len(asked.members) != len(proposal.members):
            self._refuse("parties", f"{self.settings.name} is not one of them, or a name occurs twice")
        for member in asked.members.values():
            if member is not me:
                self._address_of(member)
        self._check_policy(asked, me)
        self._take_receipts(proposal, proposed_by)
        part = self.parts[asked.job.protocol]
        part.check(asked.job, me)
        if me.dataset:
            self.snapshots.to_read(me.dataset, asked.job.resumes)
        part.check_members(asked)
        return asked

    def _take_receipts(self, proposal: pb.Proposal, proposed_by: str) -> None:
        """Check that the ledger has what the coordinator's receipts prove. Raise PolicyRefused if this party did not
        sign one.
        """
        for presented in proposal.receipts:
            if not self.settings.populations:
                self._refuse("receipt", "this party keeps no ledger, and gave no receipt")
            self.receipts().take((presented.statement, presented.signature), by=proposed_by)

    def _check_name(self, session: str, known: Mapping[str, Session[JobParameters]]) -> None:
        """Check that the name is new. A name is used once, for ever: a charge or a file under it belongs only to that
        session.
        """
        if len(session) > 64 or not re.fullmatch(SESSION, session):
            self._refuse("session", "its name does not consist of 1 to 64 letters, digits, _, . and -")
        if session in known or self.store.reader().session(session) is not None:
            self._refuse("session", "there was a session of this name: choose another name")

    def _check_room(self, coordinator: str, known: Mapping[str, Session[JobParameters]]) -> None:
        """Check the limits of a coordinator, which count its held sessions and its sessions that never start.

        Raises:
            LimitExceeded: the coordinator has reached a limit.
        """
        at_once = sum(s.proposed_by == coordinator and s.state not in ENDS for s in known.values())
        if at_once >= self.limits.sessions:
            whose = f"{self.limits.sessions} sessions at once that {coordinator} proposed"
            raise LimitExceeded(peer=coordinator, step="propose", limit=whose)
        today = self.store.reader().count_sessions(coordinator, since=stamp(timedelta(days=-1)))
        if today >= self.limits.proposals_a_day:
            whose = f"{self.limits.proposals_a_day} sessions a day that {coordinator} proposed"
            raise LimitExceeded(peer=coordinator, step="propose", limit=whose)

    def _address_of(self, member: Member) -> str:
        peer = self.settings.peers.get(member.name)
        if peer is None or peer.role != member.role:
            self._refuse("peers", f"{member.name} is not a peer with the role {member.role} here")
        if peer.address is not None:
            return peer.address
        try:
            split_address(member.address)
        except ConfigError as error:
            self._refuse("parties", f"the address of {member.name}: {error.message}")
        return member.address

    def _check_policy(self, asked: Proposed, me: Member) -> None:
        policy, job, protocol = self.settings.policy, asked.job, asked.protocol
        if protocol != job.protocol or protocol not in policy.systems or protocol not in self.parts:
            self._refuse("protocol", f"{protocol or 'none'} is not a system in which it takes part")
        if me.role != self.settings.role:
            self._refuse("role", f"it is {self.settings.role}, not {me.role}")
        if me.role != "key-node" and me.dataset not in self.settings.datasets:
            self._refuse("dataset", f"it has no dataset named {me.dataset or '(none)'}")
        roles = [member.role for member in asked.members.values()]
        if needs := self.parts[protocol].wrong_roles(roles):
            self._refuse("parties", f"{protocol} needs {needs}")
        if reason := job.wrong_parties(roles):
            self._refuse("parties", reason)
        if not policy.accept_seed and asked.parameters.get("seed") is not None:
            self._refuse("seed", "the parties draw splits and batches themselves; a seed is for jobs on one machine")
        for field_name, reason in job.refusals(policy, me.role):
            self._refuse(field_name, reason)
        for dataset in (me.dataset, *job.also_reads(me.role)):
            if dataset in self.settings.datasets:  # the role reports any other error in another dataset
                self.snapshots.require_current(dataset)

    def _refuse(self, field_name: str, reason: str) -> NoReturn:
        raise PolicyRefused(party=self.settings.name, field=field_name, reason=reason)


def _check_size(proposal: pb.Proposal, proposed_by: str) -> None:
    """Check the sizes before any other check; the parameters have limits of their own.

    Raises:
        MalformedMessage: the proposal has more members or receipts, or a longer text, than any job.
    """
    texts = [proposal.session, proposal.protocol]
    if len(proposal.receipts) > MOST_RECEIPTS or any(
        len(receipt.statement) > MOST_RECEIPT_BYTES for receipt in proposal.receipts
    ):
        reason = f"has more than {MOST_RECEIPTS} receipts, or one of more than {MOST_RECEIPT_BYTES} bytes"
        raise MalformedMessage(culprit=proposed_by, field="receipts", reason=reason, step="Propose")
    if len(proposal.members) <= MOST_MEMBERS:
        texts += [text for m in proposal.members for text in (m.name, m.role, m.address, m.dataset)]
        if all(len(text) <= MOST_TEXT_CHARS for text in texts):
            return
    reason = f"has more than {MOST_MEMBERS} members, or a text of more than {MOST_TEXT_CHARS} characters"
    raise MalformedMessage(culprit=proposed_by, field="proposal", reason=reason, step="Propose")
