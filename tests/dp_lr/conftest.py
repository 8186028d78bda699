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
import tomli_w

from blindfit.algorithms.messages import ParameterValue
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.dp_lr.trainer import Trainer
from blindfit.parties.identity import authority
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party
from tests.ports import held_address
from tests.published import published
from tests.unconnected import unconnected
from tests.world import World

N_ROWS, N_PUBLIC = 600, 80
NAMES = ("age", "dose", "pulse")
WEIGHTS = np.array([1.5, -2.0, 0.5])


def rows_of(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    scaled = generator.normal(size=(n_rows, 3))
    labels = (scaled @ WEIGHTS + generator.logistic(size=n_rows) > 0).astype(int)
    return (scaled * [12, 3, 20] + [50, 10, 80]).round(4), labels


def write_rows(path: Path, n_rows: int, seed: int) -> None:
    features, labels = rows_of(n_rows, seed)
    lines = [
        f"p{i},{','.join(map(str, row))},{label}" for i, (row, label) in enumerate(zip(features, labels, strict=True))
    ]
    path.write_text("\n".join([f"id,{','.join(NAMES)},ill", *lines]) + "\n")


def party(**changes: Any) -> dict[str, Any]:
    rows = {"id": "id", "label": "ill", "features": "rest"}
    return {
        "name": "clinic",
        "role": "active",
        "data_dir": "state",
        "log_level": "debug",
        "identity": {name: f"ca/clinic/{name}.pem" for name in ("certificate", "key", "authority")},
        "peers": {"coordinator": {"role": "coordinator"}},
        "policy": {"accept_seed": True, "systems": ["dp-lr"], "min_rows": 100, "max_epsilon": 5.0},
        "populations": {"patients": {"epsilon": 4.0, "delta": 1e-5}},
        "datasets": {
            "patients": {"url": "csv:patients.csv", "population": "patients", "row_is": "a visit", **rows},
            "archive": {"url": "csv:archive.csv", "public": True, **rows},
        },
        **changes,
    }


def job(**changes: Any) -> dict[str, Any]:
    return {
        "name": "fit",
        "protocol": "dp-lr",
        "seed": 3,
        "privacy": {"epsilon": 2.0},
        "dp_lr": {"public_dataset": "archive", "iterations": 20},
        "parties": {"clinic": {"role": "active", "config": "clinic.toml", "dataset": "patients"}},
        **changes,
    }


@dataclass
class Clinic:
    """Its role, run here: no process, no wire."""

    directory: Path
    store: Store
    last: Session = field(init=False)  # that ran

    @property
    def settings(self) -> PartySettings:
        return load_party(self.directory / "clinic.toml")

    def session(self, session: str = "s1", **changes: Any) -> Session:
        content = {name: value for name, value in job(**changes).items() if name not in ("name", "parties")}
        parameters = DPLRJob.model_validate(content)
        me, channel = Member("clinic", "active", "", "patients"), SimpleNamespace(bytes_sent=0)
        return Session(
            session,
            "coordinator",
            {"clinic": me},
            parameters.to_parameters(),
            parameters,
            channel,  # type: ignore[arg-type]
            me,
        )

    def publish(self, dataset: str = "patients") -> None:
        self.party.snapshots.publish(dataset)

    @property
    def party(self) -> Party:
        return unconnected(self.settings, self.directory, self.store)

    def run(self, session: str = "s1", **changes: Any) -> dict[str, ParameterValue]:
        asked = self.last = self.session(session, **changes)
        party = self.party
        asked.snapshot = published(party.snapshots, "patients")
        if (public := asked.job.dp_lr.public_dataset) in self.settings.datasets:
            published(party.snapshots, public)
        role = Trainer(party)
        role.check(asked.job, asked.me)
        asked.snapshots = {"clinic": asked.snapshot.id}
        return asyncio.run(role.run(asked))

    def output(self, session: str, name: str) -> Path:
        return self.directory / "state" / "models" / session / name

    def edit(self, **changes: Any) -> None:
        (self.directory / "clinic.toml").write_text(tomli_w.dumps(party(**changes)))


def write_project(directory: Path) -> None:
    write_rows(directory / "patients.csv", N_ROWS, seed=1)
    write_rows(directory / "archive.csv", N_PUBLIC, seed=2)
    (directory / "clinic.toml").write_text(tomli_w.dumps(party()))
    (directory / "job.toml").write_text(tomli_w.dumps(job()))


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    write_project(tmp_path)
    store = Store(tmp_path / "state" / "party.sqlite")
    yield Clinic(tmp_path, store)
    store.close()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[World]:
    """Real processes: `run`, or a party that is up at an address of its own."""
    write_project(tmp_path)
    address = held_address()
    authority.create_authority(tmp_path / "ca", "test-authority")
    for name in ("clinic", "coordinator"):
        authority.issue(tmp_path / "ca", name, ["localhost"])
    (tmp_path / "clinic.toml").write_text(tomli_w.dumps(party(listen=address)))
    parties = {"clinic": {"role": "active", "config": "clinic.toml", "dataset": "patients", "address": address}}
    coordinator = {name: f"ca/coordinator/{name}.pem" for name in ("certificate", "key", "authority")}
    (tmp_path / "job.toml").write_text(tomli_w.dumps(job(parties=parties, coordinator=coordinator)))
    project = World(tmp_path)
    yield project
    project.stop()
