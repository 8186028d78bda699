"""Find the party to blame when parties wait for each other: the party at the end of the chain of waits.

A waits for B, B waits for C, C is silent: C is to blame, whichever deadline passes first. Therefore a party whose wait
has failed asks all others whom they wait for, before it blames one of them. The coordinator does the same.

An answer is a claim. A party that lies can blame another party; it cannot make a party that answers look silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import grpc
import structlog

from blindfit.algorithms.errors import PeerTimeout, where
from blindfit.algorithms.texts import printable
from blindfit.parties.wire import error_codes
from blindfit.parties.wire.pulse import Pulse
from blindfit.protos import control_pb2 as pb
from blindfit.protos import control_pb2_grpc

log = structlog.get_logger(__name__)

T = TypeVar("T")

MOST_S = 10.0  # longest time in which parties must report for whom they wait
ALONE_S = 1.0  # longest time for the last party, when all others have answered
MOST_WAITS = 64
MAX_STEP_CHARS = 64
LONG_STILL = 0.5  # a process that stood still for this share of a deadline explains that the deadline passed

# What is known of the party to blame. "silent": it does not answer. "still": its process stood still. "working": it
# answers, and works. "waiting": it answers, and waits for a party that waits for it. "": nobody was asked.
Found = Literal["", "silent", "still", "working", "waiting"]  # keys of algorithms.errors.WAITED_IN_VAIN, and ""


@dataclass(frozen=True)
class Wait:
    """One party's wait for a step of another one."""

    peer: str
    step: str
    since_s: float = 0.0


@dataclass(frozen=True)
class Report:
    """Knowledge about one party in a session.

    Attributes:
        waits: parties for which this party waits, the oldest wait first; empty if the party works or its part is over.
        still_s: longest time that the party's process stood still in this session.
        is_ending: True if the party has met an error, and its last event follows.
        has_ended: True if the party's part of the session is over.
        is_silent: True if the party does not answer.
    """

    waits: tuple[Wait, ...] = ()
    still_s: float = 0.0
    is_ending: bool = False
    has_ended: bool = False
    is_silent: bool = False


SILENT = Report(is_silent=True)
Reports = Mapping[str, Report]


@dataclass(frozen=True)
class Root:
    """The end of a chain of waits.

    Attributes:
        party: the party to blame.
        step: the step for which others wait.
        through: the parties between the first waiter and the party to blame; each waits for the next.
    """

    party: str
    step: str
    found: Found = ""
    through: tuple[str, ...] = ()
    still_s: float = 0.0


def root_of(first: Wait, reports: Reports, step_s: float, waiter: str = "") -> Root:
    """Follow a wait to the party that everybody waits for.

    Args:
        reports: knowledge about each party that was asked.
        step_s: the deadline of a step.
        waiter: the party that waits; a chain that leads back to it has ended.
    """
    wait, passed = first, [waiter]
    while True:
        report = reports.get(wait.peer)
        through = tuple(passed[1:])
        if report is None or report.is_silent:
            return Root(wait.peer, wait.step, "" if report is None else "silent", through)
        if _stood_still(report, step_s):
            return Root(wait.peer, wait.step, "still", through, report.still_s)
        ahead = [further for further in report.waits if further.peer not in (*passed, wait.peer)]
        if not ahead:
            return Root(wait.peer, wait.step, "waiting" if report.waits else "working", through)
        passed.append(wait.peer)
        wait = next((w for w in ahead if _cannot_answer(reports.get(w.peer), step_s)), ahead[0])


def _stood_still(report: Report, step_s: float) -> bool:
    return report.still_s >= LONG_STILL * step_s


def _cannot_answer(report: Report | None, step_s: float) -> bool:
    return report is not None and (report.is_silent or _stood_still(report, step_s))


def most_blamed(claims: Mapping[str, str], reports: Reports, step_s: float) -> str:
    """Return the party that most parties blame; "" if nobody blames any.

    Args:
        claims: each party, and the party that it blames (which may be itself).
        reports: findings of this process itself. They count more than a claim.
    """
    votes = Counter(claims.values())
    silent = [name for name, report in reports.items() if report.is_silent]
    still = [name for name, report in reports.items() if _stood_still(report, step_s)]
    for known in (silent, still):
        if blamed := [name for name in known if votes[name]]:
            return max(blamed, key=lambda name: votes[name])
    return votes.most_common(1)[0][0] if votes else ""


