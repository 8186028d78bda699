"""A training and a session that resumes it cannot run at the same time.

They would write over each other's checkpoints. In shares, with one MAC key in both, one could use what the other
revealed.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError, PolicyRefused
from blindfit.algorithms.protocols import falcon, taylor
from blindfit.coordinator.job.job import Job, load_job
from blindfit.parties.node import PartyNode
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.vertical.checkpoints import CHECK_BEGUN, Running
from tests.hints.following import refused
from tests.world import World
from tests.world.vertical import bank_and_shops, bank_and_shops_in_shares

DATA_PARTIES = 3
OPTIONS = {
    "taylor": ("taylor.epochs=2", "split.test_fraction=0"),
    "falcon": ("falcon.epochs=2", "falcon.batch_rows=1000", "falcon.validation_fraction=0", "split.test_fraction=0"),
}


class Begun:
    """Data parties that are training: at most one session of a training runs at a time. None ends before
    `go_on` is set, on any machine.
    """

    def __init__(self, patch: pytest.MonkeyPatch, protocol: ModuleType) -> None:
        self.go_on = threading.Event()  # each may train in its own thread
        self.parties: list[None] = []
        run = protocol.run_data_party

        async def noted(*given: Any, **more: Any) -> Any:
            self.parties.append(None)
            trained = await run(*given, **more)
            while not self.go_on.is_set():
                await asyncio.sleep(0.05)
            return trained

        patch.setattr(protocol, "run_data_party", noted)


def refuses(node: PartyNode, job: Job[Any]) -> None:
    """Check that a party refuses; each party is asked, because another may have been restarted since."""
    name = node.settings.name
    me = Member(name, job.parties[name].role, "a:1", job.parties[name].dataset)
    with pytest.raises(PolicyRefused, match="is still running"):
        node._seats[job.protocol].check(job.parameters, me)


async def both(nodes: World, root: Path, begun: Begun, system: str) -> list[Any]:
    """Return the ends of a training and of one that resumes it."""
    job = load_job(root / "job.toml", list(OPTIONS[system]))
    async with nodes.up(job) as up:
        first = nodes.session(job, up)
        running = asyncio.create_task(first.run())
        while len(begun.parties) < DATA_PARTIES and not running.done():
            await asyncio.sleep(0.05)
        resumes = load_job(root / "job.toml", [*OPTIONS[system], f'{system}.resume="{first.id}"'])
        if system == "falcon":
            for training in root.glob("state/*/checkpoints/*"):  # the state in the midst of a check of MACs
                (training / CHECK_BEGUN).touch()
        for node in up.values():
            refuses(node, resumes)
        second = nodes.session(resumes, up)
        (refusal,) = await asyncio.gather(second.run(), return_exceptions=True)
        begun.go_on.set()
        return [*await asyncio.gather(running, return_exceptions=True), refusal]


@pytest.mark.parametrize(("system", "protocol"), [("taylor", taylor), ("falcon", falcon)], ids=["taylor", "falcon"])
def test_a_training_is_in_one_session_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, protocol: ModuleType
) -> None:
    project = bank_and_shops_in_shares(tmp_path) if system == "falcon" else bank_and_shops(tmp_path)
    begun = Begun(monkeypatch, protocol)
    first, second = asyncio.run(both(World(project.root), project.root, begun, system))
    assert first is None
    assert isinstance(second, BlindfitError)
    assert "is still running" in str(second)
    assert len(begun.parties) == DATA_PARTIES


def test_one_training_beside_another_and_after_itself() -> None:
    running = Running("bank", "taylor.resume")
    with running.alone("t1"), running.alone("t2"):
        with refused(
            "another session of the training {} is still running: wait for its end, or cancel it (`blindfit cancel`)"
        ):
            running.alone("t1").__enter__()
    with running.alone("t1"):
        pass
