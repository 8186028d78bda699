"""Sessions at one party: proposed, perhaps held, accepted, running, ended.

state      event      next       who
-          propose    HELD       policy.approve = "ask"
-          propose    ACCEPTED   policy.approve = "auto"
HELD       approve    ACCEPTED   the operator, `blindfit approve`, by the job's digest
HELD       refuse     REFUSED    the operator, or time
ACCEPTED   start      RUNNING    coordinator
RUNNING    finish     DONE
RUNNING    fail       FAILED
any but an end: cancel -> ENDED  coordinator; the operator, `blindfit cancel`
at start:  HELD, ACCEPTED, RUNNING -> FAILED: what was in memory is gone
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar, cast

import structlog

from blindfit.algorithms.errors import (
    BlindfitError,
    ConfigError,
    CutOff,
    LedgerUnavailable,
    LimitExceeded,
    LocalProtocolError,
    MalformedMessage,
    PeerAborted,
    PeerTimeout,
    PeerUnauthenticated,
    PeerUnreachable,
    PolicyRefused,
    SessionUnknown,
    TransportError,
    forget_frames,
    root_party,
)
from blindfit.algorithms.messages import ParameterValue, parameters_digest
from blindfit.algorithms.protocols import handshake
from blindfit.algorithms.protocols.table import Table, listed
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.proposal import Member as Member  # seats know it from here
from blindfit.parties.sessions.proposal import ReadJob, digest_of, membership, read_proposal
from blindfit.parties.settings import SESSION, PartySettings
from blindfit.parties.snapshots.snapshots import Snapshot, Snapshots
from blindfit.parties.store.database import Store, stamp
from blindfit.parties.store.receipts import MOST_RECEIPT_BYTES, OwnReceipts, SignedReceipt
from blindfit.parties.store.sessions import SessionRow
from blindfit.parties.wire import codec, error_codes, waits
from blindfit.parties.wire.addresses import split_address
from blindfit.parties.wire.exchange import Accounts, ExchangeChannel
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.link import OpenPeer, Signal, Timeouts
from blindfit.parties.wire.pulse import Pulse
from blindfit.parties.work.ending import described
from blindfit.protos import control_pb2 as pb
from blindfit.protos import errors_pb2
from blindfit.protos.measurement_pb2 import SignedReceipt as SignedReceiptMessage

log = structlog.get_logger(__name__)

State = str
ENDS = frozenset({"DONE", "FAILED", "REFUSED", "ENDED"})
TRANSITIONS: dict[tuple[State, str], State] = {
    ("", "propose-held"): "HELD",
    ("", "propose"): "ACCEPTED",
    ("HELD", "approve"): "ACCEPTED",
    ("HELD", "refuse"): "REFUSED",
    ("ACCEPTED", "start"): "RUNNING",
    ("RUNNING", "finish"): "DONE",
    ("RUNNING", "fail"): "FAILED",
    ("HELD", "cancel"): "ENDED",
    ("ACCEPTED", "cancel"): "ENDED",
    ("RUNNING", "cancel"): "ENDED",
}
APPROVAL_POLL_S = 0.3
KEPT_ENDED_SESSIONS = 16  # of one coordinator: each holds on to a piece of the heap
MOST_MEMBERS = 64
MOST_RECEIPTS = 24  # of a proposal: of so many populations; all fit into one message
MOST_TEXT_CHARS = 256  # of one text of a proposal, its parameters aside
PROGRESS_EVERY_S = 0.1
CANCEL_GRACE_S = 0.5
START_S = 60.0  # how long a coordinator may take to start a job that every party has accepted
STOP_S = 10.0  # how long a party that stops waits for its sessions to tell their peers


def next_state(state: State, event: str, session: str) -> State:
    """Raises LocalProtocolError: the table has no such line."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise LocalProtocolError(f"a session that is {state or 'new'} cannot {event}", session=session) from None


J_co = TypeVar("J_co", bound=JobParameters, covariant=True)


