"""Every scorer finds a table's columns by name; an array must have as many as the model, in its order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.estimators.dp_logistic_regression import DPLogisticRegression
from blindfit.algorithms.estimators.walr_classifier import WALRClassifier
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.label_dp.fit import fit_regression
from blindfit.algorithms.statistics.linear.named_columns import in_order
from blindfit.algorithms.statistics.linear.pretraining import pretrain
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.files.written import write_json
from blindfit.parties.systems import load_model
from blindfit.parties.training.public_model import load_pretrained
from tests.each_case import each_case

NAMES = ("age", "income", "visits")
SCALE = Standardiser(NAMES, (0, 1, 2), (40.0, 5e4, 3.0), (10.0, 3e4, 2.0))
WEIGHTS = (0.9, -1.3, 0.2)
FEATURES = np.random.default_rng(1).normal(size=(60, 3)) * SCALE.std + SCALE.mean
LABELS = (FEATURES[:, 0] + np.random.default_rng(2).normal(size=60) * 5 > 40).astype(int)
REGRESSORS: dict[str, dict[str, Any]] = {
    "ridge": {},
    "decision-tree": {"min_samples_leaf": 5},
    "random-forest": {"n_estimators": 3, "min_samples_leaf": 5},
    "mlp": {"max_iter": 5},
}

Score = Callable[[Any], np.ndarray]


def a_walr_model(path: Path) -> Score:
    write_json(path, WALRModel(SCALE, np.array([*WEIGHTS, 0.1]), intercept=True, norm_bound=2.0).to_dict())
    return load_model(path).probabilities


def a_dp_lr_model(path: Path) -> Score:
    write_json(path, DPLogisticModel(SCALE, WEIGHTS, 0.1).to_dict())
    return load_model(path).probabilities


def a_taylor_part(path: Path) -> Score:
    part = VerticalModelPart("bank", "active", "logistic", ("bank", "post"), SCALE, np.array(WEIGHTS), 0.1)
    write_json(path, part.to_dict())
    return load_model(path).score_parts


def a_pretrained_model(path: Path) -> Score:
    path.write_text(pretrain(pd.DataFrame(FEATURES, columns=NAMES), LABELS).to_json())
    return load_pretrained(path).probabilities


def a_regression(regressor: str) -> Callable[[Path], Score]:
    def make(path: Path) -> Score:
        fit = fit_regression(
            FEATURES, FEATURES @ [1, 1e-3, 9], columns=NAMES, regressor=regressor, options=REGRESSORS[regressor],
            seed=3, debiased=True,
        )  # fmt: skip
        write_json(path, fit.model.to_dict())
        return load_model(path).predict

    return make


MODELS = {
    "walr": a_walr_model,
    "dp-lr": a_dp_lr_model,
    "taylor": a_taylor_part,
    "pretrained": a_pretrained_model,
    **{f"label-dp {regressor}": a_regression(regressor) for regressor in REGRESSORS},
}


@pytest.fixture(params=MODELS)
def score(request: pytest.FixtureRequest, tmp_path: Path) -> Score:
    """Scorer of a model that was read from its file."""
    return MODELS[request.param](tmp_path / "model.json")


class PolarsLike:
    """A table with texts in `columns`, a column by its name, and nothing of pandas."""

    def __init__(self, table: dict[str, np.ndarray]) -> None:
        self._table, self.columns = table, list(table)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._table[name]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.column_stack(list(self._table.values())).astype(dtype)


KINDS: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "pandas": pd.DataFrame,
    "pyarrow": pa.table,
    "record batch": lambda table: pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in table.items()}),
    "mapping": dict,
    "polars": PolarsLike,
}


def table(*names: str) -> dict[str, np.ndarray]:
    columns = dict(zip(NAMES, FEATURES.T, strict=True))
    return {name: columns.get(name, np.arange(60.0)) for name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_read_by_name_and_the_rest_of_it_is_left_alone(score, kind):
    expected = score(FEATURES)
    assert len(set(expected.tolist())) > 3
    for names in (NAMES, NAMES[::-1], ("visits", "id", "age", "label", "income")):
        assert score(KINDS[kind](table(*names))).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_all_columns_that_are_missing_are_named(score, kind):
    with pytest.raises(DataError, match=r"^missing from the rows' columns: income, visits( \(|$)"):
        score(KINDS[kind](table("age", "wage", "visit")))


def test_a_column_that_comes_twice_is_refused_where_the_model_has_it(score):
    frame = pd.DataFrame(table("visits", "age", "income", "id", "label"))
    with pytest.raises(DataError, match=r"^twice among the rows' columns: age( \(|$)"):
        score(frame.rename(columns={"label": "age"}))
    assert score(frame.rename(columns={"label": "id"})).tolist() == score(FEATURES).tolist()
    arrow = pa.table([*FEATURES.T, FEATURES[:, 0]], names=[*NAMES, "visits"])
    with pytest.raises(DataError, match=r"^twice among the rows' columns: visits( \(|$)"):
        score(arrow)


def test_an_array_is_taken_in_the_models_order_if_it_has_as_many_columns(score):
    assert score(FEATURES.tolist()).tolist() == score(FEATURES).tolist()
    assert score(pd.DataFrame(FEATURES)).tolist() == score(FEATURES).tolist()  # numbered 0, 1, 2: not names
    for wrong in (FEATURES[:, :2], np.hstack([FEATURES, FEATURES]), pd.DataFrame(FEATURES[:, :2])):
        with pytest.raises(DataError, match=rf"rows have {wrong.shape[1]} columns; the model was made for 3"):
            score(wrong)


def test_columns_that_are_numbered_in_another_order_are_refused(score):
    with pytest.raises(DataError, match=r"called 2, whose name is not a text"):
        score(pd.DataFrame(FEATURES)[[2, 1, 0]])


def test_a_value_that_is_no_finite_number_is_named_by_its_column(score):
    frame = pd.DataFrame(table("visits", "age", "income"))
    frame.loc[7, "income"] = np.nan
    with pytest.raises(DataError, match=r"^row 7, column income: the value is missing \(empty, null or NaN\)"):
        score(frame)
    with pytest.raises(DataError, match=r"^row 0, column age: not a number"):
        score(frame.assign(age="old"))
    with pytest.raises(DataError, match=r"^row 7, column income: the number is infinite \(correct it"):
        score(frame.fillna(np.inf))


@each_case("wrong", [{"age": 1.0}, {"age": np.ones((60, 2))}, {"age": np.ones(59)}])
def test_columns_of_another_shape_are_refused(wrong):
    with pytest.raises(DataError, match=r"not of shape|not of one length"):
        in_order(table(*NAMES) | wrong, NAMES)


# --- fits know the names too


def test_a_public_model_takes_the_names_of_its_table():
    frame = pd.DataFrame(FEATURES, columns=NAMES)
    assert pretrain(frame, LABELS).columns == NAMES
    picked = ("visits", "age")
    by_name = pretrain(frame, LABELS, columns=picked)
    assert by_name == pretrain(np.ascontiguousarray(FEATURES[:, [2, 0]]), LABELS, columns=picked)
    with pytest.raises(DataError, match="missing from the rows' columns: wage"):
        pretrain(frame, LABELS, columns=("age", "wage"))


@pytest.mark.parametrize("estimator", [WALRClassifier(4.0, frac_bits=20), DPLogisticRegression(4.0)])
def test_estimators_keep_scikit_learns_convention(estimator):
    """Estimators refuse other columns: a pipeline should hand on exactly those of the fit, in their order."""
    frame = pd.DataFrame(FEATURES, columns=NAMES)
    fitted = estimator.fit(frame, LABELS)
    assert fitted.feature_names_in_.tolist() == list(NAMES)
    assert fitted.predict_proba(pa.table(table(*NAMES))).tolist() == fitted.predict_proba(frame).tolist()
    for wrong, why in (
        (frame[list(NAMES[::-1])], "same order"),
        (frame.assign(id=1.0), "unseen at fit"),
        (frame[["age", "income"]], "now missing"),
    ):
        with pytest.raises(ValueError, match=f"(?s)feature names.*{why}"):
            fitted.decision_function(wrong)


@pytest.mark.parametrize("estimator", [WALRClassifier(4.0, frac_bits=20), DPLogisticRegression(4.0)])
def test_estimators_refuse_two_columns_of_one_name(estimator):
    frame = pd.DataFrame(FEATURES, columns=["age", "income", "age"])
    with pytest.raises((DataError, ValueError), match=r"age.*(twice|2 times)|unique column names"):
        estimator.fit(frame, LABELS)


def test_an_initial_model_is_taken_by_name_even_if_its_names_are_those_of_an_array():
    """Columns x1, x0 are not those of an array in order, even though their names look like it."""
    frame = pd.DataFrame(FEATURES[:, :2], columns=["x1", "x0"])
    init = LogisticRegression().fit(frame[["x0", "x1"]] / [3e4, 10], LABELS)
    start = DPLogisticRegression(1e-4, init=init, n_iterations=1, learning_rate=1e-9).fit(frame, LABELS)
    np.testing.assert_allclose(start.coef_[0], init.coef_[0][::-1], atol=1e-4)


def test_a_standardiser_has_no_name_twice():
    with pytest.raises(DataError, match="age is named twice"):
        Standardiser.fit([FEATURES], ["age", "age", "income"])
