"""The plain training computes the documented sums, and ends at the minimum of linear algebra."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from tests.each_case import each_case
from tests.oracles import taylor as taylor_oracle
from tests.oracles.taylor import PlainTable
from tests.taylor.seats import Case, case_of

PLAIN = OptimiserSettings(learning_rate=0.5, schedule="constant", l2=0.05)


def random_weights(table: PlainTable, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=block.shape[1]) for name, block in table.blocks.items()}


# --- sums ----------------------------------------------------------------------------------------------


@each_case("model", ["logistic", "linear"])
@each_case("weights", [{}, {"masked": True}, {"class_weights": True}])
def test_a_gradient_is_the_sum_over_rows_of_factor_residual_and_feature(
    insecure_test_key: PrivateKey, model: str, weights: dict[str, Any]
) -> None:
    """Each row is added in Python's integers and fractions, with a score that no float rounds."""
    case = case_of(insecure_test_key, model=model, n_passive=2, **weights)
    theta = random_weights(case.table)
    expected = [0] * sum(case.parameters.columns)
    for i in case.batch.tolist():
        residual = int(case.table.label_terms[i])
        for name, block in case.table.blocks.items():
            z = sum(int(x) * Fraction(float(w)) for x, w in zip(block[i], theta[name], strict=True))
            residual += round(z * Fraction(2 * case.grid.loss.square) * 2**20 / 2**12)
        factor = 1 if case.table.factors is None else int(case.table.factors[i])
        row = np.concatenate([block[i] for block in case.table.blocks.values()])
        expected = [total + factor * residual * int(x) for total, x in zip(expected, row, strict=True)]
    assert taylor_oracle.gradient_sums(case.table, case.batch, case.grid, theta) == expected


@each_case("model", ["logistic", "linear"])
@each_case("class_weights", [False, True])
def test_the_mean_loss_is_the_weighted_loss_of_the_whole_score(
    insecure_test_key: PrivateKey, model: str, class_weights: bool
) -> None:
    case = case_of(insecure_test_key, model=model, class_weights=class_weights)
    theta, rows = random_weights(case.table), case.held_out
    z = sum(case.grid.scores(block[rows], theta[name]) for name, block in case.table.blocks.items())
    weights = None if case.table.factors is None else case.table.factors[rows] / 2**8
    expected = case.grid.loss.value(z, case.table.y[rows], weights)
    assert taylor_oracle.mean_loss(case.table, rows, case.grid, theta) == pytest.approx(expected, rel=1e-13)


def test_sums_past_62_bits_are_exact(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key, class_weights=True, grid={"residual_bits": 40, "factor_bound": 4 << 8})
    assert case.grid.gradient_bound(len(case.batch)) >= 2**62
    X = np.hstack([block[case.batch] for block in case.table.blocks.values()]).astype(object)
    weighted = case.table.row_factors(case.batch).astype(object) * case.table.label_terms[case.batch]
    zero = {name: np.zeros(block.shape[1]) for name, block in case.table.blocks.items()}
    assert taylor_oracle.gradient_sums(case.table, case.batch, case.grid, zero) == (X.T @ weighted).tolist()


# --- where it ends ---------------------------------------------------------------------------------------


def whole_batch(key: PrivateKey, **changes: Any) -> Case:
    chosen = {"settings": PLAIN, "epochs": 400, "noise_std": 0.0, "hold_out_loss": False, **changes}
    return case_of(key, n_batches=1, batch_rows=60, n_passive=2, jitter=0.0, **chosen)


