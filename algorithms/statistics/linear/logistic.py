"""The WALR objective: logistic regression in which the labels appear only through one aggregate.

    L(w) = 1/N sum_i softplus(x_i . w) - w . mu + l2/2 |w - w_0|^2,        mu = X^T y / N, or a noisy release of it
    gradient = X^T sigmoid(X w) / N - mu + l2 (w - w_0)
    Hessian  = X^T diag(p (1 - p)) X / N + l2,                       p = sigmoid(X w)

Everything is summed over blocks of rows that fit in the cache, so a large integer matrix is never copied to floats as
a whole. Blocks are float64: on two cores a pass over 1,000,000 x 51 integers takes about 0.05 s that way, and half of
it is reading the integers, so float32 would save little and cost the last digits of the gradient.

Source: specs/walr.md. Departures: l2 and the unpenalised intercept, without which a noisy mu often has no optimum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.linear.named_columns import check_finite

Floats = NDArray[np.float64]
Sums = tuple[Any, ...]  # numbers and arrays; each is added to its counterpart

BLOCK_ENTRIES = 1 << 18  # 2 MiB of float64: a block and its weighted copy stay in a core's cache


def sigmoid(scores: Floats) -> Floats:
    """Return 1 / (1 + e^-z), without overflow at either end."""
    decay = np.exp(-np.abs(scores))
    probabilities: Floats = np.where(scores >= 0, 1.0, decay) / (1 + decay)
    return probabilities


def softplus(scores: Floats) -> Floats:
    """Return log(1 + e^z), without overflow, and exact to the last digits for z far below zero."""
    values: Floats = np.maximum(scores, 0) + np.log1p(np.exp(-np.abs(scores)))
    return values


# --- rows ---------------------------------------------------------------------------------------


@runtime_checkable
class Rows(Protocol):
    """A feature matrix that is read block by block."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def blocks(self) -> Iterator[Floats]:
        """Yield all rows in order; a block may be overwritten when the next one is requested."""
        ...

    def take(self, which: slice | NDArray[np.intp]) -> Floats:
        """Return a copy of some rows."""
        ...


class RowsElsewhere(ABC):
    """Rows in parts that other processes can read: sums over rows are computed there, part by part."""

    @abstractmethod
    def sum_rows(self, function: Callable[..., Sums], *arguments: Any) -> Sums:
        """Add up function(part, *arguments) over the parts, in their order."""


def sum_rows(rows: Rows, function: Callable[..., Sums], *arguments: Any) -> Sums:
    """Return function(rows, *arguments), which gives sums over the rows, computed where the rows are.

    Args:
        function: function of a module, so that it can be sent to the rows' process.
    """
    if isinstance(rows, RowsElsewhere):
        return rows.sum_rows(function, *arguments)
    return function(rows, *arguments)


class QuantisedRows:
    """Rows in fixed point: the real row is values * 2^-frac_bits."""

    def __init__(self, values: NDArray[np.int16 | np.int32], frac_bits: int) -> None:
        """
        Args:
            values: shape (n_rows, n_features), int16 or int32; kept, not copied.
            frac_bits: 0 to 31.
        """
        if values.dtype not in (np.int16, np.int32):
            raise DataError(f"quantised rows must be int16 or int32, not {values.dtype}")
        if not 0 <= frac_bits <= 31:
            raise ConfigError(f"frac_bits must lie between 0 and 31, not {frac_bits}")
        _check_shape(values)
        self._values, self._unit = values, 2.0**-frac_bits
        self.frac_bits = frac_bits
        self.n_rows, self.n_features = values.shape

    def blocks(self) -> Iterator[Floats]:
        size = _block_rows(self.n_features)
        buffer = np.empty((min(size, self.n_rows), self.n_features))
        for start in range(0, self.n_rows, size):
            values = self._values[start : start + size]
            yield np.multiply(values, self._unit, out=buffer[: len(values)])

    def take(self, which: slice | NDArray[np.intp]) -> Floats:
        return np.multiply(self._values[which], self._unit, dtype=np.float64)

    def subset(self, which: NDArray[np.intp]) -> QuantisedRows:
        """Copy some of the rows."""
        return QuantisedRows(self._values[which], self.frac_bits)


class RealRows:
    """Rows of numbers already in memory; float64 is read in place, anything else is converted block by block."""

    def __init__(self, values: NDArray[Any]) -> None:
        if values.dtype.kind not in "fiub":
            raise DataError(f"rows must hold numbers, not {values.dtype}")
        _check_shape(values)
        self._values = values
        self.n_rows, self.n_features = values.shape
        for number, block in enumerate(self.blocks()):
            check_finite(block, number * _block_rows(self.n_features))

    def blocks(self) -> Iterator[Floats]:
        size = _block_rows(self.n_features)
        for start in range(0, self.n_rows, size):
            yield self._values[start : start + size].astype(np.float64, copy=False)

    def take(self, which: slice | NDArray[np.intp]) -> Floats:
        return self._values[which].astype(np.float64)


def as_rows(rows: Rows | ArrayLike) -> Rows:
    """Return rows that give blocks as they are; check and wrap a matrix of numbers."""
    return rows if isinstance(rows, Rows) else RealRows(np.asarray(rows))


def _block_rows(n_features: int) -> int:
    return max(256, BLOCK_ENTRIES // n_features)


def _check_shape(values: NDArray[Any]) -> None:
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"rows must be a matrix with at least one row and one column, not of shape {values.shape}")


