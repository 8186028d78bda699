"""Choose options by k-fold cross-validation: the grid, the folds, the steps of each figure, and the best point.

A grid point's figure is over all training rows, each row scored by the training that left its fold out:

    Figure    log_loss, mse    the mean over the folds of a fold's mean loss; a fold counts as 2 at most.
              Accuracy         over all rows together.
              AUC              over all rows together, as if one model had scored them.
    Error     log_loss, mse    s / sqrt(k), with s the standard deviation of the k folds' losses.
              Accuracy, auc    by the formulas of the binomial and of Hanley and McNeil.

Only these numbers leave the computation, and each is rounded to a quarter of its own standard error, or less. So it has
few values, and the logarithm of their number bounds what it reveals, even if parties deviate.

Source: Hastie, Tibshirani, Friedman 2009, 7.10; MATH 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings

SelectionFigure = Literal["log_loss", "accuracy", "auc", "mse"]
FOLDS = (3, 5, 10)
LEAST_FOLD_ROWS = 17  # three folds then have 51, as many as the least number of test rows
LARGEST_LOSS = 2.0  # of a fold: pure chance has a log loss of 0.69, and a mean squared error of 1
FOLD_BITS = 4  # bits by which a fold's loss is finer than the mean, to compute the folds' deviation
MOST_SPREAD = 63  # steps of a squared standard error
SPREAD_STEPS = 64  # such steps make the squared standard error of one row's loss of deviation 1
MOST_MEAN_BITS = 12  # of a mean loss


@dataclass(frozen=True)
class Point:
    """One combination of options.

    Attributes:
        options: names and values in the job's grid, for reports.
    """

    options: tuple[tuple[str, float | int | str], ...]
    optimiser: OptimiserSettings
    epochs: int

    def describe(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.options)


@dataclass(frozen=True)
class Selection:
    """The folds and the grid of a job.

    Attributes:
        by: the figure that decides.
    """

    folds: int
    by: SelectionFigure
    points: tuple[Point, ...]

    @property
    def trainings(self) -> int:
        return self.folds * len(self.points)

    @property
    def models_on_a_row(self) -> int:
        """Number of trainings of a row, with the final one: each point leaves it out once."""
        return len(self.points) * (self.folds - 1) + 1

    @property
    def epochs(self) -> int:
        """Epochs of all trainings of the folds."""
        return self.folds * sum(point.epochs for point in self.points)

    def rows_of_folds(self, n_rows: int) -> tuple[int, ...]:
        """Return the number of rows of each fold, for so many training rows."""
        each, more = divmod(n_rows, self.folds)
        return (each + 1,) * more + (each,) * (self.folds - more)

    def check(self, n_rows: int) -> None:
        """Check that each fold has enough rows.

        Raises:
            RangeError: a figure would depend on too few rows.
        """
        least = min(self.rows_of_folds(n_rows))
        if least < LEAST_FOLD_ROWS:
            folds = [k for k in FOLDS if k < self.folds and n_rows // k >= LEAST_FOLD_ROWS]
            fewer = f"set select.folds = {folds[-1]}, or " if folds else ""
            raise RangeError(
                f"{least} rows of a fold are fewer than {LEAST_FOLD_ROWS}: their figure would reveal single labels",
                hint=f"{fewer}use at least {self.folds * LEAST_FOLD_ROWS:,} training rows",
            )

    def figure_bits(self, n_rows: int) -> float:
        """Return the most bits of the figures of all points: log2 of the number of their values."""
        return len(self.points) * bits_of_a_point(self.by, n_rows, self.folds)

    def best(self, figures: Sequence[float]) -> int:
        """Return the point with the best figure; the first of equals."""
        sign = -1 if is_loss(self.by) else 1
        return max(range(len(figures)), key=lambda point: (sign * figures[point], -point))


def is_loss(by: SelectionFigure) -> bool:
    """Return whether less is better."""
    return by in ("log_loss", "mse")


# --- rounding of figures ------------------------------------------------------------------------------------------


def count_shift(n_rows: int) -> int:
    """Return the bits of a count of so many rows that are rounded away: a quarter of its standard error, or less."""
    return max(0, math.floor(math.log2(math.sqrt(max(1, n_rows)) / 8)))


def pair_shift(n_rows: int) -> int:
    """Return the bits of AUC and KS, times the pairs of rows, that are rounded away, for the same reason."""
    return max(0, math.floor(math.log2(max(1, n_rows) ** 1.5 / 64)))


@dataclass(frozen=True)
class LossSteps:
    """The rounding of the folds' losses, in integers.

        c_f = sum of fold f's losses / 2^-fold_bits, at most fold_limit
        S = sum_f c_f is opened in steps of 2^mean_shift, and sum_f (k c_f - S)^2 in steps of 2^spread_shift

    Attributes:
        n_rows: rows of all folds, which count as equally large.
    """

    n_rows: int
    folds: int

    @property
    def mean_bits(self) -> int:
        """Bits of a mean loss after the point: a quarter of its standard error, if a row's loss deviates by a half."""
        return min(MOST_MEAN_BITS, 3 + math.floor(math.log2(math.sqrt(self.n_rows))))

    @property
    def fold_bits(self) -> int:
        """Bits of the sum of a fold's losses after the point."""
        return self.mean_bits + FOLD_BITS - math.floor(math.log2(self._fold_rows))

    @property
    def fold_limit(self) -> int:
        return round(math.ldexp(LARGEST_LOSS * self._fold_rows, self.fold_bits))

    @property
    def mean_shift(self) -> int:
        return math.floor(math.log2(math.ldexp(self.n_rows, self.fold_bits - self.mean_bits)))

    @property
    def spread_shift(self) -> int:
        return max(0, math.floor(math.log2(1 / (SPREAD_STEPS * self.n_rows * self._squared_error(1)))))

    @property
    def bits(self) -> float:
        """Bits of one point's two numbers."""
        means = (self.folds * self.fold_limit >> self.mean_shift) + 3  # rounding may pass either end by one
        return math.log2(means) + math.log2(MOST_SPREAD + 2)

    def round_folds(self, means: Sequence[float]) -> tuple[int, int]:
        """Return the two numbers of a point, from each fold's mean loss, as a computation in shares makes them."""
        unit = math.ldexp(self._fold_rows, self.fold_bits)
        each = [min(max(round(mean * unit), 0), self.fold_limit) for mean in means]
        total = sum(each)
        spread = sum((self.folds * one - total) ** 2 for one in each)
        return total >> self.mean_shift, min(spread >> self.spread_shift, MOST_SPREAD)

    def read(self, opened: Sequence[int], spreads: Sequence[int]) -> tuple[PointFigure, ...]:
        """Return the figures of all points, from their two numbers."""
        return tuple(PointFigure(self.mean(m), self.error(s)) for m, s in zip(opened, spreads, strict=True))

    def mean(self, opened: int) -> float:
        return math.ldexp(opened, self.mean_shift - self.fold_bits) / self.n_rows

    def error(self, opened: int) -> float:
        """Return the standard error of the mean."""
        return math.sqrt(max(0, opened) * self._squared_error(2**self.spread_shift))

    @property
    def _fold_rows(self) -> int:
        return max(1, self.n_rows // self.folds)

    def _squared_error(self, spread: float) -> float:
        """Return the squared standard error of the mean; `spread` is sum_f (k c_f - S)^2."""
        k = self.folds
        unit = math.ldexp(1 / self._fold_rows, -self.fold_bits)
        return spread * unit * unit / (k**3 * (k - 1))


def bits_of_a_point(by: SelectionFigure, n_rows: int, folds: int) -> float:
    """Return the bits of one point's opened numbers."""
    if is_loss(by):
        return LossSteps(n_rows, folds).bits
    if by == "accuracy":
        return math.log2((2 * n_rows >> count_shift(n_rows)) + 3)
    return math.log2((n_rows * n_rows // 2 >> pair_shift(n_rows)) + 3)


@dataclass(frozen=True)
class PointFigure:
    """The figure of one grid point.

    Attributes:
        error: standard error of the value.
    """

    value: float
    error: float

    def times(self, factor: float) -> PointFigure:
        return PointFigure(self.value * factor, self.error * factor)


@dataclass(frozen=True, repr=False)
class Selected:
    """The result of a selection.

    Attributes:
        point: the chosen point.
        figures: figures of every point, at the active party.
    """

    point: int
    figures: tuple[PointFigure, ...] | None = None


def accuracy_figure(right: int, n_rows: int) -> PointFigure:
    """Return the accuracy for so many right rows; their number is rounded, and so may be out of range."""
    share = min(max(right / n_rows, 0.0), 1.0)
    return PointFigure(share, math.sqrt(share * (1 - share) / n_rows))


def auc_figure(ordered: float, positives: int, negatives: int) -> PointFigure:
    """Return the AUC for so many rightly ordered pairs of a row with the label and one without.

    Rows of one class have no such pair, and every model is worth the same.

    Source: Hanley, McNeil 1982, for the standard error.
    """
    if not positives * negatives:
        return PointFigure(0.5, 0.0)
    auc = min(max(ordered / (positives * negatives), 0.0), 1.0)
    above, twice, square = auc / (2 - auc), 2 * auc * auc / (1 + auc), auc * auc
    variance = auc - square + (positives - 1) * (above - square) + (negatives - 1) * (twice - square)
    return PointFigure(auc, math.sqrt(max(0.0, variance) / (positives * negatives)))
