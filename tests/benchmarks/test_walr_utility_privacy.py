"""Releases of the arms of benchmarks.walr.utility: how far one label moves them, and the noise for that."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from scipy import stats

from benchmarks.walr.data import FRAC_BITS
from benchmarks.walr.utility import (
    bags as walr_utility_bags,
)
from benchmarks.walr.utility import (
    buckets as walr_utility_buckets,
)
from benchmarks.walr.utility import (
    descent as walr_utility_descent,
)
from benchmarks.walr.utility.bags import BAGS, bags_of
from benchmarks.walr.utility.bins import Binned
from benchmarks.walr.utility.buckets import histograms, tables
from benchmarks.walr.utility.data import DataSet
from benchmarks.walr.utility.means import (
    DEFAULT_WALR,
    debiased,
    debiased_std,
    exact_mean,
    linear_term,
    mechanism_of,
    noise_std,
    randomised,
    released_mean,
    turned,
)
from benchmarks.walr.utility.task import DELTA, Floats, Task
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, ReleaseSettings
from blindfit.algorithms.statistics.dp_lr.descent import CLIP_STEPS, gradient_sums
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.walr.fit import fit_released

EPSILON = 0.7
ROWS = 3000


@pytest.fixture(scope="module")
def task() -> Task:
    """Four numbers, one of them binary, and a category of three levels."""
    draw = np.random.default_rng(3)
    level = draw.integers(0, 3, ROWS)
    numbers = [*draw.normal(size=(3, ROWS)), (draw.random(ROWS) < 0.3).astype(np.float64)]
    columns = [*numbers, np.stack([level == 1, level == 2], axis=1).astype(np.float64)]
    labels = (draw.random(ROWS) < 1 / (1 + np.exp(-columns[0] - level))).astype(np.float64)
    return Task.of(DataSet.of_columns("toy", columns, labels))


def neighbours(task: Task, rows: int = 40) -> list[Floats]:
    """Return the training labels with one of them changed."""
    found = []
    for row in range(rows):
        other = task.trained_on.copy()
        other[row] = 1 - other[row]
        found.append(other)
    return found


def is_enough(noise: float, sensitivity: float) -> bool:
    return gaussian.gaussian_delta(noise / sensitivity, EPSILON) <= DELTA


def is_least(noise: float, sensitivity: float) -> bool:
    return is_enough(noise, sensitivity) and not is_enough(0.999 * noise, sensitivity)


# --- WALR ------------------------------------------------------------------------------------------------


def test_walr_has_the_noise_of_the_protocol(task: Task) -> None:
    rows = ConsumerRows(tuple(map(str, range(task.n_rows))), task.integers)
    request = walr.step_1_open(rows, task.bound, ReleaseSettings("toy", "1", EPSILON, DELTA, frac_bits=FRAC_BITS))
    assert mechanism_of(task, EPSILON) == walr.mechanism_of(request)


def test_a_label_moves_walr_s_sum_by_a_row(task: Task) -> None:
    norms = np.linalg.norm(task.integers.astype(np.float64), axis=1)
    assert 0.9 * task.bound < norms.max() <= task.bound
    assert is_least(math.sqrt(mechanism_of(task, EPSILON).sigma_squared), task.bound)


def test_walr_s_release_is_the_sum_and_its_noise(task: Task) -> None:
    drawn = [released_mean(task, EPSILON, seed)[0] - exact_mean(task) for seed in range(200)]
    std = released_mean(task, EPSILON, 0)[1]
    # Seeds are fixed, so the test's outcome is too.
    assert stats.kstest(np.concatenate(drawn) / std, "norm").pvalue > 1e-6
    np.testing.assert_array_equal(released_mean(task, EPSILON, 1)[0], released_mean(task, EPSILON, 1)[0])


def test_walr_s_weights_are_those_of_fit_released(task: Task) -> None:
    mu, std = released_mean(task, EPSILON, 5)
    settings = SolverSettings(l2=0.0)
    fitted = fit_released(
        task.quantised, mu, noise_std=std, norm_bound=task.norm_bound, epsilon=EPSILON, settings=settings
    )
    expected = 1 / (1 + np.exp(-(task.rows["test"] @ fitted.result.weights)))
    np.testing.assert_allclose(DEFAULT_WALR.fit(task, EPSILON, {}, 5)("test"), expected, rtol=1e-12)


# --- buckets and bags ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [2, 4, 8])
def test_a_label_moves_histograms_by_the_root_of_their_number(task: Task, bins: int) -> None:
    binned = Binned.of(task, bins)
    before = np.concatenate(histograms(binned, task.trained_on))
    moved = [np.linalg.norm(np.concatenate(histograms(binned, labels)) - before) for labels in neighbours(task)]
    assert len(binned.sizes) == 5
    np.testing.assert_allclose(moved, math.sqrt(5))
    assert is_least(walr_utility_buckets.noise_std(5, EPSILON), math.sqrt(5))


def test_a_label_moves_tables_of_pairs_by_the_root_of_their_number(task: Task) -> None:
    binned = Binned.of(task, 4)
    before = np.concatenate([table.ravel() for table in tables(binned, task.trained_on).values()])
    for labels in neighbours(task):
        after = np.concatenate([table.ravel() for table in tables(binned, labels).values()])
        assert np.linalg.norm(after - before) == pytest.approx(math.sqrt(10))
    assert is_least(walr_utility_buckets.noise_std(10, EPSILON), math.sqrt(10))


def test_bins_do_not_depend_on_labels(task: Task) -> None:
    turned_round = replace(task, labels={part: 1 - labels for part, labels in task.labels.items()}, _public={})
    mine, theirs = Binned.of(task, 4), Binned.of(turned_round, 4)
    assert mine.sizes == theirs.sizes
    for part in mine.codes:
        np.testing.assert_array_equal(mine.codes[part], theirs.codes[part])


@pytest.mark.parametrize("by", ["hash", "k-means"])
@pytest.mark.parametrize("bags", list(BAGS))
def test_a_label_moves_one_bag_by_one(task: Task, by: str, bags: str) -> None:
    made = bags_of(task, by, bags)
    assert sorted(made.order) == list(range(task.n_rows))
    assert made.sizes.sum() == task.n_rows
    before = made.sums(task.trained_on[made.order])
    for labels in neighbours(task):
        assert np.abs(made.sums(labels[made.order]) - before).sum() == 1
    assert is_least(walr_utility_bags.noise_std(EPSILON), 1.0)


# --- randomised response and objective perturbation --------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_randomised_response_keeps_its_promise_and_has_no_bias(epsilon: float) -> None:
    q = turned(epsilon)
    assert (1 - q) / q == pytest.approx(math.exp(epsilon))
    of_0, of_1 = debiased(np.array([0.0, 1.0]), epsilon)
    for label, (stays, turns) in {0.0: (of_0, of_1), 1.0: (of_1, of_0)}.items():
        assert (1 - q) * stays + q * turns == pytest.approx(label)
        assert (1 - q) * (stays - label) ** 2 + q * (turns - label) ** 2 == pytest.approx(debiased_std(epsilon) ** 2)
    drawn = randomised(np.zeros(200_000), epsilon, np.random.default_rng(1))
    assert abs(drawn.mean() - q) < 6 * math.sqrt(q * (1 - q) / 200_000)  # a chance of 2e-9, and the seed is fixed


def test_a_label_moves_the_objective_s_linear_term_by_the_norm_bound(task: Task) -> None:
    for labels in neighbours(task):
        moved = np.linalg.norm(labels @ task.rows["train"] / task.n_rows - exact_mean(task)) * task.n_rows
        assert moved <= task.norm_bound * (1 + 1e-9)


def test_gamma_noise_has_the_density_that_is_epsilon_dp() -> None:
    """e^(-epsilon |b| / R): its length is a gamma variable of shape k and scale R / epsilon, its direction uniform."""
    columns, norm_bound, draw = 6, 3.0, np.random.default_rng(2)
    drawn = np.array([linear_term("gamma", EPSILON, norm_bound, columns, draw) for _ in range(4000)])
    lengths = np.linalg.norm(drawn, axis=1)
    # The seed is fixed; with another each of the three would fail with a chance of 1e-6 at most.
    assert stats.kstest(lengths, "gamma", args=(columns, 0, norm_bound / EPSILON)).pvalue > 1e-6
    assert np.abs((drawn / lengths[:, None]).mean(axis=0)).max() < 5.5 / math.sqrt(columns * 4000)
    assert drawn.std() == pytest.approx(noise_std("gamma", EPSILON, norm_bound, columns), rel=0.1)


def test_gaussian_noise_of_the_objective_is_the_least_for_a_row() -> None:
    assert is_least(noise_std("gaussian", EPSILON, 3.0, 6), 3.0)


# --- descent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [0.1, 0.5, 1.0, 3.0])
def test_a_label_moves_a_sum_of_clipped_gradients_by_the_least_of_two_bounds(task: Task, clip: float) -> None:
    draw, norm = np.random.default_rng(4), clip * task.norm_bound
    moved = []
    for labels in neighbours(task):
        weights = draw.normal(size=task.rows["train"].shape[1])
        sums = [gradient_sums(task.rows["train"], y > 0, weights, norm) for y in (labels, task.trained_on)]
        moved.append(np.linalg.norm(np.subtract(*sums)) / CLIP_STEPS * norm)
    bound = min(task.norm_bound, 2 * norm)
    assert max(moved) <= bound * (1 + 1e-6)  # each coordinate is rounded by at most 2^-24 of the clip norm
    assert max(moved) > 0.4 * bound


def test_all_rows_in_every_step_are_one_gaussian_release() -> None:
    option, clip, norm_bound = {"batch_fraction": 1.0, "n_iterations": 10}, 2.0, 3.0
    std = walr_utility_descent.noise_std(EPSILON, option, clip, norm_bound)
    assert is_least(std / math.sqrt(10), 3.0)
    assert is_least(walr_utility_descent.noise_std(EPSILON, option, 1.0, norm_bound) / math.sqrt(10), 2.0)


@pytest.mark.parametrize(("fraction", "steps"), [run for run in walr_utility_descent.RUNS if run[0] < 1])
def test_samples_are_accounted_for_by_the_library(fraction: float, steps: int) -> None:
    option, clip = {"batch_fraction": fraction, "n_iterations": steps}, 2.0
    std = walr_utility_descent.noise_std(EPSILON, option, clip, norm_bound=100.0)
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, 1e-4)
    accountant.compose(PoissonSampledDpEvent(fraction, GaussianDpEvent(std / clip)), steps)
    assert 0.95 * EPSILON < accountant.get_epsilon(DELTA) <= EPSILON * 1.001


def test_a_sample_takes_each_row_with_its_probability() -> None:
    draw = np.random.default_rng(5)
    counts = sum(walr_utility_descent.poisson_sample(1000, 0.05, draw).astype(int) for _ in range(2000))
    # Binomial(2000, 0.05) for each row, made continuous; the seed is fixed, and another fails with a chance of 1e-6.
    below, at = stats.binom.cdf(counts, 2000, 0.05), stats.binom.pmf(counts, 2000, 0.05)
    assert stats.kstest(below - draw.random(1000) * at, "uniform").pvalue > 1e-6