# --- results of one pass over the rows ------------------------------------------------------------


def scores(rows: Rows, weights: Floats) -> Floats:
    """Return x . w for every row."""
    return np.concatenate([block @ weights for block in rows.blocks()])


def weighted_aggregate(rows: Rows, row_weights: ArrayLike) -> Floats:
    """Return X^T a / N: mu for labels a; for probabilities, the aggregate that the model predicts."""
    per_row = np.asarray(row_weights, dtype=np.float64)
    if per_row.shape != (rows.n_rows,):
        raise DataError(f"{rows.n_rows} rows need as many weights, not shape {per_row.shape}")
    total, start = np.zeros(rows.n_features), 0
    for block in rows.blocks():
        total += per_row[start : start + len(block)] @ block
        start += len(block)
    return total / rows.n_rows


def column_sums(rows: Rows) -> Sums:
    total = np.zeros(rows.n_features)
    for block in rows.blocks():
        total += np.ones(len(block)) @ block
    return (total,)


def column_means(rows: Rows) -> Floats:
    (total,) = sum_rows(rows, column_sums)
    means: Floats = total / rows.n_rows
    return means


def signed_sums(rows: Rows) -> Sums:
    """Sum the negative and the positive numbers of each column; a sum without numbers is exactly 0."""
    total, size = np.zeros(rows.n_features), np.zeros(rows.n_features)
    for block in rows.blocks():
        ones = np.ones(len(block))
        total += ones @ block
        size += ones @ np.abs(block)
    return (total - size) / 2, (total + size) / 2


def loss_and_gradient(rows: Rows, weights: Floats) -> Sums:
    """Return sum softplus(x . w) and X^T sigmoid(X w)."""
    loss, gradient = 0.0, np.zeros_like(weights)
    # Scores that overflow give a value that is not finite; the solver reports it in one place.
    with np.errstate(over="ignore", invalid="ignore"):
        for block in rows.blocks():
            block_scores = block @ weights
            loss += float(softplus(block_scores).sum())
            gradient += sigmoid(block_scores) @ block
    return loss, gradient


def weighted_squares(rows: Rows, weights: Floats) -> Sums:
    """Return X^T diag(p (1 - p)) X."""
    squares = np.zeros((len(weights), len(weights)))
    scaled = np.empty((0, len(weights)))
    for block in rows.blocks():
        probabilities = sigmoid(block @ weights)
        if len(scaled) != len(block):
            scaled = np.empty_like(block)
        np.multiply(block, np.sqrt(probabilities * (1 - probabilities))[:, None], out=scaled)
        squares += scaled.T @ scaled
    return (squares,)


@dataclass(frozen=True)
class WalrObjective:
    """L(w) for given rows and mu; see the formulas at the top of this file.

    Args:
        mu: shape (n_features,), the weighted aggregate divided by the number of rows.
        l2: strength of the penalty, at least 0, in units of x squared.
        unpenalised: column that l2 does not touch (the constant feature), or None.
        anchor: w_0, the weights towards which l2 shrinks; None is zero.
    """

    rows: Rows
    mu: Floats
    l2: float
    unpenalised: int | None
    anchor: Floats | None = None

    def __post_init__(self) -> None:
        n_features = self.rows.n_features
        if self.mu.shape != (n_features,):
            raise DataError(f"mu must have one entry for each of {n_features} columns, not shape {self.mu.shape}")
        if not np.isfinite(self.mu).all():
            raise DataError(f"mu: entry {int(np.flatnonzero(~np.isfinite(self.mu))[0])} is not a finite number")
        if not 0 <= self.l2 < np.inf:
            raise ConfigError(f"l2 must be a finite number of at least 0, not {self.l2}")
        if self.unpenalised is not None and not -n_features <= self.unpenalised < n_features:
            raise ConfigError(f"unpenalised: there is no column {self.unpenalised} among {n_features}")
        if self.anchor is not None and (self.anchor.shape != (n_features,) or not np.isfinite(self.anchor).all()):
            raise ConfigError(f"anchor must hold {n_features} finite weights")

    @property
    def penalty(self) -> Floats:
        """The l2 of each column."""
        penalty = np.full(self.rows.n_features, self.l2)
        if self.unpenalised is not None:
            penalty[self.unpenalised] = 0.0
        return penalty

    def from_anchor(self, weights: Floats) -> Floats:
        return weights if self.anchor is None else weights - self.anchor

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        loss, gradient = sum_rows(self.rows, loss_and_gradient, weights)
        with np.errstate(over="ignore", invalid="ignore"):
            shift = self.from_anchor(weights)
            penalty_gradient = self.penalty * shift
            value = loss / self.rows.n_rows - weights @ self.mu + shift @ penalty_gradient / 2
            return float(value), gradient / self.rows.n_rows - self.mu + penalty_gradient

    def hessian(self, weights: Floats) -> NDArray[np.float64]:
        hessian: Floats
        (hessian,) = sum_rows(self.rows, weighted_squares, weights)
        hessian /= self.rows.n_rows
        hessian[np.diag_indices_from(hessian)] += self.penalty
        return hessian

    def on_sample(self, max_rows: int) -> WalrObjective:
        """Return the same objective on evenly spaced rows, at most `max_rows` of them; mu stays the same."""
        stride = -(-self.rows.n_rows // max_rows)
        if stride == 1:
            return self
        sample = RealRows(self.rows.take(slice(None, None, stride)))
        return WalrObjective(sample, self.mu, self.l2, self.unpenalised, self.anchor)
