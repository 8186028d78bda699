"""The mechanism that brings an output within half_steps of its label as often as epsilon allows.

With w = 2 half_steps + 1 outputs near a label and interval length L, let n = floor(L / w) and r = L mod w. The outputs
are only the numbers on the n + 1 bands A1 - half_steps + w j + [r, w). Every window of w neighbours meets exactly w - r
of them, so a weight of e^epsilon within the window and 1 on the other bands gives

    P(|output - label| <= h) = e^epsilon / (e^epsilon + n),

above the e^epsilon / (e^epsilon + L / w) of a law without gaps unless L / w is an integer. It is the optimum of the
linear program over all laws. While a label moves through a gap its output's law does not change: no map can debias it.

Source: ours, for the problem of Liu et al. 2025, "RPWithPrior", equation 3.3, whose Lemma 3.3 gives the law without
gaps. Drawing is O(n) time and space; the interval O(cells of the prior * D / w) time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from blindfit.algorithms.privacy.label_mechanisms.base import Floats, LabelGrid, Law, NotDebiasable, Steps
from blindfit.algorithms.privacy.label_mechanisms.drawing import below, heavier, loss_of_weights
from blindfit.algorithms.privacy.label_mechanisms.intervals import IntervalMechanism
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior
from blindfit.algorithms.randomness import UniformInt


@dataclass(frozen=True)
class RPBanded(NotDebiasable, IntervalMechanism):
    name = "rp-banded"

    @classmethod
    def optimal(cls, grid: LabelGrid, epsilon: float, prior: Prior, half_width: float) -> RPBanded:
        half_steps = grid.steps_of_width(half_width)
        return cls(grid, epsilon, *nearest_interval(prior, grid, half_steps, epsilon), half_steps)

    @property
    def _gap(self) -> int:
        return self.length % self.window

    @property
    def _other_bands(self) -> int:
        return self.length // self.window

    @cached_property
    def _weights(self) -> tuple[int, int]:
        """Weights of an output near the label and of any other on the bands."""
        other = max(1, math.floor(2**62 / (math.exp(self.epsilon) + self._other_bands)))
        return heavier(other, self.epsilon), other

    @property
    def nearness(self) -> float:
        """P(|output - label| <= half width) for labels in [A1, A2]."""
        near, other = self._weights
        return near / (near + other * self._other_bands)

    def privacy_loss(self) -> tuple[float, float]:
        return (loss_of_weights(*self._weights), 0.0) if self._other_bands else (0.0, 0.0)

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        near, other = self._weights
        drawn = below(near + other * self._other_bands, len(steps), uniform)
        residue = self._gap + below(self.window - self._gap, len(steps), uniform).astype(np.int64)
        favoured = np.uint64(near - other)
        start = self.clip(steps) - self.low
        in_window = start + (residue - start) % self.window
        on_bands = ((drawn - favoured) // np.uint64(other)).astype(np.int64) * self.window + residue
        return self.low - self.half_steps + np.where(drawn < favoured, in_window, on_bands)

    def law(self, label: float) -> Law:
        near, other = self._weights
        places = np.arange(self.window * (self._other_bands + 1))
        outputs = self.low - self.half_steps + places[places % self.window >= self._gap]
        centre = int(self.clip(self.grid.steps([label]))[0])
        weights = np.full(len(outputs), other, dtype=object)
        weights[np.abs(outputs - centre) <= self.half_steps] = near
        return Law.of_weights(outputs, weights)


def nearest_interval(prior: Prior, grid: LabelGrid, half_steps: int, epsilon: float) -> tuple[int, int]:
    """Return the interval of greatest mass * nearness: the longest for a number of bands, where its mass is greatest.

    The mass of an interval of one length is linear while no end passes an edge of the prior, so one end is at an edge.
    """
    window, at_edges = 2 * half_steps + 1, grid.steps(prior.edges)
    best, interval = -1.0, (0, grid.cells)
    for others in range(grid.cells // window + 1):
        nearness = 1 / (1 + others * math.exp(-epsilon))
        if nearness <= best:
            break
        length = min((others + 1) * window - 1, grid.cells)
        starts = np.unique(np.clip(np.concatenate((at_edges, at_edges - length)), 0, grid.cells - length))
        masses = _masses(prior, grid, starts, length)
        at = int(np.argmax(masses))
        if (value := nearness * float(masses[at])) > best:
            best, interval = value, (int(starts[at]), int(starts[at]) + length)
    return interval


def _masses(prior: Prior, grid: LabelGrid, starts: Steps, length: int) -> Floats:
    return prior.mass_below(grid.reals(starts + length)) - prior.mass_below(grid.reals(starts))
