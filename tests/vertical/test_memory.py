"""A party that keeps running does not grow: an ended session keeps only how it ended, and nothing of its work."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError, DataError
from blindfit.algorithms.paillier.randomisers import RandomiserPool
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.node import PartyNode
from blindfit.parties.sessions.transcript import Transcript
from blindfit.parties.taylor import data_party
from blindfit.parties.vertical.prepared import Prepared
from blindfit.parties.wire.link import Link
from tests.vertical.nodes import nodes_in

ROOT = Path(__file__).parents[2]
BIG = (Prepared, RandomiserPool, Transcript, Link)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """Return every big member of a session that is made from now on."""
    made: list[weakref.ref[Any]] = []
    for kind in BIG:

        def init(self: Any, *arguments: Any, _init: Any = kind.__init__, **named: Any) -> None:
            _init(self, *arguments, **named)
            made.append(weakref.ref(self))

        monkeypatch.setattr(kind, "__init__", init)
    return made


async def until_it_trains(job: JobSession, node: Any) -> None:
    running = asyncio.create_task(job.run())
    while not any(s.progress and s.progress.unit == "batches" for s in node.sessions._sessions.values()):
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})


def test_an_ended_session_lets_go_of_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sessions end as done, cancelled and failed."""
    made = counted(monkeypatch)

    def fails(*_: Any) -> None:
        raise DataError("this disk is full")

    async def held(nodes: dict[str, PartyNode], *ends: str) -> set[str]:
        """Return what is left of the sessions; at some party the newest has ended in this state."""
        sessions = [list(node.sessions._sessions.values()) for node in nodes.values()]
        newest = {some[-1].state for some in sessions}  # a party may fall with another one before it is cancelled
        assert {len(some) for some in sessions} == {len(ends)}
        assert ends[-1] in newest
        await asyncio.gather(*(s.task for some in sessions for s in some if s.task), return_exceptions=True)
        give_up = time.monotonic() + 60
        while left := [type(found).__name__ for ref in made if (found := ref()) is not None]:
            if time.monotonic() > give_up:
                break
            await asyncio.sleep(0.05)
            gc.collect()
        return set(left)

    async def scenario() -> None:
        async with nodes_in(tmp_path) as (nodes, job):
            await job().run()
            assert await held(nodes, "DONE") == set()
            await until_it_trains(job(), nodes["bank"])
            assert await held(nodes, "DONE", "ENDED") == set()
            monkeypatch.setattr(data_party, "write_part", fails)
            with pytest.raises(BlindfitError):
                await job().run()
            assert await held(nodes, "DONE", "ENDED", "FAILED") == set()

    asyncio.run(scenario())
    assert len(made) > 30


def memory_after_each(tmp_path: Path, count: int) -> list[float]:
    command = [sys.executable, "-m", "tests.vertical.nodes", str(tmp_path), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.splitlines()]


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_sessions_leave_memory_flat(tmp_path: Path) -> None:
    """Four parties in one process. The first sessions load what all of them use."""
    memory = memory_after_each(tmp_path, 120)
    assert max(memory[-20:]) - max(memory[:20]) < 10
