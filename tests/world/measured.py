"""Worlds with a measurement server: a shop has columns, and a meter has the labels of the same people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.world.files import write_csv
from tests.world.world import World

N_ROWS, N_FEATURES = 1500, 4


def shop_and_meter(root: Path) -> World:
    """Make two parties with certificates and addresses, so that they can keep running."""
    world = _two_parties(root).at_addresses()
    write_rows(root)
    return world.walr(epsilon=1.0, name="test", timeouts={"step_s": 60, "reconnect_s": 5})


def files_of_shop_and_meter(root: Path) -> World:
    """Make the files of the parties and of the job, and nothing else."""
    return _two_parties(root).walr(epsilon=1.0)


def _two_parties(root: Path) -> World:
    about = {"made_by": "the advertiser's export"}
    world = World(root).active("shop", file="rows.csv", about=about, policy={"max_epsilon": 5}, log_level="debug")
    budget = {"people": {"epsilon": 2.0, "delta": 1e-5}}
    policy = {"min_rows": 50, "max_epsilon": 2}
    return world.server(
        "meter", dataset="labels", file="labels.csv", policy=policy, populations=budget, log_level="debug"
    )


def write_rows(root: Path, n_rows: int = N_ROWS, seed: int = 0) -> None:
    """Write rows.csv, and labels.csv in another order."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n_rows, N_FEATURES))
    y = generator.random(n_rows) < 1 / (1 + np.exp(-(1.5 * x[:, 0] - x[:, 1])))
    ids = np.array([f"u{i}" for i in range(n_rows)])
    write_csv(root / "rows.csv", {"id": ids, **{f"f{j}": column for j, column in enumerate(x.round(4).T)}})
    order = generator.permutation(n_rows)
    write_csv(root / "labels.csv", {"id": ids[order], "label": y[order].astype(int)})


@pytest.fixture
def project(tmp_path: Path) -> Iterator[World]:
    made = shop_and_meter(tmp_path)
    yield made
    made.stop()
