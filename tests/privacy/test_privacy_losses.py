"""Costs of releases that were fixed beforehand, against oracles of other kinds, down to a delta of 1e-300.

The oracles are integrals with 60 digits, the analytic Gaussian, and the exact law of randomised response. Others are
sums of rounded losses without any Fourier transform, and dp_accounting where its own transforms can resolve delta.
"""

from __future__ import annotations

import math
import random

import dp_accounting
import gmpy2
import numpy as np
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from blindfit.algorithms.privacy import privacy_losses
from blindfit.algorithms.privacy.gaussian import gaussian_epsilon
from blindfit.algorithms.privacy.noisy_iterations import Neighbours, RunPrivacy, run_epsilon
from blindfit.algorithms.privacy.privacy_losses import (
    Pair,
    composed_epsilon,
    gaussian,
    gaussian_at_least,
    laplace,
    pure,
    sampled_gaussian,
)
from tests.each_case import each_case

Floats = NDArray[np.float64]
DELTAS = [0.3, 1e-2, 1e-5, 1e-9, 1e-15, 1e-30, 1e-300]
SAMPLED = [(2.6, 0.1), (0.9, 0.01), (0.3, 1e-4), (8.0, 0.5), (0.5, 0.999), (300.0, 0.2), (0.05, 0.3)]
BOTH = pytest.mark.parametrize("sensitivity", [1, 2])


# --- the curve of one release -------------------------------------------------------------------------------


def normal(x: gmpy2.mpfr, mean: int, std: float) -> gmpy2.mpfr:
    """Return the density of N(mean, std^2) without its constant factor."""
    return gmpy2.exp(-(((x - mean) / std) ** 2) / 2)


def above(x: gmpy2.mpfr, mean: int, std: float) -> gmpy2.mpfr:
    return gmpy2.erfc((x - mean) / (std * gmpy2.sqrt(gmpy2.mpfr(2)))) / 2


def mixture(sensitivity: int, q: float, *, second: bool) -> list[tuple[gmpy2.mpfr, int]]:
    """Return chances and means of the data with the row, or of those where it is missing or replaced."""
    if second and sensitivity == 1:
        return [(gmpy2.mpfr(1), 0)]
    return [(1 - gmpy2.mpfr(q), 0), (gmpy2.mpfr(q), -1 if second else 1)]


def exact_delta(std: float, q: float, sensitivity: int, epsilon: float, *, backward: bool = False) -> gmpy2.mpfr:
    """Compute sup_S P(S) - e^epsilon Q(S), by bisection for the point where the densities cross."""
    with gmpy2.context(gmpy2.get_context(), precision=700):
        p, q_ = (mixture(sensitivity, q, second=second) for second in (False, True))
        sign = -1 if backward else 1
        if backward:
            p, q_ = q_, p
        factor = gmpy2.exp(gmpy2.mpfr(epsilon))

        def excess(x: gmpy2.mpfr) -> gmpy2.mpfr:
            with_p = sum(chance * normal(x, mean, std) for chance, mean in p)
            return with_p - factor * sum(chance * normal(x, mean, std) for chance, mean in q_)

        low, high = gmpy2.mpfr(-200) * sign, gmpy2.mpfr(200) * sign
        if excess(high) <= 0:
            return gmpy2.mpfr(0)
        for _ in range(300):
            middle = (low + high) / 2
            low, high = (low, middle) if excess(middle) > 0 else (middle, high)

        def beyond(of: list[tuple[gmpy2.mpfr, int]]) -> gmpy2.mpfr:
            parts = [chance * above(high, mean, std) for chance, mean in of]
            return sum(parts) if not backward else 1 - sum(parts)

        return beyond(p) - factor * beyond(q_)


