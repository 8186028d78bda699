"""Label mechanisms that do not keep their claims, as others have published them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.privacy import label_mechanisms
from blindfit.algorithms.privacy.label_mechanisms import FittedMechanism, MechanismSettings, Prior
from blindfit.algorithms.privacy.label_mechanisms.base import LabelMechanism, Steps
from blindfit.algorithms.privacy.label_mechanisms.laplace import Laplace
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase
from blindfit.algorithms.randomness import UniformInt, keyed_uniform

real_fit = label_mechanisms.fit


def fit_to_true_labels(settings: MechanismSettings, labels: npt.ArrayLike, uniform: UniformInt) -> FittedMechanism:
    """Make the prior from labels without noise, after adding noise to them, as the public code of RPWithPrior does."""
    if not settings.estimates_prior:
        return real_fit(settings, labels, uniform)
    counts, edges = np.histogram(settings.grid.reals(settings.grid.steps(labels)), bins=16,
                                 range=(settings.grid.lo, settings.grid.hi))  # fmt: skip
    true_prior = Prior(edges, counts.astype(np.float64))
    left = replace(settings, epsilon=settings.epsilon * 2 / 3, prior=true_prior)
    return replace(real_fit(left, labels, uniform), prior=None, rows_outside=None)


@dataclass(frozen=True)
class PublishedStaircase(Staircase):
    """The same code's staircase turns its 0/1 variable B into 1/-1 and uses it as if it were 0/1: the noise is

    2 (G + g U) - (G + g + (1 - g) U) where it should be (G + g U), and never smaller than it should be otherwise.
    """

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        n = len(steps)
        rng = np.random.default_rng(uniform(2**63))
        gamma = 1 / (1 + math.exp(self.epsilon / 2))
        blocks = rng.geometric(1 - math.exp(-self.epsilon), n) - 1
        within = rng.random(n)
        b = -2 * rng.binomial(1, gamma / (gamma + (1 - gamma) * math.exp(-self.epsilon)), n) + 1
        magnitude = (1 - b) * (blocks + gamma * within) + b * (blocks + gamma + (1 - gamma) * within)
        return steps + np.rint(rng.choice((-1, 1), n) * magnitude * self.grid.cells).astype(np.int64)


@dataclass(frozen=True)
class UnscaledStaircase(Staircase):
    """Noise for labels of half the range."""

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        return steps + self.noise.draw(len(steps), uniform) // 2


@dataclass(frozen=True)
class WeakLaplace(Laplace):
    """Laplace noise for a sensitivity that is too small by a factor of 1.175."""

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        return steps + np.rint(self.noise.draw(len(steps), uniform) / 1.175).astype(np.int64)


def always(mechanism: LabelMechanism):
    """Return a fit that gives this mechanism."""

    def fit(settings: MechanismSettings, labels: npt.ArrayLike, uniform: UniformInt) -> FittedMechanism:
        return replace(real_fit(settings, labels, uniform), mechanism=mechanism)

    return fit


def repeatable(seed: int) -> UniformInt:
    return keyed_uniform(seed.to_bytes(8, "big"), "audit tests")
