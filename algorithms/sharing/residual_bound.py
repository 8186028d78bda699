"""How large a residual can become in shares, whatever the score: what differential privacy takes a row to change.

Past the range in which it is right the sigmoid of waves is wrong, and still a sum of waves: between its least and its
largest value over a whole period. So is what comes of a score that has left the field's middle. A residual p - y of a
label in {0, 1} is therefore at most 1/2 + max |sum_j b_j sin t_j|, times its factor, and what is lost by rounding: of
each of the public factors A and of the dealt waves C, as (A + a)(C + c) - A C = a C + A c + a c.

Source: MATH 6, last paragraph.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from blindfit.algorithms.sharing.waves import Waves, WaveScales

POINTS = 2**16  # of the period
ROUNDED = 0.5 + 2.0**-20  # what rounding takes; and floating point before it, of numbers below 2^22 to 50 bits


@lru_cache(maxsize=16)
def largest_swing(waves: Waves) -> float:
    """max |sum_j b_j sin t_j| over the whole period, rounded up: between two points by the curvature."""
    coefficients = np.zeros(POINTS)
    coefficients[1 : waves.count + 1] = waves.sigmoid
    on_points = POINTS * np.fft.ifft(coefficients).imag
    curvature = float(np.abs(waves.sigmoid) @ np.arange(1, waves.count + 1) ** 2.0)
    return float(np.abs(on_points).max()) + curvature * (2 * math.pi / POINTS) ** 2 / 8


def residual_bound(waves: Waves, scales: WaveScales, factor: float) -> int:
    """Of |factor (p - y)| at `scales.result` bits, as an integer.

    Args:
        factor: as `waves.sigmoid` takes it.
    """
    exact = factor * 2.0**scales.result * (0.5 + largest_swing(waves))
    factors = factor * 2.0**scales.coefficient * np.abs(waves.sigmoid)
    lost = math.sqrt(2) * ROUNDED * (2.0**scales.wave + factors) + 2 * ROUNDED**2
    constants = 1  # 1/2 and the label, each rounded
    return math.ceil(exact + float(lost.sum()) + constants)
