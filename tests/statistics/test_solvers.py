from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.walr.hybrid_gradient import compare
from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.statistics.linear import solvers
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, WalrObjective, as_rows, sigmoid
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit, hybrid_gradient
from blindfit.algorithms.statistics.walr.defaults import default_l2
from tests.each_case import each_case
from tests.statistics.conftest import Problem

EXACT = ["newton", "lbfgs", "gradient-descent"]


def generator() -> np.random.Generator:
    return np.random.default_rng(3)


# --- against scikit-learn ---------------------------------------------------------------------------


@each_case("l2", [1e-4, 0.01, 1.0])
def test_an_unpenalised_intercept_agrees_with_scikit_learn(problem: Problem, l2: float) -> None:
    oracle = LogisticRegression(C=1 / (l2 * problem.n_rows), tol=1e-12, solver="newton-cholesky", max_iter=500)
    oracle.fit(problem.rows[:, :-1], problem.labels)
    found = fit(problem.rows, problem.mu, SolverSettings(l2=l2))
    assert found.converged
    np.testing.assert_allclose(found.weights[:-1], oracle.coef_[0], atol=1e-6)
    assert found.weights[-1] == pytest.approx(oracle.intercept_[0], abs=1e-6)


def test_a_penalised_intercept_agrees_with_scikit_learn(problem: Problem) -> None:
    oracle = LogisticRegression(C=1 / (0.01 * problem.n_rows), fit_intercept=False, tol=1e-12, max_iter=5000)
    oracle.fit(problem.rows, problem.labels)
    found = fit(problem.rows, problem.mu, SolverSettings(l2=0.01, unpenalised=None))
    np.testing.assert_allclose(found.weights, oracle.coef_[0], atol=1e-6)


def test_breast_cancer_agrees_with_scikit_learn() -> None:
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    oracle = LogisticRegression(C=1 / (0.01 * len(labels)), tol=1e-12, solver="newton-cholesky").fit(features, labels)
    rows = np.hstack([features, np.ones((len(labels), 1))])
    found = fit(rows, rows.T @ labels / len(labels), SolverSettings(l2=0.01))
    np.testing.assert_allclose(found.weights, np.append(oracle.coef_[0], oracle.intercept_), atol=1e-6)


# --- every solver reaches the optimum -----------------------------------------------------------------


@each_case("solver", EXACT)
def test_exact_solvers_reach_the_optimum(problem: Problem, solver: str) -> None:
    settings = SolverSettings(l2=0.05, solver=solver, unpenalised=None, tolerance=1e-7)  # type: ignore[arg-type]
    best = fit(problem.rows, problem.mu, SolverSettings(l2=0.05, unpenalised=None, tolerance=1e-12)).weights
    found = fit(problem.rows, problem.mu, settings)
    assert (found.solver, found.converged, found.reason) == (solver, True, "the tolerance was reached")
    # The objective is l2-strongly convex: |w - best| <= |gradient| / l2.
    assert np.linalg.norm(found.weights - best) <= (found.gradient_norm + 1e-11) / 0.05
    objective = WalrObjective(as_rows(problem.rows), problem.mu, 0.05, None)
    assert found.gradient_norm == pytest.approx(
        np.linalg.norm(objective.value_and_gradient(found.weights)[1]), abs=1e-14
    )
    rising = np.diff(found.objective_history)
    assert len(found.objective_history) > 1
    assert rising.max() <= 1e-13


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("averaging", [True, False])
def test_hybrid_descent_nears_the_optimum_as_its_noise_allows(problem: Problem, centred: bool, averaging: bool) -> None:
    l2, batch_rows, steps = 0.05, 100, 6000
    best = fit(problem.rows, problem.mu, SolverSettings(l2=l2, unpenalised=None)).weights
    settings = SolverSettings(
        l2=l2,
        solver="hybrid-minibatch",
        unpenalised=None,
        batch_rows=batch_rows,
        decay=0.002,
        averaging=averaging,
        centred=centred,
        max_iterations=steps,
        tolerance=1e-12,
    )
    found = fit(problem.rows, problem.mu, settings, generator=generator())
    # Averaged iterates vary like H^-1 V H^-1 / (steps batch_rows 7/16), V the covariance of p x (Polyak and Juditsky;
    # 7/16 for weights like s^3). The last one varies like rate V H^-1 / 2 / batch_rows at the last rate.
    objective = WalrObjective(as_rows(problem.rows), problem.mu, l2, None)
    inverse = np.linalg.inv(objective.hessian(best))
    centre = 0.5 if centred else 0.0
    noise = np.cov((sigmoid(problem.rows @ best) - centre)[:, None] * problem.rows, rowvar=False)
    first_rate = 1 / np.linalg.eigvalsh(objective.hessian(np.zeros(7)))[-1]
    if averaging:
        variance = np.trace(inverse @ noise @ inverse) / (steps * batch_rows * 7 / 16)
    else:
        variance = np.trace(noise @ inverse) * first_rate / (1 + 0.002 * steps) / 2 / batch_rows
    assert np.linalg.norm(found.weights - best) <= 4 * np.sqrt(variance)
    assert not found.converged
    assert found.iterations == steps


