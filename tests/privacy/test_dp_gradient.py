"""Noisy gradient descent: the cost of a run, the largest change of a sum by one row, and the law of the noise."""

from __future__ import annotations

import math
import random
from functools import partial

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import integrate, stats

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.estimators.private_descent import DescentOptions, fit_privately
from blindfit.algorithms.privacy.accountant import composed_epsilon, composed_multiplier
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import GaussianMechanism, analytic_noise_multiplier, gaussian_epsilon
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy, parts_of, poisson_sample, run_epsilon
from blindfit.algorithms.statistics.dp_lr import descent as dp_gradient
from blindfit.algorithms.statistics.dp_lr.descent import (
    CLIP_STEPS,
    DescentSettings,
    clip_gradients,
    gradient_sums,
    loss_sum,
)
from blindfit.algorithms.statistics.linear.logistic import sigmoid
from blindfit.algorithms.statistics.linear.scaling import LARGEST, Standardiser, clip_numbers
from tests.each_case import each_case
from tests.privacy.noise_checks import FALSE_ALARM, empirical_epsilon, faults_of_normal

DELTA = 1e-5
RELATIONS = {
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    "add-or-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}

# --- what a run spends ----------------------------------------------------------------------------------------


def accountants_epsilon(noise_multiplier: float, count: int, delta: float = DELTA) -> float:
    return composed_epsilon([ReleaseEvent("gaussian", noise_multiplier, "one row")] * count, delta)


@settings(deadline=None)
@given(epsilon=st.floats(0.01, 50), n_iterations=st.integers(1, 300), delta=st.floats(1e-9, 1e-2))
def test_a_run_spends_what_the_accountant_says(epsilon: float, n_iterations: int, delta: float) -> None:
    privacy = RunPrivacy(epsilon, delta, n_iterations)
    assert accountants_epsilon(privacy.noise_multiplier(), n_iterations, delta) == pytest.approx(epsilon, rel=1e-6)
    assert privacy.spent() == epsilon
    expected = math.sqrt(n_iterations) * analytic_noise_multiplier(epsilon, delta)
    assert privacy.noise_multiplier() == pytest.approx(expected, rel=1e-12)


@settings(deadline=None)
@given(epsilon=st.floats(0.01, 5), n_iterations=st.integers(1, 300))
def test_a_budget_for_each_iteration_is_composed(epsilon: float, n_iterations: int) -> None:
    privacy = RunPrivacy(epsilon, DELTA, n_iterations, spending="iteration")
    assert gaussian_epsilon(privacy.noise_multiplier(), DELTA) == pytest.approx(epsilon, rel=1e-6)
    assert privacy.spent() == pytest.approx(accountants_epsilon(privacy.noise_multiplier(), n_iterations), rel=1e-9)
    assert n_iterations == 1 or privacy.spent() > epsilon


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("epsilon", "q", "n_iterations"), [(1.0, 0.1, 100), (0.2, 0.5, 20), (8.0, 0.05, 200)])
def test_sampling_agrees_with_dp_accounting_on_a_finer_grid(neighbours, epsilon, q, n_iterations) -> None:
    privacy = RunPrivacy(epsilon, DELTA, n_iterations, q, neighbours)
    accountant = PLDAccountant(RELATIONS[neighbours], value_discretization_interval=epsilon / 10_000)  # ours: 2000
    noise = dp_accounting.GaussianDpEvent(privacy.noise_multiplier() * privacy.sensitivity)
    accountant.compose(
        dp_accounting.SelfComposedDpEvent(
            dp_accounting.PoissonSampledDpEvent(privacy.batch_fraction, noise), n_iterations
        )
    )
    assert 0.99 * epsilon < accountant.get_epsilon(DELTA) < 1.001 * epsilon
    assert privacy.noise_multiplier() < RunPrivacy(epsilon, DELTA, n_iterations).noise_multiplier() * 0.9


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_one_sampled_release_agrees_with_its_integral(neighbours) -> None:
    """delta(epsilon) = int max(p - e^epsilon p', 0), the larger of both directions, for rows C and -C (or none)."""
    q, multiplier = 0.3, 0.8
    privacy = RunPrivacy(1.0, DELTA, 1, q, neighbours)
    std = multiplier * privacy.sensitivity
    other = -1.0 if neighbours == "replace-one" else 0.0
    densities = [
        lambda x, at=at: (1 - q) * stats.norm.pdf(x, 0, std) + q * stats.norm.pdf(x, at, std) for at in (1.0, other)
    ]
    epsilon = run_epsilon(multiplier, privacy)

    def delta(p, r) -> float:
        return integrate.quad(lambda x: max(p(x) - math.exp(epsilon) * r(x), 0), -15 * std, 15 * std, limit=500)[0]

    deltas = [delta(*densities), delta(*densities[::-1])]
    assert max(deltas) == pytest.approx(DELTA, rel=0.02)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_nearly_all_rows_cost_nearly_as_much_as_all(neighbours) -> None:
    all_rows = RunPrivacy(1.0, DELTA, 30, neighbours=neighbours).noise_multiplier()
    assert RunPrivacy(1.0, DELTA, 30, 0.9999, neighbours).noise_multiplier() == pytest.approx(all_rows, rel=0.01)


