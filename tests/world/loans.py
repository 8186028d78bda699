"""A world for the pre-flight: a bank with labels, a post and a shop with columns of its clients, and a key node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from blindfit.coordinator.taylor import cost as taylor_cost
from blindfit.coordinator.vertical import cost_of_shares as falcon_cost
from tests.world.world import World

DATA_PARTIES = ("bank", "post", "shop")


def loans(
    root: Path, protocol: str, rows: int = 400, columns: Sequence[int] = (3, 4, 2), *, only_in_shop: int = 0
) -> World:
    """Make the parties and a job that trains.

    Args:
        columns: number of features of each data party.
        only_in_shop: number of rows that only the shop has.
    """
    world, draw = World(root), np.random.default_rng(5)
    policy = {"systems": [protocol]}
    for name, count in zip(DATA_PARTIES, columns, strict=True):
        own = rows + only_in_shop * (name == "shop")
        table = {"id": [f"u{i}" for i in draw.permutation(own)]}
        if name == "bank":
            table["paid"] = (draw.random(own) < 0.4).astype(int).tolist()
        table |= {f"{name}{j}": draw.normal(size=own).round(4).tolist() for j in range(count)}
        if name != "bank":
            about = {"models_per_row": "unlimited"}  # some have few columns
            world.passive(name, table, dataset="loans", about=about, policy=policy)
        elif protocol == "taylor":
            label, budget = {"label": "paid", "population": "customers"}, {"customers": {"epsilon": 2.0, "delta": 1e-5}}
            world.active(name, table, dataset="loans", about=label, policy=policy, populations=budget)
        else:
            world.active(name, table, dataset="loans", about={"label": "paid"}, policy=policy)
    world.key_node("notary", policy=policy)
    return world.job(protocol, **({"falcon": {"validation_fraction": 0.1}} if protocol == "falcon" else {}))


@pytest.fixture
def speed_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement takes half a second."""
    monkeypatch.setattr(taylor_cost, "measure", lambda _bits: taylor_cost.Speed(4e-6, 4e-4, 2.4e-3))
    monkeypatch.setattr(falcon_cost, "measure", lambda _parameters: falcon_cost.Speed(1e-7, 4e-7))


def with_columns(world: World, name: str, count: int) -> None:
    """Give a party this many features in the place of its own."""
    table, draw = world.table(name), np.random.default_rng(7)
    kept = {column: table[column] for column in ("id", "paid") if column in table}
    world.write_table(name, kept | {f"x{j}": draw.normal(size=len(table["id"])) for j in range(count)})