def test_hybrid_descent_on_all_rows_is_gradient_descent(problem: Problem) -> None:
    shared = {"l2": 0.05, "rate": 0.4, "decay": 0.01, "max_iterations": 30}
    full = fit(problem.rows, problem.mu, SolverSettings(solver="gradient-descent", **shared))  # type: ignore[arg-type]
    for centred in (True, False):
        settings = SolverSettings(
            solver="hybrid-minibatch",
            batch_rows=10_000,
            averaging=False,
            centred=centred,
            tolerance=1e-12,
            **shared,  # type: ignore[arg-type]
        )
        hybrid = fit(problem.rows, problem.mu, settings, generator=generator())
        np.testing.assert_allclose(hybrid.weights, full.weights, atol=1e-12)


def test_hybrid_descent_stops_when_the_running_mean_does(problem: Problem) -> None:
    loose = SolverSettings(l2=0.05, solver="hybrid-minibatch", batch_rows=100, tolerance=0.05)
    fits = [
        fit(problem.rows, problem.mu, replace(loose, tolerance=tolerance), generator=generator())
        for tolerance in (0.05, 0.002)
    ]
    assert all(found.converged for found in fits)
    assert fits[0].iterations < fits[1].iterations
    assert fits[0].iterations % 30 == 0  # a pass is 30 batches
    again = fit(problem.rows, problem.mu, loose, generator=generator())
    assert np.array_equal(again.weights, fits[0].weights)


# --- newton in particular -------------------------------------------------------------------------------


def test_a_warm_start_changes_the_work_and_not_the_answer() -> None:
    draw = generator()
    values = (draw.normal(size=(60_000, 8)) * 2**16).astype(np.int32)
    values[:, -1] = 2**16
    rows = QuantisedRows(values, 16)
    weights = np.array([0.5, -0.5, 0.3, 0, 1, 0, 0, -2])
    labels = draw.random(60_000) < sigmoid(values / 2**16 @ weights)
    mu = (values / 2**16).T @ labels / 60_000
    cold = fit(rows, mu, SolverSettings(l2=1e-3, solver="newton", warm_start_rows=0))
    warm = fit(rows, mu, SolverSettings(l2=1e-3, solver="newton", warm_start_rows=5000))
    real = fit(values / 2**16, mu, SolverSettings(l2=1e-3, solver="lbfgs", tolerance=1e-8))
    assert warm.converged
    assert cold.converged
    assert warm.rows_read < cold.rows_read
    least_curvature = np.linalg.eigvalsh(WalrObjective(rows, mu, 1e-3, -1).hessian(cold.weights))[0]
    for other in (warm, real):
        # Twice the linear bound: over so short a way the Hessian hardly changes.
        distance = np.linalg.norm(other.weights - cold.weights)
        assert distance <= 2 * (other.gradient_norm + cold.gradient_norm) / least_curvature


def test_newton_survives_a_bad_start_and_collinear_columns(problem: Problem) -> None:
    doubled = np.hstack([problem.rows[:, :1], problem.rows])
    mu = np.append(problem.mu[0], problem.mu)
    found = fit(doubled, mu, SolverSettings(l2=0.0), start=np.full(8, 30.0))
    single = fit(problem.rows, problem.mu, SolverSettings(l2=0.0))
    assert found.converged
    np.testing.assert_allclose(doubled @ found.weights, problem.rows @ single.weights, atol=1e-5)


def test_a_step_that_lowers_nothing_is_none() -> None:
    def rising(weights: np.ndarray) -> tuple[float, np.ndarray]:
        return 1.0 + float(np.abs(weights).sum()), np.ones(2)

    assert solvers.backtrack(rising, np.zeros(2), 1.0, np.ones(2), np.ones(2)) is None


def test_newton_that_gets_no_lower_ends_and_says_so(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "backtrack", lambda *_: None)
    found = fit(problem.rows, problem.mu, SolverSettings(l2=0.1, solver="newton"))
    assert (found.converged, found.iterations) == (False, 0)
    assert found.reason


@each_case("matrix", [np.full((2, 2), np.nan), -np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])])
def test_a_hessian_that_is_not_positive_is_an_error_with_a_hint(matrix: np.ndarray) -> None:
    with pytest.raises(RangeError, match="the Hessian is not positive definite") as refused:
        solvers.solve_positive(matrix, np.ones(2))
    assert refused.value.hint == "raise l2, or leave out columns that repeat others"


