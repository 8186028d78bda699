"""Randomised response on bins: a label's bin is kept with weight e^epsilon against 1 for each of the other bins.

With a prior p the expected squared error of bins B_1 .. B_d with the best values is

    sum_j L(B_j) / (d - 1 + e^epsilon),    L(B) = S2 - S1^2 / S0,
    S_m = sum over all y of p y^m + (e^epsilon - 1) * sum over y in B of p y^m,    value of B = S1 / S0.

Dinkelbach's method (1967) finds the bins that make a ratio of two sums least. At t, it takes the bins that make
sum_j (L(B_j) - t) - t (e^epsilon - 1) least, then their ratio as the next t, until the ratio falls no further. Each
round is one dynamic program over the nodes with no count of bins in its state. This is exact, and needs no quadrangle
inequality, which L does not have: two bins on the same side of the prior's mean break it.

Source: Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan, Zhang 2023 (ICLR, arXiv 2212.06074). Theirs takes
O(k^2 d) time and O(k d) space for k values and up to d bins; here O(k^2) for each of about five rounds, and O(k).
Drawing is O(n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy.label_mechanisms.base import Floats, LabelGrid, Law, NotDebiasable, Steps
from blindfit.algorithms.privacy.label_mechanisms.drawing import below, heavier, loss_of_weights
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior
from blindfit.algorithms.randomness import UniformInt

MOST_NODES = 10_000
_EDGES = 2**12  # places where a bin may begin, if labels are not rounded


@dataclass(frozen=True)
class RROnBins(NotDebiasable):
    """Randomised response on bins of labels.

    Args:
        starts: the first grid integer of each bin, ascending from 0.
        values: each bin's output, on the grid.
    """

    name = "rr-on-bins"
    starts: tuple[int, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = all(a < b for a, b in pairwise(self.starts))
        if not self.starts or self.starts[0] != 0 or not rising or self.starts[-1] > self.grid.cells:
            raise DataError(f"rr-on-bins: starts must ascend from 0 and stay in 0..{self.grid.cells}")
        if len(self.values) != len(self.starts) or not all(0 <= v <= self.grid.cells for v in self.values):
            raise DataError(f"rr-on-bins: there must be one value in 0..{self.grid.cells} for each bin")

    @classmethod
    def optimal(cls, grid: LabelGrid, epsilon: float, prior: Prior, rounding: float | None) -> RROnBins:
        """Find the bins of least expected squared error; with a rounding, for labels rounded down to its multiples."""
        mass, first = prior.of_steps(grid), nodes(grid, rounding)
        if rounding is not None:
            moments = np.add.reduceat(mass, first) * first.astype(np.float64) ** np.arange(3)[:, None]
        else:
            label = np.arange(grid.cells + 1, dtype=np.float64)
            moments = np.stack([np.add.reduceat(mass * label**power, first) for power in range(3)])
        starts, values = optimal_bins(moments, math.exp(epsilon))
        steps = np.clip(np.rint(values), 0, grid.cells).astype(np.int64)
        return cls(grid, epsilon, tuple(first[starts].tolist()), tuple(steps.tolist()))

    @cached_property
    def _weights(self) -> tuple[int, int]:
        """Weights of a kept bin and of any other."""
        other = max(1, math.floor(2**62 / (math.exp(self.epsilon) + len(self.starts))))
        return heavier(other, self.epsilon), other

    def privacy_loss(self) -> tuple[float, float]:
        """Return the loss; bins with the same value are one output, and reveal less."""
        kept, other = self._weights
        _, bins = np.unique(self.values, return_counts=True)
        fewest = int(bins.min()) * other
        return (loss_of_weights(kept - other + fewest, fewest), 0.0) if len(bins) > 1 else (0.0, 0.0)

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        kept, other = self._weights
        bins = self._bins(steps)
        drawn = below(kept - other + len(self.starts) * other, len(steps), uniform)
        swapped = drawn >= np.uint64(kept - other)
        bins[swapped] = ((drawn[swapped] - np.uint64(kept - other)) // np.uint64(other)).astype(np.int64)
        return np.asarray(self.values, dtype=np.int64)[bins]

    def law(self, label: float) -> Law:
        kept, other = self._weights
        outputs, bin_output = np.unique(np.array(self.values, dtype=np.int64), return_inverse=True)
        weights = np.zeros(len(outputs), dtype=object)
        np.add.at(weights, bin_output, other)
        weights[bin_output[self._bins(np.array([self.grid.step_of(label)]))[0]]] += kept - other
        return Law.of_weights(outputs, weights)

    def _bins(self, steps: Steps) -> Steps:
        return (np.searchsorted(self.starts, steps, side="right") - 1).astype(np.int64)

    def _own_parameters(self) -> dict[str, Any]:
        return {"starts": list(self.starts), "values": list(self.values)}


def nodes(grid: LabelGrid, rounding: float | None) -> Steps:
    """Return the places where bins may begin, for every prior.

    Raises:
        ConfigError: there are too many places.
    """
    unit = grid.steps_of_width(rounding) if rounding is not None else math.ceil((grid.cells + 1) / _EDGES)
    first: Steps = np.arange(0, grid.cells + 1, unit)
    if len(first) > MOST_NODES:
        raise ConfigError(f"rr-on-bins: {len(first)} values are more than {MOST_NODES}", hint="round more coarsely")
    return first


# --- the optimal bins ---------------------------------------------------------------------------


def optimal_bins(moments: Floats, ratio: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the first node of each bin and the bins' values.

    Args:
        moments: (3, k): sums of p, p y and p y^2 for each node; the p sum to 1.
        ratio: e^epsilon.
    """
    mean = moments[1].sum()
    p, s = moments[0], moments[1] - mean * moments[0]  # about the mean, where less cancels
    squares = moments[2] - 2 * mean * moments[1] + mean**2 * moments[0]
    sums = np.concatenate((np.zeros((3, 1)), np.cumsum([p, s, squares], axis=1)), axis=1)
    starts = np.zeros(1, dtype=np.int64)
    best = error_of_bins(sums, starts, ratio)
    while (error := error_of_bins(sums, found := _cheapest_bins(sums, best, ratio), ratio)) < best:
        starts, best = found, error
    ends = np.append(starts[1:], len(p))
    mass, first = (sums[m][ends] - sums[m][starts] for m in (0, 1))
    return starts, mean + (ratio - 1) * first / (1 + (ratio - 1) * mass)


