"""Tables of two organisations about the same people, for each system, and the options of `blindfit init` for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.world.files import write_csv

ROWS = 1500
#: By system: the words of the command, and the party of each file.
WORDS = {
    "taylor": ("my bank.csv", "shop.csv", "--label", "churned"),
    "falcon": ("my bank.csv", "shop.csv", "--label", "churned"),
    "walr": ("shop.csv", "clinic.csv", "--label", "visited"),
    "label-dp": ("shop.csv", "clinic.csv", "--label", "visits", "--label-range", "0:8"),
    "dp-lr": ("my bank.csv", "--label", "churned", "--bounds", "*:-4:4"),
}
FILES = {"my-bank": "my bank.csv", "shop": "shop.csv", "clinic": "clinic.csv"}
PARTIES = {
    "taylor": ("my-bank", "shop", "notary"),
    "falcon": ("my-bank", "shop", "notary"),
    "walr": ("shop", "clinic"),
    "label-dp": ("shop", "clinic"),
    "dp-lr": ("my-bank",),
}


def write_tables(folder: Path, rows: int = ROWS) -> None:
    draw = np.random.default_rng(7)
    ids = [f"c{i}" for i in range(rows)]
    x, z = draw.normal(size=(4, rows)).round(3), draw.normal(size=(4, rows)).round(3)
    churned = (x[0] + z[0] + draw.logistic(size=rows) > 0).astype(int)
    visits = np.clip(np.round(2 + z[1] + draw.normal(size=rows)), 0, 8).astype(int)
    write_csv(folder / "my bank.csv", {"id": ids, **{f"x{i}": x[i] for i in range(4)}, "churned": churned})
    write_csv(folder / "shop.csv", {"id": ids, **{f"z{i}": z[i] for i in range(4)}})
    write_csv(folder / "clinic.csv", {"id": ids, "visited": (visits > 2).astype(int), "visits": visits})
