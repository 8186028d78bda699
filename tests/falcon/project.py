"""A vertical project whose job trains in shares: a bank, two shops and a key node."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops_in_shares

Floats = NDArray[np.float64]
# One batch of all rows, and unrounded weights: any order of the rows gives the same weights.
REPEATABLE = (
    'falcon.unsafe=["weight-bits"]',
    "falcon.batch_rows=1000",
    "falcon.validation_fraction=0",
    "split.test_fraction=0",
    'falcon.schedule="constant"',
)

# For tests that do not depend on these: no MACs, one batch of all rows, and no figures of test rows, which take half of
# a job's time. 216 rows are trained on. JUDGED holds out 24 more rows, which may end the job.
JUDGED: dict[str, Any] = {"security": "semi-honest", "batch_rows": 1000}
QUICK = {**JUDGED, "validation_fraction": 0}
NO_TEST_ROWS = {"test_fraction": 0}


def make_quick(root: Path) -> World:
    return bank_and_shops_in_shares(root, rows=216, epochs=2, falcon=QUICK, split=NO_TEST_ROWS)


def make_judged(root: Path) -> World:
    return bank_and_shops_in_shares(root, rows=240, epochs=2, falcon=JUDGED, split=NO_TEST_ROWS)


@dataclass(frozen=True)
class Begun:
    """State with which tests begin, made once: each test has a copy of all files in its own folder.

    Attributes:
        session: session of the training that was done, or lost, here.
    """

    root: Path
    session: str

    @classmethod
    def by(
        cls, root: Path, train: Callable[[World], str], made: Callable[[Path], World] = bank_and_shops_in_shares
    ) -> Begun:
        return cls(root, train(made(root)))

    def copied(self, root: Path) -> World:
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return World(root)


def table(root: Path) -> tuple[Floats, NDArray[np.int64]]:
    """Return all columns, the bank's first, and labels, by id."""
    read = {name: pyarrow.csv.read_csv(root / f"{name}.csv").sort_by("id") for name in DATA_PARTIES}
    columns = [
        read[name][column].to_numpy() for name in DATA_PARTIES for column in read[name].column_names if column[0] == "x"
    ]
    return np.column_stack(columns), read["bank"]["bought"].to_numpy()
