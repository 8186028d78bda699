from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.statistics.linear.logistic import sigmoid
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant, clip_rows, row_norms
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.algorithms.statistics.quality.metrics import gain_kept, log_loss
from blindfit.algorithms.statistics.walr.defaults import (
    clip_mu,
    default_l2,
    default_norm_bound,
    feasibility,
    project_mu,
)
from tests.each_case import each_case
from tests.statistics.conftest import Floats, Problem

# --- defaults -----------------------------------------------------------------------------------


def test_the_default_l2_at_its_anchors() -> None:
    anchors = {0.01: 2.25, 0.1: 2.25, 1.0: 0.75, 10.0: 0.25, 50.0: 0.25}
    for epsilon, factor in anchors.items():
        assert default_l2(0.02, 6.0, 9, epsilon) == pytest.approx(factor * 0.02 * 2)
    falling = [default_l2(0.02, 6.0, 9, epsilon) for epsilon in np.geomspace(0.1, 10, 20)]
    assert (np.diff(falling) < 0).all()
    assert default_l2(0.0, 6.0, 9, 1.0) == 0


@each_case(
    ("arguments", "field"),
    [
        ((-1.0, 1.0, 3, 1.0), "noise_std"),
        ((np.nan, 1.0, 3, 1.0), "noise_std"),
        ((1.0, 0.0, 3, 1.0), "norm_bound"),
        ((1.0, 1.0, 0, 1.0), "n_features"),
        ((1.0, 1.0, 3, 0.0), "epsilon"),
        ((1.0, 1.0, 3, np.inf), "epsilon"),
    ],
)
def test_a_bad_default_l2_is_refused(arguments: tuple[float, float, int, float], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        default_l2(*arguments)


def test_the_default_norm_bound() -> None:
    assert default_norm_bound(np.arange(101.0)) == 99
    for bad in ([], [[1.0]], [1.0, np.nan], [1.0, -1.0], [0.0, 0.0]):
        with pytest.raises(DataError):
            default_norm_bound(bad)


@pytest.mark.parametrize(("epsilon", "noise_multiplier", "least"), [(1.0, 3.73, 0.97), (0.5, 7.03, 0.95)])
def test_the_defaults_keep_the_gain_on_rand(epsilon: float, noise_multiplier: float, least: float) -> None:
    """Held-out log loss on RAND health insurance: median of five draws, delta 1e-5, analytic Gaussian."""
    randhie = pytest.importorskip("statsmodels.datasets.randhie")
    table = randhie.load_pandas().data
    labels = (table["mdvis"] > 0).to_numpy().astype(float)
    features = table.drop(columns="mdvis").to_numpy(dtype=float)
    generator = np.random.default_rng(0)
    order = generator.permutation(len(labels))
    train, test = np.split(order, [int(0.7 * len(order))])
    scale = Standardiser.fit([features[train]])
    rows, unseen = (append_constant(scale.transform(features[part])) for part in (train, test))
    mu = rows.T @ labels[train] / len(train)
    best = sigmoid(unseen @ fit(rows, mu, SolverSettings(l2=0.0)).weights)
    non_private = log_loss(labels[test], best)
    constant = log_loss(labels[test], np.full(len(test), labels[train].mean()))

    norm_bound = default_norm_bound(row_norms(rows))
    rows, unseen = clip_rows(rows, norm_bound), clip_rows(unseen, norm_bound)
    mu = rows.T @ labels[train] / len(train)
    noise_std = noise_multiplier * norm_bound / len(train)
    settings = SolverSettings(l2=default_l2(noise_std, norm_bound, rows.shape[1], epsilon))

    def gain_of_one_draw() -> float:
        noisy = mu + generator.normal(size=len(mu)) * noise_std
        private = sigmoid(unseen @ fit(rows, noisy, settings).weights)
        return gain_kept(log_loss(labels[test], private), non_private, constant)

    assert np.median([gain_of_one_draw() for _ in range(5)]) >= least


# --- feasibility ----------------------------------------------------------------------------------


def feasible_by_linear_program(rows: Floats, mu: Floats) -> bool:
    """Solve for the least r with X^T (1/2 + s) = N mu and |s_i| <= r, and return whether it is below 1/2."""
    n_rows, n_features = rows.shape
    upper = np.hstack([np.eye(n_rows), -np.ones((n_rows, 1))])
    lower = np.hstack([-np.eye(n_rows), -np.ones((n_rows, 1))])
    solved = linprog(
        np.append(np.zeros(n_rows), 1),
        A_ub=np.vstack([upper, lower]),
        b_ub=np.zeros(2 * n_rows),
        A_eq=np.hstack([rows.T, np.zeros((n_features, 1))]),
        b_eq=n_rows * mu - rows.sum(axis=0) / 2,
        bounds=[(None, None)] * n_rows + [(0, None)],
    )
    return bool(solved.status == 0 and solved.fun < 0.5)


def test_feasibility_agrees_with_a_linear_program() -> None:
    generator = np.random.default_rng(5)
    answers = []
    for _ in range(60):
        n_rows, n_features = int(generator.integers(20, 60)), int(generator.integers(1, 6))
        sparse = generator.normal(size=(n_rows, n_features)) * (generator.random((n_rows, n_features)) < 0.5)
        rows = append_constant(sparse)
        labels = generator.random(n_rows) < 0.4
        mu = rows.T @ labels / n_rows + generator.normal(size=n_features + 1) * 0.15 * generator.random()
        answers.append(feasibility(rows, mu).feasible)
        assert answers[-1] == feasible_by_linear_program(rows, mu)
    assert min(answers.count(True), answers.count(False)) >= 10


def test_a_noisy_mu_beyond_one_coordinate_is_named(problem: Problem) -> None:
    answer = feasibility(problem.rows, np.append(problem.mu[:-1], -0.001))
    assert answer.feasible is False
    assert answer.reason.startswith("column 6: mu is -0.001")


def test_each_coordinate_in_range_is_not_enough() -> None:
    # Two equal columns need equal aggregates, for any ranges of each.
    rows = append_constant(np.repeat(np.random.default_rng(1).normal(size=(200, 1)), 2, axis=1))
    assert feasibility(rows, [0.1, 0.1, 0.5]).feasible is True
    assert feasibility(rows, [0.1, 0.11, 0.5]).feasible is False
    assert feasibility(rows, [0.1, 0.11, 0.5], max_iterations=0).feasible is None


def test_separable_labels_are_on_the_boundary_and_not_feasible() -> None:
    feature = np.linspace(-1, 1, 100)
    rows = append_constant(feature[:, None])
    assert feasibility(rows, rows.T @ (feature > 0.3) / 100).feasible is not True
    assert feasibility(rows, rows.T @ (np.abs(feature) > 0.3) / 100).feasible is True


def test_a_zero_column_needs_a_zero_aggregate() -> None:
    rows = append_constant(np.zeros((10, 1)))
    assert feasibility(rows, [0.0, 0.5]).feasible is True
    assert feasibility(rows, [1e-9, 0.5]).feasible is False


# --- bringing mu back -----------------------------------------------------------------------------


def far_out(problem: Problem, std: float) -> Floats:
    return problem.mu + np.random.default_rng(8).normal(size=7) * std


def test_the_projection_is_the_nearest_feasible_point(problem: Problem) -> None:
    rows = problem.rows[:500]
    released = far_out(problem, 0.3)
    oracle = lsq_linear(rows.T / 500, released, bounds=(0, 1), tol=1e-13, max_iter=1000)
    nearest = rows.T @ oracle.x / 500
    assert np.linalg.norm(nearest - released) > 0.1
    for tolerance in (1e-2, 1e-4):
        found = project_mu(rows, released, tolerance=tolerance)
        # The oracle's own error shows at the seventh digit.
        assert np.linalg.norm(found - nearest) <= tolerance * np.linalg.norm(released) + 1e-6


def test_a_feasible_mu_stays(problem: Problem) -> None:
    distance = np.linalg.norm(project_mu(problem.rows, problem.mu) - problem.mu)
    assert distance <= 1e-4 * np.linalg.norm(problem.mu)


def test_a_projection_with_a_margin_has_a_model_without_l2(problem: Problem) -> None:
    released = far_out(problem, 0.8)
    assert feasibility(problem.rows, released).feasible is False
    inside = project_mu(problem.rows, released, margin=0.01)
    assert feasibility(problem.rows, inside).feasible is True
    assert fit(problem.rows, inside, SolverSettings(l2=0.0)).converged


def test_clipping_brings_each_coordinate_back(problem: Problem) -> None:
    positive = np.abs(problem.rows)
    clipped = clip_mu(positive, np.array([-1, 9, 0.2, 0.2, 0.2, 0.2, -0.3]))
    half_row = positive.mean(axis=0) / (2 * problem.n_rows)
    np.testing.assert_allclose(clipped[0], half_row[0])
    np.testing.assert_allclose(clipped[1], positive[:, 1].mean() - half_row[1])
    assert clipped[2:6].tolist() == [0.2] * 4
    assert clipped[6] == pytest.approx(1 / (2 * problem.n_rows))
    assert fit(positive, clipped, SolverSettings(l2=0.1)).converged
    assert np.array_equal(clip_mu(problem.rows, problem.mu), problem.mu)


def test_bad_arguments_are_refused(problem: Problem) -> None:
    for margin in (-0.1, 0.5, np.nan):
        with pytest.raises(ConfigError, match="margin"):
            project_mu(problem.rows, problem.mu, margin=margin)
    with pytest.raises(ConfigError, match="tolerance"):
        project_mu(problem.rows, problem.mu, tolerance=0.0)
    with pytest.raises(RangeError, match="not reached"):
        project_mu(problem.rows, far_out(problem, 0.8), tolerance=1e-13)
    with pytest.raises(DataError):
        feasibility(problem.rows, problem.mu[:2])
