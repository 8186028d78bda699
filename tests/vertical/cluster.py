"""The parties of a vertical project, each a process that keeps running, and a coordinator that records
each one's end.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.running.launcher import identity_of
from blindfit.coordinator.running.session import JobSession
from tests.command import Forked
from tests.vertical.victim import OBEYED, ORDER, POINTS, Order
from tests.world import World
from tests.world.vertical import ROLES
from tests.world.world import COORDINATOR

HANGS_S = 120.0  # longer than every deadline of the jobs below, where a machine has ten other things to do
TIMEOUTS = ("timeouts.step_s=60", "timeouts.reconnect_s=3")  # half a second is too short where every core is busy
SMALL = (*TIMEOUTS, "taylor.batch_rows=30", "taylor.epochs=3")


@dataclass
class Patient(JobSession):
    """A coordinator that cancels nothing before every party has ended by itself; `ends` has each party's report."""

    ends: dict[str, BaseException | None] = field(default_factory=dict)

    async def _watch_all(self) -> None:
        watches = {name: asyncio.create_task(self._watch(name)) for name in self.addresses}
        _, hanging = await asyncio.wait(watches.values(), timeout=HANGS_S)
        assert not hanging, [name for name, watch in watches.items() if watch in hanging]
        self.ends = {name: watch.exception() for name, watch in watches.items()}
        await super()._watch_all()


@dataclass
class Cluster(World):
    """Running parties at addresses, and jobs in which one of them is lost."""

    small: tuple[str, ...] = SMALL  # overrides of job.toml

    def start_watched(self, *names: str) -> None:
        for name in names:
            self.path("run", name).mkdir(parents=True, exist_ok=True)
        self.start(*names, module=("tests.vertical.victim", "run/{name}"), sets=['log_format="json"'])

    def patient(self, *overrides: str, job: str = "job.toml") -> Patient:
        loaded = self.load(*(self.small if job == "job.toml" else TIMEOUTS), *overrides, job=job)
        addresses = {name: str(self.settings(name).listen) for name in loaded.parties}
        return Patient(loaded, addresses, identity_of(self.path("ca"), COORDINATOR))

    def train(self, *overrides: str, job: str = "job.toml") -> str:
        """Run a job to its end, and return its session."""
        session = self.patient(*overrides, job=job)
        asyncio.run(session.run())
        return session.id

    def lose(self, victim: str, order: Order, *overrides: str, job: str = "job.toml") -> Lost:
        """Run a job in which a party obeys an order, and start that party again.

        A training whose end is revealed again counts each time, so this many losses need an account that starts again.
        """
        if any(override.startswith("taylor.resume") for override in overrides):
            done = self.blindfit("ledger", "bank.toml", "--reset-account", "rows", "--reason", "another loss")
            assert done.returncode == 0, done.stderr
        order.give(self.path("run", victim))
        session = self.patient(*overrides, job=job)
        error, ended, stopped = asyncio.run(_until_both_end(session, self.processes[victim]))
        self.path("run", victim, ORDER).unlink()
        obeyed = self.path("run", victim, OBEYED)
        assert obeyed.exists(), f"{victim} never came to {order}; the job ended with {error}"
        given = float(obeyed.read_text())
        code = self.processes[victim].wait()
        self.start_watched(victim)
        return Lost(victim, session, error, code, ended - given, stopped - given)

    def points(self, *overrides: str) -> dict[str, list[str]]:
        """Return the points that each party passes in an undisturbed training."""
        for name in ROLES:
            self.path("run", name, POINTS).touch()
        self.train(*overrides)
        found = {name: self.path("run", name, POINTS).read_text().splitlines() for name in ROLES}
        for name in ROLES:
            self.path("run", name, POINTS).unlink()
        return found

    # --- what they keep

    def save_checkpoints(self, to: str = "saved") -> None:
        for name in ROLES:
            shutil.copytree(self.path("state", name, "checkpoints"), self.path(to, name))

    def restore_checkpoints(self, saved: str = "saved") -> None:
        for name in ROLES:
            shutil.rmtree(self.path("state", name, "checkpoints"), ignore_errors=True)
            shutil.copytree(self.path(saved, name), self.path("state", name, "checkpoints"))


async def _until_both_end(session: Patient, process: Forked) -> tuple[BlindfitError | None, float, float]:
    """Return the job's error, when the job ended and when the process did."""
    stopped = asyncio.create_task(_until_it_stops(process))
    error: BlindfitError | None = None
    try:
        await session.run()
    except BlindfitError as raised:
        error = raised
    ended = time.time()
    with contextlib.suppress(TimeoutError):  # the caller sees if it did not obey
        await asyncio.wait_for(stopped, HANGS_S)
    return error, ended, time.time() if stopped.cancelled() else stopped.result()


async def _until_it_stops(process: Forked) -> float:
    while process.poll() is None:
        await asyncio.sleep(0.02)
    return time.time()


@dataclass(frozen=True)
class Lost:
    """End of a job whose victim obeyed its order.

    Attributes:
        error: the coordinator's error; None if the job was done nevertheless.
        took_s: seconds from the signal to the coordinator's answer.
        stopped_s: seconds from the signal to the end of the victim's process.
    """

    victim: str
    session: Patient
    error: BlindfitError | None
    exit_code: int
    took_s: float
    stopped_s: float


@contextlib.contextmanager
def running(world: World, small: tuple[str, ...] = SMALL) -> Iterator[Cluster]:
    """Start the parties of a world that is small enough for many trainings."""
    cluster = Cluster(world.at_addresses().root, roles=world.roles, small=small)
    try:
        cluster.start_watched(*ROLES)
        yield cluster
    finally:
        cluster.stop()
