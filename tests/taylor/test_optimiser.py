"""Gradients move weights, a rule stops the training, and a party's columns limit what can be revealed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.vertical.loss import LOSSES, label_bits, leverages, refuse_one_class
from blindfit.algorithms.statistics.vertical.optimiser import (
    MOST_MOVED,
    MOST_WEIGHT,
    Optimiser,
    OptimiserSettings,
    Patience,
)
from tests.each_case import each_case
from tests.paillier.tools import LAW

SGD = OptimiserSettings(learning_rate=0.5, schedule="constant", l2=0.0)


def optimiser(
    settings: OptimiserSettings,
    weights: list[float],
    intercept: bool = False,
    batches: int = 1,
    rows: list[list[float]] | None = None,
) -> Optimiser:
    """Args:
    rows: rows whose scores bound a step; None for no rows.
    """
    held_by = np.zeros((0, len(weights))) if rows is None else np.array(rows)
    return Optimiser(settings, np.array(weights), intercept, batches, held_by)


def moved(settings: OptimiserSettings, gradients: list[list[float]], intercept: bool = False) -> list[float]:
    """Return weights 1, 1 after these gradients, each of the next epoch's only batch."""
    one = optimiser(settings, [1.0, 1.0], intercept)
    for epoch, gradient in enumerate(gradients):
        one.step(np.array(gradient), epoch, 0)
    return [float(weight) for weight in one.weights]


# --- steps ------------------------------------------------------------------------------------------------


def test_sgd_goes_against_the_gradient() -> None:
    assert moved(SGD, [[1.0, -2.0]]) == [0.5, 2.0]


def test_l2_pulls_all_weights_but_the_intercept() -> None:
    settings = replace(SGD, l2=0.5)
    assert moved(settings, [[0.0, 0.0]]) == [0.75, 0.75]
    assert moved(settings, [[0.0, 0.0]], intercept=True) == [0.75, 1.0]


def test_l1_takes_off_a_threshold_and_stops_at_zero() -> None:
    settings = replace(SGD, l1=0.5)
    assert moved(settings, [[0.0, 1.75]]) == [0.75, 0.0]
    assert moved(settings, [[0.0, 4.0]]) == [0.75, -0.75]
    assert moved(settings, [[0.0, 0.0]], intercept=True) == [0.75, 1.0]


@each_case(
    ("schedule", "rate"),
    [("constant", 0.5), ("inverse", 0.5 / (1 + 3 * 0.1)), ("exponential", 0.5 * math.exp(-0.3))],
)
def test_the_rate_follows_its_schedule(schedule: Any, rate: float) -> None:
    settings = OptimiserSettings(0.5, schedule, decay=0.1)
    assert settings.rate(0) == 0.5
    assert settings.rate(3) == pytest.approx(rate, rel=1e-15)


def test_momentum_repeats_a_part_of_the_last_move() -> None:
    settings = replace(SGD, optimiser="momentum", momentum=0.5)
    assert moved(settings, [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]) == [1 - 0.5 - 0.25 - 0.125, 1.0]


def test_sag_goes_against_the_mean_of_the_newest_gradients() -> None:
    one = optimiser(replace(SGD, optimiser="sag"), [0.0], batches=3)
    for epoch, batch, gradient, expected in [(0, 0, 2.0, 2.0), (0, 1, 4.0, 3.0), (0, 2, 0.0, 2.0), (1, 0, -4.0, 0.0)]:
        before = float(one.weights[0])
        one.step(np.array([gradient]), epoch, batch)
        assert before - float(one.weights[0]) == 0.5 * expected


