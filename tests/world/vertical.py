"""Vertical worlds: a bank with labels, two shops with columns of the same people, and a key node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tests.world.files import write_csv
from tests.world.world import World

SHOPS = ("shop-a", "shop-b")
ROLES = {"bank": "active", **dict.fromkeys(SHOPS, "passive"), "notary": "key-node"}
DATA_PARTIES = [name for name, role in ROLES.items() if role != "key-node"]
ROWS, COLUMNS = 240, 3
# A test that repeats a run needs all of them.
UNSAFE = ["no-jitter", "no-gradient-noise", "leverage", "label-bits", "class-weights"]
POLICY: dict[str, Any] = {"accept_seed": True, "systems": ["taylor", "predict"], "max_epsilon": 3.0}


def bank_and_shops(root: Path, *, rows: int = ROWS, epochs: int = 4, shops: Sequence[str] = SHOPS) -> World:
    """Make the world of the Taylor loss: job.toml trains, linkage.toml trains with shop-a only, predict.toml scores."""
    world = vertical(root, policy={**POLICY, "unsafe": UNSAFE}, more={"taylor.min_linked": 30}, shops=shops)
    write_rows(world, rows, ["bank", *shops])
    trained = {"align": {"min_common": 50}, "taylor": {"epochs": epochs, "batch_rows": 64}}
    world.job("taylor", name="vertical", seed=5, **trained)
    linked = {"method": "linkage", "fields": ["name"], "threshold": 1.0, "min_common": 50}
    two = ["bank", "shop-a", "notary"]  # linkage is between two
    return world.job("taylor", file="linkage.toml", parties=two, align=linked, taylor={"epochs": 2, "batch_rows": 64})


def bank_and_shops_in_shares(
    root: Path, *, rows: int = 300, epochs: int = 3, falcon: Mapping[str, Any] | None = None, **tables: Any
) -> World:
    """Make the world of a training in shares.

    Args:
        falcon: further options of the training.
        tables: further tables of the job.
    """
    policy = {"accept_seed": True, "systems": ["falcon", "predict"], "unsafe": ["weight-bits"]}
    world = vertical(root, policy=policy, more={})
    write_rows(world, rows)
    trained = {"epochs": epochs, **(falcon or {})}
    return world.job("falcon", name="shared", seed=5, align={"min_common": 50}, falcon=trained, **tables)


def vertical(root: Path, *, policy: dict[str, Any], more: dict[str, Any], shops: Sequence[str] = SHOPS) -> World:
    """Make the parties without tables, and predict.toml.

    Args:
        more: additions to the data parties' policy.
    """
    world, of_data = World(root), {"policy": policy | more, "compute": {"backend": "serial"}}
    names = {"quasi_identifiers": {"name": "name"}}
    label = {"label": "bought", "population": "people", "row_is": "a client"}
    label |= {"models_per_row": "unlimited"}  # each has three columns
    world.active("bank", about=label | names, populations={"people": {"epsilon": 3.0, "delta": 1e-5}}, **of_data)
    for name in shops:
        world.passive(name, about={"models_per_row": "unlimited"} | names, **of_data)  # they have three columns
    world.key_node("notary", policy=policy)
    return world.job("predict", file="predict.toml", align={"min_common": 50})


def write_rows(world: World, rows: int, parties: Sequence[str] = DATA_PARTIES) -> None:
    """Write the tables of the data parties, each in an order of its own."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(rows, len(parties) * COLUMNS))
    labels = (X[:, 0] + X[:, COLUMNS] - X[:, (len(parties) - 1) * COLUMNS] + draw.logistic(size=rows) > 0).astype(
        np.int64
    )
    ids = np.array([f"p{number}" for number in range(rows)])
    for number, name in enumerate(parties):
        order = draw.permutation(rows)
        columns = {f"x{j}": X[order, number * COLUMNS + j] for j in range(COLUMNS)}
        label = {"bought": labels[order]} if name == "bank" else {}
        write_csv(world.root / f"{name}.csv", {"id": ids[order], "name": ids[order], **label, **columns})


def with_numbers(world: World, labels: np.ndarray, label_range: tuple[float, float] | None = None) -> None:
    """Make the bank's labels numbers, in the order of its file."""
    path = world.root / "bank.csv"
    table = pyarrow.csv.read_csv(path)
    place = table.column_names.index("bought")
    pyarrow.csv.write_csv(table.set_column(place, "bought", pa.array(labels)), path)
    kind = 'label_kind = "number"\n' + (f"label_range = {list(label_range)}\n" if label_range else "")
    world.edit("bank.toml", 'label = "bought"\n', f'label = "bought"\n{kind}')


def weights(world: World, session: str) -> dict[str, np.ndarray]:
    """Return the weights of each data party that has kept its part, the intercept last."""
    found = {}
    for name in DATA_PARTIES:
        if world.path("state", name, "models", session, "model.json").exists():
            part = world.written(name, session)
            constant = [] if part.get("intercept") is None else [part["intercept"]]
            found[name] = np.array([*part["weights"].values(), *constant])
    return found


def label_bits(world: World, event: str = "") -> list[float]:
    """Return the bits of each entry about labels in the bank's account, of one event or of all."""
    with world.store("bank") as store:
        found = store.reader().disclosures(subject="labels")
    return sorted(entry.bits for entry in found if event in ("", entry.event))
