"""Short vectors for attackers: signs that satisfy a few linear equations nearly exactly.

    rows (2 e_i | 2 W a_i) and (-1 .. -1, 1 | -W (values + sum a_i))        a_i the columns of the equations

A combination with coefficients b in {0, 1} and 1 is (s, 1 | W (sum s_i a_i - values)) with the signs s = 2b - 1: short
if they satisfy the equations. W says how nearly: an error of 1 / W in an equation weighs as much as one entry.

Source: Coster, Joux, LaMacchia, Odlyzko, Schnorr, Stern 1992; reduction by fpylll.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from fpylll import BKZ, LLL, IntegerMatrix
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
BLOCKS = (10, 20)
FINE = 64  # so that rounding the equations adds little where W is near 1


def reduced(
    equations: Floats,
    values: Floats,
    weight: float,
    *,
    blocks: tuple[int, ...] = BLOCKS,
    done: Callable[[Integers], bool] = lambda _rows: False,
) -> Integers:
    """Reduce with LLL, then with BKZ of each block size until `done`.

    Args:
        equations: (m, n) and values (m,), in real numbers.

    Returns:
        (rows, n + 1): coefficients of the reduced rows, shortest first: signs, and the last column 1 where they
        belong to `values` and not to a difference.
    """
    m, n = equations.shape
    fine = FINE if weight < FINE else 1
    rows = np.zeros((n + 1, n + 1 + m))
    rows[:n, :n] = 2 * fine * np.eye(n)
    rows[n, : n + 1] = [-fine] * n + [fine]
    rows[:n, n + 1 :] = np.rint(2 * fine * weight * equations.T)
    target = np.rint(2 * fine * weight * values) + rows[:n, n + 1 :].sum(axis=0)
    rows[n, n + 1 :] = -np.rint(target / 2)
    basis = IntegerMatrix.from_matrix(rows.astype(np.int64).tolist())
    LLL.reduction(basis)
    found = _coefficients(basis, n, fine)
    for block in blocks:
        if done(found):
            break
        BKZ.reduction(basis, BKZ.Param(block, flags=BKZ.AUTO_ABORT))
        found = _coefficients(basis, n, fine)
    return found


def _coefficients(basis: IntegerMatrix, n: int, fine: int) -> Integers:
    rows = np.array([[basis[i, j] for j in range(basis.ncols)] for i in range(basis.nrows)], dtype=np.int64)
    lengths = np.square(rows.astype(float)).sum(axis=1)
    return rows[np.argsort(lengths, kind="stable"), : n + 1] // fine


def signs(rows: Integers) -> Floats | None:
    """Return the row that is all signs and belongs to the values; None if no row does."""
    for row in rows:
        if (np.abs(row) == 1).all():
            return (row[:-1] * row[-1]).astype(float)
    return None


def nearest(rows: Integers) -> Floats:
    """Return the shortest row that belongs to the values, all signs or not: an attacker would guess it."""
    of_values = rows[np.abs(rows[:, -1]) == 1]
    return (of_values[0, :-1] * of_values[0, -1]).astype(float) if len(of_values) else np.zeros(rows.shape[1] - 1)
