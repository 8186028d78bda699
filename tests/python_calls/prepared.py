"""A folder in which every example of the public Python API runs, and the names that its examples take for granted."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

import blindfit
from tests.ports import held_address
from tests.world.measured import shop_and_meter
from tests.world.vertical import bank_and_shops
from tests.world.world import World

T = TypeVar("T")
N_ROWS = 500


def prepare(root: Path) -> World:
    """Make job.toml and evaluate.toml of a shop and a meter, and bank/ with a vertical training and new rows."""
    world = shop_and_meter(root)
    world.set("policy.systems", ["walr", "evaluate"])
    world.set("populations.people.epsilon", 20.0, "meter")
    world.job(
        "evaluate",
        file="evaluate.toml",
        privacy={"epsilon": 1.0, "delta": 1e-5},
        evaluate={"session": "named-by-the-call", "rows": "all"},
    )
    (root / "features.csv").write_bytes((root / "rows.csv").read_bytes())
    (root / "visits.csv").write_bytes((root / "labels.csv").read_bytes())
    rows = pd.read_csv(root / "rows.csv").merge(pd.read_csv(root / "labels.csv"), on="id")
    rows.to_csv(root / "whole.csv", index=False)
    (root / "bank").mkdir()
    bank_and_shops(root / "bank", epochs=1)
    return world


def start_server(root: Path) -> tuple[World, str]:
    """Start a measurement server with labels 0 and 1 in `visits`, and with numbers in `prices`."""
    draw, ids = np.random.default_rng(4), [f"u{number}" for number in range(N_ROWS)]
    world = World(root).active("shop", {"id": ids, "x": range(N_ROWS)})
    about = {"unknown_rows": "refuse", "population": "people"}
    prices = {
        "url": "csv:prices.csv",
        "id": "id",
        "label": "price",
        "label_kind": "number",
        "label_range": [0.0, 100.0],
        "population": "buyers",
        "active_parties": ["shop"],
    }
    world.server(
        "meter",
        {"id": ids, "label": draw.integers(0, 2, N_ROWS)},
        dataset="visits",
        about=about,
        datasets={"prices": prices},
        populations={name: {"epsilon": 20.0, "delta": 1e-5} for name in ("people", "buyers")},
        policy={"max_epsilon": 4.0, "min_rows": 100},
    )
    world.write_table("prices", {"id": ids, "price": draw.uniform(0, 100, N_ROWS).round(2)})
    address = held_address()
    world.at_addresses()
    world.edit("meter.toml", world.settings("meter").listen, address)
    world.start("meter")
    return world, address


def wait_for(call: Coroutine[Any, Any, T]) -> T:
    """Do outside a notebook what `await` does within one."""
    return asyncio.run(call)


def names() -> dict[str, Any]:
    """Return the names that examples take for granted."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(2000, 3))
    y = (X @ [1.0, -1.0, 0.5] + draw.logistic(size=len(X)) > 0).astype(int)
    return {
        "blindfit": blindfit,
        "np": np,
        "pd": pd,
        "Path": Path,
        "warnings": warnings,
        "wait_for": wait_for,
        "X": X,
        "y": y,
    }