@dataclass(repr=False)
class Session(Generic[J_co]):
    """One job at this party. `job`, `members` and `channel` are what its role works with."""

    id: str
    proposed_by: str
    members: Mapping[str, Member]
    parameters: Mapping[str, ParameterValue]
    job: J_co
    channel: ExchangeChannel
    me: Member
    snapshot: Snapshot | None = None  # of its own dataset; a key node has none
    snapshots: Mapping[str, str] = field(default_factory=dict)  # of every member that has a dataset, by name
    state: State = ""
    error: BaseException | None = None
    summary: dict[str, ParameterValue] = field(default_factory=dict)
    progress: pb.Progress | None = None
    changed: Signal = field(default_factory=Signal)  # its state
    task: asyncio.Task[None] | None = None
    operator: asyncio.Task[None] | None = None  # waits for one who cancels
    receipt: SignedReceipt = (b"", b"")  # of what it was charged here; the coordinator keeps it
    accepted: float = 0.0  # when, by the loop's clock
    began: float = 0.0  # when it started, by the same
    answered: asyncio.Event = field(default_factory=asyncio.Event)  # what a peer asked for outside the exchange
    meeting: Any = None  # of two measurement servers: what they must agree on before that
    store: Store | None = None  # of this party, where what a session tells is counted

    @property
    def membership(self) -> dict[str, ParameterValue]:
        return membership(self.members.values(), self.proposed_by)

    @property
    def digest(self) -> str:
        """Of what this session does, whatever was approved."""
        return digest_of(self.id, self.job.protocol, self.membership, self.parameters)

    def with_role(self, role: str) -> Member:
        return next(member for member in self.members.values() if member.role == role)

    @property
    def published(self) -> Snapshot:
        """What this party reads in this session."""
        if self.snapshot is None:
            raise LocalProtocolError("a party without a dataset reads none", session=self.id)
        return self.snapshot

    @property
    def question(self) -> bytes:
        """SHA-256 of all that its outcome depends on but for what is drawn: the job, who takes part, their snapshots.

        Not the session's name, nor how long anybody waits, nor what it goes on from: by what somebody chose to call it
        or when it was cut, a job is no other one.
        """
        job = self.job.digest_fields(asides=False)
        members = {
            f"member.{m.name}": (m.role, m.dataset, self.snapshots.get(m.name, "")) for m in self.members.values()
        }
        return parameters_digest({**job, **members})

    def forget_work(self) -> None:
        """An ended session is remembered for a while, for who asks how it ended; not its rows, keys and ciphertexts,
        which the frames of its task hold."""
        self.task = None
        if self.error is not None:
            forget_frames(self.error)

    async def change_of_state(self, max_s: float) -> None:
        """Returns after it, or after so long. It takes no lock: one who is cancelled leaves nothing held."""
        state = self.state
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max_s):
                await self.changed.until(lambda: self.state != state)

    def report(self, step: str, done: int = 0, total: int = 0, unit: str = "", waiting_for: str = "") -> None:
        """What the coordinator shows; the newest counts."""
        self.progress = pb.Progress(
            step=step, unit=unit, done=max(done, 0), total=max(total, 0), waiting_for=waiting_for
        )

    def waits(self, peer: str, message: str) -> None:
        """For a peer's message; in the midst of something that is counted, that stays what is shown."""
        now = self.progress
        if now is not None and now.done < now.total:
            self.report(now.step, now.done, now.total, now.unit, waiting_for=peer)
        else:
            self.report(message, waiting_for=peer)


Check = Callable[[Any, Member], None]
Run = Callable[[Session[Any]], Awaitable[dict[str, ParameterValue]]]


@dataclass(frozen=True)
class Part:
    """What this party can do in one protocol.

    Args:
        tables: what the members of a session send each other once they have shaken hands.
        wrong_roles: of all members of a job -> which it needs; "" if these.
    """

    check: Check
    run: Run
    tables: Sequence[Table] = ()
    wrong_roles: Callable[[Sequence[str]], str] = lambda _roles: ""


