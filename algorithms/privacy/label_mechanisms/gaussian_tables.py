"""A discrete Gaussian of any width from one short table of integer weights, or a few.

A wide law is drawn as `spacing` * a + b with discrete Gaussians a and b; if a is wide too, it is drawn in the same way.
Let tau be the standard deviation of `spacing` * a given the sum. The sum's law then differs from a discrete Gaussian's
by a factor within 1 +- 2.1 e^(-2 pi^2 (tau / spacing)^2) (Poisson summation), below 1e-60 at tau > 3.8 spacing.

Weights have 192 bits: the part of its law that a table misses counts e^epsilon times in delta, and e^50 is 2^72. A draw
reads 64 bits, and reads the others only where these do not decide: once in 2^50 draws.
"""

from __future__ import annotations

import decimal
import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.privacy.label_mechanisms.base import Steps
from blindfit.algorithms.privacy.label_mechanisms.drawing import symmetric, words
from blindfit.algorithms.randomness import UniformInt

WEIGHT_BITS = 192
_LATER_BITS = WEIGHT_BITS - 64
_WORKING_BITS = 256  # of fixed point; the weights fall below it at 19 standard deviations
_LONGEST = 2**10  # longest standard deviation of one table
_SPREAD = 4  # of b, in spacings
_MOST_TABLES = 8  # each makes the width 256 times smaller


def parts_of(std: float) -> list[tuple[int, float]]:
    """Return multipliers and standard deviations of discrete Gaussians; their weighted sum has this deviation."""
    parts, multiplier = [], 1
    while std > _LONGEST:
        # The two tables are about equally long, unless that is too long.
        spacing = min(math.ceil(math.sqrt(std / _SPREAD)), _LONGEST // _SPREAD)
        parts.append((multiplier, float(_SPREAD * spacing)))
        std = math.sqrt(std**2 - (_SPREAD * spacing) ** 2) / spacing
        multiplier *= spacing
    return [*parts, (multiplier, std)]


def table_delta(std_steps: float, epsilon: float) -> float:
    """Return the addition of the tables to delta: laws within `missed` of the right ones cost (1 + e^epsilon) as much.

    A table has at most 19 standard deviations of entries. Each is rounded by less than 1 of a total of 2^192, the first
    by as much as all together, and less than 1 each is cut off. Drawing -0 again at most doubles it.
    """
    missed = sum(2 * 3 * (19 * std + 2) for _, std in parts_of(std_steps)) / 2.0**WEIGHT_BITS
    return (1 + math.exp(epsilon)) * missed


def min_delta(epsilon: float) -> float:
    """Return a power of ten for which the tables of every width are fine enough."""
    longest = _MOST_TABLES * 2 * 3 * (19 * _LONGEST + 2) / 2.0**WEIGHT_BITS
    return float(10.0 ** math.ceil(math.log10(4 * (1 + math.exp(epsilon)) * longest)))


@dataclass(frozen=True, eq=False)
class GaussianTables:
    """Tables that together draw one discrete Gaussian.

    Args:
        parts: multipliers, and the tables whose draws they multiply.
    """

    parts: tuple[tuple[int, HalfGaussian], ...]

    @classmethod
    def of(cls, std: float) -> GaussianTables:
        return cls(tuple((multiplier, HalfGaussian.of(part)) for multiplier, part in parts_of(std)))

    def draw(self, n: int, uniform: UniformInt) -> Steps:
        total = np.zeros(n, dtype=np.int64)
        for multiplier, table in self.parts:
            total += multiplier * symmetric(partial(table.draw, uniform=uniform), n, uniform)
        return total


@dataclass(frozen=True, eq=False)
class HalfGaussian:
    """A table of the non-negative half of a discrete Gaussian.

    Args:
        weights: ~ e^(-k^2 / (2 std^2)), k = 0, 1, ..; they sum to 2^192.
    """

    weights: tuple[int, ...]

    @classmethod
    def of(cls, std: float) -> HalfGaussian:
        """Compute w_{k+1} = w_k r_k, r_{k+1} = r_k r_0^2 in fixed point; rounding loses k^2 units at k."""
        bits = _WORKING_BITS
        with decimal.localcontext() as context:
            context.prec = 90
            root = (-1 / (2 * decimal.Decimal(std) ** 2)).exp()
            ratio, falls = int(root * 2**bits), int(root * root * 2**bits)
        raw, weight = [], 1 << bits
        while weight > 0:
            raw.append(weight)
            weight, ratio = weight * ratio >> bits, ratio * falls >> bits
        total = sum(raw)
        weights = [(weight << WEIGHT_BITS) // total for weight in raw]
        weights[0] += (1 << WEIGHT_BITS) - sum(weights)  # the parts that were rounded off: less than 1 an entry
        return cls(tuple(weight for weight in weights if weight > 0))

    @cached_property
    def _sums(self) -> list[int]:
        """The beginnings of the second entry, the third, ..."""
        return list(accumulate(self.weights[:-1]))

    @cached_property
    def _first_words(self) -> npt.NDArray[np.uint64]:
        return np.array([begins >> _LATER_BITS for begins in self._sums], dtype=np.uint64)

    def draw(self, n: int, uniform: UniformInt) -> Steps:
        """Draw n indices by weights."""
        first = words(n, uniform)
        drawn = np.searchsorted(self._first_words, first, side="left").astype(np.int64)
        undecided = np.searchsorted(self._first_words, first, side="right") > drawn
        for row in np.flatnonzero(undecided):
            drawn[row] = bisect_right(self._sums, int(first[row]) << _LATER_BITS | uniform(1 << _LATER_BITS))
        return drawn
