"""The sessions at one party, from proposal to end. state.py has their states and transitions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable

import structlog

from blindfit.algorithms.errors import (
    BlindfitError,
    ConfigError,
    LedgerUnavailable,
    LimitExceeded,
    PeerAborted,
    PeerUnauthenticated,
    PolicyRefused,
    SessionUnknown,
    root_party,
)
from blindfit.algorithms.protocols import handshake
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions import blame, events
from blindfit.parties.sessions.admission import Admission
from blindfit.parties.sessions.places import Places
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.state import ENDS, State, Step, next_state
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.database import stamp
from blindfit.parties.store.sessions import SessionRow
from blindfit.parties.wire import waits
from blindfit.parties.wire.exchange import ExchangeChannel
from blindfit.parties.work.counted_threads import WORK
from blindfit.parties.work.ending import describe_error
from blindfit.protos import control_pb2 as pb

log = structlog.get_logger(__name__)

APPROVAL_POLL_S = 0.3
KEPT_ENDED_SESSIONS = 16  # for one coordinator: each keeps a piece of the heap in use
CANCEL_GRACE_S = 0.5
START_S = 60.0  # time in which a coordinator must start a job that every party has accepted
STOP_S = 10.0  # time that a party that stops gives its sessions to inform their peers


class Sessions:
    """The sessions of one party.

    Args:
        first_revoked: function that returns the first of some parties whose certificate was revoked since this party
            saw it; "" for no such party.
    """

    def __init__(self, admission: Admission, first_revoked: Callable[[Iterable[str]], str] = lambda _names: "") -> None:
        self.admission, self._first_revoked = admission, first_revoked
        self._store, self._name = admission.store, admission.settings.name
        self._sessions: dict[str, Session[JobParameters]] = {}
        self._places = Places(admission.limits.running, self._is_over)

    def end_what_ran_before(self) -> None:
        """End the sessions of an earlier process, whose memory is gone. Call it once no other process can be that
        one.
        """
        with self._store.transaction() as transaction:
            for row in transaction.sessions():
                if row.state not in ENDS:
                    state = next_state(State(row.state), "lose", row.session)
                    transaction.change_session(row.session, state=state, changed=stamp())
                    log.warning("the process ended before its session", session=row.session, state=row.state)

    def get(self, session: str) -> Session[JobParameters]:
        found = self._sessions.get(session)
        if found is None:
            raise SessionUnknown("no such session", session=session[:64])
        return found

    def channel_of(self, session: str) -> ExchangeChannel | None:
        found = self._sessions.get(session)
        return found.channel if found and found.state in (State.ACCEPTED, State.RUNNING) else None

    def check(self, proposal: pb.Proposal, proposed_by: str) -> None:
        """Raise the error that `propose` would raise, and keep nothing of the job."""
        self.admission.check(proposal, proposed_by, self._sessions)
        log.info("a job was checked and not proposed", protocol=proposal.protocol, coordinator=proposed_by)

    # --- propose

    async def propose(self, proposal: pb.Proposal, proposed_by: str) -> Session[JobParameters]:
        """Keep a proposal as a session. Raise PolicyRefused, ConfigError or LimitExceeded: nothing is kept of a refused
        job.
        """
        session = self.admission.open_session(proposal, proposed_by, self._sessions)
        held = self.admission.settings.policy.approve == "ask"
        self._forget_oldest(proposed_by)
        self._set_state(session, next_state(State.NEW, "hold" if held else "propose", session.id))
        self._keep(session, proposal)
        self._sessions[session.id] = session
        if held:
            session.task = asyncio.create_task(self._wait_for_approval(session))
        session.operator = asyncio.create_task(self._watch_over(session))
        return session

    def _keep(self, session: Session[JobParameters], proposal: pb.Proposal) -> None:
        shown = proposal.SerializeToString() if session.state is State.HELD else b""
        about = (session.id, session.job.protocol, session.proposed_by)
        with self._store.transaction() as transaction:
            transaction.add_session(SessionRow(*about, session.digest, session.state, stamp(), shown))

    def _forget_oldest(self, coordinator: str) -> None:
        ended = [s.id for s in self._sessions.values() if s.proposed_by == coordinator and self._is_over(s.id)]
        for session in ended[:-KEPT_ENDED_SESSIONS]:
            del self._sessions[session]

    async def _wait_for_approval(self, session: Session[JobParameters]) -> None:
        """Wait for the operator's decision in the database: `blindfit approve` is another process."""
        try:
            async with asyncio.timeout(session.job.timeouts.approval_s):
                await self._wait_for_decision(session)
        except TimeoutError:
            self._end(session, "refuse")

    async def _wait_for_decision(self, session: Session[JobParameters]) -> None:
        while session.state is State.HELD:
            with contextlib.suppress(LedgerUnavailable):  # a busy or full disk may recover
                row = self._store.reader().session(session.id)
                if row is None or row.state != State.HELD:
                    approved = row is not None and row.state == State.ACCEPTED and row.digest == session.digest
                    self._enter(session, "approve" if approved else "refuse")
                    return
            await asyncio.sleep(APPROVAL_POLL_S)

    async def _watch_over(self, session: Session[JobParameters]) -> None:
        """End a session that its operator cancels, that nobody starts, or in which a certificate is revoked.

        The operator's `blindfit cancel` is another process, and a revocation list is another file.
        """
        while session.state not in ENDS:
            with contextlib.suppress(LedgerUnavailable):  # a busy or full disk may recover
                if self._store.reader().is_cancelled(session.id):
                    await self.cancel(session.id, by=self._name)
                    return
            if self._is_forgotten(session):
                log.warning("session ends: its coordinator has not started it", session=session.id)
                await self._stop(session, None)
                return
            if revoked := self._find_revoked(session):
                log.error("session ends: a certificate was revoked", session=session.id, party=revoked)
                reason = "its certificate was revoked"
                await self._stop(session, PeerUnauthenticated(peer=revoked, reason=reason, step="session"))
                return
            await session.wait_for_change(APPROVAL_POLL_S)

    def _is_forgotten(self, session: Session[JobParameters]) -> bool:
        """Return True if the coordinator should have started the session by now.

        The coordinator starts a job when two conditions hold. Every party has accepted it, for which each has
        `timeouts.approval_s`. And the job has a place at every party; until then the coordinator watches the session.
        """
        is_late = asyncio.get_running_loop().time() > session.start_by
        return session.state is State.ACCEPTED and not session.watchers and is_late

    def _find_revoked(self, session: Session[JobParameters]) -> str:
        """Return the first party whose certificate was revoked; "" also if our list cannot be read.

        Such a list admits no new caller, and that error reports it; it ends no session.
        """
        with contextlib.suppress(ConfigError):
            return self._first_revoked((session.proposed_by, *session.members))
        return ""

    # --- run

    def reserve(self, session_id: str) -> int:
        """Return how many sessions of the same proposer must end before this one may start.

        Raises:
            LocalProtocolError: the session does not wait for its start.
        """
        session = self.get(session_id)
        next_state(session.state, "start", session.id)
        session.patience_s = START_S  # it holds a place, for which other sessions of its coordinator wait
        self._expect_start(session)
        return self._places.ahead_of(session.id, session.proposed_by)

    def _expect_start(self, session: Session[JobParameters]) -> None:
        session.start_by = asyncio.get_running_loop().time() + session.patience_s

    def _is_over(self, session_id: str) -> bool:
        """Return True if a session has ended and nothing works for it any more."""
        session = self._sessions.get(session_id)
        return session is None or (session.state in ENDS and not session.work.goes_on)

    async def start(self, session_id: str) -> Session[JobParameters]:
        """Start a session. Raise LimitExceeded if it has no place yet."""
        session = self.get(session_id)
        self._check_is_approved(session)
        if self.reserve(session_id):
            whose = f"at most {self.admission.limits.running} sessions that {session.proposed_by} proposed run at once"
            raise LimitExceeded(peer=session.proposed_by, step="start", limit=whose)
        self._enter(session, "start")
        session.task = asyncio.create_task(self._run(session), name=f"session {session.id}")
        session.task.add_done_callback(lambda _: session.forget_work())
        return session

    def _check_is_approved(self, session: Session[JobParameters]) -> None:
        """Check that this job is the one that the database records as approved, by the operator or the policy."""
        row = self._store.reader().session(session.id)
        if row is None or row.digest != session.digest:
            reason = "the job is not the one that was approved here"
            raise PolicyRefused(party=self._name, field="session", reason=reason)

    async def _run(self, session: Session[JobParameters]) -> None:
        WORK.set(session.work)
        log.info("session starts", session=session.id, protocol=session.job.protocol, role=session.me.role)
        session.began = asyncio.get_running_loop().time()
        session.channel.start()
        session.channel.on_waiting = session.waits
        try:
            error = await self._attempt(session)
            if error is not None:
                await self._fail(session, error)
        except asyncio.CancelledError:
            why = session.error or PeerAborted(culprit=session.proposed_by, code="CANCELLED")
            if session.error is not None:  # its author informs all parties: each must learn it from there first
                await asyncio.sleep(CANCEL_GRACE_S)
            with contextlib.suppress(BlindfitError):
                await session.channel.close(why)
            raise

    async def _attempt(self, session: Session[JobParameters]) -> Exception | None:
        """Run the session; return the error with which it failed, or None."""
        try:
            if session.me.dataset:
                session.snapshot = await asyncio.to_thread(self._take_snapshot, session)
            await self._handshake(session)
            session.summary = await self.admission.parts[session.job.protocol].run(session)
            await session.channel.close()
            self._end(session, "finish")
            log.info("session is done", session=session.id)
        except Exception as error:  # noqa: BLE001 - a session's end: peers and coordinator get the code
            session.error = error
            return await blame.trace(session, error, self.admission.open_peer)
        return None

    def _take_snapshot(self, session: Session[JobParameters]) -> Snapshot:
        """Return the newest snapshot of the dataset; for a training that is resumed, the snapshot that it began with.

        Raises:
            DataError: a snapshot is gone.
            PolicyRefused: the dataset is not published; or a job resumes a training of another dataset.
        """
        found = self.admission.snapshots.to_read(session.me.dataset, session.job.resumes)
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

    async def _fail(self, session: Session[JobParameters], error: Exception) -> None:
        blamed = root_party(error) if isinstance(error, BlindfitError) else ""
        log.error("session failed", session=session.id, blamed=blamed or session.me.name, **describe_error(error))
        session.error = error
        self._end(session, "fail")
        with contextlib.suppress(BlindfitError):  # only the peers that can be reached are informed
            await session.channel.close(error)

    async def cancel(self, session_id: str, by: str = "", blamed: str = "") -> Session[JobParameters]:
        """End a session.

        Args:
            by: party that asks for it; empty if this process stops.
            blamed: party that `by` names as the reason for the end.
        """
        session = self.get(session_id)
        about = {"reason": f"{by} has cancelled it" if by else "this party stops", **blame.describe_waits(session)}
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
        if session.state is not State.RUNNING:  # else its task closes it
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

    def _enter(self, session: Session[JobParameters], step: Step) -> None:
        """Enter a state. Raise LedgerUnavailable if it could not be written; the session then stays as it was."""
        state = next_state(session.state, step, session.id)
        with self._store.transaction() as transaction:
            transaction.change_session(session.id, state=state, changed=stamp())
        self._set_state(session, state)

    def _end(self, session: Session[JobParameters], step: Step) -> None:
        """End a session, even if the end cannot be written: everyone that waits for the session must learn of its end.

        Until this party's next start, the database then records that the session runs; after that, that it failed.
        """
        try:
            self._enter(session, step)
        except LedgerUnavailable as error:
            state = next_state(session.state, step, session.id)
            log.error(
                "the end of a session could not be written", session=session.id, state=state, **describe_error(error)
            )
            self._set_state(session, state)

    def _set_state(self, session: Session[JobParameters], state: State) -> None:
        session.state = state
        if state is State.ACCEPTED:
            session.patience_s = session.job.timeouts.approval_s + START_S
            self._expect_start(session)
        session.changed.notify()

    def report_of(self, session: Session[JobParameters]) -> waits.Report:
        """Return for whom this party waits in a session, or waited when its part ended."""
        return blame.report_of(session, self.admission.pulse)

    async def watch(self, session_id: str) -> AsyncIterator[pb.Event]:
        session = self.get(session_id)
        session.watchers += 1
        try:
            async for event in events.watch(session):
                yield event
        finally:
            session.watchers -= 1
            self._expect_start(session)


def _was_told_by_a_peer(session: Session[JobParameters]) -> bool:
    """Return True if a peer's cancellation ended the session before the cancelling party could inform this party."""
    error = session.error
    return session.state is State.FAILED and isinstance(error, PeerAborted) and error.code == "CANCELLED"