class Sessions:
    """Args:
    read_job: a proposal's parameters -> the job of its system.
    parts: by protocol.
    receipts: of this party's ledger.
    first_revoked: of these parties, the first whose certificate was revoked since it was shown here; "": none.
    """

    def __init__(
        self,
        settings: PartySettings,
        store: Store,
        limits: Limits,
        open_peer: OpenPeer,
        read_job: ReadJob,
        parts: Mapping[str, Part],
        snapshots: Snapshots,
        receipts: Callable[[], OwnReceipts],
        first_revoked: Callable[[Iterable[str]], str] = lambda _names: "",
        pulse: Pulse | None = None,
    ) -> None:
        self._pulse = pulse or Pulse()
        self._settings, self._store, self._limits = settings, store, limits
        self._open_peer, self._read_job, self._parts = open_peer, read_job, parts
        self._snapshots, self._receipts, self._first_revoked = snapshots, receipts, first_revoked
        self._sessions: dict[str, Session[JobParameters]] = {}
        self._accounts = Accounts(limits)

    def end_what_ran_before(self) -> None:
        """What an earlier process had in memory is gone. To be called once no other process can be that one."""
        with self._store.transaction() as transaction:
            for row in transaction.sessions():
                if row.state not in ENDS:
                    transaction.change_session(row.session, state="FAILED", changed=stamp())
                    log.warning("the process ended before its session", session=row.session, state=row.state)

    def get(self, session: str) -> Session[JobParameters]:
        found = self._sessions.get(session)
        if found is None:
            raise SessionUnknown("no such session", session=session[:64])
        return found

    def channel_of(self, session: str) -> ExchangeChannel | None:
        found = self._sessions.get(session)
        return found.channel if found and found.state in ("ACCEPTED", "RUNNING") else None

    # --- propose

    async def propose(self, proposal: pb.Proposal, proposed_by: str) -> Session[JobParameters]:
        """Raises PolicyRefused, ConfigError, LimitExceeded: nothing is kept of a refused job."""
        _check_size(proposal, proposed_by)
        self._check_name(proposal.session)
        self._check_room(proposed_by)
        session = self._session(proposal, proposed_by)
        self._check_policy(session, proposal.protocol)
        self._take_receipts(proposal, proposed_by)
        self._parts[session.job.protocol].check(session.job, session.me)
        held = self._settings.policy.approve == "ask"
        self._forget_oldest(proposed_by)
        self._is_now(session, next_state("", "propose-held" if held else "propose", session.id))
        self._keep(session, proposal)
        self._sessions[session.id] = session
        if held:
            session.task = asyncio.create_task(self._wait_for_approval(session))
        session.operator = asyncio.create_task(self._watch_over(session))
        return session

    def _take_receipts(self, proposal: pb.Proposal, proposed_by: str) -> None:
        """What the coordinator can prove must still be in the ledger. Raises PolicyRefused: nobody here signed it."""
        for presented in proposal.receipts:
            if not self._settings.populations:
                self._refuse("receipt", "it keeps no ledger, and gave none")
            self._receipts().take((presented.statement, presented.signature), by=proposed_by)

    def _check_name(self, session: str) -> None:
        """A name is used once, for ever: what was charged or kept under it belongs to that session alone."""
        if len(session) > 64 or not re.fullmatch(SESSION, session):
            self._refuse("session", "its name is not of 1 to 64 letters, digits, _, . and -")
        if session in self._sessions or self._store.reader().session(session) is not None:
            self._refuse("session", "there was one of this name")

    def _keep(self, session: Session[JobParameters], proposal: pb.Proposal) -> None:
        shown = proposal.SerializeToString() if session.state == "HELD" else b""
        about = (session.id, session.job.protocol, session.proposed_by)
        with self._store.transaction() as transaction:
            transaction.add_session(SessionRow(*about, session.digest, session.state, stamp(), shown))

    def _check_room(self, coordinator: str) -> None:
        """Each coordinator has its own, held sessions and those that never start included.

        Raises:
            LimitExceeded: it has as many as it may.
        """
        at_once = sum(s.proposed_by == coordinator and s.state not in ENDS for s in self._sessions.values())
        if at_once >= self._limits.sessions:
            whose = f"{self._limits.sessions} sessions at once that {coordinator} proposed"
            raise LimitExceeded(peer=coordinator, step="propose", limit=whose)
        today = self._store.reader().count_sessions(coordinator, since=stamp(timedelta(days=-1)))
        if today >= self._limits.proposals_a_day:
            whose = f"{self._limits.proposals_a_day} sessions a day that {coordinator} proposed"
            raise LimitExceeded(peer=coordinator, step="propose", limit=whose)

    def _forget_oldest(self, coordinator: str) -> None:
        ended = [s.id for s in self._sessions.values() if s.proposed_by == coordinator and s.state in ENDS]
        for session in ended[:-KEPT_ENDED_SESSIONS]:
            del self._sessions[session]

    def _session(self, proposal: pb.Proposal, proposed_by: str) -> Session[JobParameters]:
        asked = read_proposal(proposal, proposed_by, self._read_job)
        members, parameters, job = asked.members, asked.parameters, asked.job
        me = members.get(self._settings.name)
        if me is None or len(members) != len(proposal.members):
            self._refuse("parties", f"{self._settings.name} is not among them, or a name comes twice")
        peers = {m.name: self._address_of(m) for m in members.values() if m is not me}
        timeouts = Timeouts(job.timeouts.step_s, job.timeouts.reconnect_s)
        roles = {m.name: m.role for m in members.values()}
        part = self._parts.get(job.protocol)  # none: policy is about to refuse the job
        arrows = listed([handshake.TABLE, *(part.tables if part else ())])
        channel = ExchangeChannel(
            proposal.session,
            me.name,
            peers,
            roles,
            arrows,
            self._open_peer,
            self._limits,
            timeouts,
            account_of=self._accounts.of,
            waits=waits.Waits(self._pulse),
        )
        return Session(proposal.session, proposed_by, members, parameters, job, channel, me, store=self._store)

    def _address_of(self, member: Member) -> str:
        peer = self._settings.peers.get(member.name)
        if peer is None or peer.role != member.role:
            self._refuse("peers", f"{member.name} is not a peer with the role {member.role} here")
        if peer.address is not None:
            return peer.address
        try:
            split_address(member.address)
        except ConfigError as error:
            self._refuse("parties", f"the address of {member.name}: {error.message}")
        return member.address

    def _check_policy(self, session: Session[JobParameters], protocol: str) -> None:
        policy, job = self._settings.policy, session.job
        if protocol != job.protocol or protocol not in policy.systems or protocol not in self._parts:
            self._refuse("protocol", f"{protocol or 'none'} is not one that it takes part in")
        if session.me.role != self._settings.role:
            self._refuse("role", f"it is {self._settings.role}, not {session.me.role}")
        if session.me.role != "key-node" and session.me.dataset not in self._settings.datasets:
            self._refuse("dataset", f"it has none named {session.me.dataset or '(none)'}")
        roles = [member.role for member in session.members.values()]
        if needs := self._parts[protocol].wrong_roles(roles):
            self._refuse("parties", f"{protocol} needs {needs}")
        if reason := job.wrong_parties(roles):
            self._refuse("parties", reason)
        if not policy.accept_seed and session.parameters.get("seed") is not None:
            self._refuse("seed", "the parties draw splits and batches themselves; a seed is for jobs on one machine")
        for field_name, reason in job.refusals(policy, session.me.role):
            self._refuse(field_name, reason)
        for dataset in (session.me.dataset, *job.also_reads(session.me.role)):
            if dataset in self._settings.datasets:  # what else is wrong with another one, the seat says
                self._snapshots.published(dataset)

    def _refuse(self, field_name: str, reason: str) -> NoReturn:
        raise PolicyRefused(party=self._settings.name, field=field_name, reason=reason)

    async def _wait_for_approval(self, session: Session[JobParameters]) -> None:
        """The operator's `blindfit approve` is another process: the database is where they meet."""
        try:
            async with asyncio.timeout(session.job.timeouts.approval_s):
                await self._decided(session)
        except TimeoutError:
            self._end(session, "refuse")

    async def _decided(self, session: Session[JobParameters]) -> None:
        while session.state == "HELD":
            with contextlib.suppress(LedgerUnavailable):  # a disk that is busy or full may be so no more
                row = self._store.reader().session(session.id)
                if row is None or row.state != "HELD":
                    approved = row is not None and row.state == "ACCEPTED" and row.digest == session.digest
                    self._enter(session, "approve" if approved else "refuse")
                    return
            await asyncio.sleep(APPROVAL_POLL_S)

    async def _watch_over(self, session: Session[JobParameters]) -> None:
        """End a session that its operator cancels, that nobody starts, or in which a certificate is revoked.

        The operator's `blindfit cancel` is another process, and a revocation list another file.
        """
        while session.state not in ENDS:
            with contextlib.suppress(LedgerUnavailable):  # a disk that is busy or full may be so no more
                if self._store.reader().is_cancelled(session.id):
                    await self.cancel(session.id, by=self._settings.name)
                    return
            if self._is_forgotten(session):
                log.warning("session ends: its coordinator has not started it", session=session.id)
                await self._stop(session, None)
                return
            if revoked := self._revoked_in(session):
                log.error("session ends: a certificate was revoked", session=session.id, party=revoked)
                reason = "its certificate was revoked"
                await self._stop(session, PeerUnauthenticated(peer=revoked, reason=reason, step="session"))
                return
            await session.change_of_state(APPROVAL_POLL_S)

    def _is_forgotten(self, session: Session[JobParameters]) -> bool:
        """Return whether the coordinator should have started the session by now.

        It starts a job when every party has accepted, for which each has `timeouts.approval_s`.
        """
        patience_s = session.job.timeouts.approval_s + START_S
        return session.state == "ACCEPTED" and asyncio.get_running_loop().time() - session.accepted > patience_s

    def _revoked_in(self, session: Session[JobParameters]) -> str:
        """Return the first party whose certificate was revoked; "" also if our list cannot be read.

        Such a list lets nobody new in, and that error says so; it ends no session.
        """
        with contextlib.suppress(ConfigError):
            return self._first_revoked((session.proposed_by, *session.members))
        return ""

    # --- run

    async def start(self, session_id: str) -> Session[JobParameters]:
        session = self.get(session_id)
        self._check_is_approved(session)
        self._enter(session, "start")
        session.task = asyncio.create_task(self._run(session), name=f"session {session.id}")
        session.task.add_done_callback(lambda _: session.forget_work())
        return session

    def _check_is_approved(self, session: Session[JobParameters]) -> None:
        """What runs is what the database says was let pass, by whomever."""
        row = self._store.reader().session(session.id)
        if row is None or row.digest != session.digest:
            self._refuse("session", "the job is not the one that was approved here")

    async def _run(self, session: Session[JobParameters]) -> None:
        log.info("session starts", session=session.id, protocol=session.job.protocol, role=session.me.role)
        session.began = asyncio.get_running_loop().time()
        session.channel.start()
        session.channel.on_waiting = session.waits
        try:
            error = await self._outcome(session)
            if error is not None:
                await self._fail(session, error)
        except asyncio.CancelledError:
            why = session.error or PeerAborted(culprit=session.proposed_by, code="CANCELLED")
            if session.error is not None:  # who has ended it tells all parties: each is to hear it from there first
                await asyncio.sleep(CANCEL_GRACE_S)
            with contextlib.suppress(BlindfitError):
                await session.channel.close(why)
            raise

    async def _outcome(self, session: Session[JobParameters]) -> Exception | None:
        """Run the session; return the error with which it failed, or None."""
        try:
            if session.me.dataset:
                session.snapshot = await asyncio.to_thread(self._snapshot_of, session)
            await self._handshake(session)
            session.summary = await self._parts[session.job.protocol].run(session)
            await session.channel.close()
            self._end(session, "finish")
            log.info("session is done", session=session.id)
        except Exception as error:  # noqa: BLE001 - a session's end: peers and coordinator are told the code
            session.error = error
            return await self._traced(session, error)
        return None

    def _snapshot_of(self, session: Session[JobParameters]) -> Snapshot:
        """The newest of its dataset; of a training that is resumed, the one that it began with.

        Raises:
            DataError: a snapshot is gone.
            PolicyRefused: the dataset is not published; or a job resumes a training of another dataset.
        """
        resumes, dataset = session.job.resumes, session.me.dataset
        found = self._snapshots.of_session(resumes) if resumes else self._snapshots.published(dataset)
        if found.row.dataset != dataset:  # an operator was shown, and a quota counts, the one that the job names
            reason = f"{dataset} is not the dataset that {resumes} began with"
            raise PolicyRefused(party=session.me.name, field="dataset", reason=reason)
        with self._store.transaction() as transaction:
            transaction.put_session_snapshot(session.id, found.id)
        return found

    async def _handshake(self, session: Session[JobParameters]) -> None:
        own = session.snapshot.id if session.snapshot else ""
        mine = handshake.step_1_hello(
            session.job.protocol, session.me.role, session.membership, session.parameters, own
        )
        peers = [(m.name, m.role) for m in session.members.values() if m is not session.me]
        told = await handshake.run_party(mine, peers, session.channel)
        session.snapshots = {name: snapshot for name, snapshot in {**told, session.me.name: own}.items() if snapshot}

    # --- who is to blame

    def report_of(self, session: Session[JobParameters]) -> waits.Report:
        """Return whom this party waits for in a session, or waited for when its part ended."""
        found, error = session.channel.waits.report(), session.error
        if isinstance(error, BlindfitError):  # what it waits for after that is that others hear of it
            blamed, step = root_party(error), getattr(error, "step", "")
            found = (waits.Wait(blamed, step),) if blamed in session.channel.peers else ()
        has_ended = session.state in ENDS
        return waits.Report(found, self._pulse.longest_s(session.began), error is not None and not has_ended, has_ended)

    async def _traced(self, session: Session[JobParameters], error: Exception) -> Exception:
        """Return the error, or for a wait that failed one that says more: whom the others wait for."""
        if not isinstance(error, PeerTimeout | PeerUnreachable) or error.peer not in session.channel.peers:
            return error
        reports = await waits.ask_all({name: partial(self._ask, session, name) for name in session.channel.peers})
        if len(reports) > 1 and all(report.is_silent for report in reports.values()):
            return CutOff(peer=session.me.name, step=error.step)
        if isinstance(error, PeerUnreachable):
            return error
        step_s = session.job.timeouts.step_s
        root = waits.root_of(waits.Wait(error.peer, error.step), reports, step_s, session.me.name)
        return PeerTimeout(
            peer=root.party,
            step=root.step,
            timeout_s=error.timeout_s,
            through=root.through,
            found=root.found,
            still_s=root.still_s,
        )

    async def _ask(self, session: Session[JobParameters], peer: str) -> waits.Report:
        try:
            channel = await self._open_peer(peer, session.channel.peers[peer])
        except (TransportError, ConfigError):
            return waits.SILENT
        try:
            return await waits.ask(channel, session.id, tuple(session.members))
        finally:
            await channel.close()

    async def _fail(self, session: Session[JobParameters], error: Exception) -> None:
        blamed = root_party(error) if isinstance(error, BlindfitError) else ""
        log.error("session failed", session=session.id, blamed=blamed or session.me.name, **described(error))
        session.error = error
        self._end(session, "fail")
        with contextlib.suppress(BlindfitError):  # the peers that can be told are told
            await session.channel.close(error)

    async def cancel(self, session_id: str, by: str = "", blamed: str = "") -> Session[JobParameters]:
        """Args:
        by: who asks for it; empty: this process, which stops.
        blamed: the party for which `by` ends the job, as it says.
        """
        session = self.get(session_id)
        about = {"reason": f"{by} has cancelled it" if by else "this party stops", **_waited_for(session)}
        about |= {"blamed": blamed} if blamed in session.members else {}
        if session.state not in ENDS or (by and _was_told_by_a_peer(session)):
            log.warning("session is cancelled", session=session.id, **about)
        if session.state not in ENDS:
            await self._stop(session, PeerAborted(culprit=by, code="CANCELLED", session=session.id) if by else None)
        return session

    async def _stop(self, session: Session[JobParameters], error: BlindfitError | None) -> None:
        """End a session from outside its task."""
        session.error = error
        if session.task is not None:
            session.task.cancel()
        if session.state != "RUNNING":  # else its task closes it
            await session.channel.discard()
        self._end(session, "cancel")

    async def close(self) -> None:
        sessions = list(self._sessions.values())
        tasks = {session.task: session.id for session in sessions if session.task is not None}
        for session in sessions:
            await self.cancel(session.id)
        _, pending = await asyncio.wait(tasks, timeout=STOP_S) if tasks else ((), ())
        for task in pending:
            log.warning("session does not end: the party stops without it", session=tasks[task])

    # --- states

    def _enter(self, session: Session[JobParameters], event: str) -> None:
        """Raises LedgerUnavailable: it could not be written, and the session is what it was."""
        state = next_state(session.state, event, session.id)
        with self._store.transaction() as transaction:
            transaction.change_session(session.id, state=state, changed=stamp())
        self._is_now(session, state)

    def _end(self, session: Session[JobParameters], event: str) -> None:
        """Also where it cannot be written: whoever waits for the session must hear of its end.

        The row then says until this party's next start that the session runs, and from then on that it failed.
        """
        try:
            self._enter(session, event)
        except LedgerUnavailable as error:
            state = next_state(session.state, event, session.id)
            log.error("the end of a session could not be written", session=session.id, state=state, **described(error))
            self._is_now(session, state)

    def _is_now(self, session: Session[JobParameters], state: State) -> None:
        session.state = state
        if state == "ACCEPTED":
            session.accepted = asyncio.get_running_loop().time()
        session.changed.notify()

    async def watch(self, session_id: str) -> AsyncIterator[pb.Event]:
        """Events until the session ends: every change of state, and the newest progress now and then."""
        session = self.get(session_id)
        shown: tuple[State, pb.Progress | None] = ("", None)
        given: SignedReceipt = (b"", b"")
        while True:
            state, progress, receipt = session.state, session.progress, session.receipt
            if state in ENDS:
                yield _last_event(session)
                return
            if (state, progress) != shown or receipt != given:
                # At once, not at the end: what was charged stays charged however the session ends.
                yield pb.Event(
                    state=state_to_pb(state), progress=progress, receipt=_receipt(receipt if receipt != given else None)
                )
                shown, given = (state, progress), receipt
            await session.change_of_state(PROGRESS_EVERY_S)


