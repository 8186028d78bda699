"""The active party's rows with true labels are read by the names of the model's columns, in any order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.label_dp.fit import fit_regression
from blindfit.coordinator.job.job import load_job
from blindfit.parties.label_dp.consumer import LabelRegression, Study
from blindfit.parties.label_dp.fit import Rows
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party
from tests.label_dp.conftest import COLUMNS, rows_and_labels, write_project
from tests.unconnected import unconnected

ME = Member("shop", "active", "", "rows")


def on_true_labels(directory: Path, dataset: str = "study", n_trained: int = 1000) -> Study | None:
    features, labels = rows_and_labels()
    model = fit_regression(features, labels, columns=COLUMNS, regressor="linear", options={}, seed=1, debiased=True)
    job = load_job(directory / "job.toml", [f"label_dp.evaluate_on={dataset}"]).parameters
    store = Store(directory / "state" / "shop.sqlite")
    party = unconnected(load_party(directory / "shop.toml"), directory, store)
    for name in party.settings.datasets:
        party.snapshots.publish(name)
    seat = LabelRegression(party)
    seat.check(job, ME)
    session: Any = SimpleNamespace(job=job, me=ME)
    rows = Rows([f"u{i}" for i in range(n_trained)], features[:n_trained], features[n_trained:], COLUMNS)
    return seat._on_true_labels(model.model, rows, session)


def error_on_true_labels(directory: Path) -> float:
    study = on_true_labels(directory)
    assert study is not None
    return float(np.mean((study.labels - study.predictions) ** 2))


def rewrite_study(directory: Path, *columns: str) -> None:
    features, labels = rows_and_labels()
    known = dict(zip(COLUMNS, features.T.tolist(), strict=True)) | {"spend": labels.tolist()}
    table = [known.get(name, ["7"] * len(labels)) for name in columns]
    rows = [f"u{i}," + ",".join(map(str, row)) for i, row in enumerate(zip(*table, strict=True))]
    (directory / "study.csv").write_text("\n".join([",".join(["id", *columns]), *rows]) + "\n")


def test_columns_in_another_order_and_others_beside_them_change_nothing(tmp_path):
    write_project(tmp_path)
    expected = error_on_true_labels(tmp_path)
    assert 0 < expected < 0.1 * np.var(rows_and_labels()[1])
    rewrite_study(tmp_path, "visits", "note", "spend", "income", "age")
    assert error_on_true_labels(tmp_path) == expected


def test_a_column_that_is_not_there_or_not_offered_is_named(tmp_path):
    write_project(tmp_path)
    rewrite_study(tmp_path, "visits", "spend", "age")
    with pytest.raises(DataError, match="there is no column income"):
        error_on_true_labels(tmp_path)
    file = tmp_path / "shop.toml"
    text = file.read_text()
    head, study = text.split("[datasets.study]")
    study = study.replace('features = "rest"', 'features = ["visits"]')
    file.write_text(head + "[datasets.study]" + study)
    with pytest.raises(ConfigError, match=r"datasets\.study\.features does not have age, income, which the model has"):
        error_on_true_labels(tmp_path)


def test_a_column_of_the_model_that_is_the_label_is_refused(tmp_path):
    write_project(tmp_path)
    file = tmp_path / "shop.toml"
    file.write_text(file.read_text().replace('label = "spend"', 'label = "income"'))
    with pytest.raises(ConfigError, match=r"datasets\.study: column income is named twice"):
        error_on_true_labels(tmp_path)


def test_a_dataset_that_is_not_there_or_has_no_numbers_as_labels(tmp_path):
    write_project(tmp_path)
    with pytest.raises(ConfigError, match=r"label_dp\.evaluate_on: the active party has no dataset named nothing$"):
        on_true_labels(tmp_path, "nothing")
    with pytest.raises(ConfigError, match=r"datasets\.rows: label_dp\.evaluate_on needs a label, and label_kind = "):
        on_true_labels(tmp_path, "rows")


def test_nothing_is_evaluated_on_rows_that_were_trained_on(tmp_path):
    write_project(tmp_path)
    with capture_logs() as logs:
        assert on_true_labels(tmp_path, n_trained=len(rows_and_labels()[0])) is None
    assert logs[-1]["event"] == "every row was trained on, so none is left to evaluate on"
