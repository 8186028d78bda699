"""The active party's rows: read, split, standardised, clipped and rounded to the form that is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms import fixed_point
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.protocols.walr import ConsumerRows
from blindfit.algorithms.protocols.walr.grid import Grid
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.linear.scaling import Standardiser, pieces, row_norms
from blindfit.algorithms.statistics.walr import defaults
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.data.source import Source
from blindfit.parties.training.rows import Report
from blindfit.parties.training.split import RowPart, hold_out, read_split
from blindfit.parties.walr.settings import WalrJob, WalrSettings
from blindfit.parties.work.memory import on_own_pages

Floats = NDArray[np.float64]


class HeldOutElsewhere(Protocol):
    def probabilities(self, model: WALRModel) -> Floats: ...


@dataclass(frozen=True, repr=False)
class PreparedRows:
    """Training rows in the form that is sent and trained on, and held-out rows in the form that was read."""

    train: ConsumerRows
    standardiser: Standardiser
    grid: Grid
    rows_clipped: int
    test_ids: Any  # pyarrow StringArray
    test_features: Floats | HeldOutElsewhere

    def probabilities_held_out(self, model: WALRModel) -> Floats:
        if isinstance(self.test_features, np.ndarray):
            return model.probabilities(self.test_features)
        return self.test_features.probabilities(model)

    def columns_with_weights(self, *, intercept: bool) -> list[int]:
        """Return the places of the trained columns among the columns that are sent."""
        return SentColumns(self.standardiser, intercept).trained_on


@dataclass(frozen=True, repr=False)
class ReadColumns:
    """A party's rows, read and split, before the bound and the grid for clipping and rounding are known."""

    source: Source
    train: RowPart
    test: RowPart
    columns: SentColumns
    norms: Floats  # norms of the training rows, standardised

    def norm_bound(self, settings: WalrSettings) -> float:
        return norm_bound_of(settings, self.norms)

    def round(self, grid: Grid) -> PreparedRows:
        """Clip and round the rows. Call it only once: the rows as they were read are dropped."""
        weights = _quantise(self.train.features, self.columns, grid)
        test = self.test
        return PreparedRows(
            train=ConsumerRows(ArrowIds(self.train.all_ids()), weights),
            standardiser=self.columns.standardiser,
            grid=grid,
            rows_clipped=int((self.norms > grid.real_bound).sum()),
            test_ids=test.all_ids(),
            test_features=np.concatenate(test.features)
            if test.features
            else np.zeros((0, len(self.source.feature_names))),
        )


def read_columns(
    source: Source, job: WalrJob, randomness: PublicRandomness, report: Report, *, intercept: bool
) -> ReadColumns:
    """Read and split rows, compute recipes' columns, and standardise.

    Args:
        intercept: True if a constant follows the columns.
    """
    source = source.with_recipes(lambda ids: ~hold_out(ids, job, randomness))
    train, test = read_split(source, job, randomness, report, hold=_narrow)
    report("prepare rows", 0, sum(map(len, train.features)), "rows")
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # numpy releases the interpreter's lock
        standardiser = Standardiser.fit(
            train.features, source.feature_names, table=source.record, at_least_one=True, each=pool.map
        )
        columns = SentColumns(standardiser, intercept)
        norms = np.concatenate(list(pool.map(columns.norms, train.features)))
    return ReadColumns(source, train, test, columns, norms)


class ArrowIds(Sequence[str]):
    """Ids in the form that was read: Python's texts would take five times the memory.

    Args:
        ids: pyarrow StringArray.
    """

    def __init__(self, ids: Any) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, which: int) -> str: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[str, ...]: ...

    def __getitem__(self, which: int | slice) -> str | tuple[str, ...]:
        found = self._ids[which]
        return tuple(found.to_pylist()) if isinstance(which, slice) else str(found.as_py())

    def __iter__(self) -> Iterator[str]:
        for piece in pieces(len(self)):
            yield from self[piece]


@dataclass(frozen=True)
class SentColumns:
    """Conversion of raw features to the columns that are sent. Each batch is converted twice, so that memory never
    holds two copies of all rows.

    A column that is constant on the training rows is sent as 0: to leave it out would reveal that to others.
    """

    standardiser: Standardiser
    intercept: bool

    def of(self, features: NDArray[Any]) -> Floats:
        columns = np.zeros((len(features), self.width))
        kept = self.standardiser.kept
        all_of_them = kept == tuple(range(len(kept)))
        places = slice(len(kept)) if all_of_them else list(kept)  # a slice is copied without a list of places
        columns[:, places] = self.standardiser.transform(features)
        if self.intercept:
            columns[:, -1] = 1.0
        return columns

    def norms(self, features: NDArray[Any]) -> Floats:
        return np.concatenate([row_norms(self.of(features[piece])) for piece in pieces(len(features))])

    @property
    def width(self) -> int:
        return len(self.standardiser.columns) + self.intercept

    @property
    def trained_on(self) -> list[int]:
        """Places of the columns for which the model has weights."""
        return [*self.standardiser.kept, *([self.width - 1] if self.intercept else [])]


def _narrow(features: Floats) -> Floats | NDArray[np.float32]:
    """Return the features in half the memory, if no digit is lost."""
    with np.errstate(over="ignore"):
        narrow = on_own_pages(features, np.float32)
    return narrow if np.array_equal(narrow, features) else on_own_pages(features, np.float64)


def norm_bound_of(settings: WalrSettings, norms: Floats) -> float:
    """Return the bound of a row's norm. Rows that are all zero have no typical norm, and must not end a job."""
    if settings.norm_bound != "auto":
        return settings.norm_bound
    if not np.quantile(norms, settings.norm_quantile):
        return 1.0
    return defaults.default_norm_bound(norms, settings.norm_quantile)


def _quantise(blocks: list[NDArray[Any]], columns: SentColumns, grid: Grid) -> IntegerRows:
    """Round batches. Each raw batch is dropped as soon as its integers are made."""
    rows = np.empty((sum(map(len, blocks)), columns.width), fixed_point.integer_type(grid.norm_bound))
    starts = np.cumsum([0, *map(len, blocks)])

    def quantise(i: int) -> None:
        made = rows[starts[i] : starts[i + 1]]
        for piece in pieces(len(made)):
            sent = columns.of(blocks[i][piece])
            made[piece] = fixed_point.quantise_rows(sent, grid.norm_bound, grid.frac_bits)
        blocks[i] = np.empty((0, columns.width))  # a slice of the batch would keep all of it

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(quantise, range(len(blocks))))
    return rows