def error_of_bins(sums: Floats, starts: npt.NDArray[np.int64], ratio: float) -> float:
    """Return the expected squared error; `sums` are running sums of central moments, as in `optimal_bins`."""
    ends = np.append(starts[1:], sums.shape[1] - 1)
    costs = _costs(sums, starts, ends, ratio)
    return float(costs.sum() / (len(starts) - 1 + ratio))


def _cheapest_bins(sums: Floats, price: float, ratio: float) -> npt.NDArray[np.int64]:
    """Return the bins of least sum of L - price."""
    nodes = sums.shape[1] - 1
    least, previous = np.zeros(nodes + 1), np.zeros(nodes + 1, dtype=np.int64)
    for end in range(1, nodes + 1):
        totals = least[:end] + _costs(sums, slice(0, end), end, ratio)
        previous[end] = start = int(np.argmin(totals))
        least[end] = totals[start] - price
    starts = [int(previous[nodes])]
    while starts[-1]:
        starts.append(int(previous[starts[-1]]))
    return np.array(starts[::-1], dtype=np.int64)


def _costs(sums: Floats, starts: Any, ends: Any, ratio: float) -> Floats:
    """Return L of bins of nodes starts..ends - 1. The mean is 0, so sums over all labels are 1, 0 and the variance."""
    mass = sums[0][ends] - sums[0][starts]
    first = sums[1][ends] - sums[1][starts]
    second = sums[2][ends] - sums[2][starts]
    gain = ratio - 1
    return np.asarray(sums[2][-1] + gain * second - (gain * first) ** 2 / (1 + gain * mass))
