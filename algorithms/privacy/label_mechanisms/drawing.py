"""Whole vectors of exact random integers, and integer weights whose ratio keeps epsilon.

A vector is cut from a few large uniform integers: one call of the source for 65,536 words, not one for each row.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.randomness import UniformInt

Words = npt.NDArray[np.uint64]

WORD = 1 << 64
_WORDS_A_CALL = 1 << 16


def words(n: int, uniform: UniformInt) -> Words:
    """Draw n integers uniform on [0, 2^64)."""
    parts = [min(_WORDS_A_CALL, n - start) for start in range(0, n, _WORDS_A_CALL)]
    octets = b"".join(uniform(1 << 64 * part).to_bytes(8 * part, "little") for part in parts)
    return np.frombuffer(octets, dtype="<u8").astype(np.uint64)


def below(m: int, n: int, uniform: UniformInt) -> Words:
    """Draw n integers uniform on [0, m), m <= 2^64; words past the last multiple of m are drawn again."""
    drawn = words(n, uniform)
    if surplus := WORD % m:
        last = np.uint64(WORD - surplus - 1)
        while (again := np.flatnonzero(drawn > last)).size:
            drawn[again] = words(again.size, uniform)
    return drawn if m == WORD else drawn % np.uint64(m)


def bernoulli(threshold: int, n: int, uniform: UniformInt) -> npt.NDArray[np.bool_]:
    """Draw n truth values, each true with probability threshold / 2^64, threshold < 2^64."""
    return words(n, uniform) < np.uint64(threshold)


def from_cumulative(cumulative: Words, n: int, uniform: UniformInt) -> npt.NDArray[np.int64]:
    """Draw n indices by weights, given the weights' running sums."""
    drawn = below(int(cumulative[-1]), n, uniform)
    return np.searchsorted(cumulative, drawn, side="right").astype(np.int64)


def symmetric(magnitudes: Callable[[int], npt.NDArray[np.int64]], n: int, uniform: UniformInt) -> npt.NDArray[np.int64]:
    """Draw n magnitudes with a sign; minus zero is drawn again, so 0 keeps half of its magnitude's weight."""
    drawn = magnitudes(n)
    negative = bernoulli(WORD // 2, n, uniform)
    while (again := np.flatnonzero(negative & (drawn == 0))).size:
        drawn[again] = magnitudes(again.size)
        negative[again] = bernoulli(WORD // 2, again.size, uniform)
    return np.where(negative, -drawn, drawn)


# --- epsilon as a ratio of integers -------------------------------------------------------------


@cache
def exp_bounds(exponent: float) -> tuple[Fraction, Fraction]:
    """Return fractions just below and just above e^exponent; each differs from it by 1e-45 relatively."""
    with decimal.localcontext() as context:
        context.prec = 60
        value = Fraction(decimal.Decimal(exponent).exp())
    return value * (1 - Fraction(1, 10**45)), value * (1 + Fraction(1, 10**45))


def heavier(lighter: int, epsilon: float) -> int:
    """Return the largest integer weight that is at most e^epsilon times the lighter one."""
    return math.floor(lighter * exp_bounds(epsilon)[0])


def loss_of_ratio(ratio: Fraction) -> float:
    """Return ln of a ratio of weights, rounded up."""
    if ratio <= 1:
        return 0.0
    with decimal.localcontext() as context:
        context.prec = 60
        quotient = decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)
        logarithm = quotient.ln()
        nearest = float(logarithm)
        return nearest if decimal.Decimal(nearest) > logarithm else math.nextafter(nearest, math.inf)


def loss_of_weights(heavier_weight: int, lighter_weight: int) -> float:
    return loss_of_ratio(Fraction(heavier_weight, lighter_weight))
