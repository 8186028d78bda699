"""The Gaussian mechanism: the noise that (epsilon, delta) needs, the promise of a noise, the release itself.

A noise multiplier s is the noise's standard deviation over the L2 sensitivity. With x = epsilon s - 1/(2s)
and y = epsilon s + 1/(2s) the mechanism is (epsilon, delta)-DP exactly when (Balle and Wang 2018, Theorem 8)

    Phi(-x) - e^epsilon Phi(-y) <= delta.

phi being the normal density, e^epsilon phi(y) = phi(x); so with Mills' ratio M(t) = Phi(-t) / phi(t) the left
side is phi(x) (M(x) - M(y)), in which nothing overflows and little cancels.

Departures: the theorem is about the continuous Gaussian, and the release draws the discrete one. At a standard
deviation of 2^16 grid steps or more the two are indistinguishable; a smaller one is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.privacy.discrete_gaussian import sample_vector
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.randomness import UniformInt

LEAST_STD_STEPS = 2**16
"""With a noise of a few steps the true delta was 3.9 times the claimed one at epsilon 10.5."""

NOISE_REACH = 64  # standard deviations; a larger noise has a chance of e^-2048

_ROUNDING, _LAST_BITS = 1e-11, 4e-16
"""Relative errors of floating point that are added to delta: in `log_excess`, and in its arguments."""

_LARGEST = 1e150  # of what is squared
_NEAR = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)

Floats = NDArray[np.float64]


# --- what a noise promises ----------------------------------------------------------------------


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the delta at this epsilon, rounded up; decreasing in both arguments."""
    return math.exp(log_gaussian_delta(noise_multiplier, epsilon))


def log_gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return ln delta, rounded up. It has a value even where delta is smaller than every float."""
    return float(log_gaussian_deltas(noise_multiplier, np.array([epsilon]))[0])


def log_gaussian_deltas(noise_multiplier: float, epsilons: Floats) -> Floats:
    """Return ln delta at each epsilon >= 0, rounded up. Infinite noise reveals nothing."""
    half_gap = min(0.5 / noise_multiplier * (1 + _LAST_BITS), _LARGEST)
    with np.errstate(over="ignore"):
        middle = np.minimum(epsilons * min(noise_multiplier, _LARGEST) * (1 - _LAST_BITS), _LARGEST)
    return log_excess(middle - half_gap, 2 * half_gap)


def log_excess(x: Floats, gap: float) -> Floats:
    """Return ln(Phi(-x) - phi(x) M(x + gap)) for x >= -gap, rounded up."""
    from scipy.special import log_ndtr

    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        density = -0.5 * x * x - 0.5 * math.log(2 * math.pi)
        if gap < _NEAR:
            return np.minimum(density + np.log(_mills_fall(x, gap)) + _ROUNDING, 0.0)
        by_ratios = _mills_ratio(x) - _mills_ratio(x + gap)
        by_terms = np.exp(log_ndtr(-x)) - np.exp(density) * _mills_ratio(x + gap)
        # Below 0, M(x) may overflow, and the terms differ.
        found = np.where(x < 0, np.log(by_terms), density + np.log(by_ratios))
        return np.minimum(found + _ROUNDING, 0.0)


def _mills_ratio(t: Floats) -> Floats:
    from scipy.special import erfcx

    ratio: Floats = math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
    return ratio


def _mills_fall(x: Floats, gap: float) -> Floats:
    """Return M(x) - M(x + gap) for a small gap, without cancellation: the integral of 1 - t M(t) (Gauss, Legendre)."""
    points = np.add.outer(x, gap / 2 * (1 + _NODES))
    fall: Floats = gap / 2 * (np.maximum(1 - points * _mills_ratio(points), 0.0) @ _WEIGHTS)
    return fall


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the least epsilon >= 0 at this delta, rounded up: it never reports less than was spent."""
    check_delta(delta)
    log_delta = math.log(delta)
    if log_gaussian_delta(noise_multiplier, 0.0) <= log_delta:
        return 0.0
    # The privacy loss is N(1/(2 s^2), 1/s^2), and delta is at most the chance that it passes epsilon.
    inverse = 1 / noise_multiplier
    tail_bound = (0.5 * inverse + _tail(delta)) * inverse
    return _least(lambda epsilon: log_gaussian_delta(noise_multiplier, epsilon) <= log_delta, 0.0, tail_bound)


