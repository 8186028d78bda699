from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.linear.logistic import (
    QuantisedRows,
    RealRows,
    WalrObjective,
    as_rows,
    scores,
    sigmoid,
    softplus,
    weighted_aggregate,
)
from tests.statistics.conftest import Floats, Problem

EPS = np.finfo(float).eps


@given(st.floats(-1e308, 1e308))
def test_sigmoid_and_softplus_are_stable(z: float) -> None:
    score = np.array([z])
    assert sigmoid(score)[0] == pytest.approx(expit(z), rel=4 * EPS, abs=0)
    assert softplus(score)[0] == pytest.approx(np.logaddexp(0, z), rel=4 * EPS, abs=0)


def test_the_limits_of_sigmoid_and_softplus() -> None:
    ends = np.array([-np.inf, -800.0, 0.0, 800.0, np.inf])
    assert sigmoid(ends).tolist() == [0, 0, 0.5, 1, 1]
    assert softplus(ends).tolist() == [0, 0, np.log(2), 800, np.inf]


@pytest.fixture(params=[(0.0, None), (0.3, None), (0.3, -1), (0.3, 2)], ids=str)
def objective(request: pytest.FixtureRequest, problem: Problem) -> WalrObjective:
    l2, unpenalised = request.param
    return WalrObjective(as_rows(problem.rows), problem.mu, l2, unpenalised)


def test_the_value_is_the_log_loss_plus_the_penalty(objective: WalrObjective, problem: Problem) -> None:
    weights = np.linspace(-1, 1, 7)
    z = problem.rows @ weights
    loss = np.mean(np.logaddexp(0, z) - problem.labels * z)
    penalised = weights if objective.unpenalised is None else np.delete(weights, objective.unpenalised)
    expected = loss + objective.l2 / 2 * penalised @ penalised
    assert objective.value_and_gradient(weights)[0] == pytest.approx(expected, rel=1e-13)


def slopes_of(function: Callable[[Floats], Any], at: Floats, h: float) -> list[Any]:
    """Compute slopes along each axis, by central differences."""
    return [(function(at + h * unit) - function(at - h * unit)) / (2 * h) for unit in np.eye(len(at))]


def test_the_gradient_is_the_slope_of_the_value(objective: WalrObjective) -> None:
    weights, h = np.linspace(-1, 1, 7), 1e-5
    slopes = slopes_of(lambda at: objective.value_and_gradient(at)[0], weights, h)
    # Rounding eps / h, and the cubic term h^2 / 6 times a third derivative below E|x|^3 / 10 < 2.
    bound = 16 * EPS / h + h**2
    np.testing.assert_allclose(objective.value_and_gradient(weights)[1], slopes, rtol=0, atol=bound)


def test_the_hessian_is_the_slope_of_the_gradient(objective: WalrObjective) -> None:
    weights, h = np.linspace(-1, 1, 7), 1e-4
    slopes = slopes_of(lambda at: objective.value_and_gradient(at)[1], weights, h)
    # The fourth derivative is below E|x|^4 / 8 < 16.
    np.testing.assert_allclose(objective.hessian(weights), slopes, rtol=0, atol=16 * EPS / h + 16 / 6 * h**2)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 20_000), st.integers(1, 40), st.integers(0, 31), st.integers(0, 2**32 - 1))
def test_quantised_rows_equal_their_real_values(n_rows: int, n_features: int, frac_bits: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(-(2**31), 2**31, (n_rows, n_features)).astype(np.int32)
    rows = QuantisedRows(values, frac_bits)
    real = values.astype(np.float64) / 2**frac_bits
    assert np.array_equal(np.concatenate([block.copy() for block in rows.blocks()]), real)
    which = generator.integers(0, n_rows, 5)
    assert np.array_equal(rows.take(which), real[which])
    assert np.array_equal(rows.take(slice(None, None, 3)), real[::3])


def test_blocks_add_up_to_the_whole() -> None:
    # 30,000 rows of 30 columns are four blocks.
    matrix = np.random.default_rng(2).normal(size=(30_000, 30)).astype(np.float32)
    rows, labels, weights = as_rows(matrix), np.arange(30_000) % 3 == 0, np.linspace(-1, 1, 30)
    exact = matrix.astype(np.float64)
    np.testing.assert_allclose(weighted_aggregate(rows, labels), exact[labels].sum(axis=0) / 30_000, atol=1e-13)
    np.testing.assert_allclose(scores(rows, weights), exact @ weights, atol=1e-12)
    p = expit(exact @ weights)
    whole = (exact * (p * (1 - p))[:, None]).T @ exact / 30_000
    np.testing.assert_allclose(WalrObjective(rows, np.zeros(30), 0, None).hessian(weights), whole, atol=1e-12)


def test_a_sample_is_evenly_spaced_and_keeps_mu(problem: Problem) -> None:
    whole = WalrObjective(as_rows(problem.rows), problem.mu, 0.1, -1)
    sample = whole.on_sample(700)
    assert np.array_equal(sample.rows.take(slice(None)), problem.rows[::5])
    assert (sample.mu, sample.l2, sample.unpenalised) == (whole.mu, 0.1, -1) or np.array_equal(sample.mu, whole.mu)
    assert whole.on_sample(3000) is whole


def test_as_rows_keeps_what_gives_blocks() -> None:
    rows = QuantisedRows(np.ones((2, 2), np.int32), 1)
    assert as_rows(rows) is rows
    assert isinstance(as_rows([[True, False]]), RealRows)


def test_bad_rows_are_refused_by_place() -> None:
    late = np.zeros((20_000, 30))
    late[15_000, 7] = np.nan
    with pytest.raises(DataError, match="row 15000, column 7: nan"):
        as_rows(late)
    with pytest.raises(DataError, match="numbers"):
        as_rows([["a"]])
    for shape in ((3,), (0, 2), (2, 0)):
        with pytest.raises(DataError, match="shape"):
            as_rows(np.zeros(shape))
    with pytest.raises(DataError, match="int32"):
        QuantisedRows(np.zeros((2, 2), np.int64), 3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="frac_bits"):
        QuantisedRows(np.zeros((2, 2), np.int32), 32)


def test_a_bad_objective_is_refused(problem: Problem) -> None:
    rows = as_rows(problem.rows)
    with pytest.raises(DataError, match="one entry for each of 7 columns"):
        WalrObjective(rows, problem.mu[:3], 0, None)
    with pytest.raises(DataError, match="entry 1 is not a finite"):
        WalrObjective(rows, np.array([0, np.inf, 0, 0, 0, 0, 0]), 0, None)
    with pytest.raises(ConfigError, match="l2"):
        WalrObjective(rows, problem.mu, float("nan"), None)
    with pytest.raises(ConfigError, match="no column 7"):
        WalrObjective(rows, problem.mu, 0, 7)
    with pytest.raises(DataError, match="as many weights"):
        weighted_aggregate(rows, [1, 0])