def test_auto_takes_newton_for_few_columns_and_lbfgs_for_many() -> None:
    wide = generator().normal(size=(30, 501))
    mu = wide.T @ (np.arange(30) % 2) / 30
    settings = SolverSettings(l2=1.0, unpenalised=None)
    assert fit(wide, mu, settings).solver == "lbfgs"
    assert fit(wide[:, :500], mu[:500], settings).solver == "newton"


# --- laws of the model ------------------------------------------------------------------------------------


def test_predictions_add_up_to_the_labels_and_to_every_aggregate(problem: Problem) -> None:
    found = fit(problem.rows, problem.mu, SolverSettings(l2=0.0))
    probabilities = sigmoid(problem.rows @ found.weights)
    residual = problem.rows.T @ (probabilities - problem.labels)
    assert np.abs(residual).max() <= problem.n_rows * found.gradient_norm + 1e-9
    assert probabilities.sum() == pytest.approx(problem.labels.sum(), abs=1e-4)


def test_with_a_free_intercept_predictions_add_up_to_the_noisy_count(problem: Problem) -> None:
    noisy = problem.mu + generator().normal(size=7) * 0.05
    found = fit(problem.rows, noisy, SolverSettings(l2=0.5))
    assert sigmoid(problem.rows @ found.weights).mean() == pytest.approx(noisy[-1], abs=2e-8)


@each_case("unpenalised", [None, -1])
@each_case("scale", [2.0**-10, 7.0, 1e4])
def test_rescaling_the_features_changes_no_score(problem: Problem, scale: float, unpenalised: int | None) -> None:
    noise_std, norm_bound = 0.01, 6.0
    noisy = problem.mu + generator().normal(size=7) * noise_std

    def fit_scaled(by: float) -> np.ndarray:
        l2 = default_l2(noise_std * by, norm_bound * by, 7, epsilon=0.5)
        found = fit(problem.rows * by, noisy * by, SolverSettings(l2=l2, unpenalised=unpenalised, tolerance=1e-11))
        assert found.converged
        return problem.rows * by @ found.weights

    np.testing.assert_allclose(fit_scaled(scale), fit_scaled(1.0), atol=1e-7)


# --- what goes wrong, said aloud ------------------------------------------------------------------------


@each_case("solver", [*EXACT, "hybrid-minibatch"])
def test_too_few_iterations_are_reported(problem: Problem, solver: str) -> None:
    settings = SolverSettings(l2=1e-3, solver=solver, max_iterations=2)  # type: ignore[arg-type]
    found = fit(problem.rows, problem.mu, settings, generator=generator())
    assert not found.converged
    assert found.iterations == 2
    assert "not reached" in found.reason
    assert found.gradient_norm > 1e-6


@each_case("solver", EXACT)
def test_an_infeasible_mu_without_l2_is_reported_not_chased(problem: Problem, solver: str) -> None:
    infeasible = problem.mu + 3 * np.eye(7)[0]
    settings = SolverSettings(l2=0.0, solver=solver, unpenalised=None)  # type: ignore[arg-type]
    found = fit(problem.rows, infeasible, settings)
    assert not found.converged
    assert "infeasible" in found.reason
    assert found.iterations < 50
    assert fit(problem.rows, infeasible, replace(settings, l2=0.1)).converged


@each_case("count", [-0.01, 0.0, 1.0, 1.2])
def test_a_noisy_count_outside_its_range_has_no_free_intercept(problem: Problem, count: float) -> None:
    noisy = np.append(problem.mu[:-1], count)
    with pytest.raises(RangeError, match="unpenalised column -1") as refused:
        fit(problem.rows, noisy, SolverSettings(l2=0.1))
    assert "clip mu" in refused.value.hint
    assert fit(problem.rows, noisy, SolverSettings(l2=0.1, unpenalised=None)).converged


@pytest.mark.parametrize("solver", ["gradient-descent", "hybrid-minibatch"])
def test_weights_that_overflow_are_an_error_with_a_hint(problem: Problem, solver: str) -> None:
    settings = SolverSettings(l2=1.0, solver=solver, rate=1e40, unpenalised=None)  # type: ignore[arg-type]
    with pytest.raises(RangeError, match="overflow") as refused:
        fit(problem.rows, problem.mu, settings, generator=generator())
    assert "rate" in refused.value.hint


