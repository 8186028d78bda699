"""A coordinator turns any answer of a party into one line, and cancels the others."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import grpc
import pytest
from rich.console import Console

from blindfit.algorithms.errors import (
    BlindfitError,
    HandshakeMismatch,
    LocalProtocolError,
    PeerAborted,
    PeerError,
    PeerTimeout,
)
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.running import session as session_module
from blindfit.coordinator.running.control import CALL_TIMEOUT_S, Control
from blindfit.coordinator.running.driving import drive
from blindfit.coordinator.running.launcher import Launched
from blindfit.coordinator.running.session import CANCEL_TIMEOUT_S, JobSession
from blindfit.parties.wire import error_codes
from blindfit.protos import control_pb2 as pb
from blindfit.protos import errors_pb2
from tests.wire.jobs import JOB

LATE = grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, grpc.aio.Metadata(), grpc.aio.Metadata())
DONE = pb.Event(state=pb.DONE)


class Answers:
    """A party that answers as a test defines; an error among `events` is raised."""

    def __init__(
        self,
        *events: pb.Event | Exception,
        version: str = PROTOCOL_VERSION,
        state: int = pb.ACCEPTED,
        ahead: Sequence[int] = (),
    ) -> None:
        self._events, self._version, self._state, self._ahead = events, version, state, iter(ahead)
        self.asked: list[str] = []

    async def Describe(self, request: object, timeout: float) -> pb.PartyDescription:  # noqa: N802
        self.asked.append("Describe")
        return pb.PartyDescription(protocol_version=self._version)

    async def Propose(self, request: object, timeout: float) -> pb.ProposalAnswer:  # noqa: N802
        self.asked.append("Propose")
        return pb.ProposalAnswer(state=self._state)

    async def Reserve(self, request: object, timeout: float) -> pb.Place:  # noqa: N802
        return pb.Place(ahead=next(self._ahead, 0))

    async def Start(self, request: object, timeout: float) -> pb.SessionAnswer:  # noqa: N802
        self.asked.append("Start")
        return pb.SessionAnswer()

    async def Cancel(self, request: object, timeout: float) -> pb.SessionAnswer:  # noqa: N802
        self.asked.append("Cancel")
        return pb.SessionAnswer()

    async def Waiting(self, request: object, timeout: float) -> pb.WaitingAnswer:  # noqa: N802
        return pb.WaitingAnswer(has_ended=True)

    def Watch(self, request: object, timeout: float | None) -> Watched:  # noqa: N802
        return Watched(self._events)


class Watched:
    def __init__(self, events: Sequence[pb.Event | Exception]) -> None:
        self._events = events

    async def __aiter__(self) -> AsyncIterator[pb.Event]:
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            yield event

    def cancel(self) -> None:
        pass


def answering(monkeypatch: pytest.MonkeyPatch, parties: Mapping[str, Answers]) -> dict[str, str]:
    """Return addresses at which the parties answer."""

    @contextlib.asynccontextmanager
    async def opened(_own: object, name: str, address: str) -> AsyncIterator[Control]:
        yield Control(name, address, parties[name])

    monkeypatch.setattr(Control, "open", opened)
    return dict.fromkeys(parties, "a:1")


async def run(monkeypatch: pytest.MonkeyPatch, **parties: Answers) -> JobSession:
    session = JobSession(read_job(JOB), answering(monkeypatch, parties), None)  # type: ignore[arg-type]
    try:
        await session.run()
    finally:
        parties["shop"].asked.append(session.state)
    return session


async def refused(monkeypatch: pytest.MonkeyPatch, meter: Answers, kind: type[BlindfitError]) -> tuple[Any, list[str]]:
    """Return the error and the requests to the other party, with the job's state at the end."""
    shop = Answers(DONE)
    with pytest.raises(kind) as caught:
        await run(monkeypatch, shop=shop, meter=meter)
    return caught.value, shop.asked


async def test_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    held = pb.Event(state=pb.HELD)
    accepted = pb.Event(state=pb.ACCEPTED)
    session = await run(monkeypatch, shop=Answers(DONE), meter=Answers(held, accepted, DONE, state=pb.HELD))
    assert (session.state, sorted(session.summaries)) == ("DONE", ["meter", "shop"])


async def test_a_job_waits_in_its_queue_and_says_behind_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "QUEUE_POLL_S", 0.001)
    waited: list[str] = []
    parties = {"shop": Answers(DONE), "meter": Answers(DONE, ahead=[3, 2, 1, 0])}
    session = JobSession(read_job(JOB), answering(monkeypatch, parties), None)  # type: ignore[arg-type]
    session.on_event = lambda name, event: waited.append(f"{name}: {event.progress.waiting_for}")
    await session.run()
    queued = [line for line in waited if "of this coordinator" in line]
    assert queued == ["meter: 2 jobs of this coordinator at meter", "meter: one job of this coordinator at meter"]


async def test_a_job_whose_party_ends_it_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "QUEUE_POLL_S", 0.001)
    ended = pb.Event(state=pb.ENDED, error=error_codes.status_of_code(errors_pb2.CANCELLED))
    shop, meter = Answers(ended), Answers(DONE, ahead=[1] * 100_000)
    with pytest.raises(PeerAborted):
        await run(monkeypatch, shop=shop, meter=meter)
    assert "Start" not in meter.asked


