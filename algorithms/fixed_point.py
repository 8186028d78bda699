"""Fixed point: reals as integers in units of 2^-frac_bits.

Rows of weights are rounded toward zero, never to nearest. Rounding to nearest made half of the rows of norm R longer
than R at 50 columns, and the sensitivity of a sum of rows is the norm of the longest integer row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError

MAX_NORM_BOUND = 2**25  # of a row, in grid steps: its square must be exact in float64
MAX_COLUMNS = 2**12
MAX_ROWS = 2**31  # a sum of rows stays below 2^56
MIN_FRAC_BITS, MAX_FRAC_BITS = 4, 24
MAX_NARROW_BOUND = 2**15 - 1  # of a norm: then no number of a row passes 16 bits

IntegerRows = npt.NDArray[np.int16 | np.int32]
RealRows = npt.NDArray[np.float64]
MAX_BITS = 62  # of a number in int64, so that a sum of two still fits


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Fixed:
    """Integers that know their scale: value / 2^frac_bits is the real number. Operators check and add up scales.

    Attributes:
        values: int64 array of any shape; Python integers (dtype object) if a value may need more than 62 bits.
        frac_bits: fraction bits, one public number for all values.

    Example:
        >>> half = paillier.Fixed.from_reals([0.5, -0.25], frac_bits=8)
        >>> half.values.tolist(), (half + half).to_reals().tolist(), (half * half).frac_bits
        ([128, -64], [1.0, -0.5], 16)
    """

    values: npt.NDArray[Any]
    frac_bits: int

    def __post_init__(self) -> None:
        values: Any = self.values
        if not isinstance(values, np.ndarray):  # numpy gives a bare number in place of an array of shape ()
            kind = np.int64 if isinstance(values, np.integer) else object
            object.__setattr__(self, "values", np.asarray(values, dtype=kind))

    @classmethod
    def from_reals(cls, reals: npt.ArrayLike, frac_bits: int) -> Fixed:
        """Return the numbers, rounded to nearest with ties to even: the error is at most half of 2^-frac_bits.

        Args:
            reals: finite numbers, any shape.
            frac_bits: fraction bits.

        Raises:
            RangeError: a number is not finite, or needs more than 62 bits.
        """
        with np.errstate(over="ignore"):  # a number too large for a float is refused as infinite
            scaled = np.rint(np.ldexp(np.asarray(reals, dtype=np.float64), frac_bits))
        if not np.isfinite(scaled).all() or (scaled.size and np.abs(scaled).max() >= 2.0**MAX_BITS):
            raise RangeError(
                f"a number is not finite or does not fit in {MAX_BITS} bits with {frac_bits} fraction bits",
                hint="scale the numbers, or choose fewer fraction bits",
            )
        return cls(scaled.astype(np.int64), frac_bits)

    @classmethod
    def from_integers(cls, integers: npt.ArrayLike, frac_bits: int = 0) -> Fixed:
        """Return the integers as they are, in units of 2^-frac_bits.

        Args:
            integers: integers of any size, any shape.
            frac_bits: fraction bits.

        Raises:
            RangeError: a number is not an integer.
        """
        values = np.asarray(integers)
        if values.dtype.kind == "f" and not isinstance(integers, np.ndarray):
            values = np.asarray(integers, dtype=object)  # of 2^63 and -1 numpy makes floats
        if values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64):
            return cls(values.astype(np.int64), frac_bits)
        if values.size == 0:
            return cls(np.zeros(values.shape, np.int64), frac_bits)
        if not all(isinstance(value, int | np.integer) for value in values.flat):
            raise RangeError("the numbers are not integers", hint="use Fixed.from_reals, which rounds them")
        return cls(np.array([int(value) for value in values.flat], object).reshape(values.shape), frac_bits)

    def to_reals(self) -> npt.NDArray[np.float64]:
        """Return the nearest float64 of each value.

        Raises:
            RangeError: a value is larger than any float64.
        """
        if self.values.dtype == object:
            try:
                reals = [v / (1 << self.frac_bits) for v in self.values.flat]
            except OverflowError:
                raise RangeError("a number is larger than any float64") from None
            return np.array(reals, dtype=np.float64).reshape(self.values.shape)
        return np.ldexp(self.values.astype(np.float64), -self.frac_bits)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values."""
        return self.values.shape

    @property
    def bound(self) -> int:
        """Largest magnitude, in steps of 2^-frac_bits."""
        return max(abs(int(self.values.max())), abs(int(self.values.min()))) if self.values.size else 0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which: Any) -> Fixed:
        return Fixed(self.values[which], self.frac_bits)

    def __add__(self, other: Fixed) -> Fixed:
        return Fixed(_wide(self, self.bound + other.bound) + other.values, self._scale_of(other))

    def __sub__(self, other: Fixed) -> Fixed:
        return Fixed(_wide(self, self.bound + other.bound) - other.values, self._scale_of(other))

    def __mul__(self, other: Fixed) -> Fixed:
        product = _wide(self, self.bound * other.bound) * other.values
        return Fixed(product, self.frac_bits + other.frac_bits)

    def __neg__(self) -> Fixed:
        return Fixed(-_wide(self, self.bound), self.frac_bits)

    def _scale_of(self, other: Fixed) -> int:
        if self.frac_bits != other.frac_bits:
            raise RangeError(f"numbers of {self.frac_bits} and of {other.frac_bits} fraction bits cannot be added")
        return self.frac_bits


