"""After `kill -9` of the command that arranges a job: the end of its parties, their folders and the job."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blindfit.coordinator.running import scratch
from blindfit.parties.files.lock_file import LockFile
from blindfit.parties.sessions import sessions
from blindfit.parties.work import ending
from blindfit.protos import control_pb2 as pb
from tests.certificates import demo_authority
from tests.command import Forked
from tests.vertical.victim import POINTS
from tests.wire.calls import proposal
from tests.wire.meter import metering
from tests.world import World
from tests.world.vertical import ROLES, bank_and_shops

HANGS_S = 90.0
ALL_CORES_ARE_BUSY = pytest.mark.timeout(300)


def until(ready: Callable[[], object], why: Callable[[], str] = str) -> None:
    give_up = time.monotonic() + HANGS_S
    while not ready():
        assert time.monotonic() < give_up, why()
        time.sleep(0.005)


# --- blindfit run ---------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> World:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "points").mkdir()
    (tmp_path / "points" / POINTS).touch()
    return bank_and_shops(tmp_path, rows=75, epochs=1)


def run(project: World, out: str) -> Forked:
    root = project.root
    words = [sys.executable, "-m", "tests.blame.run_here", root / "points", "run", "job.toml", "--out", out]
    environment = {**os.environ, "TMPDIR": str(root / "temporary"), "PYTHONUNBUFFERED": "1"}
    with (root / f"{out}.log").open("wb") as log:
        return Forked(words, stdout=log, stderr=log, cwd=root, env=environment)


def has_passed(project: World, point: str) -> bool:
    return point in (project.root / "points" / POINTS).read_text()


PHASES: dict[str, Callable[[World], object]] = {
    "its certificates are made": lambda p: list(p.root.glob("temporary/blindfit-run-*/authority/*/key.pem")),
    "its processes start": lambda p: list(p.root.glob("out/*/party.log")),
    "handshake": lambda p: has_passed(p, "receive Hello"),
    "alignment": lambda p: has_passed(p, "send Blinded"),
    "training": lambda p: has_passed(p, "receive NoisyGradient"),
    "writing": lambda p: has_passed(p, "write model.json"),
}


@ALL_CORES_ARE_BUSY
@pytest.mark.parametrize("phase", list(PHASES))
def test_the_parties_of_a_run_end_with_it_and_the_next_starts_at_once(project: World, phase: str) -> None:
    root = project.root
    killed = run(project, "out")
    until(lambda: PHASES[phase](project), lambda: (root / "out.log").read_text())
    killed.kill()
    killed.wait()
    again = run(project, "again")  # while the parties of the first may still be there
    assert again.wait(HANGS_S) == 0, (root / "again.log").read_text()
    for name in ROLES:
        until(lambda name=name: is_free(root / "state" / name / "party.lock"))
    left = list(root.glob("temporary/blindfit-run-*"))
    if left:  # it was killed before it had a party: the next run removes it once it cannot belong to a new run
        assert phase in list(PHASES)[:2]
        for folder in left:
            os.utime(folder, (0, 0))
        assert run(project, "third").wait(HANGS_S) == 0
    assert not list(root.glob("temporary/blindfit-run-*"))


def is_free(path: Path) -> bool:
    lock = LockFile(path)
    taken = lock.take("") is None
    lock.release()
    return taken


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    stale, new, held, other = (tmp_path / name for name in ("blindfit-run-a", "blindfit-run-b", "blindfit-run-c", "x"))
    for folder in (stale, new, held, other):
        (folder / "authority").mkdir(parents=True)
    lock = LockFile(held / scratch.LOCK)
    assert lock.take("a run") is None
    for folder in (stale, held, other):
        os.utime(folder, (0, 0))
    (tmp_path / "blindfit-run-d").symlink_to(other)
    scratch.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "blindfit-run-b",
        "blindfit-run-c",
        "blindfit-run-d",
        "x",
    ]
    assert (other / "authority").exists()
    lock.release()


CHILD = f"""
import pathlib, sys, time
from {ending.__name__} import end_with_launcher
end_with_launcher(pathlib.Path(sys.argv[1]))
print("up", flush=True)
time.sleep(60)
"""


def test_a_process_ends_when_its_standard_input_does(tmp_path: Path) -> None:
    """This needs only Python, on any system: no signal, and no call that only Linux has."""
    folder = tmp_path / "folder"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert folder.exists()
    process.stdin.close()
    assert process.wait(60) == 0
    assert not folder.exists()
    process.stdout.close()


# --- blindfit submit -------------------------------------------------------------------------------------------


@ALL_CORES_ARE_BUSY
def test_a_submitted_job_goes_on_without_its_coordinator(project_of_two: World) -> None:
    project_of_two.start("shop", "meter")
    with project_of_two.submitting() as submit:
        session = submit.stdout.readline().split()[1]
        for party in ("shop", "meter"):  # it starts one after the other
            until(lambda of=party: "session starts" in project_of_two.log(of), lambda of=party: project_of_two.log(of))
        submit.send_signal(signal.SIGKILL)
    jobs = until_ended(project_of_two, session)
    assert [job["state"] for job in jobs] == ["DONE"], project_of_two.log("shop") + project_of_two.log("meter")
    assert list(project_of_two.path("state/shop/models").glob(f"{session}/model.json"))


def until_ended(project: World, session: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []

    def is_over() -> bool:
        said = json.loads(project.blindfit("jobs", "shop.toml", "--json").stdout)["jobs"]
        found[:] = [job for job in said if job["session"] == session]
        return bool(found) and found[0]["state"] not in ("ACCEPTED", "RUNNING")

    until(is_over, lambda: project.log("shop"))
    return found


async def test_a_job_that_nobody_starts_ends_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator was killed between the proposal and the start: the job does not take others' place for ever."""
    monkeypatch.setattr(sessions, "START_S", 0.1)
    async with metering(demo_authority(tmp_path), tmp_path) as node:
        asked = proposal("monday")
        for item in asked.parameters.items:
            if item.name == "timeouts.approval_s":
                item.real = 0.2
        session = await node.sessions.propose(asked, "coordinator")
        assert session.state == "ACCEPTED"
        async with asyncio.timeout(60):
            await session.changed.until(lambda: session.state == "ENDED")
        assert [event.state async for event in node.sessions.watch("monday")] == [pb.ENDED]


@pytest.fixture
def project_of_two(tmp_path: Path) -> Iterator[World]:
    from tests.world.measured import shop_and_meter

    made = shop_and_meter(tmp_path)
    yield made
    made.stop()
