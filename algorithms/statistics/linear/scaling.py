"""Bringing features to one size: standardising by columns, clipping by rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.named_columns import (
    Features,
    check_finite,
    check_unique,
    in_order,
    real_matrix,
)

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
PIECE_ROWS = 1024  # so short that a core's cache holds intermediate results
SMALL_SQUARE = 1e-200  # of a norm: smaller squares, and squares over its inverse, may lose digits
LARGEST = 1e100  # of a scaled feature or a weight: the product of two, and sums of such, are finite


@dataclass(frozen=True)
class Moments:
    """Count, mean, sum of squared deviations, least and largest value of each column; two such records merge.

    Sums of squares would cancel: a column of timestamps would lose its deviation altogether. The mean of equal numbers
    can differ from them in the last digit, so only the least and the largest value show that a column is constant.

    Source: Chan, Golub and LeVeque 1983.
    """

    n_rows: int
    mean: Floats
    squared_deviations: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def of(cls, batch: ArrayLike, *, first_row: int = 0) -> Moments:
        rows = _as_rows(batch)
        if not len(rows):
            raise DataError("a batch without rows has no moments")
        return merge_moments(cls._of_piece(rows[piece], first_row + piece.start) for piece in pieces(len(rows)))

    @classmethod
    def _of_piece(cls, rows: NDArray[Any], first_row: int) -> Moments:
        matrix = real_matrix(rows)
        check_finite(matrix, first_row)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = matrix.mean(axis=0)
            deviations = matrix - mean
            squared = np.square(deviations).sum(axis=0)
        if not np.isfinite(squared).all():
            column = int(np.argmin(np.isfinite(squared)))
            raise RangeError(
                f"column {column}: the squares of its values overflow", hint="divide it by its largest value"
            )
        return cls(len(matrix), mean, squared, matrix.min(axis=0), matrix.max(axis=0))

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Columns whose values are all equal, or too near for float64 to distinguish their deviation from 0."""
        constant: NDArray[np.bool_] = (self.lowest == self.highest) | (self.squared_deviations == 0)
        return constant

    def merge(self, other: Moments) -> Moments:
        if self.mean.shape != other.mean.shape:
            raise DataError(f"a batch has {len(other.mean)} columns where {len(self.mean)} came before")
        n_rows = self.n_rows + other.n_rows
        shift = other.mean - self.mean
        return Moments(
            n_rows,
            self.mean + shift * (other.n_rows / n_rows),
            self.squared_deviations
            + other.squared_deviations
            + np.square(shift) * (self.n_rows * other.n_rows / n_rows),
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )


@dataclass(frozen=True)
class Standardiser:
    """A map of each kept column to (x - mean) / std.

    Args:
        columns: names of all columns of the input, in order; each comes once.
        kept: indices of the columns of the output; constant columns are dropped.
        mean, std: one entry for each kept column; std is the population's (divided by n), as in scikit-learn.
        table: record of the columns; None: the columns are numbers under the same names.
    """

    columns: tuple[str, ...]
    kept: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    table: TableRecord | None = None

    def __post_init__(self) -> None:
        check_unique(self.columns)
        if self.table is not None and set(self.table.made) != set(self.columns):
            raise DataError("table: its columns do not make those of the model")
        if self.table == TableRecord.of_numbers(self.columns):  # a file leaves it out
            object.__setattr__(self, "table", None)

    @classmethod
    def fit(
        cls,
        batches: Iterable[ArrayLike],
        columns: Iterable[str] | None = None,
        *,
        table: TableRecord | None = None,
        at_least_one: bool = False,
        each: Each = map,
    ) -> Standardiser:
        """Fit to one or many batches of rows, read once.

        Args:
            table: record of the columns.
            at_least_one: if every column is constant, keep the first one all the same, as 0 on these rows: otherwise
                the end of the job would reveal something about the rows.
            each: `map`, or the map of a pool of threads.

        Raises:
            DataError: the batches have no rows, or a value is not finite.
        """
        return cls.of(stream_moments(batches, each), columns, table=table, at_least_one=at_least_one)

    @classmethod
    def of(
        cls,
        moments: Moments,
        columns: Iterable[str] | None = None,
        *,
        table: TableRecord | None = None,
        at_least_one: bool = False,
    ) -> Standardiser:
        """Do as `fit`, from known moments."""
        names = tuple(columns) if columns is not None else tuple(f"x{j}" for j in range(len(moments.mean)))
        if len(names) != len(moments.mean):
            raise DataError(f"{len(names)} column names do not go with {len(moments.mean)} columns")
        constant = moments.constant
        kept = np.flatnonzero(~constant)
        std = np.sqrt(moments.squared_deviations[kept] / moments.n_rows)
        if at_least_one and not len(kept):
            kept, std = np.array([0]), np.array([1.0])
        return cls(names, tuple(kept.tolist()), tuple(moments.mean[kept].tolist()), tuple(std.tolist()), table)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the columns that were constant."""
        return tuple(name for j, name in enumerate(self.columns) if j not in self.kept)

    def require_columns(self) -> Standardiser:
        """Return the standardiser; raise DataError if every column was constant."""
        if not self.kept:
            raise DataError("every column is constant: nothing is left to learn from")
        return self

    @property
    def kept_columns(self) -> tuple[str, ...]:
        return tuple(self.columns[j] for j in self.kept)

    def transform(self, rows: Features) -> Floats:
        """Take a table's columns by their names and convert them as in training; take an array's by their places.

        Raises:
            DataError: a column is missing or comes twice, or a value cannot be converted.
        """
        matrix = in_order(rows, self.columns, self.table)
        kept = matrix if len(self.kept) == matrix.shape[1] else matrix[:, list(self.kept)]
        # Row by row for every storage order of the matrix, on which the last digits of a score must not depend.
        standardised: Floats = np.subtract(kept, np.array(self.mean), order="C")
        standardised /= np.array(self.std)
        return standardised

    def transform_and_clip(self, rows: Features) -> Floats:
        """Transform the rows and clip each number to LARGEST: even a tiny std makes only finite numbers.

        Raises:
            DataError: a column is missing or comes twice, or a value is not a finite number.
        """
        with np.errstate(all="ignore"):
            return clip_numbers(self.transform(rows))

    def raw_weights(self, weights: Sequence[float] | Floats, intercept: float) -> tuple[dict[str, float], float]:
        """Convert weights and intercept for standardised features to weights by name and intercept for raw features."""
        raw = dict.fromkeys(self.columns, 0.0)
        for name, weight, mean, std in zip(self.kept_columns, weights, self.mean, self.std, strict=True):
            raw[name] = float(weight) / std
            intercept -= float(weight) / std * mean
        return raw, intercept

    @property
    def record(self) -> TableRecord:
        """Record of the columns."""
        return self.table or TableRecord.of_numbers(self.columns)

    def means(self) -> dict[str, float]:
        """Return the number for a missing value in each encoded column, for every rule.

        A column that was constant has no weight, so any number serves.
        """
        known = dict(zip(self.kept_columns, self.mean, strict=True)) | dict(self.record.fill)
        return {name: known.get(name, 0.0) for name in self.record.encoded}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON for the model file: names in order, mean and std of each kept column by name, and the record."""
        content: dict[str, Any] = {
            "columns": list(self.columns),
            "mean": dict(zip(self.kept_columns, self.mean, strict=True)),
            "std": dict(zip(self.kept_columns, self.std, strict=True)),
        }
        return content if self.table is None else content | {"table": self.table.to_dict()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> Standardiser:
        """Restore exactly what `to_dict` wrote; raise DataError, which names the field, for anything else."""
        columns, mean, std = stored.get("columns"), stored.get("mean"), stored.get("std")
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise DataError("columns: must be a list of names")
        for field, numbers in (("mean", mean), ("std", std)):
            if not isinstance(numbers, Mapping) or not all(fields.is_number(v) for v in numbers.values()):
                raise DataError(f"{field}: must map column names to finite numbers")
        if not isinstance(mean, Mapping) or not isinstance(std, Mapping) or set(mean) != set(std):
            raise DataError("mean and std must name the same columns")
        if not set(mean) <= set(columns):
            raise DataError("columns: must hold every column of mean and std")
        kept = tuple(j for j, name in enumerate(columns) if name in mean)
        names = [columns[j] for j in kept]
        if not all(std[name] > 0 for name in names):
            raise DataError("std: must be above 0")
        table = TableRecord.from_dict(stored["table"]) if "table" in stored else None
        means, deviations = (tuple(float(numbers[name]) for name in names) for numbers in (mean, std))
        return cls(tuple(columns), kept, means, deviations, table)


def stream_moments(batches: Iterable[ArrayLike], each: Each = map) -> Moments:
    """Return the moments of all batches together; under `map`, memory does not grow with their number."""
    return merge_moments(each(_moments_of_one, _number_batches(batches)))


def merge_moments(of_batches: Iterable[Moments | None]) -> Moments:
    """Merge moments in their order; None stands for a batch without rows.

    Raises:
        DataError: no batch has rows.
    """
    total: Moments | None = None
    for moments in of_batches:
        if moments is not None:
            total = total.merge(moments) if total else moments
    if total is None:
        raise DataError("the table has no rows")
    return total


def _number_batches(batches: Iterable[ArrayLike]) -> Iterator[tuple[int, ArrayLike]]:
    """Yield each batch with the number of rows before it."""
    before = 0
    for batch in batches:
        yield before, batch
        before += len(batch) if isinstance(batch, Sized) else 0


def _moments_of_one(numbered: tuple[int, ArrayLike]) -> Moments | None:
    first_row, rows = numbered[0], _as_rows(numbered[1])
    return Moments.of(rows, first_row=first_row) if len(rows) else None


def pieces(n_rows: int) -> Iterator[slice]:
    return (slice(start, start + PIECE_ROWS) for start in range(0, n_rows, PIECE_ROWS))


def _as_rows(batch: ArrayLike) -> NDArray[Any]:
    """Return rows; a large matrix is not copied here, but copied and checked piece by piece later."""
    return batch if isinstance(batch, np.ndarray) and batch.ndim == 2 else real_matrix(batch)


def clip_numbers(numbers: Floats) -> Floats:
    """Clip each number to [-LARGEST, LARGEST], and put 0 for NaN."""
    cut: Floats = np.clip(numbers, -LARGEST, LARGEST)
    cut[np.isnan(cut)] = 0.0
    return cut


def append_constant(rows: ArrayLike) -> Floats:
    """Return the rows with a last column of ones: the intercept."""
    matrix = real_matrix(rows)
    return np.hstack([matrix, np.ones((len(matrix), 1))])


def row_norms(rows: ArrayLike) -> Floats:
    """Return the Euclidean length of each row."""
    matrix = real_matrix(rows)
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix)
    if ((squares > SMALL_SQUARE) & (squares < 1 / SMALL_SQUARE)).all():
        fast: Floats = np.sqrt(squares)
        return fast
    # Scaled by the largest entry, or the squares of large entries would overflow.
    largest = np.abs(matrix).max(axis=1, initial=0.0)
    safe = np.where(largest > 0, largest, 1.0)
    norms: Floats = safe * np.sqrt(np.square(matrix / safe[:, None]).sum(axis=1)) * (largest > 0)
    return norms


def clip_rows(rows: ArrayLike, norm_bound: float) -> Floats:
    """Shorten every row of norm above the bound to it, with its direction; the constant feature shrinks along.

    The norms of the result are at most the bound up to one rounding; encoding rounds toward zero after it.
    """
    if not 0 < norm_bound < np.inf:
        raise ConfigError(f"norm_bound must be finite and above 0, not {norm_bound}")
    matrix = real_matrix(rows)
    check_finite(matrix)
    norms = row_norms(matrix)
    factors = np.ones_like(norms)
    np.divide(norm_bound, norms, out=factors, where=norms > norm_bound)
    clipped: Floats = matrix * factors[:, None]
    return clipped
