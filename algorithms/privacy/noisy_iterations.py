"""Many Gaussian releases in one run: the noise that each needs, and the epsilon that all of them spend.

Each iteration releases a sum of rows' contributions, each of norm at most C, with noise of standard deviation
noise_multiplier * sensitivity * C in each coordinate. The sensitivity is 2 if a neighbour replaces a row, and 1 if it
adds or removes one. All T together are exactly one Gaussian release of multiplier noise_multiplier / sqrt(T).

Where each iteration sums a Poisson sample of the rows, privacy_losses.py composes their losses, rounded up. The number
of iterations and their noise are fixed beforehand. The sample must stay secret: `UniformInt` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.events import (
    LEAST_MULTIPLIER,
    MOST_SAMPLED_RELEASES,
    WHOLE_ROWS,
    ReleaseEvent,
    Sampling,
)
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier, check_delta, check_epsilon, gaussian_epsilon
from blindfit.algorithms.privacy.privacy_losses import composed_epsilon, sampled_gaussian
from blindfit.algorithms.randomness import UniformInt

Neighbours = Literal["replace-one", "add-or-remove"]
Spending = Literal["run", "iteration"]

SENSITIVITY: dict[str, int] = {"replace-one": 2, "add-or-remove": 1}
"""Sensitivity of the sum over the largest norm of one row's contribution."""

MOST_ITERATIONS = MOST_SAMPLED_RELEASES
PROBABILITY_BITS = 32  # of a sampling probability
_ROUNDED_UP = 1e-3  # relative distance of a sampled run's noise from the least that is enough
_LEAST_GUESS = 0.3


@dataclass(frozen=True)
class RunPrivacy:
    """The privacy promise of a run, and the way it is spent.

    Args:
        epsilon, delta: promise for the whole run, or for each iteration.
        spending: "run" or "iteration": the subject of the promise.
        batch_fraction: probability that a row is in an iteration's sum, a multiple of 2^-32; 1 is all rows.
        neighbours: difference between two neighbouring data sets. For both kinds, the number by which sums are divided
            is public; for "replace-one", the number of rows is public too.
    """

    epsilon: float
    delta: float
    n_iterations: int
    batch_fraction: float = 1.0
    neighbours: Neighbours = "replace-one"
    spending: Spending = "run"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if isinstance(self.n_iterations, bool) or not isinstance(self.n_iterations, int | np.integer):
            raise ConfigError(f"n_iterations must be a whole number, not {self.n_iterations!r}")
        if not 1 <= self.n_iterations <= MOST_ITERATIONS:
            raise ConfigError(f"n_iterations must lie between 1 and {MOST_ITERATIONS}, not {self.n_iterations}")
        if self.neighbours not in get_args(Neighbours):
            raise ConfigError(f"neighbours must be one of {', '.join(get_args(Neighbours))}, not {self.neighbours!r}")
        if self.spending not in get_args(Spending):
            raise ConfigError(f"budget must be one of {', '.join(get_args(Spending))}, not {self.spending!r}")
        if not 0 < self.batch_fraction <= 1:
            raise ConfigError(f"batch_fraction must be above 0 and at most 1, not {self.batch_fraction!r}")
        steps = math.floor(self.batch_fraction * 2**PROBABILITY_BITS)
        if not steps:
            raise ConfigError(f"batch_fraction must be at least 2^-{PROBABILITY_BITS}, not {self.batch_fraction!r}")
        object.__setattr__(self, "batch_fraction", steps / 2**PROBABILITY_BITS)

    @property
    def sensitivity(self) -> int:
        return SENSITIVITY[self.neighbours]

    def noise_multiplier(self) -> float:
        """Return the noise of each iteration over the sensitivity."""
        return _noise_multiplier(self)

    def spent(self) -> float:
        """Return the epsilon of the whole run at `delta`."""
        return _spent(self)

    def signal_to_noise(self, n_rows: float, n_columns: int) -> float:
        """Return the largest possible ratio of signal to noise, for the sum over all iterations; it looks at no row.

        The signal is largest if all gradients have the largest norm and one direction; the noise is that of all
        coordinates.
        """
        noise = self.noise_multiplier() * self.sensitivity * math.sqrt(n_columns)
        return math.sqrt(self.n_iterations) * n_rows * self.batch_fraction / noise

    def event(self) -> ReleaseEvent:
        """Return the event of the whole run."""
        multiplier, neighbours = self.noise_multiplier(), WHOLE_ROWS[self.neighbours]
        if self.batch_fraction < 1:
            sampling = Sampling(self.batch_fraction, self.n_iterations, self.sensitivity)
            return ReleaseEvent("sampled-gaussian", multiplier, neighbours, sampling)
        return ReleaseEvent("gaussian", multiplier / math.sqrt(self.n_iterations), neighbours)


