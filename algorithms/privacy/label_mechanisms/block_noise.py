"""Noise on the integers that is geometric over blocks and has any law within a block: Laplace, staircase.

With P cells a block, weights w_0 >= .. >= w_{P-1} and W_q ~ beta^q,

    P(noise = k) ~ W_q w_r,   |k| = q P + r.

The law is symmetric and falls with |k|, so moving it by up to P changes a probability at most by max W_q / W_{q+1}:
epsilon depends only on the blocks, for every rounding of the table w.

The number of the block is drawn by its binary digits, which are independent Bernoulli variables for a geometric law
(digit i with odds beta^(2^i)). Its highest part is drawn by trials with beta^(2^I) < 1/2. So few words are needed even
where beta is near 1. The thresholds are integers, hence so is every ratio of weights, and the largest one is known
exactly.

Time O(n (1 + log(1/epsilon))) for n labels and O(P) once; space O(n + P).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.privacy.label_mechanisms.base import LabelMechanism, Law, Steps
from blindfit.algorithms.privacy.label_mechanisms.drawing import (
    WORD,
    bernoulli,
    exp_bounds,
    from_cumulative,
    loss_of_ratio,
    symmetric,
)
from blindfit.algorithms.randomness import UniformInt

_MARGIN = 1e-12
"""Relative to epsilon: more than rounding the thresholds can add to it."""

_WINDOW, _TAIL = 2**14, 1e-15


@dataclass(frozen=True)
class GeometricBlocks:
    """The law of the block's number: P(q) ~ e^(-epsilon q), by thresholds over 2^64."""

    digits: tuple[int, ...]
    top: int

    @classmethod
    def of(cls, epsilon: float) -> GeometricBlocks:
        inner = epsilon * (1 - _MARGIN)
        count = max(0, math.ceil(math.log2(math.log(2) / epsilon)))
        odds = [exp_bounds(-inner * 2**i)[1] for i in range(count + 1)]
        digits = tuple(round(WORD * x / (1 + x)) for x in odds[:-1])
        return cls(digits, math.ceil(WORD * odds[-1]))

    @cached_property
    def ratios(self) -> list[Fraction]:
        """Values that W_q / W_{q+1} takes: adding 1 clears some ones and sets the digit after them."""
        cleared, ratios = Fraction(1), []
        for threshold in self.digits:
            odds = Fraction(threshold, WORD - threshold)
            ratios.append(cleared / odds)
            cleared *= odds
        return [*ratios, cleared / Fraction(self.top, WORD)]

    def draw(self, n: int, uniform: UniformInt) -> Steps:
        number = np.zeros(n, dtype=np.int64)
        for place, threshold in enumerate(self.digits):
            number += bernoulli(threshold, n, uniform).astype(np.int64) << place
        going_on = np.arange(n)
        while going_on.size:
            going_on = going_on[bernoulli(self.top, going_on.size, uniform)]
            number[going_on] += 1 << len(self.digits)
        return number

    def weights(self, count: int) -> list[int]:
        """Return W_0 .. W_{count-1} as integers of one scale."""
        place = len(self.digits)
        most = (count - 1) >> place
        return [self._low_weight(q) * self.top ** (q >> place) * WORD ** (most - (q >> place)) for q in range(count)]

    def _low_weight(self, number: int) -> int:
        return math.prod(t if number >> i & 1 else WORD - t for i, t in enumerate(self.digits))


@dataclass(frozen=True, eq=False)
class BlockNoise:
    """Noise that is geometric over blocks.

    Args:
        epsilon: privacy of labels up to one block apart.
        blocks: the law of the block.
        table: w, uint64, falling; its sum is below 2^64.
    """

    epsilon: float
    blocks: GeometricBlocks
    table: npt.NDArray[np.uint64]

    def __post_init__(self) -> None:
        falls = (self.table[1:] <= self.table[:-1]).all() and self.table[-1] > 0
        if not falls or Fraction(int(self.table[0]), int(self.table[-1])) > min(self.blocks.ratios):
            raise RangeError(
                f"64 bits do not hold a noise of epsilon {self.epsilon:g} on {len(self.table)} cells",
                hint="use fewer cells",
            )

    @property
    def privacy_loss(self) -> float:
        return loss_of_ratio(max(self.blocks.ratios))

    @cached_property
    def _cumulative(self) -> npt.NDArray[np.uint64]:
        return np.cumsum(self.table, dtype=np.uint64)

    def draw(self, n: int, uniform: UniformInt) -> Steps:
        return symmetric(lambda count: self._magnitudes(count, uniform), n, uniform)

    def _magnitudes(self, n: int, uniform: UniformInt) -> Steps:
        return self.blocks.draw(n, uniform) * len(self.table) + from_cumulative(self._cumulative, n, uniform)

    @cached_property
    def variance(self) -> float:
        """Variance of the noise, in steps squared."""
        beta, size = math.exp(-self.epsilon), len(self.table)
        w = self.table / float(self._cumulative[-1])
        r = np.arange(size, dtype=np.float64)
        q, q_squared = beta / (1 - beta), beta * (1 + beta) / (1 - beta) ** 2
        square = size**2 * q_squared + 2 * size * q * (w @ r) + w @ r**2
        return float(square / (1 - (1 - beta) * w[0] / 2))

    def law_at(self, step: int) -> Law:
        """Return the law of step + noise: a window of at most 2^14 outputs, or 2 blocks."""
        size, beta = len(self.table), math.exp(-self.epsilon)
        count = max(1, min(math.ceil(math.log(_TAIL) / -self.epsilon), _WINDOW // (2 * size)))
        of_block = beta ** np.arange(count) * (1 - beta)
        half = np.outer(of_block, self.table / float(self._cumulative[-1])).ravel()
        kept = 1 - half[0] / 2
        exact = np.outer(np.array(self.blocks.weights(count), dtype=object), self.table.astype(object)).ravel()
        reach = np.arange(1 - half.size, half.size)
        return Law(
            outputs=step + reach.astype(np.int64),
            probabilities=np.where(reach == 0, half[0] / 2, half[np.abs(reach)] / 2) / kept,
            weights=exact[np.abs(reach)],
            tail=float(beta**count / kept),
        )


class BlockMechanism(LabelMechanism):
    """A label mechanism that adds such noise; one block is the labels' range."""

    @property
    @abstractmethod
    def noise(self) -> BlockNoise: ...

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        return steps + self.noise.draw(len(steps), uniform)

    def law(self, label: float) -> Law:
        return self.noise.law_at(self.grid.step_of(label))

    def privacy_loss(self) -> tuple[float, float]:
        return self.noise.privacy_loss, 0.0

    def mean(self, label: float) -> float:
        return float(self.grid.reals(self.grid.step_of(label)))

    def variance(self, label: float) -> float:
        del label  # the noise is the same everywhere
        return self.noise.variance * self.grid.step**2
