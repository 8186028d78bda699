"""The grid on which the rows of a WALR job are rounded.

Two things ask for fraction bits. The noise must be at least 2^16 grid steps wide (algorithms/privacy/gaussian.py). And
rounding must not harm the model: the consumer trains on the integers that were summed, so rounding moves no sum away
from what is fitted to it; a row is merely scored a little otherwise than it was trained on. With steps of h every
number of a row is off by less than h, a score by a variance of at most |w|^2 h^2 / 3, and the log loss, whose second
derivative is at most 1/4, by about |w|^2 h^2 / 24: 4e-8 |w|^2 at 10 bits. Rows are standardised, and |w| is about 1.

One thing asks for few: rows whose norm is below 2^15 steps travel, and are held, as 16-bit integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.privacy.gaussian import LEAST_STD_STEPS

LEAST_BITS = 10  # that rounding needs
WIDE_BITS = 16  # of 32-bit rows


@dataclass(frozen=True, slots=True)
class Grid:
    """Steps of 2^-frac_bits, and the norm bound in them, rounded down."""

    frac_bits: int
    norm_bound: int

    @classmethod
    def of(cls, norm_bound: float, frac_bits: int) -> Grid:
        """Raises RangeError: the bound is less than a step, or too large for exact sums."""
        return cls(frac_bits, fixed_point.norm_bound_steps(norm_bound, frac_bits))

    @property
    def step(self) -> float:
        return 2.0**-self.frac_bits

    @property
    def real_bound(self) -> float:
        return self.norm_bound * self.step

    @property
    def row_bits(self) -> int:
        """Of each number of a row."""
        return 8 * fixed_point.integer_type(self.norm_bound)().itemsize


def auto_grid(
    norm_bound: float, noise_multiplier: float, rows_of_unit: int, most_steps: int = fixed_point.MAX_NORM_BOUND
) -> Grid:
    """The finest grid of 16-bit rows, where that is fine enough for noise and rounding; else one of 32-bit rows.

    Args:
        norm_bound: R, of a row.
        noise_multiplier: the noise's standard deviation over the sensitivity.
        rows_of_unit: how many rows of a person may count, or 1; that more may makes the noise wider only.
        most_steps: of the bound.

    Raises:
        RangeError: the bound is so large, or so small, that no grid holds it or is fine enough for the noise.
    """
    narrow = min(_most_bits(norm_bound, fixed_point.MAX_NARROW_BOUND), fixed_point.MAX_FRAC_BITS)
    needed = _bits_for_noise(norm_bound * noise_multiplier * rows_of_unit, norm_bound)
    if narrow >= max(needed, LEAST_BITS):
        return Grid.of(norm_bound, narrow)
    return wide_grid(norm_bound, noise_multiplier, rows_of_unit, most_steps)


def wide_grid(
    norm_bound: float, noise_multiplier: float, rows_of_unit: int, most_steps: int = fixed_point.MAX_NORM_BOUND
) -> Grid:
    """A grid of WIDE_BITS, of more where the noise needs them; of fewer where the bound leaves no more. Takes and
    raises what `auto_grid` does.
    """
    wide = min(WIDE_BITS, _most_bits(norm_bound, most_steps))
    return Grid.of(norm_bound, max(wide, _bits_for_noise(norm_bound * noise_multiplier * rows_of_unit, norm_bound)))


def bounds_with_a_grid(
    frac_bits: int | None,
    noise_multiplier: float,
    rows_of_unit: int,
    most_steps: int = fixed_point.MAX_NORM_BOUND,
) -> tuple[float, float]:
    """The least and the largest norm bound of which there is a grid: public, as it follows from the job alone.

    A bound that hangs on rows is cut to them. Rows are clipped to what it then is, so the noise is right for it; and no
    job ends, or does not, for what its rows hold.

    Args:
        frac_bits: None: `auto_grid` chooses.

    Raises:
        RangeError: of no bound is there one.
    """
    least_steps = math.ceil(LEAST_STD_STEPS * (1 + 1e-9) / (noise_multiplier * rows_of_unit)) + 1
    if least_steps > most_steps:
        raise RangeError("no grid is fine enough for so little noise", hint="lower privacy.epsilon")
    finest = fixed_point.MAX_FRAC_BITS if frac_bits is None else frac_bits
    coarsest = fixed_point.MIN_FRAC_BITS if frac_bits is None else frac_bits
    return math.ldexp(least_steps, -finest), math.ldexp(most_steps, -coarsest)


def _most_bits(norm_bound: float, most_steps: int) -> int:
    """With which the norm is at most so many steps."""
    if not 0 < norm_bound < math.inf:
        raise RangeError(f"the norm bound must be finite and above 0, not {norm_bound:g}")
    bits = math.floor(math.log2(most_steps / norm_bound))
    return bits if norm_bound * 2.0**bits <= most_steps else bits - 1  # a logarithm is rounded


def _bits_for_noise(noise_std: float, norm_bound: float) -> int:
    """The least at which noise is wide enough, the bound being rounded down to whole steps.

    Raises:
        RangeError: no grid is fine enough.
    """
    for bits in range(fixed_point.MIN_FRAC_BITS, fixed_point.MAX_FRAC_BITS + 1):
        steps = norm_bound * 2.0**bits
        if steps >= 1 and noise_std * 2.0**bits * (math.floor(steps) / steps) >= LEAST_STD_STEPS * (1 + 1e-9):
            return bits
    raise RangeError(
        f"a noise of standard deviation {noise_std:.3g} is narrower than 2^16 steps of the finest grid",
        hint="scale the features up, or lower privacy.epsilon",
    )