def test_a_sampled_budget_for_each_iteration_is_composed() -> None:
    privacy = RunPrivacy(0.5, DELTA, 40, 0.2, "add-or-remove", "iteration")
    alone = RunPrivacy(0.5, DELTA, 1, 0.2, "add-or-remove")
    assert privacy.noise_multiplier() == alone.noise_multiplier()
    assert run_epsilon(privacy.noise_multiplier(), alone) <= 0.5 < privacy.spent() < 40 * 0.5


@settings(deadline=None)
@given(multiplier=st.floats(0.1, 1e3), share=st.floats(0.001, 0.999))
def test_two_parts_of_a_release_are_the_whole(multiplier: float, share: float) -> None:
    assert composed_multiplier(parts_of(multiplier, share)) == pytest.approx(multiplier, rel=1e-12)


@each_case(
    "options",
    [
        {"epsilon": math.inf},
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"n_iterations": 0},
        {"n_iterations": 2.5},
        {"n_iterations": True},
        {"batch_fraction": 0.0},
        {"batch_fraction": 1.5},
        {"batch_fraction": 1e-12},
        {"batch_fraction": math.nan},
        {"neighbours": "friends"},
        {"spending": "week"},
    ],
)
def test_a_wrong_promise_is_refused(options) -> None:
    with pytest.raises(ConfigError):
        RunPrivacy(**{"epsilon": 1.0, "delta": DELTA, "n_iterations": 10} | options)


# --- the sample -----------------------------------------------------------------------------------------------


def test_each_row_is_drawn_with_the_accounted_probability_and_by_itself() -> None:
    q = RunPrivacy(1.0, DELTA, 1, 0.3).batch_fraction
    assert q <= 0.3
    uniform = random.Random(1).randrange
    drawn = np.array([poisson_sample(50, q, uniform) for _ in range(4000)])
    assert stats.binomtest(int(drawn.sum()), drawn.size, q).pvalue > FALSE_ALARM
    sizes = drawn.sum(axis=1)
    assert (len(sizes) - 1) * sizes.var() / (50 * q * (1 - q)) < stats.chi2.isf(FALSE_ALARM, len(sizes) - 1)
    assert (len(sizes) - 1) * sizes.var() / (50 * q * (1 - q)) > stats.chi2.ppf(FALSE_ALARM, len(sizes) - 1)


def test_a_sample_may_be_empty_or_all() -> None:
    assert not poisson_sample(10, 0.5, lambda m: m - 1).any()
    assert poisson_sample(10, 2.0**-32, lambda m: 0).all()