def reals_of(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return the batch's features and factors."""
    blocks = [np.ldexp(block[case.batch].astype(float), -12) for block in case.table.blocks.values()]
    return np.hstack(blocks), np.ldexp(case.table.row_factors(case.batch).astype(float), -case.grid.factor_bits)


def minimiser(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Minimise 1/s sum f (a z^2 - b y z) + l2/2 |theta|^2 by the normal equations; return their matrix too."""
    (X, f), loss = reals_of(case), case.grid.loss
    penalised = np.ones(X.shape[1])
    penalised[case.parameters.columns[0] - 1] = 0.0
    hessian = 2 * loss.square * (X.T * f) @ X / len(X) + case.settings.l2 * np.diag(penalised)
    return np.linalg.solve(hessian, loss.cross * X.T @ (f * case.table.y[case.batch]) / len(X)), hessian


def distance_allowed(case: Case, target: np.ndarray, hessian: np.ndarray) -> float:
    """Bound how far from the minimum the last epoch can end, by what is left of the start and what rounding adds.

    A residual is rounded by half a step for each party and for the label, which moves a gradient by at most |delta|,
    |delta_j| = mean of f |x_j| times all those half steps. Along an eigenvector of eigenvalue v the distance follows e'
    = e - rate v e + momentum (e - the one before) - rate d, |d| <= |delta|: each epoch's d is carried to the end.
    """
    (X, f), settings = reals_of(case), case.settings
    half_steps = (len(case.names) + 1) * 2.0 ** -(case.grid.residual_bits + 1)
    delta = float(np.linalg.norm(np.abs(X).T @ f / len(X) * half_steps))
    values, vectors = np.linalg.eigh(hessian)
    start = start_before = vectors.T @ target
    carried = carried_before = np.zeros((case.parameters.epochs, len(values)))
    for epoch in range(case.parameters.epochs):
        rate, momentum = settings.rate(epoch), settings.momentum_of
        start, start_before = start - rate * values * start + momentum * (start - start_before), start
        carried, carried_before = (
            carried - rate * values * carried + momentum * (carried - carried_before),
            carried,
        )
        carried[epoch] = rate
    left = np.abs(start) + delta * np.abs(carried).sum(axis=0)
    return float(np.linalg.norm(left)) + 1e-12  # rounding of floats


def found_by(case: Case) -> np.ndarray:
    return np.concatenate(list(case.oracle().weights.values()))


@pytest.mark.parametrize("model", ["logistic", "linear"])
@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("weights", [{}, {"class_weights": True}, {"masked": True}])
def test_without_noise_it_ends_at_the_minimum_of_the_quadratic(
    insecure_test_key: PrivateKey, model: str, l2: float, weights: dict[str, Any]
) -> None:
    case = whole_batch(insecure_test_key, model=model, settings=replace(PLAIN, l2=l2), **weights)
    target, hessian = minimiser(case)
    allowed = distance_allowed(case, target, hessian)
    assert allowed < 1e-4
    assert np.linalg.norm(found_by(case) - target) <= allowed


def test_linear_without_penalty_is_least_squares(insecure_test_key: PrivateKey) -> None:
    case = whole_batch(insecure_test_key, model="linear", settings=replace(PLAIN, l2=0.0))
    X, _ = reals_of(case)
    expected = np.linalg.lstsq(X, case.table.y[case.batch], rcond=None)[0]
    np.testing.assert_allclose(minimiser(case)[0], expected, atol=1e-12)


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "sag"])
@pytest.mark.parametrize("schedule", ["inverse", "exponential"])
def test_every_optimiser_and_schedule_ends_there(insecure_test_key: PrivateKey, optimiser: Any, schedule: Any) -> None:
    settings = OptimiserSettings(0.4, schedule, decay=1e-3, optimiser=optimiser, momentum=0.5, l2=0.05)
    case = whole_batch(insecure_test_key, settings=settings)
    target, hessian = minimiser(case)
    allowed = distance_allowed(case, target, hessian)
    assert allowed < 1e-4
    assert np.linalg.norm(found_by(case) - target) <= allowed


def test_fresh_noise_moves_the_weights_about_the_minimum_and_kept_noise_to_another_one(
    insecure_test_key: PrivateKey,
) -> None:
    """Kept noise is a fixed term of the gradient, so descent ends at the minimum of the objective with that term."""
    case = whole_batch(insecure_test_key, noise_std=0.0, kept_noise_std=1.0)
    target, hessian = minimiser(case)
    drawn = [x for name, k in zip(case.names, case.parameters.columns, strict=True) for x in case.noise(name, 0, 0, k)]
    noise = np.ldexp(np.array(drawn, float), -case.grid.gradient_bits) / len(case.batch)
    shifted = target - np.linalg.solve(hessian, noise)
    fresh = found_by(case.with_parameters(noise_std=1.0, kept_noise_std=0.0))
    assert np.linalg.norm(found_by(case) - shifted) <= distance_allowed(case, shifted, hessian)
    assert np.linalg.norm(shifted - target) > 1e-3
    assert np.linalg.norm(fresh - target) > 1e-3
    assert np.linalg.norm(fresh - shifted) > 1e-3


# --- label DP: what one label changes -----------------------------------------------------------------------


@each_case("seed", range(3))
def test_a_label_changes_a_gradient_by_its_row_and_nothing_else(insecure_test_key: PrivateKey, seed: int) -> None:
    """2b = 1 in logistic: X_i 2^residual_bits for any scores; so rows of norm R have sensitivity R."""
    case = case_of(insecure_test_key, n_passive=3, jitter=0.0)
    i = int(case.batch[seed])
    y = case.table.y.copy()
    y[i] = -y[i]
    grid = case.grid
    flipped = replace(case.table, y=y, label_terms=grid.label_terms(y, np.zeros(len(y))))
    row = np.concatenate([block[i] for block in case.table.blocks.values()])
    for theta in (random_weights(case.table, seed), random_weights(case.table, seed + 100)):
        before, after = (taylor_oracle.gradient_sums(table, case.batch, grid, theta) for table in (case.table, flipped))
        change = np.array(after) - np.array(before)
        assert change.tolist() == (row * int(case.table.y[i]) * 2**grid.residual_bits).tolist()
        others = [
            taylor_oracle.gradient_sums(table, case.plan.batches[1], grid, theta) for table in (case.table, flipped)
        ]
        assert others[0] == others[1]
    steps = np.linalg.norm(change.astype(float)) / 2**grid.gradient_bits
    assert steps == pytest.approx(np.linalg.norm(row) / 2**grid.feature_bits)


def test_a_label_in_a_linear_model_changes_it_by_row_and_difference() -> None:
    grid = Grid("linear", 2)
    low, high = grid.label_terms(np.array([-1.5, 2.0]), np.zeros(2)).tolist()
    assert low - high == 7 << (grid.residual_bits - 1)