@BOTH
@each_case(("std", "q"), [(std, q) for std, q in SAMPLED if 0.05 < std < 100])
def test_the_curve_of_a_sample_is_its_integral(std: float, q: float, sensitivity: int) -> None:
    pair = sampled_gaussian(std / sensitivity, q, sensitivity)
    for epsilon in (0.0, 1e-6, 1e-3, 0.05, 0.7, 3.0, 12.0):
        for curve, backward in ((pair.forward, False), (pair.backward, True)):
            if (exact := exact_delta(std, q, sensitivity, epsilon, backward=backward)) < 1e-250:
                continue
            ours = gmpy2.mpfr(float(curve(np.array([epsilon]))[0]))
            assert 0 <= float(ours - gmpy2.log(exact)) < 1e-9, (epsilon, backward)


@each_case("epsilon", [1e-6, 0.3, 1.0, 20.0, 1000.0])
def test_the_curves_of_epsilon_dp_releases(epsilon: float) -> None:
    grid = np.linspace(0, 1.2 * epsilon, 7)
    with np.errstate(over="ignore", divide="ignore"):
        response = np.maximum(0.0, -np.expm1(grid - epsilon)) / (1 + math.exp(-epsilon))
        noise = np.maximum(0.0, -np.expm1((grid - epsilon) / 2))
    np.testing.assert_allclose(np.exp(pure(epsilon).forward(grid)), response, rtol=1e-12)
    np.testing.assert_allclose(np.exp(laplace(1 / epsilon).forward(grid)), noise, rtol=1e-12)


# --- all releases ----------------------------------------------------------------------------------------------


@each_case(
    ("multiplier", "count"),
    [(0.05, 1), (0.05, 1000), (0.3, 7), (1.0, 1), (1.0, 5000), (30.0, 1000), (1e6, 1), (1e6, 5000)],
)
def test_gaussians_cost_what_the_analytic_one_says(multiplier: float, count: int) -> None:
    """The cost of one whole release, or of many equal to it together, is never below the analytic one, and little
    above.
    """
    for delta in DELTAS:
        exact = gaussian_epsilon(multiplier, delta)
        ours = composed_epsilon([(gaussian(multiplier * math.sqrt(count)), count)], delta)
        assert exact <= ours <= exact + 2e-4 * max(exact, 1 / multiplier), delta


def log_delta_of_responses(epsilon: float, count: int, at: float) -> float:
    """Return the log of delta for randomised responses (Kairouz, Oh, Viswanath 2015, Theorem 3.3)."""
    with gmpy2.context(gmpy2.get_context(), precision=400):
        exact, at_ = gmpy2.mpfr(epsilon), gmpy2.mpfr(at)
        truth = 1 / (1 + gmpy2.exp(-exact))
        terms = [
            gmpy2.mpz(math.comb(count, lied))
            * truth ** (count - lied)
            * (1 - truth) ** lied
            * (1 - gmpy2.exp(at_ - (count - 2 * lied) * exact))
            for lied in range(count + 1)
            if (count - 2 * lied) * exact > at_
        ]
        return float(gmpy2.log(sum(terms)))


@each_case(("epsilon", "count"), [(0.01, 300), (0.3, 40), (1.0, 12), (4.0, 3), (0.9, 2)])
def test_randomised_responses_cost_what_their_law_says(epsilon: float, count: int) -> None:
    for delta in DELTAS[1:]:
        ours = composed_epsilon([(pure(epsilon), count)], delta)
        if ours >= count * epsilon * (1 - 1e-3):
            continue
        assert log_delta_of_responses(epsilon, count, ours) <= math.log(delta) + 1e-8
        assert log_delta_of_responses(epsilon, count, ours * 0.98) > math.log(delta)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