async def test_a_party_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    error, asked = await refused(monkeypatch, Answers(version="9" * 1000), HandshakeMismatch)
    assert error.message == f"meter disagrees on protocol version: ours is {PROTOCOL_VERSION}, theirs is {'9' * 32}"
    assert asked == ["Describe", "FAILED"]


@pytest.mark.parametrize("state", [pb.REFUSED, pb.ENDED, pb.FAILED])
async def test_an_operator_who_does_not_approve(monkeypatch: pytest.MonkeyPatch, state: int) -> None:
    events = pb.Event(state=pb.HELD), pb.Event(state=state)
    error, asked = await refused(monkeypatch, Answers(*events, state=pb.HELD), PeerAborted)
    assert error.message == "meter ended the session: its operator did not approve the job"
    assert asked == ["Describe", "Propose", "Cancel", "FAILED"]


async def test_an_operator_who_is_never_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    error, asked = await refused(monkeypatch, Answers(pb.Event(state=pb.HELD), LATE, state=pb.HELD), PeerTimeout)
    assert str(error) == "waited 65 s for meter at step Watch"
    assert asked[-2:] == ["Cancel", "FAILED"]


async def test_a_party_that_says_no_more_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    error, asked = await refused(monkeypatch, Answers(pb.Event(state=pb.RUNNING)), PeerAborted)
    assert (error.culprit, error.code) == ("meter", "CANCELLED")
    assert asked[-2:] == ["Cancel", "FAILED"]


async def test_a_held_job_of_which_nothing_more_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is not approved, and starts nowhere."""
    error, asked = await refused(monkeypatch, Answers(pb.Event(state=pb.HELD), state=pb.HELD), PeerAborted)
    assert error.message == "meter ended the session: its operator did not approve the job"
    assert asked == ["Describe", "Propose", "Cancel", "FAILED"]


async def test_who_hangs_holds_up_the_cancelling_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, heard = Answers(state=pb.ACCEPTED), asyncio.Event()

    async def never(request: object, timeout: float) -> pb.SessionAnswer:
        assert timeout == CANCEL_TIMEOUT_S < CALL_TIMEOUT_S
        await heard.wait()  # another party's end
        raise LATE

    async def hears(request: object, timeout: float) -> pb.SessionAnswer:
        heard.set()
        return pb.SessionAnswer()

    other = Answers(pb.Event(state=pb.RUNNING))
    monkeypatch.setattr(hangs, "Cancel", never)
    monkeypatch.setattr(other, "Cancel", hears)
    with pytest.raises(PeerAborted):
        async with asyncio.timeout(30):
            await run(monkeypatch, shop=hangs, meter=other)


async def test_a_job_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = await run(monkeypatch, shop=Answers(DONE), meter=Answers(DONE))
    with pytest.raises(LocalProtocolError, match="a job that is DONE cannot propose"):
        await session._propose()


@pytest.mark.parametrize(
    ("version", "step", "more", "expected"),
    [
        (PROTOCOL_VERSION, "epoch 1", {}, "taylor.resume=monday-"),
        (PROTOCOL_VERSION, "align", {}, ""),  # nothing is kept yet: a resumed job would be refused
        (PROTOCOL_VERSION, "align", {"taylor": {"resume": "sunday"}}, "taylor.resume=sunday"),
        ("9", "epoch 1", {}, ""),
    ],
)
def test_a_training_that_had_begun_can_go_on(
    monkeypatch: pytest.MonkeyPatch, version: str, step: str, more: dict[str, Any], expected: str
) -> None:
    roles = {"bank": "active", "post": "passive", "keys": "key-node"}
    members = {name: {"role": role, **({} if name == "keys" else {"dataset": "d"})} for name, role in roles.items()}
    running = pb.Event(state=pb.RUNNING, progress=pb.Progress(step=step))
    answers = {name: Answers(running, version=version) for name in roles}
    launched = Launched(answering(monkeypatch, answers), None)  # type: ignore[arg-type]
    job = read_job({"name": "monday", "protocol": "taylor", "parties": members, **more})
    with pytest.raises(PeerError) as caught:
        drive(job, launched, Console(file=io.StringIO()))
    said = "after the cause is mended, go on from the last epoch: --set "
    assert (said + expected in caught.value.hint) if expected else (said not in caught.value.hint)


@pytest.mark.parametrize(
    ("end", "is_end"),
    [
        (PeerTimeout(peer="shop", step="Watch", timeout_s=1), False),
        (PeerAborted(culprit="shop", code="CANCELLED"), True),
    ],
)
async def test_who_has_taken_a_job_may_end_it_while_another_is_asked_and_a_cut_is_no_end(
    monkeypatch: pytest.MonkeyPatch, end: BlindfitError, is_end: bool
) -> None:
    session, asked = JobSession(read_job(JOB), {}, None), asyncio.Event()  # type: ignore[arg-type]

    async def watch(_name: str) -> None:
        asked.set()
        raise end

    async def approved(_name: str) -> None:
        await asked.wait()
        await asyncio.sleep(0.05)

    monkeypatch.setattr(session, "_watch", watch)
    monkeypatch.setattr(session, "_await_approval", approved)
    session._proposed = ["shop", "meter"]
    with pytest.raises(PeerAborted) if is_end else contextlib.nullcontext():
        await session._wait_for_approval("meter")
