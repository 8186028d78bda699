"""Shape joined rows at a measurement server before it sums them, so that each weight depends on many rows at once.

Where a fit ends, its gradient is 0: sum_i x_ij p_i = N mu_j - N l2 w_j. A party with columns knows all but the p_i. If
a combination of its columns is 0 except in one row, it reads that row's probability, and so the other parties' part of
that row's score.

    effective rows of a column      (sum x^2)^2 / sum x^4: m for a column that is 1 in m rows
    leverage of a row               x_i^T (X^T X)^+ x_i: 1 where some combination of columns is this row only

    step  does
    1     leaves out columns with fewer than 20 effective rows.
    2     leaves out columns that nearly follow from later columns of their party.
    3     shortens rows, for each party, until no row has leverage above 1/20 in the columns of all other parties.

Step 1 comes first, because a level of m < 20 rows keeps leverage 1/m however short its rows are: only step 3 would
delete these people. Step 2 is for rounding. A column for every level adds up to the constant, up to the rounding of the
few rows that were clipped, which would stand out by this. Step 3 takes all other parties together, because they may
combine what they know; for two parties that is each one's block.

No step looks at a label, and no step looks at rows that do not count.

Source: the leverage rule is Theorem 2 of Cohen, Lee, Musco, Musco, Peng, Sidford 2015 (arXiv 1408.5099).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.protocols.walr.messages import BATCH_ROWS, Bits

LEAST_EFFECTIVE_ROWS = 20
MOST_LEVERAGE = 1 / LEAST_EFFECTIVE_ROWS
ROWS_PER_COLUMN = 40  # leverages add up to the number of columns: twice what the rule needs
FOLLOWS = 2.0**-10  # a column follows from later ones if they leave less than this fraction of its length
AIM = 0.9 * MOST_LEVERAGE  # target of shortening a row, as others gain by it
SHORTENING_ROUNDS = 20  # after these, rows that still stand out become 0
MOST_ROUNDS = 40  # after these, all rows of these columns become 0
FLOAT_ERROR = 1e-6  # relative error of a leverage, which is exactly 1/20 for the only 20 rows of a level
RANK = 1e-12  # of singular values, to the largest: less is float error

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.intp]  # their places


def rows_needed(n_columns: Sequence[int]) -> int:
    """Return the number of rows that a fit needs.

    Args:
        n_columns: number of columns of each party. All parties but the smallest count.
    """
    return ROWS_PER_COLUMN * (sum(n_columns) - (min(n_columns) if len(n_columns) > 1 else 0))


def shape_rows(rows: IntegerRows, n_columns: Sequence[int]) -> tuple[IntegerRows, Bits]:
    """Return the rows as they are summed and fitted, and which columns were left out: these are 0.

    Args:
        rows: (rows that count, all columns).
        n_columns: number of columns of each party, in their order.

    Returns:
        Rows of which no row is longer than before.
    """
    blocks = _blocks(n_columns)
    left_out = np.concatenate([columns_to_leave_out(rows[:, block]) for block in blocks])
    of_many_rows = rows.copy()
    of_many_rows[:, left_out] = 0
    return shorten_rows(of_many_rows, n_columns), left_out


def _blocks(n_columns: Sequence[int]) -> list[Columns]:
    return np.split(np.arange(sum(n_columns)), np.cumsum(n_columns)[:-1])


# --- columns -------------------------------------------------------------------------------------------------


def columns_to_leave_out(block: IntegerRows) -> Bits:
    """Return which columns of one party are of too few rows, or nearly follow from later ones. A constant is last."""
    few = effective_rows(block) < LEAST_EFFECTIVE_ROWS
    kept = np.flatnonzero(~few)[::-1]
    r = _triangle(block, kept)
    lengths = np.sqrt(np.square(r).sum(axis=0))
    rest = np.abs(np.diagonal(r)) if len(r) else np.zeros(0)
    rest = np.concatenate([rest, np.zeros(len(kept) - len(rest))])  # with fewer rows than columns
    few[kept[rest <= FOLLOWS * lengths]] = True
    return few


def effective_rows(rows: IntegerRows) -> Floats:
    """Return (sum x^2)^2 / sum x^4 of each column; 0 for a column of zeros."""
    squares, fourths = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for piece in _pieces(rows, np.arange(rows.shape[1])):
        square = np.square(piece)
        squares += square.sum(axis=0)
        fourths += np.square(square).sum(axis=0)
    return np.asarray(squares**2 / np.maximum(fourths, 1.0))


# --- rows ----------------------------------------------------------------------------------------------------


def leverages(rows: IntegerRows, columns: Columns) -> Floats:
    """Return x_i^T (X^T X)^+ x_i of every row, in some of the columns."""
    r = _triangle(rows, columns)
    lengths = np.sqrt(np.square(r).sum(axis=0))
    unit = 1 / np.where(lengths > 0, lengths, 1.0)
    _, sizes, base = np.linalg.svd(r * unit, full_matrices=False)
    real = sizes > RANK * max(1.0, float(sizes.max(initial=0.0)))
    turned = unit[:, None] * base[real].T / sizes[real]
    return np.concatenate([np.zeros(0), *(np.square(piece @ turned).sum(axis=1) for piece in _pieces(rows, columns))])


def shorten_rows(rows: IntegerRows, n_columns: Sequence[int]) -> IntegerRows:
    """Shorten each row, for each party, until no row stands out in the columns of all other parties."""
    holders = np.arange(len(n_columns))
    holder_of = np.repeat(holders, n_columns)
    short, factors = rows.copy(), np.ones((len(rows), len(holders)))
    for round_ in range(MOST_ROUNDS):
        stands_out = False
        for one in holders:
            others = np.flatnonzero(holder_of != one)
            found = leverages(short, others)
            out = np.flatnonzero(found > MOST_LEVERAGE * (1 + FLOAT_ERROR))
            if len(out):
                stands_out = True
                factors[np.ix_(out, holders != one)] *= (_factor(found[out]) * (round_ < SHORTENING_ROUNDS))[:, None]
                these = np.ix_(out, others)
                short[these] = np.trunc(rows[these] * factors[out][:, holder_of[others]])
        if not stands_out:
            return short
    return np.zeros_like(rows)


def _factor(found: Floats) -> Floats:
    """Return the factors by which rows of these leverages may stay: a row times c has c^2 h / (1 - h)."""
    limit = AIM / (1 - AIM)
    return np.asarray(np.sqrt(limit * np.maximum(1 - found, 0.0) / found))


# --- sums over rows ------------------------------------------------------------------------------------------


def _pieces(rows: IntegerRows, columns: Columns) -> Iterator[Floats]:
    for start in range(0, len(rows), BATCH_ROWS):
        yield rows[start : start + BATCH_ROWS, columns].astype(np.float64)


def _triangle(rows: IntegerRows, columns: Columns) -> Floats:
    """Return the R of a QR decomposition, found piece by piece."""
    r: Floats = np.zeros((0, len(columns)))
    for piece in _pieces(rows, columns):
        r = np.asarray(np.linalg.qr(np.concatenate([r, piece]), mode="r"))
    return r
