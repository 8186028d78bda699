"""The effect of a label mechanism on labels over their whole range: mean, variance and law. All of it is public."""

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

LABELS = 17  # number of labels at which the effect is computed
BINS = 96
MOST_POINTS = 128  # laws of more outputs are drawn as histograms
TAIL = 0.01  # share of the outputs that a histogram omits on either side


@dataclass(frozen=True, repr=False)
class NoiseProfile:
    """Means and variances of the released labels.

    Args:
        labels: labels from one end of the range to the other.
        means, variances: mean and variance of each label's release, after debiasing if the job debiases.
    """

    labels: Floats
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, mechanism: LabelMechanism, *, debias: bool) -> NoiseProfile:
        """Compute the profile of a mechanism.

        Args:
            debias: True for the profile after debiasing.

        Raises:
            ConfigError: the mechanism cannot be debiased.
        """
        labels = np.linspace(mechanism.grid.lo, mechanism.grid.hi, LABELS)
        means = np.array([mechanism.mean(label) for label in labels])
        variances = np.array([mechanism.variance(label) for label in labels])
        if not debias:
            return cls(labels, means, variances)
        at_0, at_1 = mechanism.debias([0.0, 1.0])  # an affine map
        return cls(labels, mechanism.debias(means), variances * (at_1 - at_0) ** 2)

    @property
    def largest_bias(self) -> float:
        """Largest distance of a mean from its label. Clipping and rounding to the grid count."""
        return float(np.abs(self.means - self.labels).max())

    @property
    def typical_std(self) -> float:
        """Root of the mean variance over evenly spread labels."""
        return float(np.sqrt(self.variances.mean()))


def law_points(mechanism: LabelMechanism, label: float) -> dict[str, Any]:
    """Return the law of one label's output in a form for a chart.

    Returns:
        Keys `label`, `outputs`, `density` and `discrete`. If there are few outputs, `discrete` is True and `density`
        has their probabilities. Otherwise it is the density in equal bins, without the last percent on either side.
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
    """Return the epsilon of one row's label with which all rows of a unit together cost `epsilon` at `delta`.

    Raises:
        ConfigError: the noise that `delta` by itself requires is too small for so many rows, so no epsilon is left for
            one row.
    """
    if mechanism != "gaussian":
        share = epsilon / rows_per_unit
        return share if rows_per_unit * share <= epsilon else math.nextafter(share, 0.0)
    if rows_per_unit == 1:
        return epsilon * (1 - 1e-9)  # with all of epsilon, an accountant's rounding would exceed it
    multiplier = analytic_noise_multiplier(epsilon, delta) * rows_per_unit**0.5
    low, high = 0.0, epsilon
    while high - low > 1e-9 * epsilon:
        middle = (low + high) / 2
        low, high = (low, middle) if analytic_noise_multiplier(middle, delta) < multiplier else (middle, high)
    if low < LEAST_SHARE:
        raise ConfigError(
            f"gaussian: at epsilon {epsilon:g} and delta {delta:g}, {rows_per_unit} rows of a person leave no epsilon "
            "for one row",
            hint="lower privacy.delta, raise privacy.epsilon, or lower privacy.max_rows_per_person",
        )
    return low  # the end of the interval that costs less


def event_of_unit(mechanism: str, epsilon: float, delta: float, neighbours: str) -> ReleaseEvent:
    """Return the event that an accountant composes for a release of (epsilon, delta) for a whole unit."""
    if mechanism == "gaussian":
        return ReleaseEvent("gaussian", analytic_noise_multiplier(epsilon, delta), neighbours)
    return ReleaseEvent.pure(epsilon, neighbours)
