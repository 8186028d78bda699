"""Fixed point: reals as integers in units of 2^-frac_bits.

Rows of weights are rounded toward zero, never to nearest: rounding to nearest put half of the rows of norm R past R at
50 columns, and the sensitivity of a sum of rows is the norm of the longest integer row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from algorithms.errors import RangeError

MAX_NORM_BOUND = 2**25  # of a row, in grid steps: its square must be exact in float64
MAX_COLUMNS = 2**12
MAX_ROWS = 2**31  # a sum of rows stays below 2^56
MIN_FRAC_BITS, MAX_FRAC_BITS = 4, 24

IntegerRows = npt.NDArray[np.int32]
RealRows = npt.NDArray[np.float64]


def norm_bound_steps(norm_bound: float, frac_bits: int) -> int:
    """The bound R in grid steps, rounded down so that integer rows within it have norm at most R.

    Raises:
        RangeError: the bound is not positive, or too large for exact 64-bit arithmetic.
    """
    if not MIN_FRAC_BITS <= frac_bits <= MAX_FRAC_BITS:
        raise RangeError(f"frac_bits = {frac_bits} is not between {MIN_FRAC_BITS} and {MAX_FRAC_BITS}")
    scaled = float(norm_bound) * 2.0**frac_bits
    steps = int(scaled) if np.isfinite(scaled) else 0
    if not 1 <= steps <= MAX_NORM_BOUND:
        raise RangeError(
            f"norm_bound = {norm_bound:g} at {frac_bits} fraction bits is not from 1 to {MAX_NORM_BOUND} grid steps",
            hint="standardise the features, or choose fewer fraction bits",
        )
    return steps


def quantise_rows(rows: RealRows, norm_bound: int, frac_bits: int) -> IntegerRows:
    """Clips real rows to the bound and rounds them toward zero.

    Args:
        rows: (n, k) float64, finite, however large.
        norm_bound: in grid steps.
        frac_bits: of the grid.

    Returns:
        (n, k) int32 with every integer row's norm at most norm_bound.

    Raises:
        RangeError: a number is not finite; cast to an integer, it would be any number.
    """
    if not np.isfinite(rows).all():
        raise RangeError("a row has a number that is not finite")
    with np.errstate(over="ignore"):  # an infinite norm is a long one
        scaled = rows * 2.0**frac_bits
        long = np.einsum("ij,ij->i", scaled, scaled) > float(norm_bound) ** 2
    if long.any():
        unit, factor = _directions(rows[long], norm_bound)
        scaled[long] = unit * factor
    quantised, _ = enforce_norm_bound(scaled.astype(np.int32), norm_bound)
    return quantised


def enforce_norm_bound(rows: IntegerRows, norm_bound: int) -> tuple[IntegerRows, int]:
    """Makes integer rows that are too long shorter: the bound then holds for the integers themselves.

    Returns:
        The rows (the same object where none was too long) and how many were made shorter.
    """
    long = np.flatnonzero(_too_long(rows, norm_bound))
    if long.size == 0:
        return rows, 0
    rows = rows.copy()
    rows[long] = _shorten(rows[long].astype(np.int64), norm_bound)
    return rows, int(long.size)


def _too_long(rows: npt.NDArray[np.integer], norm_bound: int) -> npt.NDArray[np.bool_]:
    """Exact: float64 holds every sum of squares up to 2^53, and the square of the bound is at most 2^50."""
    real = rows.astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", real, real) > float(norm_bound) ** 2)


def _shorten(rows: npt.NDArray[np.int64], norm_bound: int) -> npt.NDArray[np.int64]:
    """Scales each row to the bound and truncates; a row that is still too long by float rounding shrinks again."""
    unit, factor = _directions(rows.astype(np.float64), norm_bound)
    shortened = (unit * factor).astype(np.int64)
    while (long := _too_long(shortened, norm_bound)).any():
        factor[long] *= 1 - 2.0**-40
        shortened = (unit * factor).astype(np.int64)
    return shortened


def _directions(rows: RealRows, norm_bound: int) -> tuple[RealRows, RealRows]:
    """Each row over its largest entry, and what that times makes its norm the bound; nothing overflows on the way."""
    unit = rows / np.abs(rows).max(axis=1, keepdims=True)
    return unit, norm_bound / np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