def test_every_iteration_sums_a_sample_of_its_own() -> None:
    """The accountant composes independent samples. Row i has a gradient only in column i, so the sums
    show its sample.
    """
    n_rows, n_iterations, uniform = 40, 25, random.Random(9).randrange
    drawn, summed = [], []

    def sample() -> np.ndarray:
        drawn.append(poisson_sample(n_rows, 0.5, uniform))
        return drawn[-1]

    def release(sums):
        summed.append([entry != 0 for entry in sums])
        return sums

    start = np.zeros(n_rows)
    dp_gradient.descend(
        np.eye(n_rows),
        np.zeros(n_rows, bool),
        DescentSettings(clip_norm=1.0, learning_rate=1e-3, n_iterations=n_iterations, expected_rows=1.0),
        start=start,
        anchor=start,
        sample=sample,
        release_gradient=release,
    )
    assert len(drawn) == n_iterations
    assert summed == [rows.tolist() for rows in drawn]
    assert len(set(map(tuple, summed))) == n_iterations


# --- sensitivity ----------------------------------------------------------------------------------------------


FEATURES = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e100, -1e100])


@st.composite
def neighbours_of_one_row(draw):
    n, k = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    columns = draw(arrays.arrays(np.float64, (n, k), elements=FEATURES))
    other = draw(arrays.arrays(np.float64, (k,), elements=FEATURES))
    labels = draw(arrays.arrays(np.bool_, (n,)))
    weights = draw(arrays.arrays(np.float64, (k,), elements=st.floats(-20, 20)))
    clip_norm = draw(st.sampled_from([1e-3, 0.7, 1.0, 3.0, 1e4]))
    return columns, other, labels, draw(st.booleans()), weights, clip_norm


@settings(deadline=None, max_examples=150)
@given(neighbours_of_one_row())
def test_one_row_changes_the_integer_sums_by_no_more_than_the_sensitivity(case) -> None:
    columns, other, labels, other_label, weights, clip_norm = case
    replaced, new_labels = columns.copy(), labels.copy()
    replaced[0], new_labels[0] = other, other_label
    before, after, without = (
        gradient_sums(x, y, weights, clip_norm)
        for x, y in ((columns, labels), (replaced, new_labels), (columns[1:], labels[1:]))
    )
    assert sum((a - b) ** 2 for a, b in zip(before, after, strict=True)) <= (2 * CLIP_STEPS) ** 2
    assert sum((a - b) ** 2 for a, b in zip(before, without, strict=True)) <= CLIP_STEPS**2
    losses = [
        loss_sum(x, y, weights) for x, y in ((columns, labels), (replaced, new_labels), (columns[1:], labels[1:]))
    ]
    assert abs(losses[0] - losses[1]) <= 2 * CLIP_STEPS
    assert abs(losses[0] - losses[2]) <= CLIP_STEPS


def test_the_worst_case_is_nearly_reached() -> None:
    """The noise covers no more than can happen."""
    row, none = np.array([[30.0, 40.0]]), np.zeros(2)
    sums = [np.array(gradient_sums(row, np.array([label]), none, 1.0)) for label in (False, True)]
    assert 2 * CLIP_STEPS - 4 < np.linalg.norm(sums[0] - sums[1]) <= 2 * CLIP_STEPS


def test_the_gradient_is_that_of_the_loss_where_no_row_is_clipped() -> None:
    generator = np.random.default_rng(2)
    columns, labels = generator.normal(size=(100, 4)), generator.random(100) < 0.5
    weights = generator.normal(size=4)
    exact = (sigmoid(columns @ weights) - labels) @ columns
    summed = np.array(gradient_sums(columns, labels, weights, 50.0)) * 50.0 / CLIP_STEPS
    np.testing.assert_allclose(summed, exact, atol=100 * 50.0 / CLIP_STEPS)


def test_a_rows_integers_depend_on_that_row_alone() -> None:
    """The last bits of a matrix product would depend on the rows around, and on how many there are."""
    generator = np.random.default_rng(3)
    columns, labels = generator.normal(size=(1001, 7)) * 3, generator.random(1001) < 0.5
    weights = generator.normal(size=7)
    together = clip_gradients(columns, labels, weights, 1.0)
    for part in (slice(1, None), slice(None, None, 2), slice(500, 503), generator.permutation(1001)):
        np.testing.assert_array_equal(clip_gradients(columns[part], labels[part], weights, 1.0), together[part])


# --- any rows ------------------------------------------------------------------------------------------------------

