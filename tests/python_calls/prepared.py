"""A folder in which every example of the public Python API runs, and the names that its examples take for granted."""

from __future__ import annotations

import asyncio
import json
import shutil
import warnings
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

import blindfit
from blindfit import (
    DPLogisticModel,
    LabelRegressionModel,
    Model,
    VerticalModelPart,
    WALRModel,
    label_mechanisms,
    paillier,
)
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.paillier.keys import insecure_private_key
from blindfit.algorithms.statistics.label_dp.model import Weights
from blindfit.algorithms.statistics.label_dp.options import check_options
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from tests.ports import held_address
from tests.world.measured import shop_and_meter
from tests.world.vertical import bank_and_shops
from tests.world.world import World

T = TypeVar("T")
N_ROWS = 500


def prepare(root: Path) -> World:
    """Make jobs and tables of a shop and a meter, the shop's certificate, models, and bank/ with a vertical job."""
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
    shutil.copytree(root / "ca" / "shop", root / "shop")
    write_models(root / "models")
    (root / "bank").mkdir()
    bank_and_shops(root / "bank", epochs=1)
    return world


def write_models(folder: Path) -> None:
    """Write a model of each kind, with age and income, and one with the levels of a region."""
    scale = Standardiser(("age", "income"), (0, 1), (45.0, 35.0), (15.0, 15.0))
    regions = TableRecord((TableColumn("region", "category", ("north", "south"), ("west",)),), {})
    of_regions = Standardiser(regions.made, (0, 1), (0.5, 0.25), (0.5, 0.5), regions)
    models: dict[str, Model] = {
        "walr": WALRModel(scale, np.array([1.5, 0.5, 0.0]), True, 3.0),
        "label-dp": LabelRegressionModel(
            scale, "linear", check_options("linear", {}), True, Weights(np.array([2.0, 1.0]), 7.0)
        ),
        "dp-lr": DPLogisticModel(scale, (1.5, 0.5), 0.0),
        "taylor": VerticalModelPart("bank", "active", "logistic", ("bank",), scale, np.array([1.5, 0.5])),
        "regions": DPLogisticModel(of_regions, (1.0, -1.0), 0.0),
    }
    folder.mkdir()
    for name, model in models.items():
        (folder / f"{name}.json").write_text(json.dumps(model.to_dict()))


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
        "population": "people",
        "active_parties": ["shop"],
    }
    world.server(
        "meter",
        {"id": ids, "label": draw.integers(0, 2, N_ROWS)},
        dataset="visits",
        about=about,
        datasets={"prices": prices},
        populations={"people": {"epsilon": 20.0, "delta": 1e-5}},
        policy={"max_epsilon": 4.0, "min_rows": 100},
    )
    world.write_table("prices", {"id": ids, "price": draw.uniform(0, 100, N_ROWS).round(2)})
    address = held_address()
    world.at_addresses()
    world.edit("meter.toml", world.settings("meter").listen, address)
    for dataset in ("visits", "prices"):
        world.publish("meter", dataset)
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
    key = insecure_private_key(512)
    return {
        "blindfit": blindfit,
        "label_mechanisms": label_mechanisms,
        "paillier": paillier,
        "key": key,
        "randomisers": paillier.randomisers_for(key.public_key, maker_trusted=True),
        "np": np,
        "pd": pd,
        "Path": Path,
        "warnings": warnings,
        "wait_for": wait_for,
        "X": X,
        "y": y,
    }
