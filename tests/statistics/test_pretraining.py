"""Public models: fitted, stored and read back, carried to another scale; and what WALR's solvers make of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.linear import solvers
from blindfit.algorithms.statistics.linear.logistic import WalrObjective, as_rows
from blindfit.algorithms.statistics.linear.pretraining import Pretrained, pretrain
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from tests.each_case import each_case

NAMES = ("age", "income", "visits")


@pytest.fixture(scope="module")
def public():
    generator = np.random.default_rng(5)
    features = generator.normal(size=(400, 3)) * [10, 2000, 1] + [40, 30_000, 0]
    labels = generator.random(400) < 1 / (1 + np.exp(-(features - [40, 30_000, 0]) @ [0.1, -5e-4, 0.5]))
    return features, labels


@pytest.fixture(scope="module")
def model(public):
    return pretrain(*public, columns=NAMES)


def test_it_is_scikit_learns_fit_of_the_standardised_rows(public, model):
    standardised = Standardiser.fit([public[0]]).transform(public[0])
    theirs = LogisticRegression(C=1.0, tol=1e-10).fit(standardised, public[1])
    np.testing.assert_allclose([*model.weights, model.intercept], [*theirs.coef_[0], *theirs.intercept_], atol=1e-5)


def test_a_column_that_is_constant_in_public_weighs_nothing(public):
    features = np.column_stack([public[0], np.full(400, 7.0)])
    raw, _ = pretrain(features, public[1], columns=(*NAMES, "constant")).raw_weights()
    assert raw["constant"] == 0


@each_case(
    ("change", "expected"),
    [
        (lambda x, y: (x, np.ones(400)), "one class only"),
        (lambda x, y: (x, y * 2), "neither 0 nor 1"),
        (lambda x, y: (x, y[:-1]), "as many labels"),
        (lambda x, y: (np.where(x > 50, np.nan, x), y), "not a finite number"),
    ],
)
def test_rows_that_cannot_be_fitted_are_refused(public, change, expected):
    with pytest.raises(DataError, match=expected):
        pretrain(*change(*public))


# --- the file


def test_the_file_gives_the_same_model_bit_for_bit(model):
    assert Pretrained.from_json(model.to_json()) == model
    assert Pretrained.from_json(model.to_json().encode()) == model


def edited(model, **changes):
    return json.dumps({**json.loads(model.to_json()), **changes})


@each_case(
    ("changes", "expected"),
    [
        ({"format": "else"}, "format"),
        ({"intercept": float("nan")}, "intercept"),
        ({"intercept": "0"}, "intercept"),
        ({"weights": {"age": 1.0}}, "weights"),
        ({"weights": {"age": 1.0, "income": True, "visits": 0.0}}, "income"),
        ({"weights": {"income": 1.0, "age": 1.0, "visits": 0.0}}, "weights"),
        ({"standardiser": None}, "standardiser"),
        ({"note": "hello"}, "unknown: note"),
    ],
)
def test_a_wrong_field_is_named(model, changes, expected):
    with pytest.raises(DataError, match=expected):
        Pretrained.from_json(edited(model, **changes))


@each_case("content", ["", "[]", "null", b"\xff\xfe", "[" * 100_000, '{"format": NaN}'])
def test_what_is_no_model_is_refused(content):
    with pytest.raises(DataError):
        Pretrained.from_json(content)


# --- another scale


def scores(model, features):
    return append_constant(model.standardiser.transform(features)) @ [*model.weights, model.intercept]


def test_another_scale_scores_the_same(public, model):
    generator = np.random.default_rng(6)
    others = Standardiser.fit([generator.normal(size=(50, 3)) * [3, 500, 9]], NAMES)
    weights = model.weights_for(others)
    np.testing.assert_allclose(
        append_constant(others.transform(public[0])) @ weights, scores(model, public[0]), rtol=1e-9
    )
    np.testing.assert_array_equal(model.weights_for(others, intercept=False), weights[:-1])


def test_another_order_scores_the_same(public, model):
    turned = model.in_order(NAMES[::-1])
    np.testing.assert_allclose(scores(turned, public[0][:, ::-1]), scores(model, public[0]), rtol=1e-12)


def test_other_features_are_named(model):
    with pytest.raises(DataError, match="it lacks height; only it has visits"):
        model.check_columns(("age", "income", "height"))


def test_weights_that_overflow_are_refused(model):
    tiny = Pretrained(Standardiser(("a",), (0,), (0.0,), (1e-320,)), (1.0,), 0.0)
    with pytest.raises(DataError, match="overflow"):
        tiny.weights_for(Standardiser(("a",), (0,), (0.0,), (1.0,)))


# --- shrinkage towards it in the WALR objective


ANCHOR = np.array([0.4, -0.8, 0.0, 0.3, 0.1, -0.2, 5.0])


def test_gradient_and_hessian_belong_to_the_value(problem):
    objective = WalrObjective(as_rows(problem.rows), problem.mu, 0.7, -1, ANCHOR)
    point, step = np.linspace(-1, 1, 7), 1e-6
    for j, direction in enumerate(np.eye(7) * step):
        above, below = (objective.value_and_gradient(point + sign * direction) for sign in (1, -1))
        assert (above[0] - below[0]) / (2 * step) == pytest.approx(objective.value_and_gradient(point)[1][j], abs=1e-6)
        np.testing.assert_allclose((above[1] - below[1]) / (2 * step), objective.hessian(point)[j], atol=1e-6)


@each_case("solver", ["newton", "lbfgs", "gradient-descent"])
def test_every_solver_finds_the_anchored_optimum(problem, solver):
    found = solvers.fit(problem.rows, problem.mu, SolverSettings(l2=0.5, solver=solver), anchor=ANCHOR)
    _, gradient = WalrObjective(as_rows(problem.rows), problem.mu, 0.0, None).value_and_gradient(found.weights)
    penalty = 0.5 * (found.weights - ANCHOR) * [1, 1, 1, 1, 1, 1, 0]
    np.testing.assert_allclose(gradient + penalty, 0, atol=2e-6)


def test_hybrid_descent_goes_there_too(problem):
    settings = SolverSettings(l2=0.5, solver="hybrid-minibatch", batch_rows=256, max_iterations=3000, decay=0.03)
    found = solvers.fit(problem.rows, problem.mu, settings, anchor=ANCHOR, generator=np.random.default_rng(1))
    exact = solvers.fit(problem.rows, problem.mu, SolverSettings(l2=0.5), anchor=ANCHOR)
    np.testing.assert_allclose(found.weights, exact.weights, atol=0.05)
    assert np.abs(found.weights - solvers.fit(problem.rows, problem.mu, SolverSettings(l2=0.5)).weights).max() > 0.2


def test_a_sample_start_keeps_the_anchor(problem):
    settings = SolverSettings(l2=0.5, solver="newton", warm_start_rows=500)
    exact = solvers.fit(
        problem.rows, problem.mu, SolverSettings(l2=0.5, warm_start_rows=0, solver="newton"), anchor=ANCHOR
    )
    sampled = solvers.fit(problem.rows, problem.mu, settings, anchor=ANCHOR)
    np.testing.assert_allclose(sampled.weights, exact.weights, atol=1e-6)


def test_a_large_l2_leaves_the_anchor_and_the_intercept_to_the_data(problem):
    found = solvers.fit(problem.rows, problem.mu, SolverSettings(l2=1e7), anchor=ANCHOR)
    np.testing.assert_allclose(found.weights[:-1], ANCHOR[:-1], atol=1e-6)
    assert abs(found.weights[-1] - ANCHOR[-1]) > 1


def test_an_anchor_without_l2_is_refused(problem):
    with pytest.raises(ConfigError, match="does nothing with l2 = 0"):
        solvers.fit(problem.rows, problem.mu, SolverSettings(l2=0.0), anchor=ANCHOR)


@pytest.mark.parametrize("anchor", [ANCHOR[:-1], np.full(7, np.inf)])
def test_an_anchor_of_the_wrong_kind_is_refused(problem, anchor):
    with pytest.raises(ConfigError, match="anchor must hold 7 finite weights"):
        solvers.fit(problem.rows, problem.mu, SolverSettings(l2=1.0), anchor=anchor)