OPTIMISERS: dict[str, OptimiserSettings] = {
    "sgd": SGD,
    "momentum": replace(SGD, optimiser="momentum", momentum=0.8),
    "sag": replace(SGD, optimiser="sag"),
}


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.0, 0.3), (0.2, 0.0), (0.1, 0.2)])
def test_all_optimisers_end_where_the_penalised_objective_is_least(name: str, l1: float, l2: float) -> None:
    """A quadratic with a penalty: at the minimum |gradient + l2 theta| <= l1, with equality and a sign off zero."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    X[:, -1] = 1.0
    halves = (slice(0, 20), slice(20, 40))
    settings = replace(OPTIMISERS[name], learning_rate=0.05, l1=l1, l2=l2)
    one = optimiser(settings, [0.0] * 4, intercept=True, batches=1 if name != "sag" else 2)
    for epoch in range(3000):
        for batch, rows in enumerate(halves if name == "sag" else (slice(0, 40),)):
            one.step(X[rows].T @ (X[rows] @ one.weights - y[rows]) / len(y[rows]), epoch, batch)
    penalised = np.array([1.0, 1.0, 1.0, 0.0])
    slope = X.T @ (X @ one.weights - y) / 40 + l2 * penalised * one.weights
    zero = one.weights == 0
    np.testing.assert_allclose(slope[~zero], -(l1 * penalised * np.sign(one.weights))[~zero], atol=1e-9)
    assert (np.abs(slope[zero]) <= l1).all()
    assert zero.any() == (l1 > 0)


@each_case("name", OPTIMISERS)
def test_a_restored_optimiser_goes_on_as_if_nothing_had_been(name: str) -> None:
    settings = replace(OPTIMISERS[name], l1=0.01, l2=0.1)
    gradients = np.random.default_rng(0).normal(size=(6, 2))
    whole, first = (optimiser(settings, [0.0, 0.0], batches=2) for _ in range(2))
    for i, gradient in enumerate(gradients):
        whole.step(gradient, i // 2, i % 2)
    for i, gradient in enumerate(gradients[:3]):
        first.step(gradient, i // 2, i % 2)
    state = first.state()
    first.step(np.array([9.0, 9.0]), 1, 0)  # the kept state does not change with it
    second = optimiser(settings, [0.0, 0.0], batches=2)
    second.restore(state)
    for i, gradient in enumerate(gradients[3:], start=3):
        second.step(gradient, i // 2, i % 2)
    assert second.weights.tolist() == whole.weights.tolist()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_weights_that_grow_without_end_are_shrunk(name: str) -> None:
    """The options and the gradient may have any allowed value: numbers stay finite, and in proportion."""
    one = optimiser(replace(OPTIMISERS[name], learning_rate=1e3, l2=1e3), [0.0, 0.0])
    for epoch in range(60):
        one.step(np.array([1e6, -2e6]) * (-1) ** epoch, epoch, 0)
    assert np.abs(one.weights).sum() == pytest.approx(MOST_WEIGHT)
    assert one.weights[1] / one.weights[0] == pytest.approx(-2.0, rel=0.01)


def test_no_step_moves_a_score_farther_from_the_epochs_begin_than_is_allowed() -> None:
    """The steps are 2, then 1, then 2 / 3 of a unit of the row that would move most, for any number of steps in an
    epoch.
    """
    one = optimiser(replace(SGD, learning_rate=1e3), [0.0, 0.0], batches=3, rows=[[1.0, 0.0], [2.0, 1.0]])
    for epoch in range(4):
        began = one.weights
        for batch, gradient in enumerate([[1.0, 3.0], [-1.0, 5.0], [0.5, 0.5]]):
            one.step(np.array(gradient), epoch, batch)
            away = np.abs(one.rows @ (one.weights - began)).max()
            assert away == pytest.approx(MOST_MOVED / (1 + epoch))
        assert one.shortened == 3
    one.step(np.array([1e-6, 0.0]), 4, 0)
    assert one.shortened == 0


def test_a_step_that_moves_little_is_what_it_was() -> None:
    free, held = (optimiser(SGD, [0.5, -0.5], rows=rows) for rows in (None, [[1.0, 1.0], [-2.0, 0.5]]))
    for epoch in range(5):
        for one in (free, held):
            one.step(np.array([0.1, -0.2]) / (1 + epoch) ** 2, epoch, 0)
    assert held.weights.tolist() == free.weights.tolist()


# --- when to stop -------------------------------------------------------------------------------------------


@each_case(
    ("patience", "losses", "stops_after"),
    [
        (1, [3.0, 2.0, 1.0, 1.0], 4),
        (2, [3.0, 2.0, 2.0, 1.9, 1.8], 0),  # one bad epoch, then better again
        (2, [3.0, 2.95, 2.9, 2.0], 3),  # falls, but by less than the tolerance
        (2, [3.0, 4.0, 3.5, 2.0], 3),  # better than the last, not than the best
        (0, [1.0, 2.0, 3.0, 4.0], 0),
        (3, [1.0], 0),
    ],
)
def test_patience_counts_epochs_without_a_better_loss(patience: int, losses: list[float], stops_after: int) -> None:
    stop = Patience(patience, tolerance=0.06)
    verdicts = [stop.goes_on(loss) for loss in losses]
    assert (verdicts.index(False) + 1 if False in verdicts else 0) == stops_after
    assert stop.losses == losses


def test_shares_of_the_first_loss_do_not_tell_how_many_rows_have_one() -> None:
    for rows in (1.0, 0.3, 1e-9):
        stop = Patience(1, tolerance=0.06, relative=True)
        assert [stop.goes_on(rows * loss) for loss in (3.0, 2.4, 2.3)] == [True, True, False]
        assert stop.losses == pytest.approx([1.0, 0.8, 2.3 / 3])
        resumed = Patience(1, tolerance=0.06, relative=True)
        resumed.restore(stop.state())
        resumed.goes_on(rows * 1.5)
        assert resumed.losses == pytest.approx([1.0, 0.8, 2.3 / 3, 0.5])
    none = Patience(0, 0.0, relative=True)
    assert none.goes_on(0.0)
    assert none.losses == [1.0]


# --- the loss and its labels --------------------------------------------------------------------------------


@LAW
@given(st.floats(-30, 30), st.sampled_from([-1.0, 1.0]))
def test_the_logistic_taylor_loss_is_the_log_loss_up_to_its_fourth_power(z: float, y: float) -> None:
    loss = LOSSES["logistic"].value(np.array([z]), np.array([y]))
    exact = math.log1p(math.exp(-abs(z))) + max(-y * z, 0.0)
    assert loss >= exact - 1e-12
    assert loss - exact <= z**4 / 192 + 1e-12


@LAW
@given(st.floats(-30, 30), st.floats(-30, 30))
def test_the_linear_loss_is_half_the_squared_error(z: float, y: float) -> None:
    assert LOSSES["linear"].value(np.array([z]), np.array([y])) == pytest.approx((z - y) ** 2 / 2, abs=1e-9)


def test_a_loss_weighs_its_rows() -> None:
    z, y = np.array([1.0, -2.0]), np.array([3.0, 1.0])
    assert LOSSES["linear"].value(z, y, np.array([3.0, 1.0])) == (3 * 2 + 4.5) / 2


@pytest.mark.parametrize("labels", [[1.0, 1.0], [0.0]])
def test_one_class_alone_is_refused(labels: list[float]) -> None:
    with pytest.raises(DataError, match="every label is the same"):
        refuse_one_class(np.array(labels))


# --- what gradients give away --------------------------------------------------------------------------------


def hat_diagonal(X: np.ndarray) -> np.ndarray:
    return np.diag(X @ np.linalg.pinv(X.T @ X) @ X.T)


@each_case("seed", range(4))
def test_leverages_are_the_diagonal_of_the_hat_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 5)) * rng.uniform(0.1, 10, 5)
    np.testing.assert_allclose(leverages(X), hat_diagonal(X), atol=1e-12)
    assert leverages(X).sum() == pytest.approx(5)


def test_leverages_of_dependent_columns_are_those_of_what_they_span() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    dependent = np.hstack([X, X[:, :1] + X[:, 1:2], np.zeros((30, 1)), X[:, 3:]])
    np.testing.assert_allclose(leverages(dependent), leverages(X), atol=1e-10)


def test_a_lone_row_has_all_the_leverage_and_so_has_every_row_of_too_few() -> None:
    X = np.ones((20, 2))
    X[:, 1] = 0
    X[7, 1] = 3.0
    np.testing.assert_allclose(leverages(X)[7], 1.0)
    np.testing.assert_allclose(np.delete(leverages(X), 7), 1 / 19)
    np.testing.assert_allclose(leverages(np.random.default_rng(0).normal(size=(4, 9))), 1.0)


def test_nested_columns_single_out_the_row_between_them() -> None:
    """Supports of 45 and 44 rows: their difference is one row."""
    X = np.zeros((128, 2))
    X[:45, 0] = X[:44, 1] = 1.0
    assert leverages(X)[44] == pytest.approx(1.0)
    assert leverages(X)[0] == pytest.approx(1 / 44)


def test_one_hot_columns_share_the_leverage_of_their_rows() -> None:
    X = np.repeat(np.eye(4), [2, 3, 5, 10], axis=0)
    np.testing.assert_allclose(leverages(X), np.repeat([1 / 2, 1 / 3, 1 / 5, 1 / 10], [2, 3, 5, 10]))


def test_no_columns_have_no_leverage() -> None:
    assert leverages(np.zeros((5, 0))).tolist() == [0.0] * 5
    assert leverages(np.zeros((5, 2))).tolist() == [0.0] * 5


def test_twenty_columns_tell_twenty_three_bits_at_a_quarter_of_jitter() -> None:
    assert label_bits(20, 0.25) == pytest.approx(10 * math.log2(5))
    assert math.floor(label_bits(20, 0.25)) == 23
    assert label_bits(20, 0.0) == math.inf
    assert label_bits(0, 0.25) == 0.0


@LAW
@given(st.integers(1, 60), st.floats(0.01, 2))
def test_more_jitter_tells_less_and_more_columns_tell_more(columns: int, jitter: float) -> None:
    assert label_bits(columns, jitter * 1.1) < label_bits(columns, jitter) < label_bits(columns + 1, jitter)