def _tail(delta: float) -> float:
    """Return t with Phi(-t) <= delta / 2 (Chernoff: Phi(-t) <= e^(-t^2 / 2) / 2)."""
    return math.sqrt(-2 * math.log(delta))


def _least(holds: Callable[[float], bool], fails_at: float, holds_at: float) -> float:
    """Return the least float at which a condition holds that fails below some point and holds above it."""
    while fails_at < (middle := fails_at + (holds_at - fails_at) / 2) < holds_at:
        if holds(middle):
            holds_at = middle
        else:
            fails_at = middle
    return holds_at


# --- how much noise a promise needs -------------------------------------------------------------


@lru_cache(maxsize=128)  # a job calls it several times, and each call takes fifty steps of a bisection
def analytic_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least noise multiplier that is (epsilon, delta)-DP, rounded up (Balle and Wang 2018)."""
    check_epsilon(epsilon)
    check_delta(delta)
    log_delta = math.log(delta)
    return _least(
        lambda multiplier: log_gaussian_delta(multiplier, epsilon) <= log_delta, 0.0, _enough_noise(epsilon, delta)
    )


def _enough_noise(epsilon: float, delta: float) -> float:
    """Return a noise that suffices.

    By the tail bound it is the positive root of epsilon s - 1/(2s) = t. And delta is below 0.4/s even at epsilon 0.
    """
    t = _tail(delta)
    root = math.hypot(t, math.sqrt(2) * math.sqrt(epsilon))
    return min((t / 2 + root / 2) / epsilon, 0.4 / delta)


def classic_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return sqrt(2 ln(1.25 / delta)) / epsilon (Dwork and Roth 2014, Theorem A.1), proved only for epsilon < 1."""
    check_epsilon(epsilon)
    check_delta(delta)
    if epsilon >= 1:
        raise ConfigError(
            f'privacy.mechanism = "classic" is proved only for epsilon below 1, and epsilon is {epsilon:g} here',
            hint='set privacy.mechanism = "analytic", which needs less noise at every epsilon',
        )
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


NOISE_MULTIPLIERS: dict[str, Callable[[float, float], float]] = {
    "analytic": analytic_noise_multiplier,
    "classic": classic_noise_multiplier,
}


def noise_multiplier(mechanism: str, epsilon: float, delta: float) -> float:
    """Return the noise multiplier of (epsilon, delta) by a mechanism's name."""
    if mechanism not in NOISE_MULTIPLIERS:
        raise ConfigError(f"privacy.mechanism must be one of {', '.join(NOISE_MULTIPLIERS)}, not {mechanism!r}")
    return NOISE_MULTIPLIERS[mechanism](epsilon, delta)


MOST_EPSILON, LEAST_DELTA = 1e11, 1e-300
"""A larger epsilon leaves no privacy, and a smaller delta has no float to hold its parts."""


def check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon <= MOST_EPSILON:
        raise ConfigError(f"privacy.epsilon must be above 0 and at most {MOST_EPSILON:g}, not {epsilon!r}")


def check_delta(delta: float) -> None:
    if not LEAST_DELTA <= delta < 1:
        raise ConfigError(f"privacy.delta must be at least {LEAST_DELTA:g} and below 1, not {delta!r}")


# --- the release --------------------------------------------------------------------------------


@dataclass(frozen=True)
class GaussianMechanism:
    """A mechanism that adds discrete Gaussian noise to integer sums on a fixed public grid.

    Args:
        noise_multiplier: the noise's standard deviation over the sensitivity.
        sensitivity_squared: the square of the L2 sensitivity, in grid steps squared. The square is an integer; the
            sensitivity itself seldom is.

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
        """Return the noisy sums, in grid steps."""
        noise = sample_vector(len(sums), Fraction(self.sigma_squared), uniform)
        return [int(exact) + drawn for exact, drawn in zip(sums, noise, strict=True)]

    def event(self, neighbours: str) -> ReleaseEvent:
        """Return the event that the ledger must charge for one release."""
        return ReleaseEvent("gaussian", self.noise_multiplier, neighbours)
