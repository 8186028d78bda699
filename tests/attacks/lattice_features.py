"""A partner's binary column from differences of gradients, by lattice reduction.

The labels' part of a kept batch's gradient never changes, so differences lie in X_own^T X_other alone. With one column
at the other party they are multiples of X_own^T (b + constant); what is orthogonal to that and to the constant gives
Q X_own^T b = 0, and b is a short integer vector.
"""

from __future__ import annotations

import numpy as np
from fpylll import BKZ, LLL, IntegerMatrix
from numpy.typing import NDArray

from tests.attacks.lattice_labels import complement, span
from tests.attacks.lattices import BLOCKS, FINE, Integers
from tests.attacks.views import Seen

Floats = NDArray[np.float64]
EXACT = 2.0**28  # two values of a score round in two ways, so that rounding leaves the equations exact
ROUNDING = 2.0**-20  # of a residual
CANDIDATES = 3


def binary_column(
    seen: Seen,
    noise_std: float,
    weight: float,
    *,
    number: int = 0,
    candidates: int = CANDIDATES,
    blocks: tuple[int, ...] = BLOCKS,
) -> list[Floats]:
    """Guesses at the column in the batch as signs, up to which value is which: short vectors of exactly two values.

    Args:
        noise_std: of the key node's noise, which is public.
        weight: how nearly the equations hold: 1 / their error.
    """
    columns, whiten, base = _moved(seen, noise_std, number)
    equations = complement(np.linalg.qr(base)[0]).T @ whiten @ columns.T
    equations -= equations.mean(axis=1, keepdims=True)
    fine = FINE if weight < FINE else 1
    n = len(columns)
    rows = np.hstack([fine * np.eye(n), np.rint(fine * weight * equations.T)]).astype(np.int64)
    basis = IntegerMatrix.from_matrix(rows.tolist())
    LLL.reduction(basis)
    found = _two_valued(basis, n, fine, candidates)
    for block in blocks:
        if found:
            break
        BKZ.reduction(basis, BKZ.Param(block, flags=BKZ.AUTO_ABORT))
        found = _two_valued(basis, n, fine, candidates)
    return found


def projected(seen: Seen, noise_std: float, *, number: int = 0) -> Floats:
    """(rows of the batch,) the part of the column in the span of one's own, up to its sign, by least squares."""
    columns, whiten, base = _moved(seen, noise_std, number)
    return np.asarray(columns @ np.linalg.solve(columns.T @ columns, np.linalg.solve(whiten, base[:, 1])))


def _moved(seen: Seen, noise_std: float, number: int) -> tuple[Floats, Floats, Floats]:
    """The batch's own columns; what makes errors equal in all coordinates; and in that base the constant, and the
    direction in which gradients move."""
    views = seen.of_batch(number)
    columns = seen.reals(views[0].batch)
    errors = ROUNDING**2 * columns.T @ columns + noise_std**2 * np.eye(seen.columns)
    whiten = np.linalg.inv(np.linalg.cholesky(errors / np.trace(errors) * seen.columns))
    gradients = np.array([whiten @ seen.others(view) for view in views])
    constant = whiten @ columns.sum(axis=0)
    constant /= np.linalg.norm(constant)
    moved = (gradients - gradients.mean(axis=0)) @ (np.eye(seen.columns) - np.outer(constant, constant))
    return columns, whiten, np.column_stack([constant, span(moved, 1)])


def _two_valued(basis: IntegerMatrix, n: int, fine: int, candidates: int) -> list[Floats]:
    rows: Integers = np.array([[basis[i, j] for j in range(n)] for i in range(candidates)], dtype=np.int64) // fine
    return [np.where(row == row.max(), 1.0, -1.0) for row in rows if len(np.unique(row)) == 2]


def bits_given_away(seen: Seen, other: Seen, noise_std: float, *, number: int = 0) -> float:
    """A bound on what the reader's gradients of one batch tell of the other party's only column, from all epochs, to
    somebody who knows how its weight moved: the capacity of a Gaussian channel with as many dimensions as own columns.
    """
    weights = np.array([view.weights[0] for view in other.of_batch(number)])
    slope = 2 * seen.grid.loss.square
    moved = slope**2 * float(np.square(weights - weights.mean()).sum())
    batch = seen.of_batch(number)[0].batch
    power = np.linalg.eigvalsh(seen.reals(batch).T @ seen.reals(batch)) * other.reals(batch)[:, 0].var()
    return float(np.log2(1 + np.maximum(power, 0.0) * moved / noise_std**2).sum() / 2)
