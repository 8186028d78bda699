"""Row 27, in short: who sends much waits, and nobody waits for him."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

import pytest

from blindfit.parties.measurement import background
from blindfit.parties.measurement.background import Background, Threads
from blindfit.parties.wire import turns
from blindfit.parties.wire.turns import Turns
from blindfit.parties.work import memory
from blindfit.protos import control_pb2, control_pb2_grpc
from tests.certificates import make_identity
from tests.wire.meter import connect, metering
from tests.wire.test_limits import proposal, refusal
from tests.wire.test_overload import swollen


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


async def test_beyond_its_share_a_peer_waits_while_another_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CALL_S", 0.05)
    waiting = Turns()

    async def calls(peer: str, count: int) -> float:
        began = time.monotonic()
        for _ in range(count):
            await waiting.wait(peer, is_call=True)
        return time.monotonic() - began

    alone_s = await calls("hostile", 10)
    assert await calls("honest", 3) < 0.1  # within its share
    beside_s = await calls("hostile", 3)
    assert alone_s < 0.1 < beside_s
    await asyncio.sleep(turns.MEMORY_S * 1.5)
    assert await calls("hostile", 1) < 0.1  # nobody else is there any more


async def test_a_peer_does_not_pay_for_a_loop_that_stood_still() -> None:
    waiting = Turns()
    await waiting.wait("another")
    asyncio.get_running_loop().call_soon(time.sleep, 0.4)
    await waiting.wait("peer")
    began = time.monotonic()
    await waiting.wait("peer")
    assert time.monotonic() - began < 0.1


class Desk(Background):
    def close_files(self) -> None: ...


async def test_a_consumers_work_leaves_threads_to_the_others() -> None:
    threads, released = Threads(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def blocks() -> None:
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result(10)

    desks = [Desk(threads, "hostile") for _ in range(40)]
    held = [asyncio.create_task(desk.in_background(blocks)) for desk in desks]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        assert await Desk(threads, "honest").in_background(lambda: "served") == "served"
    for task in held[background.THREADS_OF_A_CONSUMER :]:
        task.cancel()
    await asyncio.sleep(0)
    begun = [desk._work for desk in desks if desk._work is not None and not desk._work.cancelled()]
    assert len(begun) == background.THREADS_OF_A_CONSUMER  # who hangs up before his turn leaves nothing to be done
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
            await asyncio.sleep(0.1)
            kept = [each for each in gc.get_objects() if isinstance(each, control_pb2.Proposal) and each is not asked]
            assert not [each for each in kept if each.session == "s"]
        finally:
            gc.enable()


async def test_what_is_free_goes_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(memory, "GIVE_BACK_S", 0.01)
    monkeypatch.setattr(memory, "_of_gnu", lambda name: trimmed.append if name == "malloc_trim" else None)
    giving = asyncio.create_task(memory.give_back_freed())
    async with asyncio.timeout(5):
        while len(trimmed) < 2:
            await asyncio.sleep(0.01)
    giving.cancel()
    assert set(trimmed) == {0}
