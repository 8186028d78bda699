"""The largest residual in shares, for every score: a bound on the change by one row, for differential privacy.

Past its range the sigmoid of waves is wrong, but it is still a sum of waves: it lies between its least and its largest
value over a whole period. The same holds for a score that has left the field's middle. A residual p - y with y in
{0, 1} is therefore at most 1/2 + max |sum_j b_j sin t_j|, times its factor, plus the loss by rounding. Each public
factor A and each dealt wave C is rounded: (A + a)(C + c) - A C = a C + A c + a c.

Source: MATH 6, last paragraph.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from blindfit.algorithms.sharing.waves import Waves, WaveScales

POINTS = 2**16  # of the period
ROUNDED = 0.5 + 2.0**-20  # error of rounding, and of floating point before it, for numbers below 2^22 to 50 bits


@lru_cache(maxsize=16)
def largest_swing(waves: Waves) -> float:
    """Return max |sum_j b_j sin t_j| over the whole period, rounded up between two points by the curvature."""
    coefficients = np.zeros(POINTS)
    coefficients[1 : waves.count + 1] = waves.sigmoid
    on_points = POINTS * np.fft.ifft(coefficients).imag
    curvature = float(np.abs(waves.sigmoid) @ np.arange(1, waves.count + 1) ** 2.0)
    return float(np.abs(on_points).max()) + curvature * (2 * math.pi / POINTS) ** 2 / 8


def residual_bound(waves: Waves, scales: WaveScales, factor: float) -> int:
    """Return a bound of |factor (p - y)| at `scales.result` bits, as an integer.

    Args:
        factor: see `waves.sigmoid`.
    """
    exact = factor * 2.0**scales.result * (0.5 + largest_swing(waves))
    factors = factor * 2.0**scales.coefficient * np.abs(waves.sigmoid)
    lost = math.sqrt(2) * ROUNDED * (2.0**scales.wave + factors) + 2 * ROUNDED**2
    constants = 1  # 1/2 and the label, each rounded
    return math.ceil(exact + float(lost.sum()) + constants)
