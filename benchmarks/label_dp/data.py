"""The data of benchmarks.label_dp: Communities and Crime, California Housing, and the published settings for each.

The files are those of the repository fau-is/gam_comparison (data/): UCI's with a header, and StatLib's with a header.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.vertical.housing import COLUMNS, Housing
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid
from blindfit.algorithms.randomness import public_generator
from blindfit.algorithms.statistics.linear.scaling import Standardiser

CRIME_FILE = Path("communities") / "communities.data"
CRIME_TARGET = "ViolentCrimesPerPop"
NOT_PREDICTIVE = ("state", "county", "community", "communityname string", "fold")
FILLED = "OtherPerCap"  # it has one gap only
EPSILONS = (0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
TEST_SHARE = 0.2

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    train: tuple[Floats, Floats] = field(repr=False)
    test: tuple[Floats, Floats] = field(repr=False)


@dataclass(frozen=True)
class Dataset:
    """Args:
    grid: the labels' public range, cut so that every label of the file lies on it.
    rounding: unit to which rr-on-bins rounds labels down, as published.
    half_widths: half width for each epsilon, as published.
    epsilon_priors: part of each epsilon for the prior, as published.
    """

    name: str
    features: Floats = field(repr=False)
    labels: Floats = field(repr=False)
    grid: LabelGrid
    rounding: float
    half_widths: dict[float, float]
    epsilon_priors: dict[float, float]

    def split_rows(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows to train on and the rows to test on."""
        order = public_generator(seed, f"label_dp/{self.name}/split").permutation(len(self.labels))
        n_train = len(order) - round(TEST_SHARE * len(order))
        return order[:n_train], order[n_train:]

    def split(self, seed: int) -> Split:
        train, test = self.split_rows(seed)
        return Split((self.features[train], self.labels[train]), (self.features[test], self.labels[test]))

    def standardised(self) -> Dataset:
        columns = Standardiser.fit([self.features]).transform(self.features)
        return replace(self, features=columns)


def crime(data: Path) -> Dataset:
    """Return Communities and Crime without columns that have gaps.

    To leave out rows with gaps, as the paper's text does, would leave 319 rows.
    """
    names, rows = _table(data / CRIME_FILE)
    columns = {
        name: _numbers(cells, fill=name == FILLED)
        for name, cells in zip(names, zip(*rows, strict=True), strict=True)
        if name not in NOT_PREDICTIVE and (name == FILLED or "?" not in cells)
    }
    labels = columns.pop(CRIME_TARGET)
    return Dataset(
        "Crime",
        np.column_stack(list(columns.values())),
        labels,
        LabelGrid(0.0, 1.0, 10_000),
        rounding=0.01,
        half_widths=dict.fromkeys(EPSILONS, 0.4),
        epsilon_priors={epsilon: epsilon / 3 for epsilon in EPSILONS},
    )


def housing(data: Path) -> Dataset:
    """Return the columns as they are in the file, as in the published code: neither centred nor scaled."""
    read = Housing.read(data)
    names = [name for part in COLUMNS.values() for name in part]
    half_widths = (0.7, 0.5, 1.2, 1.0, 2.2, 1.5, 1.5, 1.5, 1.4, 1.2, 0.7, 0.1)
    priors = (0.017, 0.017, 0.017, 0.017, 0.01, 0.008, 0.008, 0.008, 0.007, 0.007, 0.007, 0.007)
    return Dataset(
        "Housing",
        np.column_stack([read.columns[name] for name in names]),
        read.prices,
        LabelGrid(0.15, 5.0, 48_500),
        rounding=0.01,
        half_widths=dict(zip(EPSILONS, half_widths, strict=True)),
        epsilon_priors=dict(zip(EPSILONS, priors, strict=True)),
    )


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    if not path.exists():
        raise DataError(f"{path} does not exist", hint=f"give the folder of {CRIME_FILE} as --data DIR (see --help)")
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return names, rows


def _numbers(cells: tuple[str, ...], *, fill: bool) -> Floats:
    values = np.array([np.nan if cell == "?" else float(cell) for cell in cells])
    return np.where(np.isnan(values), np.nanmean(values), values) if fill else values
