"""A Taylor training on plain numbers: the encrypted one must agree with it bit for bit.

    w = sum_p round(2a X_p theta_p) - b y + n      a batch's residuals, in steps of the grid
    g = X^T (f o w) + noise                        all parties' columns at once, in integers
    theta <- as the optimiser moves it by g / s

This oracle has one table with the columns of all parties, without chain, packing and mask. A party shows in only two
places: it rounds its own 2a z_p, and it has its own optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.optimiser import Optimiser, OptimiserSettings, Patience
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, Rows

Floats = npt.NDArray[np.float64]
NoiseOf = Callable[[str, int, int, int], Sequence[int]]
"""Function of party, epoch, batch and the number of columns; it returns integers in steps of the gradient's grid."""


@dataclass(frozen=True, slots=True, repr=False)
class PlainTable:
    """Everybody's rows in one place.

    Attributes:
        blocks: blocks of the parties, in the chain's order, (rows, k) integers of the grid.
        y: (rows,) as the loss takes it.
        label_terms: (rows,) -b y + n in steps of a residual.
        factors: (rows,) in steps of 2^-factor_bits; None where every row counts once.
        intercept: the party whose last column no penalty pulls, if there is one.
    """

    blocks: Mapping[str, Rows]
    y: Floats
    label_terms: Rows
    factors: Rows | None = None
    intercept: str = ""

    def row_factors(self, rows: Rows) -> Rows:
        return np.ones(len(rows), np.int64) if self.factors is None else self.factors[rows]


@dataclass(frozen=True, slots=True, repr=False)
class Trained:
    """Results: weights of each party, the hold-out loss after each epoch, and the number of epochs."""

    weights: dict[str, Floats]
    losses: list[float]
    epochs: int


def no_noise(_party: str, _epoch: int, _batch: int, columns: int) -> Sequence[int]:
    return [0] * columns


def train(
    table: PlainTable,
    plan: RowPlan,
    grid: Grid,
    settings: OptimiserSettings,
    *,
    epochs: int,
    patience: int = 0,
    tolerance: float = 0.0,
    noise: NoiseOf = no_noise,
    hold_out_loss: bool = True,
    relative_loss: bool = False,
) -> Trained:
    optimisers = {
        name: Optimiser(
            settings,
            np.zeros(block.shape[1]),
            name == table.intercept,
            len(plan.batches),
            grid.reals(block[plan.train]),
        )
        for name, block in table.blocks.items()
    }
    stop = Patience(patience, tolerance, relative=relative_loss)
    for epoch in range(epochs):
        for number, batch in enumerate(plan.batches):
            sums = gradient_sums(table, batch, grid, _weights(optimisers))
            start = 0
            for name, optimiser in optimisers.items():
                width = len(optimiser.weights)
                drawn = noise(name, epoch, number, width)
                gradient = _mean(sums[start : start + width], drawn, len(batch), grid)
                optimiser.step(gradient, epoch, number)
                start += width
        if hold_out_loss and not stop.goes_on(mean_loss(table, plan.validation, grid, _weights(optimisers))):
            return Trained(_weights(optimisers), stop.losses, epoch + 1)
    return Trained(_weights(optimisers), stop.losses, epochs)


def gradient_sums(table: PlainTable, batch: Rows, grid: Grid, weights: Mapping[str, Floats]) -> list[int]:
    """X^T (f o w) over the batch, one exact integer for each column of all parties."""
    own = [grid.score_terms(z) for z in _scores(table, batch, grid, weights)]
    residuals = np.sum(own, axis=0) + table.label_terms[batch]
    X = np.hstack([block[batch] for block in table.blocks.values()])
    kind: Any = np.int64 if grid.gradient_bound(len(batch)) < 2**62 else object
    weighted = table.row_factors(batch).astype(kind) * residuals.astype(kind)
    return [int(value) for value in X.T.astype(kind) @ weighted]


def mean_loss(table: PlainTable, rows: Rows, grid: Grid, weights: Mapping[str, Floats]) -> float:
    """Return the mean over the rows of f (c - b y z + a z^2), z the whole score."""
    z = np.sum(_scores(table, rows, grid, held_back(table, rows, grid, weights)), axis=0)
    factors = np.ldexp(table.row_factors(rows).astype(np.float64), -grid.factor_bits)
    losses = grid.loss.constants(table.y[rows]) - grid.loss.cross * table.y[rows] * z + grid.loss.square * z**2
    return math.fsum(factors * losses) / len(rows)


def loss_error(table: PlainTable, rows: Rows, grid: Grid, weights: Mapping[str, Floats]) -> float:
    """Bound how far the protocol's mean loss can be from `mean_loss`, by the sum of its roundings.

    With u = 2^-(score_bits + 1), half a step of a score, v = 2^-(2 score_bits + 1), t = 2^-(weight_bits + 1),
    e_i the error of a label in 2^-label_bits, Z_i = sum over the parties before of |z_qi|:

        squares      each party rounds its own a z^2 (the first one its whole loss): v
        cross terms  round(2a z_p) times the sum of p rounded scores: u (Z_i + p u + 2a p |z_pi|)
        labels       round(b theta_p) . X_p^T round(y): t |y_i + e_i| sum_j |x_ij| + b e_i |z_pi|

    each times f_i. On either way a float is rounded at most (columns + parties + 32) times more, each by 2^-53 of the
    sum of the terms' magnitudes.
    """
    loss, y, weights = grid.loss, table.y[rows], held_back(table, rows, grid, weights)
    u, v, t = (2.0**-bits for bits in (grid.score_bits + 1, 2 * grid.score_bits + 1, grid.weight_bits + 1))
    e = np.abs(np.ldexp(np.rint(np.ldexp(y, grid.label_bits)), -grid.label_bits) - y)
    errors = np.full(len(rows), v)
    before = np.zeros(len(rows))
    reach = np.zeros(len(rows))  # largest possible score, if no term cancels another
    for place, (name, block) in enumerate(table.blocks.items()):
        x = np.abs(np.ldexp(block[rows].astype(np.float64), -grid.feature_bits))
        z = np.abs(grid.scores(block[rows], weights[name]))
        if place:
            errors += v + u * (before + place * u + 2 * loss.square * place * z)
            errors += t * (np.abs(y) + e) * x.sum(axis=1) + loss.cross * e * z
        before += z
        reach += x @ np.abs(weights[name])
    columns = sum(block.shape[1] for block in table.blocks.values())
    terms = np.abs(loss.constants(y)) + loss.cross * np.abs(y) * reach + loss.square * reach**2
    errors += 2.0**-52 * (columns + len(table.blocks) + 32) * terms
    factors = np.ldexp(table.row_factors(rows).astype(np.float64), -grid.factor_bits)
    return math.fsum(factors * errors) / len(rows)


def held_back(table: PlainTable, rows: Rows, grid: Grid, weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """Shrink the weights as each party does for a loss of these rows."""
    return {name: grid.shrink(block[rows], weights[name]) for name, block in table.blocks.items()}


def _scores(table: PlainTable, rows: Rows, grid: Grid, weights: Mapping[str, Floats]) -> list[Floats]:
    return [grid.scores(block[rows], weights[name]) for name, block in table.blocks.items()]


def _mean(sums: Sequence[int], noise: Sequence[int], batch_rows: int, grid: Grid) -> Floats:
    scale = batch_rows << grid.gradient_bits
    return np.array([(value + drawn) / scale for value, drawn in zip(sums, noise, strict=True)])


def _weights(optimisers: Mapping[str, Optimiser]) -> dict[str, Floats]:
    return {name: optimiser.weights for name, optimiser in optimisers.items()}
