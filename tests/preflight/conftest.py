"""A vertical job of three data parties on disk; the pre-flight starts no process and opens no connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.jobs.check import Finding, check
from blindfit.coordinator.taylor import cost as taylor_cost
from blindfit.coordinator.taylor.cost import Speed

ROLES = {"bank": "active", "post": "passive", "shop": "passive", "notary": "key-node"}
N_ROWS = 600


@dataclass
class Project:
    """Files in a folder; `check` writes them first."""

    directory: Path
    job: dict[str, Any] = field(default_factory=dict)
    parties: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    def check(self, *overrides: str) -> list[Finding]:
        (self.directory / "job.toml").write_text(tomli_w.dumps(self.job))
        for name, settings in self.parties.items():
            (self.directory / f"{name}.toml").write_text(tomli_w.dumps(settings))
        for name, table in self.tables.items():
            write_csv(self.directory / f"{name}.csv", table)
        return check(load_job(self.directory / "job.toml", overrides), self.directory)

    def let_pass(self, *flags: str) -> None:
        for settings in self.parties.values():
            settings["policy"]["unsafe"] = list(flags)


def write_csv(path: Path, table: Mapping[str, np.ndarray]) -> None:
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    path.write_text(",".join(table) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


def party(name: str, role: str) -> dict[str, Any]:
    files = {"certificate": "none", "key": "none", "authority": "none"}
    others = {other: {"role": other_role} for other, other_role in ROLES.items() if other != name}
    settings: dict[str, Any] = {
        "name": name,
        "role": role,
        "data_dir": f"state/{name}",
        "identity": files,
        "peers": {"coordinator": {"role": "coordinator"}, **others},
        "policy": {"systems": ["taylor"]},
    }
    if role != "key-node":
        settings["datasets"] = {"loans": {"url": f"csv:{name}.csv", "id": "id", "features": "rest"}}
    if role == "active":
        settings["datasets"]["loans"] |= {"label": "paid", "population": "customers"}
        settings["populations"] = {"customers": {"epsilon": 2.0, "delta": 1e-5}}
    return settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(taylor_cost, "measure", lambda _bits: Speed(4e-6, 4e-4, 2.4e-3))  # half a second each time
    made = Project(tmp_path)
    made.parties = {name: party(name, role) for name, role in ROLES.items()}
    made.job = {
        "protocol": "taylor",
        "parties": {
            name: {"role": role, "config": f"{name}.toml", **({} if role == "key-node" else {"dataset": "loans"})}
            for name, role in ROLES.items()
        },
    }
    generator = np.random.default_rng(5)
    ids = np.arange(N_ROWS)
    for name, columns in (("bank", 3), ("post", 4), ("shop", 2)):
        order = generator.permutation(N_ROWS + 50 * (name == "shop"))
        features = {f"{name}{j}": generator.normal(size=len(order)).round(4) for j in range(columns)}
        labels = {"paid": (generator.random(len(order)) < 0.4).astype(int)} if name == "bank" else {}
        made.tables[name] = {
            "id": np.array([f"u{i}" for i in np.concatenate([ids, N_ROWS + ids])[order]]),
            **labels,
            **features,
        }
    return made