def run_epsilon(noise_multiplier: float, privacy: RunPrivacy) -> float:
    """Return the epsilon of all iterations with this noise at delta: exact for all rows, an upper bound for samples."""
    if privacy.batch_fraction == 1:
        return gaussian_epsilon(noise_multiplier / math.sqrt(privacy.n_iterations), privacy.delta)
    return _sampled_epsilon(noise_multiplier, privacy, privacy.n_iterations)


def parts_of(noise_multiplier: float, second_share: float) -> tuple[float, float]:
    """Return the multipliers of two releases that together are one of the given multiplier.

    1/m^2 = 1/m_1^2 + 1/m_2^2, the second term being `second_share` of the sum. It holds for samples too, where both
    are released on the same sample: they are one vector, whose parts are scaled until all of its noise is equal.
    """
    if not 0 < second_share < 1:
        raise ConfigError(f"a share of the budget must lie between 0 and 1, both excluded, not {second_share!r}")
    return noise_multiplier / math.sqrt(1 - second_share), noise_multiplier / math.sqrt(second_share)


def poisson_sample(n_rows: int, batch_fraction: float, uniform: UniformInt) -> NDArray[np.bool_]:
    """Draw the rows of a sum: each is in it with this probability, independently."""
    # One large integer: a call for each row would cost more than its gradient.
    octets = PROBABILITY_BITS // 8 * n_rows
    words = np.frombuffer(uniform(1 << 8 * octets).to_bytes(octets, "little"), dtype="<u4")
    chosen: NDArray[np.bool_] = words < int(batch_fraction * 2**PROBABILITY_BITS)  # rounded down: never more often
    return chosen


@lru_cache(maxsize=256)
def _noise_multiplier(privacy: RunPrivacy) -> float:
    composed = privacy.n_iterations if privacy.spending == "run" else 1
    without_sampling = analytic_noise_multiplier(privacy.epsilon, privacy.delta) * math.sqrt(composed)
    if privacy.batch_fraction == 1:
        return without_sampling
    guess = max(without_sampling * privacy.batch_fraction, _LEAST_GUESS)
    return _min_multiplier(lambda noise: _sampled_epsilon(noise, privacy, composed), privacy.epsilon, guess)


@lru_cache(maxsize=256)
def _spent(privacy: RunPrivacy) -> float:
    if privacy.spending == "run":
        return privacy.epsilon  # the noise was calibrated to it
    return run_epsilon(privacy.noise_multiplier(), privacy)


def _min_multiplier(spent: Callable[[float], float], epsilon: float, guess: float) -> float:
    """Return the least noise multiplier that spends at most epsilon, rounded up.

    Raises:
        ConfigError: the promise would hold without any noise.
    """
    from scipy.optimize import brentq

    enough = too_small = guess
    while spent(enough) > epsilon:
        enough, too_small = 2 * enough, enough
    while spent(too_small) <= epsilon:
        enough, too_small = too_small, too_small / 2
        if too_small < LEAST_MULTIPLIER:
            raise ConfigError(
                "privacy.delta is as large as the chance that a row is in any sample: no noise would be added",
                hint="use a smaller privacy.delta, a larger batch_fraction or more iterations",
            )

    def excess(log_multiplier: float) -> float:
        return math.log(max(spent(math.exp(log_multiplier)), 1e-300) / epsilon)

    nearest = brentq(excess, math.log(too_small), math.log(enough), xtol=_ROUNDED_UP / 4)
    multiplier = math.exp(nearest + _ROUNDED_UP / 4)
    while spent(multiplier) > epsilon:
        multiplier *= 1 + _ROUNDED_UP / 4
    return multiplier


def _sampled_epsilon(noise_multiplier: float, privacy: RunPrivacy, n_iterations: int) -> float:
    release = sampled_gaussian(noise_multiplier, privacy.batch_fraction, privacy.sensitivity)
    return composed_epsilon([(release, n_iterations)], privacy.delta)