@each_case("solver", [*EXACT, "hybrid-minibatch"])
def test_progress_is_reported(problem: Problem, solver: str) -> None:
    seen: list[tuple[int, float]] = []
    settings = SolverSettings(l2=0.05, solver=solver, unpenalised=None)  # type: ignore[arg-type]
    found = fit(
        problem.rows,
        problem.mu,
        settings,
        generator=generator(),
        on_progress=lambda iteration, norm: seen.append((iteration, norm)),
    )
    assert len(seen) == len(found.objective_history) > 1
    assert [iteration for iteration, _ in seen] == sorted({iteration for iteration, _ in seen})
    assert seen[-1][0] == found.iterations
    if solver != "hybrid-minibatch":
        assert seen[-1][1] == pytest.approx(found.gradient_norm)


@each_case(
    ("bad", "field"),
    [
        ({"solver": "adam"}, "solver"),
        ({"l2": -1.0}, "l2"),
        ({"l2": float("nan")}, "l2"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": 2.0}, "tolerance"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"solver": "newton", "warm_start_rows": -1}, "warm_start_rows"),
        ({"solver": "lbfgs", "memory": 0}, "memory"),
        ({"solver": "hybrid-minibatch", "batch_rows": 0}, "batch_rows"),
        ({"solver": "gradient-descent", "rate": 0.0}, "rate"),
        ({"solver": "gradient-descent", "decay": -0.1}, "decay"),
        ({"rate": 0.1}, "rate: solver auto has no such option"),
        ({"solver": "newton", "averaging": True}, "averaging: solver newton has no such option"),
        ({"solver": "gradient-descent", "batch_rows": 5}, "batch_rows: solver gradient-descent has no such option"),
    ],
)
def test_bad_settings_are_refused_by_field(bad: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError, match=f"^{field}"):
        SolverSettings(**({"l2": 0.1} | bad))  # type: ignore[arg-type]


def test_bad_arguments_are_refused(problem: Problem) -> None:
    with pytest.raises(ConfigError, match="generator"):
        fit(problem.rows, problem.mu, SolverSettings(l2=0.1, solver="hybrid-minibatch"))
    for start in (np.zeros(3), np.full(7, np.nan)):
        with pytest.raises(ConfigError, match="start"):
            fit(problem.rows, problem.mu, SolverSettings(l2=0.1), start=start)


def test_every_option_acts(problem: Problem) -> None:
    """Each option changes the weights or the work of an unfinished fit."""
    changes: list[tuple[str, dict[str, object], dict[str, object]]] = [
        ("newton", {}, {"warm_start_rows": 200}),
        ("newton", {}, {"unpenalised": None}),
        ("newton", {}, {"tolerance": 0.1}),
        ("lbfgs", {}, {"memory": 1}),
        ("gradient-descent", {}, {"rate": 0.1}),
        ("gradient-descent", {}, {"decay": 0.5}),
        ("hybrid-minibatch", {}, {"rate": 0.1}),
        ("hybrid-minibatch", {}, {"decay": 0.5}),
        ("hybrid-minibatch", {}, {"batch_rows": 10}),
        ("hybrid-minibatch", {}, {"averaging": False}),
        ("hybrid-minibatch", {}, {"centred": False}),
    ]
    for solver, before, after in changes:
        results = [
            fit(
                problem.rows,
                problem.mu,
                SolverSettings(**({"l2": 0.05, "solver": solver, "max_iterations": 7} | options)),  # type: ignore[arg-type]
                generator=generator(),
            )
            for options in (before, after)
        ]
        assert not np.array_equal(results[0].weights, results[1].weights), (solver, after)


# --- the spec's claim about the hybrid gradient -------------------------------------------------------------


def test_the_hybrid_gradient_is_the_full_one_on_the_average(problem: Problem) -> None:
    weights, mean_row = np.linspace(-1, 1, 7), problem.rows.mean(axis=0)
    full = hybrid_gradient(problem.rows, problem.mu, weights)
    halves = np.split(problem.rows, 2)
    plain = [hybrid_gradient(half, problem.mu, weights) for half in halves]
    centred = [hybrid_gradient(half, problem.mu, weights, centre=0.3, mean_row=mean_row) for half in halves]
    np.testing.assert_allclose(np.mean(plain, axis=0), full, atol=1e-14)
    np.testing.assert_allclose(np.mean(centred, axis=0), full, atol=1e-14)


def test_the_hybrid_gradient_is_nearer_where_labels_are_rare_and_only_there() -> None:
    draw = generator()
    rows = np.hstack([draw.normal(size=(20_000, 10)), np.ones((20_000, 1))])
    noisy_rows = rows @ np.append(np.full(10, 0.3), 0.0)
    for intercept, spec_holds in ((-3.0, True), (2.0, False)):
        labels = draw.random(20_000) < sigmoid(noisy_rows + intercept)
        for measured in compare(rows, labels, (64, 1024), 100, draw):
            assert measured.hybrid_centred < measured.ordinary
            if measured.weights_at == "optimum":
                assert (measured.hybrid < measured.ordinary) == spec_holds
                assert measured.hybrid_centred < measured.hybrid