EXTREMES = st.sampled_from([0.0, 1.0, -1.0, 1e-300, LARGEST, -LARGEST])


@settings(deadline=None, max_examples=150)
@given(
    columns=arrays.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 4)), elements=EXTREMES),
    clip_norm=st.sampled_from(dp_gradient.CLIP_NORMS),
    learning_rate=st.sampled_from([5e-324, 1.0, 1e308]),
    shrinkage=st.sampled_from([0.0, 1e308]),
    noise=st.sampled_from([0, 10**170, -(10**300)]),
    start=st.sampled_from([0.0, LARGEST, -1e308]),
)
def test_no_row_makes_a_descent_fail(columns, clip_norm, learning_rate, shrinkage, noise, start) -> None:
    """The results do not fail either: weights and losses are finite, so they can be kept; each score is a number."""
    weights = np.full(columns.shape[1], start)
    descent = dp_gradient.descend(
        columns,
        np.arange(len(columns)) % 2 == 0,
        DescentSettings(clip_norm, learning_rate, 3, 1.0, shrinkage),
        start=weights,
        anchor=weights,
        sample=None,
        release_gradient=lambda sums: [entry + noise for entry in sums],
        release_loss=lambda sums: [entry + noise for entry in sums],
    )
    assert np.isfinite(descent.path).all()
    assert np.isfinite(descent.losses).all()
    assert np.isfinite(columns @ descent.weights).all()


def test_what_is_scaled_is_cut_by_itself_and_nothing_else_changes() -> None:
    scale = Standardiser(("a", "b"), (0, 1), (0.5, 0.0), (2.0, 1e-300))
    rows = np.array([[3.25, 0.0], [-1e300, 1e99], [0.1, -1e99], [0.1, 1e-250]])
    expected = [[1.375, 0.0], [-LARGEST, LARGEST], [-0.2, -LARGEST], [-0.2, 1e50]]
    np.testing.assert_allclose(scale.transform_and_clip(rows), expected, rtol=1e-15)
    assert clip_numbers(np.array([np.nan, np.inf, -np.inf, 0.3])).tolist() == [0.0, LARGEST, -LARGEST, 0.3]
    ordinary = np.random.default_rng(1).normal(size=(50, 2)) * [1e6, 1e-300]
    np.testing.assert_array_equal(scale.transform_and_clip(ordinary), scale.transform(ordinary))


@pytest.mark.parametrize("n_rows", [0, 1])
@pytest.mark.parametrize("batch_fraction", [1.0, 0.5])
def test_any_number_of_rows_is_fitted(n_rows: int, batch_fraction: float) -> None:
    privacy = RunPrivacy(1.0, DELTA, 2, batch_fraction, "add-or-remove")
    fit = fit_privately(
        np.ones((n_rows, 3)),
        np.zeros(n_rows, bool),
        np.zeros(3),
        DescentOptions(privacy, 1.0, "auto", 0.0, 0.1, expected_rows=100.0),
        f"{n_rows} of {batch_fraction}",
    )
    assert np.isfinite(fit.descent.path).all()
    assert len(fit.descent.losses) == 2
    assert np.abs(fit.descent.weights).min() > 0  # noise in every weight


@each_case(
    "options",
    [
        {"clip_norm": 0.0},
        {"clip_norm": 2.7e-304},
        {"clip_norm": 1e10},
        {"clip_norm": math.nan},
        {"learning_rate": math.inf},
        {"expected_rows": 0.0},
        {"expected_rows": math.nan},
    ],
)
def test_a_descent_without_measure_is_refused(options) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        DescentSettings(**{"clip_norm": 1.0, "learning_rate": 1.0, "n_iterations": 1, "expected_rows": 1.0} | options)


# --- noise, and audits ------------------------------------------------------------------------------------------