def _wide(left: Fixed, bound: int) -> npt.NDArray[Any]:
    """Return the left values in a type that holds the result: int64 wraps round without an error."""
    return left.values if bound < 2**MAX_BITS else left.values.astype(object)


def clip_integer_rows(rows: npt.NDArray[np.int64], norm_bound: int) -> npt.NDArray[np.int64]:
    """Scale rows longer than the bound to it and cut toward zero, in integers: every machine gets the same result.

    Args:
        rows: (n, k), the square of every norm below 2^62. norm_bound: in steps.

    Returns:
        (n, k) with every norm at most norm_bound: |x B| / (floor(norm) + 1) is less than |x| B / norm.
    """
    norm_bound = min(norm_bound, 2**31)  # no row is longer
    squares = np.einsum("ij,ij->i", rows, rows)
    roots = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)
    roots -= roots * roots > squares  # float64 rounds a large square
    roots += (roots + 1) * (roots + 1) <= squares
    long = squares > norm_bound * norm_bound
    clipped = rows.copy()
    scaled = np.abs(rows[long]) * norm_bound // (roots[long, None] + 1)
    clipped[long] = np.sign(rows[long]) * scaled
    return clipped


def norm_bound_steps(norm_bound: float, frac_bits: int) -> int:
    """Return the bound R in grid steps, rounded down so that integer rows within it have norm at most R.

    Raises:
        RangeError: the bound is not positive, or too large for exact 64-bit arithmetic.
    """
    if not MIN_FRAC_BITS <= frac_bits <= MAX_FRAC_BITS:
        raise RangeError(f"frac_bits = {frac_bits} is not between {MIN_FRAC_BITS} and {MAX_FRAC_BITS}")
    scaled = float(norm_bound) * 2.0**frac_bits
    steps = int(scaled) if np.isfinite(scaled) else 0
    if not 1 <= steps <= MAX_NORM_BOUND:
        lower = not 0 < scaled < 1
        change, bits = ("lower", "fewer") if lower else ("raise", "more")
        other = "" if frac_bits == (MIN_FRAC_BITS if lower else MAX_FRAC_BITS) else f", or choose {bits} fraction bits"
        raise RangeError(
            f"norm_bound = {norm_bound:g} at {frac_bits} fraction bits is not from 1 to {MAX_NORM_BOUND} grid steps",
            hint=f"{change} norm_bound{other}",
        )
    return steps


def integer_type(norm_bound: int) -> type[np.int16 | np.int32]:
    """Return the narrowest type that holds each number of a row within the bound: half the memory and traffic."""
    return np.int16 if norm_bound <= MAX_NARROW_BOUND else np.int32


def quantise_rows(rows: RealRows, norm_bound: int, frac_bits: int) -> IntegerRows:
    """Clip real rows to the bound and round them toward zero.

    Args:
        rows: (n, k) float64, finite, of any size.
        norm_bound: in grid steps.
        frac_bits: fraction bits of the grid.

    Returns:
        (n, k) of `integer_type`, with every integer row's norm at most norm_bound.

    Raises:
        RangeError: a number is not finite; a cast to an integer would give an arbitrary number.
    """
    if not np.isfinite(rows).all():
        raise RangeError("a row has a number that is not finite")
    with np.errstate(over="ignore"):  # an infinite norm is a long one
        scaled = rows * 2.0**frac_bits
        long = np.einsum("ij,ij->i", scaled, scaled) > float(norm_bound) ** 2
    if long.any():
        unit, factor = _directions(rows[long], norm_bound)
        scaled[long] = unit * factor
    quantised, _ = enforce_norm_bound(scaled.astype(np.int32), norm_bound)  # rounding may make a row too long
    return quantised.astype(integer_type(norm_bound), copy=False)


def enforce_norm_bound(rows: IntegerRows, norm_bound: int) -> tuple[IntegerRows, int]:
    """Shorten integer rows that are too long, so that the bound holds for the integers themselves.

    Returns:
        The rows (the same object if no row was too long) and the number of shortened rows.
    """
    long = np.flatnonzero(_too_long(rows, norm_bound))
    if long.size == 0:
        return rows, 0
    rows = rows.copy()
    rows[long] = _shorten(rows[long].astype(np.int64), norm_bound)
    return rows, int(long.size)


def _too_long(rows: npt.NDArray[np.integer], norm_bound: int) -> npt.NDArray[np.bool_]:
    """Compare exactly: float64 holds every sum of squares up to 2^53, and the squared bound is at most 2^50."""
    real = rows.astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", real, real) > float(norm_bound) ** 2)


def _shorten(rows: npt.NDArray[np.int64], norm_bound: int) -> npt.NDArray[np.int64]:
    """Scale each row to the bound and truncate; shrink a row again that is still too long by float rounding."""
    unit, factor = _directions(rows.astype(np.float64), norm_bound)
    shortened = (unit * factor).astype(np.int64)
    while (long := _too_long(shortened, norm_bound)).any():
        factor[long] *= 1 - 2.0**-40
        shortened = (unit * factor).astype(np.int64)
    return shortened


def _directions(rows: RealRows, norm_bound: int) -> tuple[RealRows, RealRows]:
    """Return each row over its largest entry, and the factor that makes its norm the bound; nothing overflows."""
    unit = rows / np.abs(rows).max(axis=1, keepdims=True)
    return unit, norm_bound / np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