def _waited_for(session: Session[JobParameters]) -> dict[str, str]:
    """Return, for the log, whom a session waited for when it was ended from outside."""
    found = session.channel.waits.report()
    return {"waited_for": ", ".join(f"{w.peer} at step {w.step} for {w.since_s:.0f} s" for w in found)} if found else {}


def _was_told_by_a_peer(session: Session[JobParameters]) -> bool:
    """Of a cancelled job, before whoever cancels it could say so here."""
    error = session.error
    return session.state == "FAILED" and isinstance(error, PeerAborted) and error.code == "CANCELLED"


def state_to_pb(state: State) -> pb.SessionState:
    return cast(pb.SessionState, pb.SessionState.Value(state))


def _last_event(session: Session[JobParameters]) -> pb.Event:
    state, receipt = state_to_pb(session.state), _receipt(session.receipt)
    if session.state == "DONE":
        return pb.Event(state=state, summary=codec.parameters_to_pb(session.summary), receipt=receipt)
    if session.error is not None:
        return pb.Event(state=state, error=error_codes.status_of(session.error), receipt=receipt)
    if session.state == "REFUSED":
        refused = PolicyRefused(party=session.me.name, field="policy.approve", reason="its operator did not approve it")
        return pb.Event(state=state, error=error_codes.status_of(refused), receipt=receipt)
    return pb.Event(state=state, error=error_codes.status_of_code(errors_pb2.CANCELLED), receipt=receipt)


def _receipt(receipt: SignedReceipt | None) -> SignedReceiptMessage | None:
    if receipt is None or not receipt[0]:
        return None
    return SignedReceiptMessage(statement=receipt[0], signature=receipt[1])


def _check_size(proposal: pb.Proposal, proposed_by: str) -> None:
    """Before anything looks at it; the parameters have limits of their own.

    Raises:
        MalformedMessage: it has more members, receipts, or a longer text, than any job.
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
