"""The life of a job, as the coordinator sees it: TRANSITIONS has its states."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from blindfit.algorithms.errors import (
    BlindfitError,
    HandshakeMismatch,
    LocalProtocolError,
    PeerAborted,
    ProtocolError,
    TransportError,
    root_party,
)
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.running import root_cause
from blindfit.coordinator.running.control import Control
from blindfit.coordinator.running.receipts import HeldReceipts, receipts_of
from blindfit.coordinator.running.watcher import OnEvent
from blindfit.parties.identity.identity import Identity
from blindfit.parties.wire import codec, error_codes, waits
from blindfit.protos import control_pb2 as pb
from blindfit.protos import errors_pb2
from blindfit.protos.measurement_pb2 import SignedReceipt


class State(StrEnum):
    NEW = "NEW"
    PROPOSED = "PROPOSED"  # every party has the proposal; a party may wait for its operator
    READY = "READY"  # every party has accepted
    RUNNING = "RUNNING"
    DONE = "DONE"  # every party is done
    FAILED = "FAILED"  # the first party's reason counts, and the others are cancelled
    CANCELLED = "CANCELLED"


ENDS = (State.DONE, State.FAILED, State.CANCELLED)
TRANSITIONS = {
    (State.NEW, "propose"): State.PROPOSED,
    (State.PROPOSED, "accept"): State.READY,
    (State.READY, "start"): State.RUNNING,
    (State.RUNNING, "finish"): State.DONE,
    **{(state, "fail"): State.FAILED for state in State if state not in ENDS},
    **{(state, "cancel"): State.CANCELLED for state in State if state not in ENDS},
}
CANCEL_TIMEOUT_S = 5.0
QUEUE_POLL_S = 1.0
ENDS_S, LOOK_S = 3.0, 0.1  # for the parties to report why they ended, after the first of them
ENDING_S = waits.MOST_S + ENDS_S  # for a party that announces its end
CANCELLED = errors_pb2.ErrorCode.Name(errors_pb2.CANCELLED)


def proposal_of(
    job: Job[Any], session: str, addresses: Mapping[str, str], receipts: Sequence[tuple[bytes, bytes]] = ()
) -> pb.Proposal:
    """Return the proposal for one party.

    Args:
        addresses: addresses at which this party finds every party.
        receipts: receipts of this party's ledger.
    """
    return pb.Proposal(
        session=session,
        protocol=job.protocol,
        members=[
            pb.Member(name=name, role=party.role, address=addresses[name], dataset=party.dataset)
            for name, party in job.parties.items()
        ],
        parameters=codec.parameters_to_pb(job.parameters.to_parameters()),
        receipts=[SignedReceipt(statement=statement, signature=signature) for statement, signature in receipts],
    )


def receipt_key_of(job: Job[Any], name: str, description: pb.PartyDescription) -> bytes:
    """Return the key of the ledger that a job may charge at a party; empty if it charges no ledger.

    Raises:
        HandshakeMismatch: the party runs another version.
    """
    if description.protocol_version != PROTOCOL_VERSION:
        theirs = description.protocol_version[:32]
        raise HandshakeMismatch(culprit=name, field="protocol version", ours=PROTOCOL_VERSION, theirs=theirs)
    return description.receipt_key if job.parameters.epsilon else b""


@dataclass
class JobSession:
    """Driver of one job through its states.

    Attributes:
        addresses: addresses of every party, for the coordinator's calls.
        routes: addresses at which a party finds the others, by party, if these differ.
    """

    job: Job[Any]
    addresses: dict[str, str]
    own: Identity
    on_event: OnEvent = lambda _party, _event: None
    id: str = ""
    state: State = State.NEW
    routes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    receipts: HeldReceipts = field(init=False)
    summaries: dict[str, dict[str, ParameterValue]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)  # entries that the command adds to the job's report
    _controls: dict[str, Control] = field(default_factory=dict)
    _proposed: list[str] = field(default_factory=list)
    _keys: dict[str, bytes] = field(default_factory=dict)  # key of the ledger that may be charged, by party

    def __post_init__(self) -> None:
        self.id = self.id or f"{self.job.name}-{secrets.token_hex(4)}"
        self.receipts = receipts_of(self.job)

    async def run(self) -> None:
        """Run the job; raise the typed error of the party that ended it."""
        started = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            try:
                for name, address in self.addresses.items():
                    self._controls[name] = await stack.enter_async_context(Control.open(self.own, name, address))
                await self._describe()
                await self._propose()
                await self._reserve()
                self._change("start")
                await asyncio.gather(*(self._start(name) for name in self.addresses))
                self.seconds["set_up"] = time.monotonic() - started
                await self._watch_all()
                self._change("finish")
                self.seconds["job"] = time.monotonic() - started
            except BaseException as error:
                self._change("fail" if isinstance(error, Exception) else "cancel")
                await self._cancel_all(root_party(error) if isinstance(error, BlindfitError) else "")
                if isinstance(error, PeerAborted) and self._is_own_end(error):
                    raise ProtocolError(
                        f"{self.id} was cancelled, with the certificate of {error.culprit}",
                        session=self.id,
                        hint="the operator of a party, or the user who proposed the job, has cancelled it",
                    ) from None
                raise

    def _is_own_end(self, error: PeerAborted) -> bool:
        """Return True if a process with this coordinator's certificate has ended the session, and no party."""
        return error.code == CANCELLED and error.culprit not in self.addresses

    def _change(self, event: str) -> None:
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise LocalProtocolError(f"a job that is {self.state} cannot {event}", session=self.id) from None

    # --- steps

    async def _describe(self) -> None:
        for name, control in self._controls.items():
            if key := receipt_key_of(self.job, name, await control.describe()):
                self._keys[name] = key

    async def _propose(self) -> None:
        self._change("propose")
        for name in self.addresses:
            held = self.receipts.of(name, self._keys[name]) if name in self._keys else []
            proposal = proposal_of(self.job, self.id, {**self.addresses, **self.routes.get(name, {})}, held)
            answer = await self._controls[name].call("Propose", proposal)
            self._proposed.append(name)
            if answer.state == pb.HELD:
                await self._wait_for_approval(name)
        self._change("accept")

    async def _wait_for_approval(self, name: str) -> None:
        others = [other for other in self._proposed if other != name]
        await self._unless_one_ends(self._await_approval(name), others)

    async def _unless_one_ends(self, waiting: Coroutine[Any, Any, None], parties: Sequence[str]) -> None:
        """Wait, and raise the error of a party that ends the job meanwhile. A watched party keeps the job."""
        awaited = asyncio.create_task(waiting)
        tasks = {awaited, *(asyncio.create_task(self._watch(name)) for name in parties)}
        pending = tasks
        try:
            while not awaited.done():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if task is awaited or not isinstance(
                        task.exception(), TransportError
                    ):  # a cut connection is not an end
                        task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _await_approval(self, name: str) -> None:
        async for event in self._events(name, self.job.parameters.timeouts.approval_s + 5):
            waiting = pb.Progress(step="approval", waiting_for=f"the operator of {name} (blindfit approve)")
            self.on_event(name, pb.Event(state=event.state, progress=waiting))
            if event.state == pb.ACCEPTED:
                return
            if event.state == pb.ENDED and event.WhichOneof("body") == "error":
                raise error_codes.error_of(event.error, peer=name)
            if event.state != pb.HELD:
                break
        raise PeerAborted(culprit=name, code="its operator did not approve the job", session=self.id)

    async def _reserve(self) -> None:
        """Take a place at every party, in the order of their names: see `Reserve` in control.proto."""
        for name in sorted(self.addresses):
            if await self._ahead(name):
                await self._unless_one_ends(self._wait_in_queue(name), self._proposed)

    async def _wait_in_queue(self, name: str) -> None:
        while ahead := await self._ahead(name):
            jobs = "one job" if ahead == 1 else f"{ahead} jobs"
            progress = pb.Progress(step="queue", waiting_for=f"{jobs} of this coordinator at {name}")
            self.on_event(name, pb.Event(state=pb.ACCEPTED, progress=progress))
            await asyncio.sleep(QUEUE_POLL_S)

    async def _ahead(self, name: str) -> int:
        place: pb.Place = await self._controls[name].call("Reserve", pb.SessionRequest(session=self.id))
        return place.ahead

    async def _start(self, name: str) -> None:
        await self._controls[name].call("Start", pb.SessionRequest(session=self.id))

    async def _watch_all(self) -> None:
        watches = {asyncio.create_task(self._watch(name)): name for name in self.addresses}
        try:
            for done in asyncio.as_completed(watches):
                await done
        except BlindfitError as error:
            raise await self._root_cause(error, {name: watch for watch, name in watches.items()}) from None
        finally:
            for watch in watches:
                watch.cancel()

    async def _root_cause(self, first: BlindfitError, watches: Mapping[str, asyncio.Task[None]]) -> BlindfitError:
        """Return the error of the party to blame.

        When one party fails, the others abort or wait. The party with its own reason counts, or else the party for
        which all
        others wait.
        """
        if root_cause.first_hand({name: error for name, error in _collect_errors(watches).items() if error is first}):
            return first
        reports = await self._reports(watches)
        return root_cause.of(first, _collect_errors(watches), reports, self.job.parameters.timeouts.step_s)

    async def _reports(self, watches: Mapping[str, asyncio.Task[None]]) -> waits.Reports:
        """Return every party's report about its waits, after the ended parties reported why, or had time to.

        The result is empty if one of them knows its own reason.
        """
        asking = asyncio.create_task(waits.ask_all({name: partial(self._ask, name) for name in self.addresses}))
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            while (passed := loop.time() - began) < ENDING_S:
                reports = asking.result() if asking.done() else {}
                ended = _collect_errors(watches)
                if root_cause.first_hand(ended):
                    return {}
                ending = any(report.is_ending and not watches[name].done() for name, report in reports.items())
                late = any(report.has_ended and not watches[name].done() for name, report in reports.items())
                if asking.done() and not ending and (passed > ENDS_S or not (late or root_cause.echoes(ended))):
                    break
                open_ = [task for task in (*watches.values(), asking) if not task.done()]
                if not open_:
                    break
                await asyncio.wait(open_, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            return await asking
        finally:
            asking.cancel()

    async def _ask(self, name: str) -> waits.Report:
        return await self._controls[name].waits(self.id, tuple(self.addresses))

    async def _watch(self, name: str) -> None:
        async for event in self._events(name):
            self._keep_receipt(name, event)
            self.on_event(name, event)
            if event.state == pb.DONE:
                self.summaries[name] = codec.parameters_from_pb(event.summary, culprit=name, step="Watch")
                return
            if event.WhichOneof("body") == "error":
                raise error_codes.error_of(event.error, peer=name)
        raise PeerAborted(culprit=name, code=CANCELLED)

    def _keep_receipt(self, name: str, event: pb.Event) -> None:
        """Keep a receipt when it arrives; raise MalformedMessage if the party did not sign it."""
        if event.HasField("receipt"):
            given = event.receipt.statement, event.receipt.signature
            self.receipts.keep(name, self._keys.get(name, b""), given)

    def _events(self, name: str, timeout_s: float | None = None) -> AsyncIterator[pb.Event]:
        return self._controls[name].events(self.id, timeout_s)

    async def _cancel_all(self, blamed: str = "") -> None:
        """Cancel the session at all parties. A party that hangs delays no other; peers or time-outs end its session."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*(self._cancel(name, blamed) for name in self._proposed))

    async def _cancel(self, name: str, blamed: str) -> None:
        with contextlib.suppress(BlindfitError, asyncio.CancelledError):
            await self._controls[name].cancel(self.id, CANCEL_TIMEOUT_S, blamed)


def _collect_errors(watches: Mapping[str, asyncio.Task[None]]) -> dict[str, BlindfitError]:
    """Return the error of each party that has not ended well."""
    errors = {name: watch.exception() for name, watch in watches.items() if watch.done() and not watch.cancelled()}
    return {name: error for name, error in errors.items() if isinstance(error, BlindfitError)}
