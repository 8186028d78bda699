"""An l1 penalty in shares: the plain proximal descent, zeros that are zeros, and scikit-learn's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso, LogisticRegression

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.tables import validate
from tests.falcon.local import UNTESTED, Case, train
from tests.falcon.oracle import MOMENTUM, bound, weights_of
from tests.falcon.real_data import RealCase

SGD = OptimiserSettings(learning_rate=0.5, l2=0.02, l1=0.12)


@pytest.mark.parametrize("kept_bits", [None, 5])
def test_weights_are_those_of_a_plain_proximal_descent(kept_bits: int | None) -> None:
    """A soft threshold makes no error larger, and adds the rounding of its own bits: three divisions are counted."""
    case = Case(options={**UNTESTED, "optimiser": SGD, "kept_bits": kept_bits})
    found, plain = weights_of(case, train(case)), case.plain(4)
    rounding = 0.0 if kept_bits is None else np.sqrt(len(plain)) / 32
    assert np.linalg.norm(found - plain) <= bound(case, 4) + rounding
    zero = plain == 0
    assert 0 < zero.sum() < len(plain)
    assert not found[zero].any()
    assert not zero[3]  # the intercept


def test_momentum_repeats_what_the_threshold_left() -> None:
    case = Case(options={**UNTESTED, "optimiser": replace(MOMENTUM, l1=0.05)})
    assert np.linalg.norm(weights_of(case, train(case)) - case.plain(4)) <= bound(case, 4)


def test_a_penalty_that_would_do_nothing_is_refused() -> None:
    case = Case(options={"optimiser": replace(SGD, l1=1e-6)})
    with pytest.raises(RangeError, match="too little for numbers of 24 bits"):
        case.parameters.check()


# --- real data ------------------------------------------------------------------------------------------------------


def fitted(blocks: list[np.ndarray], y: np.ndarray, **options: object) -> tuple[RealCase, np.ndarray]:
    """Take all steps on all rows, so that the result is the minimum."""
    table = {"security": "semi-honest", "unsafe": ["weight-bits"], "validation_fraction": 0, "schedule": "constant"}
    table |= {"batch_rows": 1000, "waves": "medium", "l2": 0.0, **options}
    if options.get("model") == "linear":
        del table["waves"]
    tables = {"protocol": "falcon", "falcon": table, "split": {"test_fraction": 0.0}}
    case = RealCase(blocks, y, validate(tables, FalconJob, source="the job"), seed=2)
    trained = train(case)
    weights = np.concatenate([trained[name].weights for name in case.parameters.data_parties])
    return case, np.delete(weights, case.parameters.columns[0] - 1)  # the intercept


def test_lasso_of_the_diabetes_data() -> None:
    data = load_diabetes()
    options = {"model": "linear", "l1": 0.1, "learning_rate": 0.4, "epochs": 30}
    case, found = fitted(np.split(data.data, 2, axis=1), data.target, **options)
    x, y = np.hstack([own.columns for own in case.prepared]), case.prepared[0].labels.y
    model = Lasso(alpha=0.1, tol=1e-8).fit(np.delete(x, case.parameters.columns[0] - 1, axis=1), y)
    assert np.array_equal(found == 0, model.coef_ == 0)
    assert 2 <= (found == 0).sum() <= 8
    assert np.abs(found - model.coef_).max() < 0.01


def test_logistic_regression_with_l1_of_the_breast_cancer_data() -> None:
    data = load_breast_cancer()
    x, y = data.data[:, [1, 4, 9, 14, 18, 19, 21, 24]], 1 - data.target
    case, found = fitted(np.split(x, 2, axis=1), y, l1=0.05, learning_rate=2.0, epochs=30)
    columns = np.hstack([own.columns for own in case.prepared])
    columns = np.delete(columns, case.parameters.columns[0] - 1, axis=1)
    order = np.concatenate(case.prepared[0].plan.batches)
    model = LogisticRegression(l1_ratio=1.0, solver="saga", C=1 / (0.05 * len(order)), max_iter=3000, tol=1e-6)
    model.fit(columns, y)
    assert np.array_equal(found == 0, model.coef_[0] == 0)
    assert 1 <= (found == 0).sum() <= 7
    assert np.abs(found - model.coef_[0]).max() < 0.02
