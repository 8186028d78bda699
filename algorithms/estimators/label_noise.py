"""What a label mechanism does to labels all over their range: its mean, its variance, its law. All of it is public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms import LabelMechanism
from blindfit.algorithms.privacy.label_mechanisms.base import LEAST_SHARE
from blindfit.algorithms.statistics.linear.logistic import Floats

LABELS = 17  # where it is looked at
BINS = 96
MOST_POINTS = 128  # laws of more outputs are drawn as histograms
TAIL = 0.01  # left out of a histogram, on either side


@dataclass(frozen=True, repr=False)
class NoiseProfile:
    """Args:
    labels: from one end of the range to the other.
    means, variances: of what is released of each, after debiasing where that was asked for.
    """

    labels: Floats
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, mechanism: LabelMechanism, *, debias: bool) -> NoiseProfile:
        """Raise ConfigError: the mechanism cannot be debiased."""
        labels = np.linspace(mechanism.grid.lo, mechanism.grid.hi, LABELS)
        means = np.array([mechanism.mean(label) for label in labels])
        variances = np.array([mechanism.variance(label) for label in labels])
        if not debias:
            return cls(labels, means, variances)
        at_0, at_1 = mechanism.debias([0.0, 1.0])  # an affine map
        return cls(labels, mechanism.debias(means), variances * (at_1 - at_0) ** 2)

    @property
    def largest_bias(self) -> float:
        """Labels that the mechanism clips count, and so does rounding to its grid."""
        return float(np.abs(self.means - self.labels).max())

    @property
    def typical_std(self) -> float:
        """Over labels spread evenly."""
        return float(np.sqrt(self.variances.mean()))


def law_points(mechanism: LabelMechanism, label: float) -> dict[str, Any]:
    """Return the law of one label's output, fit to be drawn.

    Returns:
        label, outputs and density: probabilities of single outputs where there are few (`discrete`), else the density
        in equal bins, without the last percent on either side.
    """
    law = mechanism.law(label)
    outputs, chances = mechanism.grid.reals(law.outputs), law.probabilities
    if len(outputs) <= MOST_POINTS:
        return {"label": label, "discrete": True, "outputs": outputs.tolist(), "density": chances.tolist()}
    cumulative = np.cumsum(chances)
    first, last = np.searchsorted(cumulative, [TAIL * cumulative[-1], (1 - TAIL) * cumulative[-1]])
    if last - first < BINS:
        first, last = max(0, last - BINS), min(len(outputs) - 1, first + BINS)
    counts, edges = np.histogram(outputs[first : last + 1], BINS, weights=chances[first : last + 1])
    return {
        "label": label,
        "discrete": False,
        "outputs": ((edges[1:] + edges[:-1]) / 2).tolist(),
        "density": (counts / np.diff(edges)).tolist(),
    }


def epsilon_of_row(mechanism: str, epsilon: float, delta: float, rows_per_unit: int) -> float:
    """What one row's label may cost so that all rows of a unit, one after the other, cost `epsilon` at `delta`.

    Raises:
        ConfigError: delta alone allows noise too small for so many rows, so that no epsilon is left for one.
    """
    if mechanism != "gaussian":
        share = epsilon / rows_per_unit
        return share if rows_per_unit * share <= epsilon else math.nextafter(share, 0.0)
    if rows_per_unit == 1:
        return epsilon * (1 - 1e-9)  # an accountant's rounding would pass it
    multiplier = analytic_noise_multiplier(epsilon, delta) * rows_per_unit**0.5
    low, high = 0.0, epsilon
    while high - low > 1e-9 * epsilon:
        middle = (low + high) / 2
        low, high = (low, middle) if analytic_noise_multiplier(middle, delta) < multiplier else (middle, high)
    if low < LEAST_SHARE:
        raise ConfigError(
            f"gaussian: at epsilon {epsilon:g} and delta {delta:g}, {rows_per_unit} rows of a person leave no epsilon "
            "for one",
            hint="lower privacy.delta, raise privacy.epsilon, or lower privacy.max_rows_per_person",
        )
    return low  # the side that costs less


def event_of_unit(mechanism: str, epsilon: float, delta: float, neighbours: str) -> ReleaseEvent:
    """What an accountant composes, of a release of (epsilon, delta) for a whole unit."""
    if mechanism == "gaussian":
        return ReleaseEvent("gaussian", analytic_noise_multiplier(epsilon, delta), neighbours)
    return ReleaseEvent.pure(epsilon, neighbours)
