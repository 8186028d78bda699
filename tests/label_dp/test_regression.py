"""Regression on noisy labels: the file is the model, the list is closed, and claims about true labels are true."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.label_dp.fit import (
    LabelRegressionFit,
    evaluate_released,
    fit_regression,
    mean_noise_variance,
)
from blindfit.algorithms.statistics.label_dp.model import FORMS, LabelRegressionModel
from blindfit.algorithms.statistics.label_dp.options import REGRESSORS, check_options
from blindfit.parties.files.written import write_json
from blindfit.parties.systems import load_model
from tests.each_case import each_case

COLUMNS = ("age", "income", "visits")
QUICK = {
    "random-forest": {"n_estimators": 7},
    "gradient-boosting": {"n_estimators": 9, "subsample": 0.5},
    "mlp": {"hidden_layer_sizes": "8, 5", "max_iter": 20},
    "lasso": {"alpha": 0.01},
    "elastic-net": {"alpha": 0.01},
}


def rows(n: int = 800, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(n, 3)) * [10, 3e4, 2] + [40, 5e4, 3]
    labels = 5 + 0.1 * features[:, 0] + np.sin(features[:, 2]) + generator.laplace(size=n)
    return features, labels


def fitted(regressor: str, seed: int = 3, **options: object) -> LabelRegressionFit:
    features, labels = rows()
    return fit_regression(
        features, labels, columns=COLUMNS, regressor=regressor, options=options or QUICK.get(regressor, {}),
        seed=seed, debiased=True,
    )  # fmt: skip


@each_case("regressor", REGRESSORS)
def test_a_loaded_model_predicts_what_scikit_learn_does(regressor, tmp_path):
    fit = fitted(regressor)
    write_json(tmp_path / "model.json", fit.model.to_dict())
    loaded = load_model(tmp_path / "model.json")
    fresh, _ = rows(500, seed=2)
    expected = fit.estimator.predict(fit.model.standardiser.transform(fresh)) * fit.target_scale + fit.target_mean
    np.testing.assert_allclose(loaded.predict(fresh), expected, rtol=1e-12, atol=1e-12)
    assert np.ptp(expected) > 0.1  # the model says something
    assert loaded.to_dict() == fit.model.to_dict()


@pytest.mark.parametrize("regressor", ["random-forest", "gradient-boosting", "mlp"])
def test_the_seed_decides_what_is_drawn(regressor):
    features, _ = rows(50, seed=2)
    options = {**QUICK[regressor], **({"max_features": 0.4} if regressor == "random-forest" else {})}
    one, same, other = (fitted(regressor, seed, **options).model.predict(features) for seed in (3, 3, 4))
    assert (one == same).all()
    assert (one != other).any()


def test_linear_regression_is_least_squares():
    features, labels = rows()
    model = fitted("linear").model
    design = np.column_stack([model.standardiser.transform(features), np.ones(len(features))])
    expected = np.linalg.lstsq(design, labels, rcond=None)[0]
    assert model.feature_weights == pytest.approx(dict(zip(COLUMNS, expected[:3], strict=True)))


def test_the_documented_scorer_needs_no_library():
    text = (Path(__file__).parents[2] / "docs/guides/release_labels.md").read_text()
    scorer = textwrap.dedent(re.search(r"```python\n( +def predict.*?)```", text, re.S)[1])
    names: dict = {}
    exec(compile(scorer, "release_labels.md", "exec"), names)
    model, (features, _) = fitted("ridge").model, rows(20, seed=2)
    scored = [names["predict"](model.to_dict(), dict(zip(COLUMNS, row, strict=True))) for row in features.tolist()]
    np.testing.assert_allclose(scored, model.predict(features), rtol=1e-12)


def test_every_regressor_has_a_form():
    assert FORMS.keys() == REGRESSORS.keys()


@each_case(
    ("regressor", "options", "expected"),
    [
        ("svm", {}, "regressor: 'svm' is not one of linear, ridge, lasso"),
        ("sklearn.svm.SVR", {}, "is not one of"),
        ("linear", {"alpha": 1.0}, "options.alpha: linear has no options"),
        ("ridge", {"alpha": -1.0}, "options.alpha: must be from 0 to"),
        ("ridge", {"alpha": True}, "options.alpha: must be a number"),
        ("ridge", {"alpha": float("nan")}, "options.alpha: must be a number"),
        ("lasso", {"alpha": 0.0}, "options.alpha: must be above 0 to"),
        ("random-forest", {"max_dept": 3}, "options.max_dept: random-forest has n_estimators, min_samples_leaf"),
        ("random-forest", {"max_depth": 2.5}, "options.max_depth: must be a whole number"),
        ("random-forest", {"n_estimators": 501}, "options.n_estimators: must be from 1 to 500"),
        ("mlp", {"hidden_layer_sizes": "64;32"}, "options.hidden_layer_sizes: must be one to four widths"),
    ],
)
def test_what_is_not_on_the_list_is_refused(regressor, options, expected):
    with pytest.raises(ConfigError, match=re.escape(expected)):
        check_options(regressor, options)


def changed(content: dict, path: str, value: object) -> dict:
    content = json.loads(json.dumps(content))
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    table = content
    for part in parents:
        table = table[part]
    table[last] = value
    return content


def test_a_network_has_one_output():
    content = fitted("mlp").model.to_dict()
    content["layers"].pop()
    with pytest.raises(DataError, match="layers: the last one has more than one output"):
        LabelRegressionModel.from_dict(content)


@each_case(
    ("regressor", "path", "value", "expected"),
    [
        ("ridge", "format", "pickle", "format: not"),
        ("ridge", "regressor", "svm", "regressor: 'svm'"),
        ("ridge", "options.alpha", -1, "options.alpha"),
        ("ridge", "debiased", 1, "debiased"),
        ("ridge", "weights.age", float("inf"), "age: missing or not a finite number"),
        ("ridge", "weights", {"age": 1.0}, "weights: not one for each column"),
        ("decision-tree", "trees", [], "trees: missing"),
        ("decision-tree", "trees.0.feature.0", "shoe", "feature: shoe is not a column"),
        ("decision-tree", "trees.0.feature", [], "feature: not a list of names"),
        ("decision-tree", "trees.0.feature", "age", "feature: not a list of names"),
        ("decision-tree", "trees.0.feature.0", 0, "feature: not a list of names"),
        ("decision-tree", "trees.0.left", [1], "left: not a node for each node"),
        ("decision-tree", "trees.0.left", None, "left: not a node for each node"),
        ("decision-tree", "trees.0.right.0", 2.0, "right: not a node for each node"),
        ("decision-tree", "trees.0.left.0", 0, "left: node 0 does not lead to a later node"),
        ("decision-tree", "trees.0.right.0", 10_000, "right: node 0 does not lead to a later node"),
        ("decision-tree", "trees.0.value", [1.0], "value: 1 numbers where"),
        ("mlp", "layers.0.weights", [[1.0]], "weights: not one line for each input"),
        ("mlp", "layers.1.bias.0", "x", "bias: missing or not a list of finite numbers"),
    ],
)
def test_a_file_that_is_no_model_is_refused_by_field(regressor, path, value, expected):
    content = changed(fitted(regressor).model.to_dict(), path, value)
    with pytest.raises(DataError, match=re.escape(expected)):
        LabelRegressionModel.from_dict(content)


# --- what is said of true labels ------------------------------------------------------------------------


def test_additive_noise_is_taken_off_the_error():
    generator = np.random.default_rng(5)
    truth = generator.uniform(0, 10, 200_000)
    predictions = truth + generator.normal(0, 1.5, len(truth))
    released = truth + generator.laplace(0, 4, len(truth))
    noise = mean_noise_variance(np.linspace(0, 10, 9), np.full(9, 32.0), released)
    found = evaluate_released(released, predictions, noise, constant=5.0)
    assert (noise.mean, noise.error) == (32.0, 0.0)
    assert abs(found["mse"] - 2.25) < 4 * found["mse_error"] < 2
    assert found["mse_released"] == pytest.approx(found["mse"] + 32)
    assert abs(found["gain"] - (100 / 12 - 2.25)) < 4 * found["gain_error"] < 0.5
    assert found["gain_error"] < 0.6 * found["mse_error"]


def test_noise_whose_variance_depends_on_the_label_is_taken_off_as_well():
    """With probability a the label, else uniform on [0, 10], and debiased: variance is quadratic in the label."""
    generator = np.random.default_rng(6)
    a, truth = 0.3, 10 * generator.beta(2, 6, 400_000)
    outputs = np.where(generator.random(len(truth)) < a, truth, generator.uniform(0, 10, len(truth)))
    released = (outputs - (1 - a) * 5) / a
    at = np.linspace(0, 10, 11)
    variances = (a * at**2 + (1 - a) * 100 / 3 - (a * at + (1 - a) * 5) ** 2) / a**2
    noise = mean_noise_variance(at, variances, released)
    exact = (a * truth**2 + (1 - a) * 100 / 3 - (a * truth + (1 - a) * 5) ** 2).mean() / a**2
    assert noise.mean == pytest.approx(exact, rel=0.01)
    assert noise.error < 1e-9 * exact
    found = evaluate_released(released, truth + 1, noise, constant=2.5)
    assert abs(found["mse"] - 1) < 4 * found["mse_error"]
    assert abs(found["gain"] - (np.mean((truth - 2.5) ** 2) - 1)) < 4 * found["gain_error"]


def test_what_is_not_quadratic_is_owned_up_to():
    at = np.linspace(0, 1, 21)
    noise = mean_noise_variance(at, 2 + np.cos(9 * at), np.linspace(0, 1, 100))
    assert noise.error > 0.3
    found = evaluate_released(np.zeros(100), np.zeros(100), noise, constant=0.0)
    assert found["mse_error"] >= noise.error


def test_without_the_bias_nothing_is_said_of_true_labels():
    found = evaluate_released(np.ones(10), np.zeros(10), None, constant=1.0)
    assert found == {"rows": 10, "mse_released": 1.0}


def test_there_must_be_rows_to_evaluate():
    with pytest.raises(DataError, match="needs rows"):
        evaluate_released(np.zeros(0), np.zeros(0), None, constant=0.0)


def test_labels_and_rows_must_go_together():
    features, labels = rows()
    with pytest.raises(DataError, match="799 labels do not go with 800 rows"):
        fit_regression(
            features, labels[1:], columns=COLUMNS, regressor="linear", options={}, seed=0, debiased=True
        )  # fmt: skip
