"""The search for the culprit does not delay a session's end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tomli_w

from blindfit.algorithms.errors import PeerAborted, PeerTimeout
from blindfit.coordinator.job.job import load_job
from blindfit.parties.sessions import blame
from blindfit.parties.sessions.session import Session
from blindfit.parties.systems import SYSTEMS
from blindfit.parties.wire import waits
from tests.blame import relay
from tests.certificates import quick_connections
from tests.world import World

PARTIES = ("p0", "p1")


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two parties, of which the second never answers, although its process is healthy."""
    monkeypatch.setitem(SYSTEMS, "relay", relay.system)
    run = relay.Runner.run

    async def silent(self: Any, session: Session[Any]) -> Any:
        if session.me.name == "p1":
            await session.channel.wait_for(asyncio.Event().wait(), "p0", "nothing", 600)
        return await run(self, session)

    monkeypatch.setattr(relay.Runner, "run", silent)
    for name in PARTIES:
        (peer,) = set(PARTIES) - {name}
        peers = {peer: {"role": "key-node"}, "coordinator": {"role": "coordinator"}}
        files = {kind: f"{kind}.pem" for kind in ("certificate", "key", "authority")}
        about = {"name": name, "role": "key-node", "data_dir": f"state/{name}", "identity": files}
        text = tomli_w.dumps({**about, "policy": {"systems": ["relay"]}, "peers": peers})
        (tmp_path / f"{name}.toml").write_text(text)
    parties = {name: {"role": "key-node", "config": f"{name}.toml"} for name in PARTIES}
    job = {"protocol": "relay", "parties": parties, "timeouts": {"step_s": 3.0, "reconnect_s": 60.0}}
    (tmp_path / "job.toml").write_text(tomli_w.dumps(job))
    return World(tmp_path)


async def test_a_session_that_is_cancelled_meanwhile_ends_and_tells_its_peers(
    nodes: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = asyncio.Event()

    async def never(_asks: object) -> Any:
        asking.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(waits, "ask_all", never)
    job = load_job(nodes.root / "job.toml")
    with quick_connections(nodes.path("ca")):
        async with nodes.up(job) as up, asyncio.timeout(60):
            session = nodes.session(job, up)
            running = asyncio.create_task(session.run())
            await asking.wait()
            first, second = (node.sessions.get(session.id) for node in up.values())
            task = first.task
            assert task is not None
            await up["p0"].sessions.cancel(session.id, by="p0")
            await asyncio.wait([task])
            await second.changed.until(lambda: second.state == "FAILED")
            assert isinstance(second.error, PeerAborted)
            assert (second.error.culprit, second.error.code) == ("p0", "CANCELLED")
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("fails", [True, False])
def test_what_goes_wrong_while_asking_hides_nothing(nodes: World, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    async def broken(*_: object) -> Any:
        raise KeyError("canary")

    if fails:
        monkeypatch.setattr(waits, "ask_stub", broken)
    with pytest.raises(PeerTimeout) as caught:
        nodes.run()
    found = "silent" if fails else "waiting"
    assert (caught.value.peer, caught.value.found) == ("p1", found)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(("stood_s", "lost"), [(0.0, ""), (1.0, ""), (9.0, "p1")])
async def test_a_party_that_stood_still_does_not_blame_who_has_forgotten_the_session(stood_s: float, lost: str) -> None:
    error = PeerAborted(culprit="p0", code="SESSION_UNKNOWN", step="Token")
    pulse = SimpleNamespace(longest_s=lambda _since: stood_s)
    session: Any = SimpleNamespace(
        channel=SimpleNamespace(waits=SimpleNamespace(pulse=pulse), peers={}), began=0.0, me=SimpleNamespace(name="p1")
    )
    found = await blame.trace(session, error, None)  # type: ignore[arg-type]
    assert isinstance(found, PeerAborted)
    assert (found.culprit, found.lost) == ("p0", lost)
    assert await blame.trace(session, other := PeerAborted(culprit="p0", code="CANCELLED"), None) is other  # type: ignore[arg-type]
