"""The Gaussian mechanism: the noise that (epsilon, delta) needs, what a noise promises, the release itself.

A noise multiplier s is the noise's standard deviation over the L2 sensitivity. With x = epsilon s - 1/(2s)
and y = epsilon s + 1/(2s) the mechanism is (epsilon, delta)-DP exactly when (Balle and Wang 2018, Theorem 8)

    Phi(-x) - e^epsilon Phi(-y) <= delta.

phi being the normal density, e^epsilon phi(y) = phi(x); so with Mills' ratio M(t) = Phi(-t) / phi(t) the left
side is phi(x) (M(x) - M(y)), in which nothing overflows and little cancels.

Departures: the theorem is about the continuous Gaussian and the release draws the discrete one. At a standard
deviation of 2^16 grid steps or more nobody can tell them apart; less is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.privacy.discrete_gaussian import sample_vector
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.randomness import UniformInt

LEAST_STD_STEPS = 2**16
"""With a noise of a few steps the true delta was 3.9 times the claimed one at epsilon 10.5."""

_ROUNDING, _CANCELLATION = 1e-11, 1e-14
"""Cover what floating point loses in `gaussian_delta`: of the difference, and of the larger term in it."""


# --- what a noise promises ----------------------------------------------------------------------


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """The delta at this epsilon, rounded up; decreasing in both arguments."""
    from scipy.special import ndtr

    middle, half_width = epsilon * noise_multiplier, 0.5 / noise_multiplier
    x, y = middle - half_width, middle + half_width
    larger_term = float(ndtr(-x))
    if x < 0:  # where M(x) may overflow, and the terms differ
        delta = larger_term - _normal_density(x) * _mills_ratio(y)
    else:
        delta = _normal_density(x) * (_mills_ratio(x) - _mills_ratio(y))
    return min(1.0, delta * (1 + _ROUNDING) + larger_term * _CANCELLATION)


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """The least epsilon >= 0 at this delta, rounded up: it never reports less than was spent."""
    from scipy.special import ndtri

    check_delta(delta)
    if gaussian_delta(noise_multiplier, 0.0) <= delta:
        return 0.0
    # The privacy loss is N(1/(2 s^2), 1/s^2), and delta is at most the chance that it passes epsilon.
    inverse = 1 / noise_multiplier
    tail_bound = 0.5 * inverse * inverse - float(ndtri(delta / 2)) * inverse
    return _least(lambda epsilon: gaussian_delta(noise_multiplier, epsilon) <= delta, 0.0, tail_bound)


def _normal_density(t: float) -> float:
    return math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)


def _mills_ratio(t: float) -> float:
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2)))


def _least(holds: Callable[[float], bool], fails_at: float, holds_at: float) -> float:
    """The least float at which a condition holds that fails below some point and holds above it."""
    while fails_at < (middle := (fails_at + holds_at) / 2) < holds_at:
        if holds(middle):
            holds_at = middle
        else:
            fails_at = middle
    return holds_at


# --- how much noise a promise needs -------------------------------------------------------------


@lru_cache(maxsize=128)  # a job asks several times, and each time is fifty steps of a bisection
def analytic_noise_multiplier(epsilon: float, delta: float) -> float:
    """The least noise multiplier that is (epsilon, delta)-DP, rounded up (Balle and Wang 2018)."""
    from scipy.special import ndtri

    check_epsilon(epsilon)
    check_delta(delta)
    # Enough by the tail bound: the positive root of epsilon s - 1/(2s) = t, where Phi(-t) = delta/2.
    t = -float(ndtri(delta / 2))
    enough = (t + math.sqrt(t * t + 2 * epsilon)) / (2 * epsilon)
    return _least(lambda multiplier: gaussian_delta(multiplier, epsilon) <= delta, 0.0, enough)


def classic_noise_multiplier(epsilon: float, delta: float) -> float:
    """sqrt(2 ln(1.25 / delta)) / epsilon (Dwork and Roth 2014, Theorem A.1), proved for epsilon < 1 only."""
    check_epsilon(epsilon)
    check_delta(delta)
    if epsilon >= 1:
        raise ConfigError(
            f'privacy.mechanism = "classic" is proved for epsilon below 1 only, and it is {epsilon:g} here',
            hint='set privacy.mechanism = "analytic", which needs less noise at every epsilon',
        )
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


NOISE_MULTIPLIERS: dict[str, Callable[[float, float], float]] = {
    "analytic": analytic_noise_multiplier,
    "classic": classic_noise_multiplier,
}


def noise_multiplier(mechanism: str, epsilon: float, delta: float) -> float:
    """The noise multiplier of (epsilon, delta) by a mechanism's name."""
    if mechanism not in NOISE_MULTIPLIERS:
        raise ConfigError(f"privacy.mechanism must be one of {', '.join(NOISE_MULTIPLIERS)}, not {mechanism!r}")
    return NOISE_MULTIPLIERS[mechanism](epsilon, delta)


def check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"privacy.epsilon must be a finite number above 0, not {epsilon!r}")


def check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ConfigError(f"privacy.delta must lie between 0 and 1, both excluded, not {delta!r}")


# --- the release --------------------------------------------------------------------------------


@dataclass(frozen=True)
class GaussianMechanism:
    """Adds discrete Gaussian noise to integer sums on a fixed public grid.

    Args:
        noise_multiplier: the noise's standard deviation over the sensitivity.
        sensitivity_squared: the square of the L2 sensitivity, in grid steps squared: an integer, where the
            sensitivity itself seldom is one.

    Raises:
        RangeError: the noise is narrower than 2^16 steps.
    """

    noise_multiplier: float
    sensitivity_squared: int

    def __post_init__(self) -> None:
        if self.sigma_squared < LEAST_STD_STEPS**2:
            std = self.noise_multiplier * math.sqrt(self.sensitivity_squared)
            more = math.ceil(math.log2(LEAST_STD_STEPS / std)) if std else 1
            raise RangeError(
                f"a noise of {std:.4g} grid steps is too narrow for this grid",
                hint=f"use at least {more} more fraction bits (frac_bits), as the noise must be 2^16 steps wide",
            )

    @property
    def sigma_squared(self) -> int:
        """The noise's variance in steps squared, rounded up."""
        return math.ceil(Fraction(self.noise_multiplier) ** 2 * self.sensitivity_squared)

    def release(self, sums: Sequence[int], uniform: UniformInt) -> list[int]:
        """The noisy sums, in grid steps."""
        noise = sample_vector(len(sums), Fraction(self.sigma_squared), uniform)
        return [int(exact) + drawn for exact, drawn in zip(sums, noise, strict=True)]

    def event(self, neighbours: str) -> ReleaseEvent:
        """What the ledger must charge for one release."""
        return ReleaseEvent("gaussian", self.noise_multiplier, neighbours)