def released_noise(n_iterations: int, columns: int, noise_multiplier: float, release=None) -> np.ndarray:
    """Return the noise that a descent on rows without any gradient got, in clip norms."""
    mechanism = GaussianMechanism(noise_multiplier, (2 * CLIP_STEPS) ** 2)
    rows, start = np.zeros((3, columns)), np.zeros(columns)
    descent = dp_gradient.descend(
        rows,
        np.zeros(3, bool),
        DescentSettings(clip_norm=1.0, learning_rate=1.0, n_iterations=n_iterations, expected_rows=1.0),
        start=start,
        anchor=start,
        sample=None,
        release_gradient=release or partial(mechanism.release, uniform=random.Random(4).randrange),
    )
    return -np.diff(descent.path, axis=0)


def correlated(noise: np.ndarray) -> bool:
    """Return True if two coordinates, or two successive iterations, are correlated."""
    pairs = [(noise[:, i], noise[:, j]) for i in range(noise.shape[1]) for j in range(i)]
    pairs.append((noise[1:].ravel(), noise[:-1].ravel()))
    return any(stats.pearsonr(a, b).pvalue < FALSE_ALARM for a, b in pairs)


def test_the_noise_has_its_law_and_every_coordinate_its_own() -> None:
    noise = released_noise(4000, 3, noise_multiplier=2.5)
    assert faults_of_normal(noise.ravel(), 5.0) == []
    assert not correlated(noise)


def test_one_scalar_for_all_coordinates_would_be_noticed() -> None:
    draw = random.Random(5).gauss
    scalar = released_noise(4000, 3, 2.5, lambda sums: [round(draw(0, 5 * CLIP_STEPS))] * len(sums))
    assert faults_of_normal(scalar[:, 0], 5.0) == []
    assert correlated(scalar)


N_ROWS, DRAWS, EPSILON = 20, 20_000, 1.0


def gap(release, statistic, sums=gradient_sums, draws=DRAWS) -> float:
    """Return the largest lower bound on epsilon that tail events of one iteration give, one row of N_ROWS replaced."""
    columns, labels = np.tile([0.0, 1.0], (N_ROWS, 1)), np.arange(N_ROWS) % 2 == 0
    columns[0] = [100.0, 1.0]
    samples = []
    for label in (False, True):
        labels[0] = label
        exact = sums(columns, labels, np.zeros(2), 1.0)
        samples.append(np.array([statistic(release(exact)) for _ in range(draws)]))
    events = np.quantile(np.concatenate(samples), [0.5, 0.8, 0.95, 0.99])
    counts = [[int((part > event).sum()) for part in samples] for event in events]
    return max(empirical_epsilon(max(pair), min(pair), draws, DELTA) for pair in counts)


def first(released) -> float:
    return released[0]


@pytest.fixture
def honest():
    mechanism = GaussianMechanism(analytic_noise_multiplier(EPSILON, DELTA), (2 * CLIP_STEPS) ** 2)
    return partial(mechanism.release, uniform=random.Random(6).randrange)


def test_no_event_tells_neighbours_apart_by_more_than_epsilon(honest) -> None:
    assert 0.2 < gap(honest, first) < EPSILON


def test_a_missing_clip_is_caught(honest) -> None:
    def unclipped(columns, labels, weights, clip_norm):
        gradients = columns * (sigmoid(columns @ weights) - labels)[:, None] / clip_norm
        return [int(v) for v in gradients.sum(axis=0) * CLIP_STEPS]

    assert gap(honest, first, unclipped, draws=2000) > EPSILON


def test_noise_made_for_a_clipped_mean_is_caught() -> None:
    """Clipping the mean bounds its change by 2C; noise made for 2C/n is then n times too small."""
    draw, std = random.Random(7).gauss, 2 * CLIP_STEPS * analytic_noise_multiplier(EPSILON, DELTA) / N_ROWS
    assert gap(lambda sums: [v + draw(0, std) for v in sums], first) > EPSILON


def test_scalar_noise_is_caught() -> None:
    """The difference of two coordinates has no noise at all."""
    draw, std = random.Random(8).gauss, 2 * CLIP_STEPS * analytic_noise_multiplier(EPSILON, DELTA)

    def scalar(sums):
        noise = draw(0, std)
        return [v + noise for v in sums]

    assert gap(scalar, first) < EPSILON
    assert gap(scalar, lambda released: released[0] - released[1]) > EPSILON
