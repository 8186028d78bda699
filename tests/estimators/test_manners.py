"""Users of scikit-learn expect the same names on every model, and parameters of the right type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blindfit import BlindfitError, DPLogisticRegression, PrivacyBudget, WALRClassifier, WALRModel, load_model
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel, Weights
from blindfit.algorithms.statistics.linear.fitted_model import NO_PRIVACY
from blindfit.algorithms.statistics.linear.pretraining import pretrain
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from tests.each_case import each_case
from tests.predict.parts import part_of

NAMES = ("age", "dose", "constant")


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.normal(50, 9, 3000), rng.normal(0.01, 0.002, 3000), np.ones(3000)])
    labels = x[:, 0] / 9 - x[:, 1] / 0.002 + rng.logistic(size=3000) > 0.6
    return x, labels.astype(int)


def standardised(x: np.ndarray) -> Standardiser:
    return Standardiser.fit([x], NAMES)


@each_case("kind", ["walr", "dp-lr", "pretrained"])
def test_a_logistic_model_of_any_system_has_the_same_names(kind: str, rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    scale = standardised(x)
    model: Any = {
        "walr": lambda: WALRModel(scale, np.array([0.5, -1.0, 0.25]), True, 100.0),
        "dp-lr": lambda: DPLogisticModel(scale, (0.5, -1.0), 0.25),
        "pretrained": lambda: pretrain(x, y, columns=NAMES),
    }[kind]()
    assert model.feature_names_in_.tolist() == list(NAMES)
    assert model.n_features_in_ == 3
    assert model.classes_.tolist() == [0, 1]
    assert model.coef_.shape == (1, 3)
    assert model.coef_[0, 2] == 0  # it is the same in every row
    np.testing.assert_allclose(x @ model.coef_[0] + model.intercept_, model.decision_function(x), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(x), (model.predict_proba(x)[:, 1] > 0.5).astype(int))
    assert model.privacy_statement_ == NO_PRIVACY


def test_linear_models_of_noisy_labels_and_parts_of_vertical_ones_have_them_too(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    x, _ = rows
    model = LabelRegressionModel(standardised(x), "ridge", {}, False, Weights(np.array([2.0, 3.0]), 1.0))
    np.testing.assert_allclose(x @ model.coef_[0] + model.intercept_, model.predict(x))
    part = part_of(columns=2)
    assert part.coef_.shape == (1, 2)
    assert part.n_features_in_ == 2


def test_a_file_says_its_promise(tmp_path: Path, rows: tuple[np.ndarray, np.ndarray]) -> None:
    said = {"epsilon": 1.0, "delta": 1e-5, "unit": "the label of one row", "mechanism": "analytic Gaussian"}
    content = WALRModel(standardised(rows[0]), np.array([0.5, -1.0, 0.25]), True, 9.0).to_dict()
    (tmp_path / "model.json").write_text(json.dumps({**content, "privacy": said}))
    statement = load_model(tmp_path / "model.json").privacy_statement_
    assert statement == "(1, 1e-05)-differential privacy of the label of one row; mechanism: analytic Gaussian."


def test_estimators_have_coefficients_and_a_statement(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    model = WALRClassifier(epsilon=8.0).fit(x[:, :2], y)
    linear, scores = x[:, :2] @ model.coef_[0] + model.intercept_, model.decision_function(x[:, :2])
    kept = np.linalg.norm(model.model_.standardise_rows(x[:, :2]), axis=1) <= model.norm_bound_  # others are clipped
    np.testing.assert_allclose(linear[kept], scores[kept], atol=1e-9)
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(x[:, :2], y)
    assert np.corrcoef(plain.decision_function(x[:, :2]), scores)[0, 1] > 0.99
    assert model.privacy_statement_.startswith("(8, 1e-05)-differential privacy of the label of one row; neighbours: ")


@each_case("classifier", [WALRClassifier, DPLogisticRegression])
@each_case(
    ("option", "value"),
    [("epsilon", "one"), ("delta", None), ("release", 1.5), ("norm_bound", "large")],
)
def test_a_parameter_of_another_type_is_named_as_scikit_learn_does(
    classifier: Any, option: str, value: Any, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match=f"The '{option}' parameter of {classifier.__name__} must be"):
        classifier(**{option: value}).fit(*rows)


def test_words_that_mean_nothing_are_refused_before_anything_is_charged(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="The 'mu' parameter of WALRClassifier must be a str among"):
        WALRClassifier(mu="x").fit(*rows)
    with PrivacyBudget(10.0) as budget:
        for options in ({"solver": "x"}, {"l2": -1.0}, {"tolerance": -1.0}, {"max_iterations": 0}):
            with pytest.raises(BlindfitError):
                WALRClassifier(release=f"never drawn {options}", **options).fit(*rows)
        assert budget.releases == 0