@each_case(("q", "count", "multiplier"), [(0.1, 50, 2.6), (0.01, 1000, 1.2), (0.5, 20, 5.0), (0.05, 200, 0.5)])
def test_samples_agree_with_the_library_where_it_sees_delta(
    q: float, count: int, multiplier: float, neighbours: Neighbours
) -> None:
    privacy = RunPrivacy(1.0, 1e-5, count, q, neighbours)
    relations = dp_accounting.NeighboringRelation
    relation = relations.REPLACE_ONE if neighbours == "replace-one" else relations.ADD_OR_REMOVE_ONE
    ours = run_epsilon(multiplier, privacy)
    library = PLDAccountant(relation, ours / 20_000)
    noise = dp_accounting.GaussianDpEvent(multiplier * privacy.sensitivity)
    library.compose(dp_accounting.PoissonSampledDpEvent(privacy.batch_fraction, noise), count)
    assert ours == pytest.approx(library.get_epsilon(1e-5), rel=5e-4)


class Rounded:
    """Losses of a few samples, rounded to a grid and added up by the definition: tails keep their digits, as all terms
    are
    above 0.

    Args:
        up: True to round losses up, which gives an upper bound; False to round them down, for a lower one.
    """

    def __init__(
        self, std: float, q: float, sensitivity: int, count: int, step: float, least: float, *, up: bool
    ) -> None:
        """Compute P against Q only, which costs more under add-or-remove; losses past a delta are left out or cut."""
        self.step = step
        reach = stats.norm.isf(least / 1e6) * std
        x = np.linspace(-reach, 1 + reach, 400_001)
        log_p = np.logaddexp(math.log1p(-q) - (x / std) ** 2 / 2, math.log(q) - ((x - 1) / std) ** 2 / 2)
        missing = -((x / std) ** 2) / 2
        other = np.logaddexp(math.log1p(-q) + missing, math.log(q) - ((x + 1) / std) ** 2 / 2)
        losses = (log_p - (other if sensitivity == 2 else missing)) / step
        losses = np.ceil(losses) if up else np.floor(losses)
        mid = x[:-1]  # losses rise with x; a cell has that of one of its ends
        chances = (1 - q) * _between(mid / std, x[1:] / std) + q * _between((mid - 1) / std, (x[1:] - 1) / std)
        self.first = int(losses.min())
        one = np.bincount((losses[1:] if up else losses[:-1]).astype(int) - self.first, weights=chances)
        self.chances, self.first = one, self.first * count
        for _ in range(count - 1):
            self.chances = np.convolve(self.chances, one)

    def epsilon(self, delta: float) -> float:
        losses = (self.first + np.arange(len(self.chances))) * self.step
        low, high = 0.0, float(losses[-1])
        for _ in range(60):
            middle = (low + high) / 2
            spent = float(self.chances @ np.maximum(0.0, -np.expm1(np.minimum(middle - losses, 0.0))))
            low, high = (middle, high) if spent > delta else (low, middle)
        return high


def _between(low: Floats, high: Floats) -> Floats:
    """Return the chance of N(0, 1) between two points, with its digits in both tails."""
    upper = stats.norm.sf(low) - stats.norm.sf(high)
    return np.where(low > 0, upper, stats.norm.cdf(high) - stats.norm.cdf(low))


@BOTH
@pytest.mark.parametrize(("std", "q"), [(1.0, 0.1), (3.0, 0.5)])
def test_a_few_samples_cost_what_the_definition_says(std: float, q: float, sensitivity: int) -> None:
    count, step = 3, 4e-3
    part = (sampled_gaussian(std / sensitivity, q, sensitivity), count)
    for delta in (1e-2, 1e-12, 1e-30):
        least, most = (Rounded(std, q, sensitivity, count, step, delta, up=up) for up in (False, True))
        ours = composed_epsilon([part], delta)
        assert least.epsilon(delta) <= ours + 1e-9
        assert ours <= most.epsilon(delta) * (1 + 1e-4) + 1e-9


