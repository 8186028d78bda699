"""A fit gives the warnings of a job: each class once, with what to do, and before the charge where it can."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import blindfit
from blindfit import (
    BlindfitWarning,
    ConfigError,
    ConstantColumnWarning,
    DPLogisticRegression,
    FeatureScaleWarning,
    InfeasibleModelWarning,
    IterationBudgetWarning,
    LargeDeltaWarning,
    NoisyModelWarning,
    NotConvergedWarning,
    PrivacyBudget,
    PrivacyLeakWarning,
    WALRClassifier,
    pretrain,
)
from blindfit.algorithms.estimators import cautions
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.coordinator.report.label_privacy import warn_of_large_delta
from tests.each_case import each_case

N, K = 2000, 4
Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N, K))
    return x, (x @ [1.5, -1.0, 0.5, 0.0] + rng.logistic(size=N) > 0).astype(int)


def changed(x: np.ndarray, change: str) -> np.ndarray:
    """Copy the features, with a flaw."""
    flawed = x.copy()
    if change == "large":
        flawed[:, 1] *= 1000
    if change == "small":
        flawed[:, 1] /= 1000
    if change == "constant":
        flawed[:, 2] = 0.5
    if change == "standardised":
        flawed = (x - x.mean(axis=0)) / x.std(axis=0)
    return flawed


def issued(model: Any, *rows: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(*rows)
    return [warning for warning in found if issubclass(warning.category, BlindfitWarning)]


BOUNDS = {"feature_bounds": (-4, 4)}
CASES: list[tuple[str, Any, type[BlindfitWarning], str]] = [
    ("large", DPLogisticRegression(), FeatureScaleWarning, "x1.*declare feature_bounds"),
    ("small", DPLogisticRegression(), FeatureScaleWarning, "x1.*declare feature_bounds"),
    ("large", DPLogisticRegression(**BOUNDS), FeatureScaleWarning, "x1.*correct their feature_bounds"),
    ("constant", DPLogisticRegression(**BOUNDS), ConstantColumnWarning, "x2; remove them"),
    ("standardised", DPLogisticRegression(**BOUNDS), PrivacyLeakWarning, "scale by feature_bounds"),
    ("", DPLogisticRegression(delta=1e-3, **BOUNDS), LargeDeltaWarning, "1/2,000.*choose a smaller delta"),
    ("", DPLogisticRegression(epsilon=0.01, **BOUNDS), NoisyModelWarning, "use more rows"),
    (
        "",
        DPLogisticRegression(budget="iteration", **BOUNDS),
        IterationBudgetWarning,
        r'all 50 iterations spend \d.*budget="run"',
    ),
    ("constant", WALRClassifier(), ConstantColumnWarning, "x2; remove them"),
    ("", WALRClassifier(delta=1e-3), LargeDeltaWarning, "1/2,000.*choose a smaller delta"),
    ("", WALRClassifier(norm_bound=1.5), FeatureScaleWarning, r"\d\d% of the rows.*a larger norm_bound"),
    ("", WALRClassifier(epsilon=0.01), NoisyModelWarning, "use more rows"),
    ("", WALRClassifier(epsilon=0.001), InfeasibleModelWarning, "use more rows, fewer features"),
    ("", WALRClassifier(max_iterations=1), NotConvergedWarning, "raise max_iterations"),
]


@each_case(("change", "model", "kind", "advice"), CASES, ids=lambda value: getattr(value, "__name__", None))
def test_a_fit_warns_once_and_says_what_to_do(
    data: Data, change: str, model: Any, kind: type[BlindfitWarning], advice: str
) -> None:
    x, y = data
    for _ in range(2):  # a release that is remembered is warned of again
        found = issued(model, changed(x, change), y)
        of_kind = [warning for warning in found if warning.category is kind]
        assert len(of_kind) == 1
        assert re.search(advice, str(of_kind[0].message)), of_kind[0].message
        assert of_kind[0].filename == __file__  # the user's own line
        assert "\n" not in str(of_kind[0].message)
    about_noise = {NoisyModelWarning, InfeasibleModelWarning}  # the noise of a draw decides on the second
    assert {warning.category for warning in found} - (about_noise if kind in about_noise else set()) <= {kind}


@each_case(
    "model",
    [
        WALRClassifier(),
        WALRClassifier(epsilon=50.0),
        DPLogisticRegression(),
        DPLogisticRegression(**BOUNDS),
        DPLogisticRegression(feature_bounds=(-1, 1)),
        DPLogisticRegression(**BOUNDS, batch_fraction=0.5, neighbours="add-or-remove", expected_rows=float(N)),
    ],
)
def test_a_sound_fit_warns_of_nothing(data: Data, model: Any) -> None:
    assert issued(model, *data) == []


def test_features_that_public_rows_scale_wrongly(data: Data) -> None:
    x, y = data
    model = DPLogisticRegression(init=pretrain(x / 100, y))
    with pytest.warns(FeatureScaleWarning, match="use public rows that are like the private ones"):
        model.fit(x, y)


def test_few_names_stand_for_many_columns() -> None:
    rng = np.random.default_rng(1)
    x = pd.DataFrame(rng.normal(size=(N, 30)) * 1000, columns=[f"column\x1b[31m{j}" for j in range(30)])
    (found,) = issued(DPLogisticRegression(), x, rng.integers(0, 2, N))
    assert "and 25 more" in str(found.message)
    assert str(found.message).isprintable()


@each_case(
    ("change", "options"),
    [(c, m.get_params()) for c, m, kind, _ in CASES if kind not in (InfeasibleModelWarning, NotConvergedWarning)],
)
def test_a_warning_that_is_made_an_error_comes_before_the_charge(
    data: Data, change: str, options: dict[str, Any]
) -> None:
    x, y = data
    estimator = DPLogisticRegression if "clip_norm" in options else WALRClassifier
    model = estimator(**options).set_params(release="an error")
    with PrivacyBudget(1e6) as budget, warnings.catch_warnings():
        warnings.simplefilter("error", BlindfitWarning)
        with pytest.raises(BlindfitWarning):
            model.fit(changed(x, change), y)
        assert budget.releases == 0


def test_a_model_whose_fit_is_warned_of_after_its_charge_is_kept(data: Data) -> None:
    model = WALRClassifier(max_iterations=1, release="kept")
    with warnings.catch_warnings():
        warnings.simplefilter("error", BlindfitWarning)
        with pytest.raises(NotConvergedWarning):
            model.fit(*data)
    assert not model.converged_
    assert len(model.predict(data[0])) == N


def test_the_tree_is_exported_whole() -> None:
    kinds = {kind for kind in vars(cautions).values() if isinstance(kind, type) and issubclass(kind, BlindfitWarning)}
    assert {getattr(blindfit, kind.__name__) for kind in kinds} == kinds
    assert {kind.__name__ for kind in kinds} <= set(blindfit.__all__)
    assert issubclass(BlindfitWarning, UserWarning)
    assert issubclass(NotConvergedWarning, ConvergenceWarning)  # scikit-learn's users filter that one


@each_case(("delta", "rows"), [(1e-5, 99_999), (1e-5, 100_000), (1e-3, 1000), (1e-30, 10**9)])
def test_estimators_and_reports_call_the_same_delta_large(delta: float, rows: int) -> None:
    assert bool(list(cautions.warn_of_large_delta(delta, rows))) == bool(warn_of_large_delta(delta, rows))


def test_the_signal_is_the_largest_that_gradients_can_be() -> None:
    privacy = RunPrivacy(1.0, 1e-5, 25, 0.5)
    expected = 5 * 1000 * 0.5 / (2 * privacy.noise_multiplier() * 3)
    assert privacy.signal_to_noise(1000, 9) == pytest.approx(expected)


# --- bounds by name ------------------------------------------------------------------------------------------

BY_NAME = {"age": (0, 110), "dose": (0.0, 0.02), "sex": (0, 1)}


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(5)
    x = pd.DataFrame({"age": rng.uniform(0, 110, N), "dose": rng.uniform(0, 0.02, N), "sex": rng.integers(0, 2, N)})
    return x, (x["age"] / 110 - x["dose"] / 0.02 + rng.logistic(size=N) / 4 > 0).to_numpy()


def test_bounds_by_name_are_those_in_order(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    x, y = table
    low, high = zip(*BY_NAME.values(), strict=True)
    in_order = DPLogisticRegression(feature_bounds=(low, high)).fit(x, y)
    by_name = DPLogisticRegression(feature_bounds=dict(reversed(BY_NAME.items()))).fit(x, y)
    np.testing.assert_array_equal(by_name.coef_, in_order.coef_)  # the same release, remembered
    assert issued(by_name, x, y) == []
    assert by_name.score(x, y) > 0.65
    unnamed = DPLogisticRegression(feature_bounds={f"x{j}": ends for j, ends in enumerate(BY_NAME.values())})
    np.testing.assert_array_equal(unnamed.fit(x.to_numpy(), y).coef_, in_order.coef_)


@each_case(
    ("change", "said"),
    [
        ({"age": None}, "feature_bounds are missing for age"),
        ({"age": None, "sex": None}, "feature_bounds are missing for age, sex"),
        ({"height": (0, 2)}, "name columns that X does not have: height.*the columns are age, dose, sex"),
        ({"dose": (1, 1)}, r"feature_bounds of dose must be finite, the lowest below the highest, not \(1, 1\)"),
        ({"dose": (0, math.inf)}, "feature_bounds of dose must be finite"),
        ({"dose": 3}, "feature_bounds of dose must be two numbers, not 3"),
        ({"dose": (1, 2, 3)}, "feature_bounds of dose must be two numbers"),
        ({"dose": ("low", "high")}, "feature_bounds of dose must be two numbers"),
    ],
)
def test_wrong_bounds_are_refused_by_name(
    table: tuple[pd.DataFrame, np.ndarray], change: dict[str, Any], said: str
) -> None:
    bounds = {name: ends for name, ends in (BY_NAME | change).items() if ends is not None}
    with PrivacyBudget(1.0) as budget:
        with pytest.raises(ConfigError, match=said):
            DPLogisticRegression(feature_bounds=bounds).fit(*table)
        assert budget.releases == 0


# --- the grid ------------------------------------------------------------------------------------------------


@each_case("epsilon", [1e-4, 0.01, 1.0, 4.5, 14.0, 15.0, 30.0, 50.0])
@each_case("options", [{}, {"norm_bound": 3.0}, {"mechanism": "classic"}, {"intercept": False}, {"delta": 1e-30}])
def test_every_epsilon_of_a_job_fits(data: Data, epsilon: float, options: dict[str, Any]) -> None:
    if "mechanism" in options and epsilon >= 1:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BlindfitWarning)
        model = WALRClassifier(epsilon=epsilon, **options).fit(*data)
    assert epsilon < 1 or model.score(*data) > 0.65


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_features_of_any_unit_have_a_grid(data: Data, unit: float) -> None:
    x, y = data
    assert issued(WALRClassifier(), x * unit, y) == []


def test_a_fixed_grid_that_is_too_coarse_says_how_many_bits_do(data: Data) -> None:
    with pytest.raises(blindfit.RangeError, match=r"use at least \d more fraction bits \(frac_bits\)"):
        WALRClassifier(epsilon=50.0, frac_bits=10).fit(*data)
