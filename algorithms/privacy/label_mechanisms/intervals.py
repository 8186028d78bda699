"""The outputs of the rp mechanisms: an interval [A1, A2] of labels and a half width h around each label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.label_mechanisms.base import Floats, LabelGrid, LabelMechanism, Steps
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior

LEAST_SHARE, MOST_SHARE = 0.005, 0.995
"""Shares of the prior below A1 and A2, if the half width is ours to choose."""


@dataclass(frozen=True)
class IntervalMechanism(LabelMechanism):
    """A mechanism that clips labels to low..high and favours outputs near a label, within half_steps of it.

    Args:
        low: A1 on the grid.
        high: A2 on the grid, above A1.
        half_steps: h in steps.
    """

    low: int
    high: int
    half_steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.low < self.high <= self.grid.cells:
            raise DataError(f"{self.name}: low and high must ascend within 0..{self.grid.cells}")
        if not 1 <= self.half_steps <= self.grid.cells:
            raise DataError(f"{self.name}: half_steps must lie in 1..{self.grid.cells}, not {self.half_steps}")

    @property
    def length(self) -> int:
        return self.high - self.low

    @property
    def window(self) -> int:
        """Number of outputs that a label favours."""
        return 2 * self.half_steps + 1

    def clip(self, steps: Steps) -> Steps:
        return np.clip(steps, self.low, self.high)

    def share_outside(self, prior: Prior) -> float:
        """Return the prior's mass outside [A1, A2]."""
        low, high = self.grid.reals([self.low, self.high])
        below, upto = prior.mass_below([low, high])
        return float(below + 1 - upto)

    def _own_parameters(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "half_steps": self.half_steps}


# --- a half width is given ----------------------------------------------------------------------


def likeliest_interval(prior: Prior, grid: LabelGrid, half_width: float, epsilon: float) -> tuple[int, int]:
    """Return the interval that makes P(|output - label| <= h) greatest: mass / (2h + e^-epsilon length), length >= 2h.

    On a pair of the prior's cells this is linear-fractional in both ends, so it is greatest where both ends are edges,
    or one is and the length is 2h. Prefix sums make it O(cells^2) time and O(cells) space.
    """
    edges = _edges_within(prior, grid)
    if grid.width <= 2 * half_width:
        return 0, grid.cells
    best = (-1.0, grid.lo, grid.hi)
    for start in edges[:-1]:
        ends = np.append(edges[edges >= start + 2 * half_width], start + 2 * half_width)
        best = max(best, _best_end(prior, start, ends[ends <= grid.hi], half_width, epsilon))
    short = edges[edges - 2 * half_width >= grid.lo]
    best = max([best, *(_best_end(prior, end - 2 * half_width, np.array([end]), half_width, epsilon) for end in short)])
    return _on_grid(grid, best[1], best[2])


def _best_end(
    prior: Prior, start: float, ends: Floats, half_width: float, epsilon: float
) -> tuple[float, float, float]:
    if not ends.size:
        return -1.0, start, start
    mass = prior.mass_below(ends) - prior.mass_below(start)
    value = mass / (2 * half_width + math.exp(-epsilon) * (ends - start))
    at = int(np.argmax(value))
    return float(value[at]), float(start), float(ends[at])


def _edges_within(prior: Prior, grid: LabelGrid) -> Floats:
    return np.unique(np.clip(np.concatenate(([grid.lo], prior.edges, [grid.hi])), grid.lo, grid.hi))


def _on_grid(grid: LabelGrid, low: float, high: float) -> tuple[int, int]:
    """Return the nearest integers, at least one apart."""
    first = min(grid.step_of(low), grid.cells - 1)
    return first, max(grid.step_of(high), first + 1)


# --- the half width is ours to choose -----------------------------------------------------------


def steadiest_interval(prior: Prior, grid: LabelGrid, epsilon: float) -> tuple[int, int, int]:
    """Return low, high, half_steps: nearly all of the prior, and the h of least variance after debiasing.

    Noise averages out in training, but the bias of clipping does not. So the interval is wide, and h is chosen last.
    Time and space O(cells of the grid).
    """
    low, high = _on_grid(grid, prior.quantile(LEAST_SHARE), prior.quantile(MOST_SHARE))
    at = np.clip(np.arange(grid.cells + 1), low, high)
    spread = float(prior.of_steps(grid) @ (at - (low + high) / 2) ** 2)
    half = np.arange(1, grid.cells + 1)
    return low, high, int(half[np.argmin(debiased_variances(epsilon, high - low, half, spread))])


def debiased_variances(epsilon: float, length: int, half: Steps, spread: float) -> Floats:
    """Return variances in steps squared; `spread` is the mean squared distance of labels from the interval's middle."""
    window, size = 2.0 * half + 1, 2.0 * half + 1 + length
    near = window * math.expm1(epsilon) / (window * math.exp(epsilon) + length)
    inside, everywhere = (window**2 - 1) / 12, (size**2 - 1) / 12
    return np.asarray((near * inside + (1 - near) * everywhere + near * (1 - near) * spread) / near**2)
