"""The grid on which the rows of a WALR job are rounded.

Two requirements ask for fraction bits. The noise must be at least 2^16 grid steps wide
(algorithms/privacy/gaussian.py). And rounding must not harm the model. The active party trains on the integers that
were summed, so rounding moves no sum away from its rows; a row is only scored slightly differently than it was trained
on. With steps of h every number of a row is off by less than h, and a score by a variance of at most |w|^2 h^2 / 3. The
log loss, whose second derivative is at most 1/4, is then off by about |w|^2 h^2 / 24: 4e-8 |w|^2 at 10 bits. Rows are
standardised, and |w| is about 1.

One requirement asks for few: rows whose norm is below 2^15 steps are sent and stored as 16-bit integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.privacy.gaussian import LEAST_STD_STEPS, NOISE_REACH

LEAST_BITS = 10  # that rounding needs
WIDE_BITS = 16  # of 32-bit rows
MOST_ROWS_OF_UNIT = 2**16
LARGEST_SUM, LARGEST_SHARED_SUM = 2**63, 2**60  # in int64; and modulo 2^61 - 1, where half are negative


@dataclass(frozen=True, slots=True)
class Grid:
    """Steps of 2^-frac_bits, and the norm bound in them, rounded down."""

    frac_bits: int
    norm_bound: int

    @classmethod
    def of(cls, norm_bound: float, frac_bits: int) -> Grid:
        """Make a grid; raise RangeError if the bound is less than a step, or too large for exact sums."""
        return cls(frac_bits, fixed_point.norm_bound_steps(norm_bound, frac_bits))

    @property
    def step(self) -> float:
        return 2.0**-self.frac_bits

    @property
    def real_bound(self) -> float:
        return self.norm_bound * self.step

    @property
    def row_bits(self) -> int:
        """Bits of each number of a row."""
        return 8 * fixed_point.integer_type(self.norm_bound)().itemsize


def auto_grid(
    norm_bound: float, noise_multiplier: float, rows_of_unit: int, max_steps: int = fixed_point.MAX_NORM_BOUND
) -> Grid:
    """Return the finest grid of 16-bit rows if it is fine enough for noise and rounding; else one of 32-bit rows.

    Args:
        norm_bound: R, the norm bound of a row.
        noise_multiplier: the noise's standard deviation over the sensitivity.
        rows_of_unit: number of rows of a person that may count, or 1; more rows only make the noise wider.
        max_steps: largest bound in steps.

    Raises:
        RangeError: the bound is so large, or so small, that no grid holds it or is fine enough for the noise.
    """
    narrow = _narrow_bits(norm_bound, max_steps)
    needed = _bits_for_noise(norm_bound * noise_multiplier * rows_of_unit, norm_bound)
    if narrow >= max(needed, LEAST_BITS):
        return Grid.of(norm_bound, narrow)
    return wide_grid(norm_bound, noise_multiplier, rows_of_unit, max_steps)


def wide_grid(
    norm_bound: float, noise_multiplier: float, rows_of_unit: int, max_steps: int = fixed_point.MAX_NORM_BOUND
) -> Grid:
    """Return a grid of WIDE_BITS; of more bits if the noise needs them, of fewer if the bound allows no more.

    Takes and raises what `auto_grid` does.
    """
    wide = min(WIDE_BITS, _max_bits(norm_bound, max_steps))
    return Grid.of(norm_bound, max(wide, _bits_for_noise(norm_bound * noise_multiplier * rows_of_unit, norm_bound)))


@dataclass(frozen=True, slots=True)
class Room:
    """The norm bounds that have a grid, in steps.

    A room is public: it follows from the job and from the number of columns. Grids differ by factors of two, so not
    every norm between the least and the largest bound has a grid. `grid` therefore changes a norm bound that follows
    from rows. The rows are clipped to the changed bound, so the noise is right for it. No job ends, or goes on, because
    of what its rows hold.
    """

    least: int
    most: int

    @classmethod
    def of(
        cls,
        noise_multiplier: float,
        rows_of_unit: tuple[int, int],
        *,
        largest_sum: int,
        servers: int = 1,
        largest: int = fixed_point.MAX_NORM_BOUND,
    ) -> Room:
        """
        Args:
            rows_of_unit: least and largest number of rows of a person that count.
            largest_sum: the sum of all rows and noises must stay below it.
            servers: number of servers that add noise.
            largest: bound for other reasons.

        Raises:
            RangeError: no norm bound has a grid.
        """
        fewest, max_rows = rows_of_unit
        least = math.ceil(LEAST_STD_STEPS * (1 + 1e-9) / (noise_multiplier * fewest)) + 1
        reach = fixed_point.MAX_ROWS + NOISE_REACH * math.sqrt(servers) * (noise_multiplier * max_rows + 1)
        most = min(largest, int(0.99 * largest_sum / reach))
        if least > most:
            raise RangeError("no grid is fine enough for so little noise", hint="lower privacy.epsilon")
        return cls(least, most)

    def grid(self, norm_bound: float, frac_bits: int | None) -> Grid:
        """Return the grid whose norm bound is nearest to this one.

        Args:
            frac_bits: fraction bits. With None, the finest grid of 16-bit rows if that suffices, else one of WIDE_BITS
                or more.
        """
        least, most = self.bounds(frac_bits)
        held = min(max(norm_bound, least), most)
        bits = self._bits(held) if frac_bits is None else frac_bits
        steps = math.floor(min(math.ldexp(held, bits), self.most))
        return Grid(bits, max(steps, self.least))

    def _bits(self, norm_bound: float) -> int:
        narrow = _narrow_bits(norm_bound, self.most)
        needed = math.ceil(math.log2(self.least / norm_bound))
        if narrow >= max(needed, LEAST_BITS):
            return narrow
        wide = max(min(WIDE_BITS, _max_bits(norm_bound, self.most)), needed)
        return min(max(wide, fixed_point.MIN_FRAC_BITS), fixed_point.MAX_FRAC_BITS)

    def bounds(self, frac_bits: int | None) -> tuple[float, float]:
        """Return the least and the largest norm bound that has a grid of so many bits, or of any number of bits."""
        finest = fixed_point.MAX_FRAC_BITS if frac_bits is None else frac_bits
        coarsest = fixed_point.MIN_FRAC_BITS if frac_bits is None else frac_bits
        return math.ldexp(self.least, -finest), math.ldexp(self.most, -coarsest)


def _narrow_bits(norm_bound: float, max_steps: int) -> int:
    """Return the fraction bits of the finest grid of 16-bit rows."""
    return min(_max_bits(norm_bound, min(max_steps, fixed_point.MAX_NARROW_BOUND)), fixed_point.MAX_FRAC_BITS)


def _max_bits(norm_bound: float, max_steps: int) -> int:
    """Return the most bits with which the norm is at most `max_steps` steps."""
    if not 0 < norm_bound < math.inf:
        raise RangeError(f"the norm bound must be finite and above 0, not {norm_bound:g}")
    bits = math.floor(math.log2(max_steps / norm_bound))
    return bits if norm_bound * 2.0**bits <= max_steps else bits - 1  # a logarithm is rounded


def _bits_for_noise(noise_std: float, norm_bound: float) -> int:
    """Return the fewest bits with wide enough noise, if the bound is rounded down to whole steps.

    Raises:
        RangeError: no grid is fine enough.
    """
    for bits in range(fixed_point.MIN_FRAC_BITS, fixed_point.MAX_FRAC_BITS + 1):
        steps = norm_bound * 2.0**bits
        if steps >= 1 and noise_std * 2.0**bits * (math.floor(steps) / steps) >= LEAST_STD_STEPS * (1 + 1e-9):
            return bits
    raise RangeError(
        f"a noise of standard deviation {noise_std:.3g} is narrower than 2^16 steps of the finest grid",
        hint="raise norm_bound, or lower privacy.epsilon",
    )
