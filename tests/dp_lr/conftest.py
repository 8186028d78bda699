"""A dp-lr project of one party: on disk, and as sessions of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.dp_lr.trainer import Trainer
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.database import Store
from tests.published import published
from tests.unconnected import unconnected
from tests.world import World
from tests.world.files import write_csv

N_ROWS, N_PUBLIC = 600, 80
NAMES = ("age", "dose", "pulse")
WEIGHTS = np.array([1.5, -2.0, 0.5])


def rows_of(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    scaled = generator.normal(size=(n_rows, 3))
    labels = (scaled @ WEIGHTS + generator.logistic(size=n_rows) > 0).astype(int)
    return (scaled * [12, 3, 20] + [50, 10, 80]).round(4), labels


PATIENTS = {"row_is": "a visit", "label": "ill", "population": "patients"}
ARCHIVE = {"url": "csv:archive.csv", "public": True, "id": "id", "label": "ill", "features": "rest"}
POLICY = {"systems": ["dp-lr"], "min_rows": 100, "max_epsilon": 5.0}
JOB: dict[str, Any] = {
    "name": "fit",
    "seed": 3,
    "privacy": {"epsilon": 2.0},
    "dp_lr": {"public_dataset": "archive", "iterations": 20},
}


def job(**changes: Any) -> dict[str, Any]:
    parties = {"clinic": {"role": "active", "config": "clinic.toml", "dataset": "patients"}}
    return {"protocol": "dp-lr", **JOB, "parties": parties, **changes}


def write_project(root: Path, *, at_addresses: bool = False) -> World:
    for file, letter, n_rows, seed in (("patients.csv", "p", N_ROWS, 1), ("archive.csv", "a", N_PUBLIC, 2)):
        features, labels = rows_of(n_rows, seed)
        columns = dict(zip(NAMES, features.T, strict=True))
        write_csv(root / file, {"id": [f"{letter}{i}" for i in range(n_rows)], **columns, "ill": labels})
    budget, more = {"patients": {"epsilon": 4.0, "delta": 1e-5}}, {"archive": ARCHIVE}
    tables = {"policy": POLICY, "populations": budget, "datasets": more, "log_level": "debug"}
    world = World(root).active("clinic", dataset="patients", file="patients.csv", about=PATIENTS, **tables)
    if at_addresses:
        world.at_addresses()
    return world.job("dp-lr", **JOB)


def held_out_of(share: float) -> np.ndarray:
    """Return which rows the job holds out, bool (n,), by its seed and their ids."""
    return PublicRandomness.from_seed(3).choose("split", (f"p{i}" for i in range(N_ROWS)), share)


@dataclass
class Clinic(World):
    """A clinic whose role is run here: no process, no wire."""

    kept: Store = field(init=False)
    last: Session = field(init=False)  # the session that ran last

    def session_of(self, session: str, **changes: Any) -> Session:
        content = {name: value for name, value in job(**changes).items() if name not in ("name", "parties")}
        parameters = DPLRJob.model_validate(content)
        me, channel = Member("clinic", "active", "", "patients"), SimpleNamespace(bytes_sent=0, messages_sent=0)
        about: Any = ("coordinator", {"clinic": me}, parameters.to_parameters(), parameters, channel, me)
        return Session(session, *about)

    @property
    def unconnected(self) -> Party:
        return unconnected(self.settings("clinic"), self.root, self.kept)

    def train(self, session: str = "s1", **changes: Any) -> dict[str, ParameterValue]:
        asked = self.last = self.session_of(session, **changes)
        party = self.unconnected
        asked.snapshot = published(party.snapshots, "patients")
        public = party.settings.datasets.get(asked.job.dp_lr.public_dataset or "")
        if public is not None and public.public:
            published(party.snapshots, asked.job.dp_lr.public_dataset or "")
        role = Trainer(party)
        role.check(asked.job, asked.me)
        asked.snapshots = {"clinic": asked.snapshot.id}
        return asyncio.run(role.run(asked))

    def hold_out_all(self) -> dict[str, float]:
        """Leave only rows that a job with the split that is returned holds out."""
        there = held_out_of(0.5)
        write_csv(self.path("patients.csv"), {n: np.array(v)[there] for n, v in self.table("patients").items()})
        return {"test_fraction": 0.5}

    def output(self, session: str, name: str) -> Path:
        return self.path("state/clinic/models", session, name)


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    made = Clinic(write_project(tmp_path).root, roles={"clinic": "active"})
    with made.store("clinic") as made.kept:
        yield made


@pytest.fixture
def project(tmp_path: Path) -> Iterator[World]:
    """Real processes: `run`, or a party that is up at an address of its own."""
    made = write_project(tmp_path, at_addresses=True)
    yield made
    made.stop()
