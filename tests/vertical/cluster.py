"""The parties of a vertical project, each a process that stays up, and a coordinator that watches how each one ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.identity import authority
from tests.command import Forked
from tests.vertical.victim import OBEYED, ORDER, POINTS, Order
from tests.world import World
from tests.world.vertical import ROLES, bank_and_shops

ROOT = Path(__file__).parents[2]
DATA_PARTIES = [name for name, role in ROLES.items() if role != "key-node"]
HANGS_S = 120.0  # longer than every deadline of the jobs below, where a machine has ten other things to do
TIMEOUTS = ("timeouts.step_s=60", "timeouts.reconnect_s=3")  # half a second is too short where every core is busy
SMALL = (*TIMEOUTS, "taylor.batch_rows=30", "taylor.epochs=3")


@dataclass
class Patient(JobSession):
    """A coordinator that cancels nothing before every party has found out for itself; `ends` is what each one says."""

    ends: dict[str, BaseException | None] = field(default_factory=dict)

    async def _watch_all(self) -> None:
        watches = {name: asyncio.create_task(self._watch(name)) for name in self.addresses}
        _, hanging = await asyncio.wait(watches.values(), timeout=HANGS_S)
        assert not hanging, [name for name, watch in watches.items() if watch in hanging]
        self.ends = {name: watch.exception() for name, watch in watches.items()}
        await super()._watch_all()


@dataclass
class Cluster:
    """Of parties that have small keys."""

    project: World
    small: tuple[str, ...] = SMALL  # overrides of job.toml
    processes: dict[str, Forked] = field(default_factory=dict)

    def path(self, *parts: str) -> Path:
        return self.project.root.joinpath(*parts)

    # --- processes

    def start(self, *names: str) -> None:
        for name in names:
            folder = self.path("run", name)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "port").unlink(missing_ok=True)
            files = authority.PartyFiles.in_folder(self.path("ca", name))
            paths = {"certificate": files.certificate, "key": files.key, "authority": files.authority}
            table = ", ".join(f"{key} = {json.dumps(str(path))}" for key, path in paths.items())
            command = [sys.executable, "-m", "tests.vertical.victim", str(folder)]
            command += ["party", str(self.path(f"{name}.toml"))]
            command += ["--set", "listen=127.0.0.1:0", "--set", f"identity={{{table}}}", "--set", 'log_format="json"']
            with (folder / "party.log").open("ab") as log:
                self.processes[name] = Forked(
                    [*command, "--ready-file", str(folder / "port")], cwd=ROOT, stdout=log, stderr=log
                )
        for name in names:
            give_up = time.monotonic() + 60
            while not self._port(name):
                assert self.processes[name].poll() is None, self.log(name)
                assert time.monotonic() < give_up, self.log(name)
                time.sleep(0.02)

    def _port(self, name: str) -> str:
        port = self.path("run", name, "port")
        return port.read_text().strip() if port.exists() else ""

    def log(self, name: str) -> str:
        return self.path("run", name, "party.log").read_text(errors="replace")

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    # --- jobs

    def session(self, *overrides: str, job: str = "job.toml") -> Patient:
        loaded = load_job(self.path(job), [*(self.small if job == "job.toml" else TIMEOUTS), *overrides])
        addresses = {name: f"127.0.0.1:{self._port(name)}" for name in loaded.parties}
        return Patient(loaded, addresses, identity_of(self.path("ca"), "coordinator"))

    def run(self, *overrides: str, job: str = "job.toml") -> str:
        """Runs a job to its end; returns its session."""
        session = self.session(*overrides, job=job)
        asyncio.run(session.run())
        return session.id

    def lose(self, victim: str, order: Order, *overrides: str, job: str = "job.toml") -> Lost:
        """Runs a job in which a party obeys an order, and starts that party again."""
        order.give(self.path("run", victim))
        session = self.session(*overrides, job=job)
        error, ended, stopped = asyncio.run(_until_both_end(session, self.processes[victim]))
        self.path("run", victim, ORDER).unlink()
        obeyed = self.path("run", victim, OBEYED)
        assert obeyed.exists(), f"{victim} never came to {order}; the job ended with {error}"
        given = float(obeyed.read_text())
        code = self.processes[victim].wait()
        self.start(victim)
        return Lost(victim, session, error, code, ended - given, stopped - given)

    def points(self, *overrides: str) -> dict[str, list[str]]:
        """What each party passes in an undisturbed training."""
        for name in ROLES:
            self.path("run", name, POINTS).touch()
        self.run(*overrides)
        found = {name: self.path("run", name, POINTS).read_text().splitlines() for name in ROLES}
        for name in ROLES:
            self.path("run", name, POINTS).unlink()
        return found

    # --- what they keep

    def weights(self, session: str) -> dict[str, np.ndarray]:
        """Of each data party that has kept its part."""
        kept = {}
        for name in DATA_PARTIES:
            path = self.path("state", name, "models", session, "model.json")
            if path.exists():
                part = json.loads(path.read_text())
                kept[name] = np.array([*part["weights"].values(), part.get("intercept") or 0.0])
        return kept

    def save_checkpoints(self, to: str = "saved") -> None:
        for name in ROLES:
            shutil.copytree(self.path("state", name, "checkpoints"), self.path(to, name))

    def restore_checkpoints(self, saved: str = "saved") -> None:
        for name in ROLES:
            shutil.rmtree(self.path("state", name, "checkpoints"), ignore_errors=True)
            shutil.copytree(self.path(saved, name), self.path("state", name, "checkpoints"))


async def _until_both_end(session: Patient, process: Forked) -> tuple[BlindfitError | None, float, float]:
    """The job's error, when the job ended and when the process did."""
    stopped = asyncio.create_task(_until_it_stops(process))
    error: BlindfitError | None = None
    try:
        await session.run()
    except BlindfitError as raised:
        error = raised
    ended = time.time()
    with contextlib.suppress(TimeoutError):  # where it did not obey, which the caller sees
        await asyncio.wait_for(stopped, HANGS_S)
    return error, ended, time.time() if stopped.cancelled() else stopped.result()


async def _until_it_stops(process: Forked) -> float:
    while process.poll() is None:
        await asyncio.sleep(0.02)
    return time.time()


@dataclass(frozen=True)
class Lost:
    """How a job ended whose victim obeyed its order.

    Attributes:
        error: the coordinator's; None when the job was done all the same.
        took_s: from the signal to the coordinator's answer.
        stopped_s: from the signal to the end of the victim's process.
    """

    victim: str
    session: Patient
    error: BlindfitError | None
    exit_code: int
    took_s: float
    stopped_s: float


@contextlib.contextmanager
def running(root: Path, project: World | None = None, small: tuple[str, ...] = SMALL) -> Iterator[Cluster]:
    """Args:
    project: made at `root`; by default a small one that trains on the Taylor loss.
    """
    cluster = Cluster(project or bank_and_shops(root, rows=96), small)
    authority.create_authority(root / "ca", "test-authority")
    for name in (*ROLES, "coordinator"):
        authority.issue(root / "ca", name, ["localhost"])
    try:
        cluster.start(*ROLES)
        yield cluster
    finally:
        cluster.stop()