async def ask_all(asks: Mapping[str, Callable[[], Coroutine[Any, Any, Report]]]) -> dict[str, Report]:
    """Ask all parties at the same time, and return each one's report; a party that does not answer in time is silent.

    If only one party has not answered, its time is short: either all waits end there, or its answer does not matter.
    """
    loop = asyncio.get_running_loop()
    tasks = {name: asyncio.create_task(ask()) for name, ask in asks.items()}
    give_up, alone = loop.time() + MOST_S, loop.time() + ALONE_S
    try:
        while open_ := [task for task in tasks.values() if not task.done()]:
            left_s = (alone if len(open_) == 1 else give_up) - loop.time()
            if left_s <= 0:
                break
            await asyncio.wait(open_, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        return {name: _answer_of(task) for name, task in tasks.items()}
    finally:
        for task in tasks.values():
            task.cancel()


def _answer_of(task: asyncio.Task[Report]) -> Report:
    """Return the report. Every error becomes silence: no error here may keep a session from ending."""
    if not task.done():
        return SILENT
    if (error := task.exception()) is not None:
        log.error("a party could not be asked whom it waits for", error=type(error).__name__, where=where(error))
        return SILENT
    return task.result()


async def ask(channel: grpc.aio.Channel, session: str, members: Sequence[str]) -> Report:
    """Ask the party at the other end of a channel whom it waits for in a session."""
    return await ask_stub(control_pb2_grpc.ControlStub(channel), session, members)  # type: ignore[no-untyped-call]


async def ask_stub(stub: control_pb2_grpc.ControlStub, session: str, members: Sequence[str]) -> Report:
    """Do the same through a stub. A refusal is an answer too: the party is not silent."""
    try:
        answer = await stub.Waiting(pb.SessionRequest(session=session), timeout=MOST_S)
    except grpc.aio.AioRpcError as error:
        return SILENT if error_codes.read_peer_status(error) is None else Report(has_ended=True)
    return report_from_pb(answer, members)


# --- what this party waits for ---------------------------------------------------------------------------


@dataclass
class Waits:
    """The waits of one session at this party. A wait that failed stays: the party still waits for that step.

    Attributes:
        pulse: measure of the time in which this process stood still, which does not count towards a deadline.
    """

    pulse: Pulse = field(default_factory=Pulse)
    _now: dict[int, tuple[float, str, str]] = field(default_factory=dict)
    _failed: dict[int, tuple[float, str, str]] = field(default_factory=dict)
    _count: int = 0

    async def until(self, wait: Callable[[], Awaitable[T]], peer: str, step: str, timeout_s: float) -> T:
        """Wait for a peer's step, and note the wait.

        Args:
            wait: starts to wait; it may be called again.

        Raises:
            PeerTimeout
        """
        with self.on(peer, step):
            try:
                return await self.pulse.patient(wait, timeout_s)
            except TimeoutError:
                raise PeerTimeout(peer=peer, step=step, timeout_s=timeout_s) from None

    @contextlib.contextmanager
    def on(self, peer: str, step: str) -> Iterator[None]:
        """Note a wait that has a deadline of its own."""
        self._count += 1
        number = self._count
        self._now[number] = wait = (asyncio.get_running_loop().time(), peer, step)
        try:
            yield
        except Exception:
            self._failed[number] = wait
            raise
        finally:
            del self._now[number]
        if self._failed:  # a step that failed before was tried again, and came
            self._failed = {n: failed for n, failed in self._failed.items() if failed[1:] != (peer, step)}

    def report(self) -> tuple[Wait, ...]:
        if not (self._failed or self._now):
            return ()
        now = asyncio.get_running_loop().time()
        found = sorted([*self._failed.values(), *self._now.values()])
        return tuple(Wait(peer, step, now - since) for since, peer, step in found)[:MOST_WAITS]


# --- the wire ------------------------------------------------------------------------------------------------


def report_to_pb(report: Report) -> pb.WaitingAnswer:
    waits = [pb.Wait(peer=w.peer, step=w.step[:MAX_STEP_CHARS], since_s=w.since_s) for w in report.waits[:MOST_WAITS]]
    ends = {"is_ending": report.is_ending, "has_ended": report.has_ended}
    return pb.WaitingAnswer(waits=waits, still_s=report.still_s, **ends)


def report_from_pb(answer: pb.WaitingAnswer, members: Sequence[str]) -> Report:
    """Read a peer's claim. Leave out names that are not of the session, and numbers that are not finite."""
    waits = tuple(
        Wait(wait.peer, printable(wait.step[:MAX_STEP_CHARS]), _seconds(wait.since_s))
        for wait in answer.waits[:MOST_WAITS]
        if wait.peer in members
    )
    return Report(waits, _seconds(answer.still_s), answer.is_ending, answer.has_ended)


def _seconds(value: float) -> float:
    return value if math.isfinite(value) and value >= 0 else 0.0
