"""A training and a session that resumes it, at once: with one MAC key in both, one could use what the other told."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.protocols import falcon
from blindfit.coordinator.job import load_job
from blindfit.coordinator.launcher import identity_of
from blindfit.coordinator.session import JobSession
from blindfit.parties.vertical.checkpoints import CHECK_BEGUN
from tests.falcon.project import make
from tests.nodes import Nodes

OPTIONS = ("falcon.epochs=2", "falcon.batch_rows=1000", "falcon.validation_fraction=0", "split.test_fraction=0")


class Begun:
    """Trainings under way, by session: at most one of a training, or the MAC key is in two. None ends before `go_on`
    is set, however quick the machine is.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()  # each trains in its own thread
        self.now: set[tuple[str, str]] = set()
        self.sessions: set[str] = set()
        run = falcon.run_data_party

        async def noted(me: str, held: Any, parameters: Any, seed: Any, session: str, channel: Any, **more: Any) -> Any:
            self.sessions.add(session)
            self.now.add((me, session))
            try:
                trained = await run(me, held, parameters, seed, session, channel, **more)
                while not self.go_on.is_set():
                    await asyncio.sleep(0.05)
                return trained
            finally:
                self.now.discard((me, session))

        patch.setattr(falcon, "run_data_party", noted)


async def both(nodes: Nodes, root: Path, begun: Begun) -> list[Any]:
    """What a training and one that resumes it end with."""
    job = load_job(root / "job.toml", list(OPTIONS))
    async with nodes._up(job) as up:
        addresses = {name: f"127.0.0.1:{node.port}" for name, node in up.items()}
        identity = identity_of(nodes.certificates, nodes._issued("coordinator"))
        first = JobSession(job, addresses, identity)
        running = asyncio.create_task(first.run())
        while len(begun.now) < 3 and not running.done():
            await asyncio.sleep(0.05)
        resumes = load_job(root / "job.toml", [*OPTIONS, f'falcon.resume="{first.id}"'])
        for training in root.glob("state/*/checkpoints/*"):  # as in the midst of a check of MACs
            (training / CHECK_BEGUN).touch()
        second = JobSession(resumes, addresses, identity)
        (refusal,) = await asyncio.gather(second.run(), return_exceptions=True)
        begun.go_on.set()
        return [*await asyncio.gather(running, return_exceptions=True), refusal]


def test_a_training_is_in_one_session_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, begun = make(tmp_path), Begun(monkeypatch)
    first, second = asyncio.run(both(Nodes(project.root), project.root, begun))
    assert first is None
    assert isinstance(second, BlindfitError)
    assert "is still running" in str(second)
    assert len(begun.sessions) == 1
