"""No coordinator starves another: each has a few places at a party, and a queue of its own behind them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import LimitExceeded
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.running import session as running
from blindfit.coordinator.running.control import Control
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from blindfit.parties import node as node_module
from blindfit.parties.dp_lr import trainer
from blindfit.parties.node import PartyNode
from blindfit.parties.sessions.places import Places
from blindfit.parties.wire.limits import Limits
from blindfit.parties.work.counted_threads import CountingThreads
from blindfit.protos import control_pb2 as pb
from tests.certificates import quick_connections
from tests.wire.jobs import JOB
from tests.world import World

LONG = 21  # iterations that distinguish the delayed fit from the other
MANY = 17
PROCESSOR_THREADS = 6  # threads of asyncio's own pool on a machine with two cores


class HeldUp:
    """Fits that do not end before the test lets them."""

    def __init__(self) -> None:
        self.let_go, self.begun, self.at_once, self.most = threading.Event(), 0, 0, 0
        self._lock, self._fit = threading.Lock(), trainer.fit_rows

    def fit(self, rows: Any, start: Any, job: Any, release: str) -> Any:
        if job.dp_lr.iterations == LONG:
            with self._lock:
                self.begun, self.at_once = self.begun + 1, self.at_once + 1
                self.most = max(self.most, self.at_once)
            assert self.let_go.wait(120)
            with self._lock:
                self.at_once -= 1
        return self._fit(rows, start, job, release)

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        """Let all fits go before their party stops, even if the test fails."""
        self.let_go.set()

    async def have_begun(self, count: int) -> None:
        async with asyncio.timeout(60):
            while self.begun < count:
                await asyncio.sleep(0.02)


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldUp]:
    held = HeldUp()
    monkeypatch.setattr(trainer, "fit_rows", held.fit)
    monkeypatch.setattr(running, "QUEUE_POLL_S", 0.05)
    yield held
    held.let_go.set()


@pytest.fixture
def clinic(tmp_path: Path) -> World:
    rng = np.random.default_rng(1)
    rows = {"id": np.arange(200), "age": rng.normal(size=200), "ill": rng.integers(0, 2, 200)}
    budget = {"patients": {"epsilon": 60.0, "delta": 1e-5}}
    policy = {"systems": ["dp-lr"], "max_epsilon": 2.0}
    about = {"label": "ill", "population": "patients"}
    world = World(tmp_path).active("clinic", rows, about=about, populations=budget, policy=policy)
    world.edit("clinic.toml", "[peers.coordinator]", '[peers.rival]\nrole = "coordinator"\n\n[peers.coordinator]')
    for file, iterations in (("long.toml", LONG), ("job.toml", 20)):
        asked = {"iterations": iterations, "feature_bounds": ["*:-3:3"]}
        world.job("dp-lr", file=file, privacy={"epsilon": 1.0}, dp_lr=asked)
    return world


@contextlib.asynccontextmanager
async def up(world: World) -> AsyncIterator[dict[str, PartyNode]]:
    with quick_connections(world.root / "ca"):
        async with world.up(world.load()) as nodes:
            yield nodes


def long_job(world: World, nodes: dict[str, PartyNode]) -> JobSession:
    """Return a job of the other coordinator that takes as long as the test decides."""
    session = world.session(world.load(job="long.toml"), nodes)
    return dataclasses.replace(session, id="", own=identity_of(world.root / "ca", world._issued("rival")))


async def test_long_jobs_of_one_coordinator_leave_anothers_job_a_place(clinic: World, held_up: HeldUp) -> None:
    async with up(clinic) as nodes, held_up:
        long = [asyncio.create_task(long_job(clinic, nodes).run()) for _ in range(MANY)]
        await held_up.have_begun(Limits().running)
        async with asyncio.timeout(60):
            await clinic.session(clinic.load(), nodes).run()
        assert (held_up.begun, held_up.most) == (Limits().running, Limits().running)
        held_up.let_go.set()
        await asyncio.gather(*long)  # none was refused
        assert held_up.most == Limits().running


async def test_without_places_they_take_every_thread(
    clinic: World, held_up: HeldUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack without a defence: it shows that the test above can fail."""
    monkeypatch.setattr(node_module, "Limits", lambda: Limits(running=MANY))
    monkeypatch.setattr(node_module, "threads_for", lambda *_: CountingThreads(PROCESSOR_THREADS))
    async with up(clinic) as nodes, held_up:
        long = [asyncio.create_task(long_job(clinic, nodes).run()) for _ in range(MANY)]
        await held_up.have_begun(PROCESSOR_THREADS)
        other = asyncio.create_task(clinic.session(clinic.load(), nodes).run())
        await asyncio.wait({other}, timeout=1.0)
        assert not other.done()
        held_up.let_go.set()
        await asyncio.gather(other, *long)