@BOTH
@pytest.mark.parametrize("delta", [1e-5, 1e-9, 1e-12, 1e-15, 1e-18, 1e-30])
def test_two_per_cent_less_noise_would_not_do(delta: float, sensitivity: int) -> None:
    """The noise of a sampled run, at every delta, against a lower bound of what less noise costs."""
    q, count, epsilon = 0.2, 3, 1.0
    neighbours: Neighbours = "replace-one" if sensitivity == 2 else "add-or-remove"
    multiplier = RunPrivacy(epsilon, delta, count, q, neighbours).noise_multiplier()
    less = Rounded(0.98 * multiplier * sensitivity, q, sensitivity, count, 5e-4, delta, up=False)
    assert less.epsilon(delta) > epsilon


def test_parts_of_other_kinds_and_sizes_are_added_up() -> None:
    rng = random.Random(5)
    for _ in range(12):
        multiplier = rng.uniform(0.7, 6)
        split = rng.randint(2, 400)
        parts = [(pure(rng.uniform(0.01, 1.5)), rng.randint(1, 5)), (laplace(rng.uniform(0.5, 50)), 2)]
        whole = [*parts, (gaussian(multiplier), 1)]
        in_parts = [*parts, (gaussian(multiplier * math.sqrt(split)), split)]
        for delta in (1e-5, 1e-15, 1e-30):
            assert composed_epsilon(in_parts, delta) == pytest.approx(composed_epsilon(whole, delta), rel=1e-3)
            assert composed_epsilon(whole, delta) > composed_epsilon(parts, delta)


@settings(deadline=None, max_examples=25)
@given(
    std=st.floats(-6, 6).map(lambda power: 10.0**power),
    q=st.floats(-9.6, -1e-4).map(lambda power: 10.0**power),
    sensitivity=st.sampled_from([1, 2]),
    count=st.sampled_from([1, 3, 1000]),
    delta=st.sampled_from(DELTAS),
)
def test_no_release_is_too_extreme(std: float, q: float, sensitivity: int, count: int, delta: float) -> None:
    """A sample costs no more than all rows; and the answer is a number."""
    ours = composed_epsilon([(sampled_gaussian(std, q, sensitivity), count)], delta)
    whole = gaussian_epsilon(std / math.sqrt(count), delta)
    assert 0 <= ours <= whole * (1 + 1e-3) + 1e-9


# --- the Gaussian that reveals at least as much ----------------------------------------------------------------


@BOTH
@each_case(("multiplier", "q", "count"), [(2.6, 0.1, 50), (1.2, 0.01, 300), (5.0, 0.5, 20)])
def test_a_gaussian_stands_for_a_sampled_run(multiplier: float, q: float, count: int, sensitivity: int) -> None:
    """Together with any other releases, the run costs at most as much as the Gaussian in its place."""
    run = (sampled_gaussian(multiplier, q, sensitivity), count)
    for delta in (1e-5, 1e-15):
        stands_for = (gaussian(gaussian_at_least([run], math.log(delta) - 25)), 1)
        for others in ([], [run], [(gaussian(1.0), 1), (pure(0.5), 1)]):
            assert composed_epsilon([run, *others], delta) <= composed_epsilon([stands_for, *others], delta) * 1.001


@BOTH
def test_it_is_hardly_more_where_many_rows_are_in_a_sample(sensitivity: int) -> None:
    pair = sampled_gaussian(20.0, 0.3, sensitivity)
    stands_for = gaussian_at_least([(pair, 100)], math.log(1e-5) - 25)
    assert gaussian_epsilon(stands_for, 1e-5) < 1.05 * composed_epsilon([(pair, 100)], 1e-5)


def test_a_gaussian_stands_for_itself() -> None:
    assert gaussian_at_least([(gaussian(3.0), 1)], math.log(1e-16)) == pytest.approx(3.0, rel=0.03)


def test_a_pair_has_two_ways() -> None:
    pair = sampled_gaussian(1.0, 0.1, 1)
    assert Pair(pair.forward, pair.backward).reversed == Pair(pair.backward, pair.forward)
    assert privacy_losses._ways([(pair, 1)]) == [[(pair, 1)], [(pair.reversed, 1)]]
