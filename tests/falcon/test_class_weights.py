"""Class weights in shares: the plain weighted steps and loss, and those of scikit-learn."""

from __future__ import annotations

import math

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from blindfit.algorithms.protocols.falcon import TestFigures as Figures
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.tables import validate
from tests.falcon.local import UNTESTED, Case, train
from tests.falcon.oracle import bound, weights_of
from tests.falcon.real_data import RealCase


def test_weights_are_those_of_plain_weighted_steps() -> None:
    case, unweighted = Case(options=UNTESTED | {"weighted": True}), Case()
    found = weights_of(case, train(case))
    assert 2 * bound(case, 4) < 0.05
    assert np.linalg.norm(found - case.plain(4)) <= 2 * bound(case, 4)  # no row weighs more than 1.5
    assert np.linalg.norm(found - unweighted.plain(4)) > 0.05


def test_training_stops_by_the_weighted_loss() -> None:
    case = Case(rows=260, options={**UNTESTED, "weighted": True, "patience": 2, "tolerance": 0.02, "epochs": 20})
    p, best, since, epoch = case.parameters, math.inf, 0, 0
    while since < p.patience:
        epoch += 1
        z, y = (case.whole @ case.plain(epoch))[p.validation], case.y[p.validation]
        loss = float(np.mean(case.row_weights[p.validation] / 256 * (np.logaddexp(0, z) - y * z)))
        best, since = (loss, 0) if loss < best - p.tolerance else (best, since + 1)
    assert {one.epochs for one in train(case).values()} == {epoch}


def test_a_rare_class_is_called_as_often_as_by_scikit_learn() -> None:
    """The rare class has 95 of 452 rows. Without weights the border between the classes favours the large class."""
    data = load_breast_cancer()
    kept = np.flatnonzero((data.target == 1) | (np.arange(len(data.target)) % 4 == 0))
    x, y = data.data[kept][:, [1, 4, 9, 14, 18, 19]], 1 - data.target[kept]  # no column separates the classes by itself

    def case_of(weights: str) -> RealCase:
        options = {"class_weights": weights, "security": "semi-honest", "waves": "medium", "epochs": 15}
        options |= {"learning_rate": 2.0, "schedule": "constant", "unsafe": ["weight-bits"], "validation_fraction": 0}
        options |= {"batch_rows": 1000}
        tables = {"protocol": "falcon", "falcon": options, "split": {"test_fraction": 0.3}}
        return RealCase(np.split(x, 2, axis=1), y, validate(tables, FalconJob, source="the job"), seed=1)

    called = {}
    for weights in ("none", "balanced"):
        case = case_of(weights)
        tested = train(case)["hospital"].tested
        assert isinstance(tested, Figures)
        called[weights] = tested.positives
    table, labels, rest, test = case.table
    fitted = LogisticRegression(class_weight="balanced", C=1 / (0.01 * len(rest))).fit(table[rest], labels[rest])
    there = int(fitted.predict(table[test]).sum())
    assert abs(called["balanced"] - there) <= 0.03 * len(test)
    assert called["balanced"] - called["none"] > 0.05 * len(test)
