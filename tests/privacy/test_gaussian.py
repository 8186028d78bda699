"""The noise for (epsilon, delta): the figures of the literature, an integral, and laws."""

from __future__ import annotations

import math

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.privacy.gaussian import (
    GaussianMechanism,
    analytic_noise_multiplier,
    classic_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
    noise_multiplier,
)
from tests.each_case import each_case

EPSILONS = st.floats(math.log(1e-3), math.log(50)).map(math.exp)
DELTAS = st.floats(math.log(1e-12), math.log(0.499)).map(math.exp)
MULTIPLIERS = st.floats(math.log(0.05), math.log(1e4)).map(math.exp)


def classic_formula(epsilon: float, delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def integrated_delta(multiplier: float, epsilon: float) -> float:
    """Return the definition: the integral of (p - e^epsilon q)+ for N(1, s^2) and N(0, s^2)."""
    start = epsilon * multiplier**2 + 0.5

    def excess(x: float) -> float:
        p = stats.norm.pdf(x, 1, multiplier)
        return float(p * -math.expm1(epsilon - (x - 0.5) / multiplier**2))

    value, _ = integrate.quad(excess, start, start + 40 * multiplier, epsabs=0, epsrel=1e-10, limit=500)
    return float(value)


def exact_terms(multiplier: float, epsilon: float) -> tuple[gmpy2.mpfr, gmpy2.mpfr]:
    """Return the theorem's two terms, with 100 digits."""
    with gmpy2.context(gmpy2.get_context(), precision=340):
        middle, half_width = gmpy2.mpfr(epsilon) * multiplier, 1 / (2 * gmpy2.mpfr(multiplier))
        above, below = (gmpy2.erfc(end / gmpy2.sqrt(2)) / 2 for end in (middle - half_width, middle + half_width))
        return above, gmpy2.exp(gmpy2.mpfr(epsilon)) * below


def test_figures_of_the_literature() -> None:
    assert analytic_noise_multiplier(1, 1e-5) == pytest.approx(3.73, abs=0.005)
    assert classic_formula(1, 1e-5) == pytest.approx(4.84, abs=0.005)
    # Above epsilon = 1 the classic formula breaks its promise.
    assert gaussian_delta(classic_formula(10, 1e-5), 10) == pytest.approx(2.3e-5, rel=0.02)
    assert gaussian_delta(classic_formula(20, 1e-5), 20) == pytest.approx(1.5e-3, rel=0.02)


@each_case("epsilon", [1e-3, 0.1, 1.0, 8.0, 50.0])
@each_case("delta", [1e-12, 1e-5, 0.1, 0.4])
def test_agrees_with_the_integral(epsilon: float, delta: float) -> None:
    multiplier = analytic_noise_multiplier(epsilon, delta)
    assert integrated_delta(multiplier, epsilon) == pytest.approx(delta, rel=1e-7)
    assert integrated_delta(multiplier * 0.999, epsilon) > delta


def test_delta_is_never_below_the_exact_one_and_little_above() -> None:
    """The last bits count: a delta that is rounded down would be claimed and not kept. A grid of points, no chance."""
    checked = 0
    for multiplier in np.geomspace(0.02, 1e4, 41).tolist():
        for epsilon in [0.0, *np.geomspace(1e-3, 50, 40).tolist()]:
            above, below = exact_terms(multiplier, epsilon)
            if (exact := above - below) < 1e-100:
                continue
            checked += 1
            rounded = gmpy2.mpfr(gaussian_delta(multiplier, epsilon), 340)
            assert exact <= rounded <= exact * (1 + 3e-11), (multiplier, epsilon)
    assert checked > 500


def test_agrees_with_dp_accounting() -> None:
    from dp_accounting import gaussian_mechanism

    for epsilon, delta in [(0.1, 1e-6), (1.0, 1e-5), (5.0, 1e-9)]:
        theirs = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
        assert analytic_noise_multiplier(epsilon, delta) == pytest.approx(theirs, rel=1e-6)


@settings(deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS)
def test_a_calibrated_noise_spends_what_was_asked_and_no_more(epsilon: float, delta: float) -> None:
    multiplier = analytic_noise_multiplier(epsilon, delta)
    assert gaussian_delta(multiplier, epsilon) <= delta
    back = gaussian_epsilon(multiplier, delta)
    assert epsilon * (1 - 1e-6) <= back <= epsilon * (1 + 1e-9)


@settings(deadline=None)
@given(multiplier=MULTIPLIERS, delta=DELTAS)
def test_epsilon_is_the_least_that_holds(multiplier: float, delta: float) -> None:
    epsilon = gaussian_epsilon(multiplier, delta)
    assert gaussian_delta(multiplier, epsilon) <= delta
    assert epsilon == 0 or gaussian_delta(multiplier, epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)


@settings(deadline=None)
@given(epsilon=EPSILONS, delta=DELTAS, factor=st.floats(1.001, 10))
def test_more_privacy_needs_more_noise(epsilon: float, delta: float, factor: float) -> None:
    multiplier = analytic_noise_multiplier(epsilon, delta)
    assert analytic_noise_multiplier(epsilon / factor, delta) > multiplier
    assert analytic_noise_multiplier(epsilon, delta / factor) > multiplier
    assert gaussian_delta(multiplier * factor, epsilon) < gaussian_delta(multiplier, epsilon)
    assert gaussian_epsilon(multiplier * factor, delta) < gaussian_epsilon(multiplier, delta)


@given(epsilon=st.floats(1e-3, 0.999), delta=DELTAS)
def test_classic_keeps_its_promise_with_more_noise_where_it_is_proved(epsilon: float, delta: float) -> None:
    assert classic_noise_multiplier(epsilon, delta) >= analytic_noise_multiplier(epsilon, delta)


@each_case(("multiplier", "epsilon"), [(5e-324, 0.0), (1e-200, 1.0), (1e308, 10.0), (1e-3, 1e3), (1e8, 0.0)])
def test_extremes_stay_probabilities(multiplier: float, epsilon: float) -> None:
    assert 0 <= gaussian_delta(multiplier, epsilon) <= 1
    assert gaussian_epsilon(multiplier, 1e-6) >= 0


@each_case("epsilon", [1.0, 1.5, 20.0])
def test_classic_is_refused_where_it_is_wrong(epsilon: float) -> None:
    with pytest.raises(ConfigError, match=r"privacy\.mechanism"):
        noise_multiplier("classic", epsilon, 1e-5)


def test_mechanisms_by_name() -> None:
    assert noise_multiplier("analytic", 2, 1e-6) == analytic_noise_multiplier(2, 1e-6)
    assert noise_multiplier("classic", 0.5, 1e-6) == classic_formula(0.5, 1e-6)
    with pytest.raises(ConfigError, match=r"privacy\.mechanism"):
        noise_multiplier("gauss", 1, 1e-6)


@each_case("mechanism", ["analytic", "classic"])
@each_case("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_a_wrong_epsilon_is_named(mechanism: str, epsilon: float) -> None:
    with pytest.raises(ConfigError, match=r"privacy\.epsilon"):
        noise_multiplier(mechanism, epsilon, 1e-5)


@each_case("mechanism", ["analytic", "classic"])
@each_case("delta", [0.0, 1.0, -1e-9, math.nan])
def test_a_wrong_delta_is_named(mechanism: str, delta: float) -> None:
    with pytest.raises(ConfigError, match=r"privacy\.delta"):
        noise_multiplier(mechanism, 0.5, delta)


def test_a_grid_too_coarse_for_the_noise_is_refused() -> None:
    GaussianMechanism(noise_multiplier=1.0, sensitivity_squared=2**32)
    with pytest.raises(RangeError):
        GaussianMechanism(noise_multiplier=0.9999, sensitivity_squared=2**32)
    with pytest.raises(RangeError):
        GaussianMechanism(noise_multiplier=1.0, sensitivity_squared=0)


@given(multiplier=MULTIPLIERS, sensitivity_squared=st.integers(2**45, 2**80))
def test_the_variance_is_rounded_up(multiplier: float, sensitivity_squared: int) -> None:
    variance = GaussianMechanism(multiplier, sensitivity_squared).sigma_squared
    numerator, denominator = multiplier.as_integer_ratio()
    exact = numerator**2 * sensitivity_squared
    assert exact <= variance * denominator**2 < exact + denominator**2
