"""Jobs with a measurement server, or of a clinic without one, for the pre-flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.world import World

POPULATIONS = {"people": {"epsilon": 100.0, "delta": 1e-5}}


def measured(root: Path, protocol: str, rows: int = 300, **job: Any) -> World:
    """Make a shop with rows, and a measurement server with their labels."""
    policy = {"systems": [protocol], "max_epsilon": 50.0, "max_delta": 0.1}
    about: dict[str, Any] = {"label": "y"}
    if protocol == "label-dp":
        about |= {"label_kind": "number", "label_range": [0.0, 10.0]}
    columns = columns_of(rows, numbers=protocol == "label-dp")
    labels = {"id": columns["id"], "y": columns.pop("y")}
    world = World(root).active("shop", columns, policy=policy)
    world.server("meter", labels, about=about, policy=policy, populations=POPULATIONS)
    return world.job(protocol, privacy={"epsilon": 1.0}, **job)


def alone(root: Path, rows: int = 300, **dp_lr: Any) -> World:
    """Make a clinic that trains with differential privacy of whole rows."""
    policy = {"systems": ["dp-lr"], "max_epsilon": 50.0, "max_delta": 0.1, "min_rows": 10}
    about = {"label": "y", "population": "people"}
    world = World(root).active("shop", columns_of(rows), about=about, policy=policy, populations=POPULATIONS)
    return world.job("dp-lr", privacy={"epsilon": 1.0}, dp_lr=dp_lr)


def columns_of(rows: int, *, numbers: bool = False) -> dict[str, Any]:
    draw = np.random.default_rng(4)
    features = {f"x{j}": draw.normal(size=rows).round(3) for j in range(3)}
    labels = draw.uniform(0, 10, rows).round(2) if numbers else (draw.random(rows) < 0.4).astype(int)
    return {"id": [f"p{i}" for i in range(rows)], **features, "y": labels}
