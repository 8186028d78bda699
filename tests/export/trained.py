"""WALR trainings between real nodes of this process, and what their active party keeps for auditors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.world import World

ROWS, COLUMNS = 300, 3
POLICY = {"systems": ["walr"], "max_epsilon": 2.0}


def shop_and_meter(root: Path, *, flipped: int | None = None, person: bool = False) -> World:
    """Make a shop with features and a meter with labels.

    Args:
        flipped: the row whose label is the other one.
        person: four rows belong to each person, and two of them count.
    """
    root.mkdir(parents=True, exist_ok=True)
    drawn = np.random.default_rng(5)
    features = drawn.normal(size=(ROWS, COLUMNS)).round(6)
    labels = (features[:, 0] + drawn.normal(size=ROWS) > 0).astype(int)
    if flipped is not None:
        labels[flipped] = 1 - labels[flipped]
    ids = [f"r{i}" for i in range(ROWS)]
    columns = {"id": ids, **dict(zip(("zeta", "b", "alpha"), features.T, strict=True))}
    labelled = {"id": ids, "label": labels, **({"person": [f"p{i // 4}" for i in range(ROWS)]} if person else {})}
    about = {"person": "person", "max_rows_per_person": 2} if person else {}
    budget = {"people": {"epsilon": 3.0, "delta": 1e-5}}
    world = World(root).active("shop", columns, file="features.csv", policy=POLICY)
    policy = {**POLICY, "min_rows": 100}
    world.server("meter", labelled, dataset="labels", file="labels.csv", about=about, populations=budget, policy=policy)
    return world.walr(epsilon=1.0, split={"test_fraction": 0.2})


def train(world: World, *overrides: str) -> Path:
    """Run the job; return the active party's folder of the session."""
    return world.path("state", "shop", "models", world.run(*overrides).id)
