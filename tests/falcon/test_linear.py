"""A linear model in shares: the plain steps, the figures of test rows, a ridge regression of real data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error, r2_score

from blindfit.algorithms.protocols.falcon import TestErrors as Errors
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.falcon.data_party import evaluation_of, make_held
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.tables import validate
from tests.falcon.local import KEY_NODE, UNTESTED, Case, train
from tests.falcon.oracle import weights_of
from tests.falcon.project import JUDGED
from tests.falcon.real_data import RealCase
from tests.world import World
from tests.world.vertical import bank_and_shops_in_shares, with_numbers

Floats = NDArray[np.float64]
LINEAR = {"model": "linear", "waves_name": "wide", "optimiser": OptimiserSettings(learning_rate=0.3, l2=0.02)}


def bound(case: Case, epochs: int) -> float:
    """Bound the error as tests/sharing/test_descent.py does: the sum of what steps add, as no step makes an error
    larger.
    """
    p, x = case.parameters, case.whole
    step, lengths = p.step(0, 0), np.linalg.norm(x, axis=1)
    assert p.optimiser.learning_rate * (np.linalg.eigvalsh(x.T @ x / len(x)).max() + p.optimiser.l2) < 1.9
    largest = 2 * np.abs(case.y).max()
    residual = step.factor * 2.0**-p.label_bits + largest * 2.0 ** -(p.scales.waves.coefficient + 1)
    k = math.sqrt(x.shape[1])
    each = max(p.batch_rows) * residual * lengths.max() + 2 * k * 2.0**-24 + k * 2.0**-p.scales.decay_bits * 10
    return epochs * len(p.batches) * each


@pytest.mark.parametrize("n_parties", [2, 3])
def test_weights_are_those_of_plain_steps_within_the_bound(n_parties: int) -> None:
    case = Case(n_parties=n_parties, options=UNTESTED | LINEAR)
    found = weights_of(case, train(case))
    assert bound(case, 4) < 0.05
    assert np.linalg.norm(found - case.plain(4)) <= bound(case, 4)
    assert np.abs(found).max() > 0.2


def test_the_active_party_learns_the_sum_of_squares_alone() -> None:
    case = Case(options=LINEAR)
    trained = train(case)
    told = trained["hospital"].tested
    assert isinstance(told, Errors)
    assert trained["laboratory"].tested is None
    assert trained[KEY_NODE].tested is None
    p = case.parameters
    errors = (case.whole @ weights_of(case, trained))[p.test] - case.y[p.test]
    unit = 2.0 ** (math.floor(math.log2(len(errors))) - 9)
    assert told.squares == unit * round(told.squares / unit)
    assert abs(told.squares - (errors**2).sum()) <= unit + 2.0**-12 * np.abs(errors).sum()


def test_training_stops_where_the_loss_no_longer_falls() -> None:
    case = Case(rows=260, options={**UNTESTED, **LINEAR, "patience": 2, "tolerance": 0.02, "epochs": 20})
    p, best, since, epoch = case.parameters, math.inf, 0, 0
    while since < p.patience:
        epoch += 1
        z = (case.whole @ case.plain(epoch))[p.validation]
        loss = float(np.mean((z - case.y[p.validation]) ** 2) / 2)
        best, since = (loss, 0) if loss < best - p.tolerance else (best, since + 1)
    assert {one.epochs for one in train(case).values()} == {epoch}
    assert 2 < epoch < 20


@pytest.mark.parametrize(("rows", "kept"), [(100, 5), (400, 6), (65_536, 10)])
def test_steps_are_a_quarter_of_what_a_weight_errs_by_where_columns_explain_nothing(rows: int, kept: int) -> None:
    assert choose_kept_bits(rows, "linear") == kept
    assert 1 / math.sqrt(rows) / 4 <= 2.0**-kept < 1 / math.sqrt(rows) / 2


# --- real data ------------------------------------------------------------------------------------------------------


def test_diabetes_is_told_as_well_as_by_a_ridge_regression() -> None:
    data = load_diabetes()
    options = {"model": "linear", "security": "semi-honest", "learning_rate": 0.2, "epochs": 40, "patience": 8}
    tables = {"protocol": "falcon", "falcon": options, "split": {"test_fraction": 0.3}}
    job = validate(tables, FalconJob, source="the job")
    case = RealCase(np.split(data.data, [4, 7], axis=1), data.target, job, seed=3)
    tested = train(case)["hospital"].tested
    found = evaluation_of(tested, case.prepared[0], 0.5)
    assert found is not None
    x, y, rest, test = case.table
    fitted = Ridge(alpha=0.01 * len(rest)).fit(x[rest], y[rest])
    predicted = fitted.predict(x[test])
    assert abs(found["r2"] - r2_score(y[test], predicted)) < 0.02
    assert found["mse"] == pytest.approx(mean_squared_error(y[test], predicted), rel=0.05)
    assert r2_score(y[test], predicted) > 0.4
    assert make_held(case.prepared[0], case.parameters).labels is not None


def test_a_job_whose_predictions_are_in_the_labels_units(tmp_path: Path) -> None:
    project = bank_and_shops_in_shares(tmp_path, epochs=2, falcon=JUDGED)
    rng = np.random.default_rng(8)
    with_numbers(project, 1000 + 50 * rng.normal(size=300))
    nodes = World(project.root)
    options = ("falcon.model=linear", "falcon.learning_rate=0.2")
    session = nodes.run(*options)
    part = project.written("bank", session)
    assert part["model"] == "linear"
    assert part["label_mean"] == pytest.approx(1000, abs=15)
    evaluation = project.written("bank", session.id, "report.json")["evaluation"]
    assert isinstance(evaluation, dict)
    assert evaluation.keys() == {"rows", "mse", "r2"}
    predicted = nodes.run(f'predict.session="{session.id}"', job="predict.toml")
    lines = (project.root / f"state/bank/predictions/{predicted.id}/scores.csv").read_text().splitlines()
    values = [float(line.split(",")[2]) for line in lines[1:]]
    assert np.mean(values) == pytest.approx(1000, abs=15)
