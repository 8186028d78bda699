from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.coordinator.taylor import cost as taylor_cost
from blindfit.coordinator.taylor.cost import Speed
from blindfit.coordinator.vertical import cost_of_shares as falcon_cost
from tests.preflight.conftest import ROLES as VERTICAL
from tests.preflight.conftest import Project, party


@pytest.fixture(autouse=True)
def _speed_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taylor_cost, "measure", lambda _bits: Speed(4e-6, 4e-4, 2.4e-3))
    monkeypatch.setattr(falcon_cost, "measure", lambda _parameters: falcon_cost.Speed(1e-7, 4e-7))


@pytest.fixture
def taylor(tmp_path: Path) -> Project:
    return vertical(tmp_path, "taylor")


@pytest.fixture
def falcon(tmp_path: Path) -> Project:
    made = vertical(tmp_path, "falcon")
    made.job["falcon"] = {"validation_fraction": 0.1}
    return made


def vertical(directory: Path, protocol: str, rows: int = 400, columns: tuple[int, ...] = (3, 4, 2)) -> Project:
    """A job of three data parties, all of whose rows are common."""
    made = Project(directory)
    made.parties = {name: party(name, role) for name, role in VERTICAL.items()}
    for settings in made.parties.values():
        settings["policy"]["systems"] = [protocol]
    made.job = {
        "protocol": protocol,
        "parties": {
            name: {"role": role, "config": f"{name}.toml", **({} if role == "key-node" else {"dataset": "loans"})}
            for name, role in VERTICAL.items()
        },
    }
    draw = np.random.default_rng(5)
    for name, count in zip(("bank", "post", "shop"), columns, strict=True):
        labels = {"paid": (draw.random(rows) < 0.4).astype(int)} if name == "bank" else {}
        features = {f"{name}{j}": draw.normal(size=rows).round(3) for j in range(count)}
        made.tables[name] = {"id": np.array([f"u{i}" for i in range(rows)]), **labels, **features}
    return made


def with_columns(project: Project, name: str, count: int) -> None:
    """Gives a party so many features."""
    table: dict[str, Any] = {key: column for key, column in project.tables[name].items() if key in ("id", "paid")}
    draw = np.random.default_rng(7)
    project.tables[name] = table | {f"x{j}": draw.normal(size=len(table["id"])).round(3) for j in range(count)}