async def test_a_cancelled_job_keeps_its_place_until_its_thread_has_ended(
    clinic: World, held_up: HeldUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this rule, repeated starts and cancellations would take every thread."""
    monkeypatch.setattr(node_module, "Limits", lambda: Limits(running=1))
    async with up(clinic) as nodes, held_up:
        sessions = nodes["clinic"].sessions
        first = long_job(clinic, nodes)
        running_first = asyncio.create_task(first.run())
        await held_up.have_begun(1)
        running_first.cancel()
        await asyncio.wait({running_first})
        async with asyncio.timeout(60):
            while sessions.get(first.id).state != "ENDED":
                await asyncio.sleep(0.02)
        second = long_job(clinic, nodes)
        running_second = asyncio.create_task(second.run())
        async with asyncio.timeout(60):
            while second.id not in sessions._sessions or not sessions.get(second.id).watchers:
                await asyncio.sleep(0.02)
        assert sessions.reserve(second.id) == 1
        with pytest.raises(LimitExceeded, match="at most 1 sessions that rival proposed run at once"):
            await sessions.start(second.id)
        held_up.let_go.set()
        await running_second


# --- several parties ------------------------------------------------------------------------------------


class Crossed:
    """A party of several jobs, with one place."""

    def __init__(self) -> None:
        self._ended: set[str] = set()
        self._places = Places(1, self._ended.__contains__)

    async def Describe(self, request: object, timeout: float) -> pb.PartyDescription:  # noqa: N802
        return pb.PartyDescription(protocol_version=running.PROTOCOL_VERSION)

    async def Propose(self, request: object, timeout: float) -> pb.ProposalAnswer:  # noqa: N802
        return pb.ProposalAnswer(state=pb.ACCEPTED)

    async def Reserve(self, request: pb.SessionRequest, timeout: float) -> pb.Place:  # noqa: N802
        for _ in range(3):  # each job is at its first party before one is at its second
            await asyncio.sleep(0)
        return pb.Place(ahead=self._places.ahead_of(request.session, "coordinator"))

    async def Start(self, request: pb.SessionRequest, timeout: float) -> pb.SessionAnswer:  # noqa: N802
        assert self._places.ahead_of(request.session, "coordinator") == 0
        self._ended.add(request.session)
        return pb.SessionAnswer()

    async def Cancel(self, request: object, timeout: float) -> pb.SessionAnswer:  # noqa: N802
        return pb.SessionAnswer()

    def Watch(self, request: pb.SessionRequest, timeout: float | None) -> Any:  # noqa: N802
        return Watched(self._ended, request.session)


class Watched:
    def __init__(self, ended: set[str], session: str) -> None:
        self._ended, self._session = ended, session

    async def __aiter__(self) -> AsyncIterator[pb.Event]:
        while self._session not in self._ended:
            await asyncio.sleep(0.01)
        yield pb.Event(state=pb.DONE)

    def cancel(self) -> None:
        pass


async def test_jobs_that_name_their_parties_in_other_orders_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parties = {"shop": Crossed(), "meter": Crossed()}

    @contextlib.asynccontextmanager
    async def opened(_own: object, name: str, address: str) -> AsyncIterator[Control]:
        yield Control(name, address, parties[name])  # type: ignore[arg-type]

    monkeypatch.setattr(Control, "open", opened)
    monkeypatch.setattr(running, "QUEUE_POLL_S", 0.01)
    addresses = {"shop": "a:1", "meter": "a:1"}
    orders = (addresses, dict(reversed(addresses.items())))
    jobs = [JobSession(read_job(JOB), order, None) for order in orders]  # type: ignore[arg-type]
    async with asyncio.timeout(60):
        await asyncio.gather(*(job.run() for job in jobs))
    assert [job.state for job in jobs] == ["DONE", "DONE"]


# --- the queue ------------------------------------------------------------------------------------------


def test_a_queue_is_served_in_turn_and_is_of_one_coordinator() -> None:
    over: set[str] = set()
    places = Places(2, over.__contains__)
    assert [places.ahead_of(one, "a") for one in ("a1", "a2", "a3", "a4")] == [0, 0, 1, 2]
    assert [places.ahead_of(one, "b") for one in ("b1", "b2", "b3")] == [0, 0, 1]
    over.add("a2")
    # an earlier request does not come first
    assert [places.ahead_of(one, "a") for one in ("a4", "a3", "a1")] == [1, 0, 0]
    over.update(("a1", "a3"))
    assert [places.ahead_of(one, "a") for one in ("a5", "a4")] == [0, 0]
