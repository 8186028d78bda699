"""Response privacy with a prior: weight e^epsilon within half_steps of the label, 1 elsewhere on the outputs.

With [A1, A2] of length L and h = half_steps the outputs are A1 - h .. A2 + h, and the law is a mixture: with
probability a = (2h + 1)(e^epsilon - 1) / ((2h + 1) e^epsilon + L) uniform within h of the label, else uniform on all
outputs. Hence E[output] = a label + (1 - a)(A1 + A2)/2. This bias is affine and is removed exactly for labels in
[A1, A2]; other labels are clipped to the interval first, and that bias stays.

Source: Liu et al. 2025, "RPWithPrior: Label Differential Privacy in Regression", Algorithms 1 to 4. Departures: labels
outside [A1, A2] are clipped, which is one of the laws the paper's Remark 3.4 admits; debiasing and the choice of the
half width are ours. Drawing is O(n) time and space; the choice of interval is in `intervals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.privacy.label_mechanisms.base import Floats, LabelGrid, Law, Steps
from blindfit.algorithms.privacy.label_mechanisms.drawing import WORD, below, heavier, loss_of_weights
from blindfit.algorithms.privacy.label_mechanisms.intervals import (
    IntervalMechanism,
    likeliest_interval,
    steadiest_interval,
)
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior
from blindfit.algorithms.randomness import UniformInt


@dataclass(frozen=True)
class RPWithPrior(IntervalMechanism):
    name = "rp-with-prior"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._total >= WORD:
            raise RangeError(f"64 bits do not hold {self.name} at epsilon {self.epsilon:g}", hint="use fewer cells")

    @classmethod
    def optimal(cls, grid: LabelGrid, epsilon: float, prior: Prior, half_width: float | Literal["auto"]) -> RPWithPrior:
        if half_width == "auto":
            return cls(grid, epsilon, *steadiest_interval(prior, grid, epsilon))
        low, high = likeliest_interval(prior, grid, half_width, epsilon)
        return cls(grid, epsilon, low, high, grid.steps_of_width(half_width))

    @cached_property
    def _weights(self) -> tuple[int, int]:
        """Weights of an output near the label and of any other."""
        other = max(1, math.floor(2**62 / (math.exp(self.epsilon) * self.window + self.length)))
        return heavier(other, self.epsilon), other

    @cached_property
    def _total(self) -> int:
        near, other = self._weights
        return near * self.window + other * self.length

    @property
    def share_near(self) -> float:
        """a: the part of a label's distance from the middle that is left in the output's mean."""
        near, other = self._weights
        return (near - other) * self.window / self._total

    def privacy_loss(self) -> tuple[float, float]:
        return loss_of_weights(*self._weights), 0.0

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        near, other = self._weights
        drawn = below(self._total, len(steps), uniform)
        favoured = (near - other) * self.window
        anywhere = drawn >= np.uint64(favoured)
        place = np.where(anywhere, (drawn - np.uint64(favoured)) // np.uint64(other), drawn // np.uint64(near - other))
        origin = np.where(anywhere, self.low, self.clip(steps)) - self.half_steps
        return origin + place.astype(np.int64)

    def law(self, label: float) -> Law:
        near, other = self._weights
        outputs = np.arange(self.low - self.half_steps, self.high + self.half_steps + 1)
        centre = int(self.clip(self.grid.steps([label]))[0])
        weights = np.full(len(outputs), other, dtype=object)
        weights[np.abs(outputs - centre) <= self.half_steps] = near
        return Law.of_weights(outputs, weights)

    def debias(self, outputs: npt.ArrayLike) -> Floats:
        middle = float(self.grid.reals((self.low + self.high) / 2))
        return middle + (super().debias(outputs) - middle) / self.share_near
