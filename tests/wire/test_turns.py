"""A party that sends much waits, and no other party waits for it."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from blindfit.parties.measurement import background
from blindfit.parties.measurement.background import Background, Threads
from blindfit.parties.wire import turns
from blindfit.parties.wire.turns import Turns
from blindfit.parties.work import memory
from blindfit.protos import control_pb2, control_pb2_grpc
from tests.certificates import make_identity
from tests.wire.calls import proposal, refusal
from tests.wire.floods import swollen
from tests.wire.meter import connect, metering


async def test_a_peer_with_much_to_say_has_one_message_in_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SHARE", 1e9)
    order: list[str] = []
    waiting = Turns()

    async def say(peer: str) -> None:
        await waiting.wait(peer)
        order.append(peer)

    crowd = [asyncio.create_task(say("hostile")) for _ in range(50)]
    await asyncio.sleep(0)
    honest = asyncio.create_task(say("honest"))
    await asyncio.gather(*crowd, honest)
    assert order.index("honest") <= 3


class Clock:
    """Stand-in for asyncio: a round of the loop takes as long as the test decides, and waits are recorded."""

    Lock = asyncio.Lock

    def __init__(self) -> None:
        self.now, self.round_s = 0.0, 0.001
        self.waited: list[float] = []

    def get_running_loop(self) -> Clock:
        return self

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds or self.round_s
        self.waited += [seconds] if seconds else []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "asyncio", clock)
    return clock


async def test_beyond_its_share_a_peer_waits_while_another_is_served(clock: Clock) -> None:
    waiting = Turns()

    async def calls(peer: str, count: int) -> None:
        for _ in range(count):
            await waiting.wait(peer, is_call=True)

    await calls("hostile", 100)
    assert clock.waited == []  # nobody else is there
    await calls("honest", 20)
    assert clock.waited == []  # within its share
    began = clock.now
    for _ in range(100):
        await calls("hostile", 2)
        waited = len(clock.waited)
        await calls("honest", 1)
        assert len(clock.waited) == waited
    assert clock.now - began > 200 * turns.CALL_S / turns.SHARE / 2
    clock.now += turns.MEMORY_S * 1.5
    waited = len(clock.waited)
    await calls("hostile", 100)
    assert len(clock.waited) == waited  # the other one has gone


async def test_a_peer_does_not_pay_for_a_loop_that_stood_still(clock: Clock) -> None:
    waiting = Turns()
    await waiting.wait("another")
    clock.round_s = 10.0
    await waiting.wait("peer")
    clock.round_s = 0.001
    await waiting.wait("another")
    await waiting.wait("peer")
    assert clock.waited == []


class Desk(Background):
    def close_files(self) -> None: ...


async def test_a_consumers_work_leaves_threads_to_the_others() -> None:
    threads, released = Threads(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def blocks() -> None:
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result(60)

    desks = [Desk(threads, "hostile") for _ in range(40)]
    held = [asyncio.create_task(desk.in_background(blocks)) for desk in desks]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(60):
        assert await Desk(threads, "honest").in_background(lambda: "served") == "served"
    for task in held[background.THREADS_OF_A_CONSUMER :]:
        task.cancel()
    await asyncio.sleep(0)
    begun = [desk._work for desk in desks if desk._work is not None and not desk._work.cancelled()]
    assert len(begun) == background.THREADS_OF_A_CONSUMER  # a party that hangs up before its turn leaves no work
    released.set()
    await asyncio.gather(*held, return_exceptions=True)


async def test_a_refused_call_keeps_nothing_of_its_request(authority: Path, tmp_path: Path) -> None:
    asked = proposal("s")
    asked.parameters.CopyFrom(swollen(**{f"name-{i}": {"integer": 1} for i in range(1000)}))
    async with metering(authority, tmp_path) as node, connect(node, make_identity(authority, "coordinator")) as channel:
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await refusal(control_pb2_grpc.ControlStub(channel).Propose(asked))
            async with asyncio.timeout(60):
                while any(isinstance(each, control_pb2.Proposal) and each is not asked for each in gc.get_objects()):
                    await asyncio.sleep(0.1)
        finally:
            gc.enable()


async def test_what_is_free_goes_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(memory, "GIVE_BACK_S", 0.01)
    monkeypatch.setattr(memory, "_of_gnu", lambda name: trimmed.append if name == "malloc_trim" else None)
    giving = asyncio.create_task(memory.give_back_freed())
    async with asyncio.timeout(60):
        while len(trimmed) < 2:
            await asyncio.sleep(0.01)
    giving.cancel()
    assert set(trimmed) == {0}
