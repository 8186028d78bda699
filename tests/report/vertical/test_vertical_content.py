"""report.json of a vertical training is strict and complete, and has nothing that the coordinator may not know."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.coordinator.systems import kind_of
from blindfit.coordinator.taylor.figures import figures_of
from blindfit.parties.training.budget import Charged
from blindfit.parties.vertical.prepared import PreparedLabels
from blindfit.parties.vertical.report import FitFigures, VerticalReport
from tests.report.pages import check_nothing_is_kept_of_models
from tests.report.vertical.conftest import (
    EVALUATION,
    OF_THE_ACTIVE_PARTY,
    PARTY_REPORT,
    PRIVACY,
    ROLES,
    SESSION,
    VALUES,
    MadeUpTraining,
)
from tests.reports import write_report


def test_a_run_here_holds_everything(training: MadeUpTraining) -> None:
    content = json.loads(training.written().json_path.read_text())
    assert content["session"] == SESSION
    assert (content["name"], content["protocol"], content["state"]) == ("loans", "taylor", "DONE")
    assert content["seconds"] == {"launch": 1.2, "set_up": 0.3, "job": 9.5}
    assert content["job"]["taylor"]["batch_rows"] == "auto"  # a default
    # tables without an effect here are not there either
    assert {"walr", "predict", "coordinator"}.isdisjoint(content["job"])
    assert {name: party["role"] for name, party in content["parties"].items()} == ROLES
    assert content["parties"]["bank"]["summary"]["rows"].keys() == PARTY_REPORT["rows"].keys() - {
        "shrunk",
        "dropped_columns",
    }
    assert content["party_reports"]["bank"]["rows"] == PARTY_REPORT["rows"]
    assert content["parties"]["notary"]["summary"]["fit"]["losses"] == list(training.losses)
    assert content["models"] == {name: training.model_of(name) for name in training.chain}
    assert content["party_reports"]["bank"]["evaluation"] == EVALUATION


def test_a_submitted_job_holds_no_model_even_where_one_lies(training: MadeUpTraining) -> None:
    for party in training.chain:
        training.write_party(party)
    written = training.submitted()
    secrets = ("0.713211", "0.7132", "0.931745", "0.9317", "calibration", "0.29<")
    check_nothing_is_kept_of_models(written, secrets)


def test_the_coordinator_gets_the_evaluation_without_curves(training: MadeUpTraining) -> None:
    summary = training.submitted().content["parties"]["bank"]["summary"]
    assert summary["evaluation"]["auc"] == 0.8731
    assert summary["evaluation"]["confusion"] == EVALUATION["confusion"]
    assert summary["evaluation"].keys() == EVALUATION.keys() - OF_THE_ACTIVE_PARTY


def test_under_label_dp_it_gets_no_figure_that_was_made_from_labels(training: MadeUpTraining) -> None:
    written = training.with_label_dp().submitted()
    assert "evaluation" not in written.content["parties"]["bank"]["summary"]
    for path in (written.json_path, written.html_path):
        assert "0.8731" not in path.read_text("utf-8")


def test_files_of_an_earlier_run_are_not_this_ones(training: MadeUpTraining) -> None:
    training.report["session"] = "taylor-earlier"
    content = training.written().content
    assert content["models"] == content["party_reports"] == {}


def test_a_model_of_another_protocol(training: MadeUpTraining) -> None:
    training.write_party("shop")
    (training.out / "shop" / "model.json").write_text('{"format": "blindfit-walr-model-1"}')
    with pytest.raises(DataError, match=r"model\.json: ") as raised:
        write_report(training.session(), training.out, ["shop"])
    assert str(training.out / "shop") in str(raised.value)
    assert not (training.out / "report.json").exists()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_does_not_have(training: MadeUpTraining, number: float) -> None:
    message = r"the report: parties\.bank\.summary\.evaluation\.auc is not a finite"
    with pytest.raises(DataError, match=message):
        training.submitted(evaluation__auc=number)
    assert not training.out.exists()  # nothing half-written


@pytest.mark.parametrize("losses", [("0.6", "nan"), ("0.6", "inf"), ("much",), (True,), "0.6"])
def test_losses_are_finite_numbers(training: MadeUpTraining, losses: Any) -> None:
    training.losses = losses
    with pytest.raises(DataError, match=r"the report of notary: fit\.losses is not a list of finite numbers"):
        training.submitted()
    assert not training.out.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows__trained": 1.5}, "the report of bank: rows.trained is not an integer"),
        ({"fit__epochs": "many"}, "the report of bank: fit.epochs is not an integer"),
        ({"rows__dropped_columns": "same"}, "the report of bank: rows.dropped_columns is not a list of texts"),
        ({"evaluation__auc": "good"}, "the report of bank: evaluation.auc is not a finite number"),
        (
            {"evaluation__confusion.true_positives": 0.5},
            "the report of bank: evaluation.confusion.true_positives is not",
        ),
        ({"timing__train_s": "long"}, "the report of bank: timing.train_s is not a finite number"),
        ({"peak_memory_mib": "big"}, "the report of bank: peak_memory_mib is not a finite number"),
    ],
)
def test_a_summary_of_another_type_names_party_and_figure(
    training: MadeUpTraining, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as raised:
        training.submitted(**changes)
    assert str(raised.value).startswith(message)
    assert not training.out.exists()


@pytest.mark.parametrize(
    ("party", "figure"), [("bank", "rows.common"), ("post", "rows.features"), ("bank", "rows.batches")]
)
def test_what_is_missing_is_named(training: MadeUpTraining, party: str, figure: str) -> None:
    session = training.session()
    del session.summaries[party][figure]
    with pytest.raises(DataError) as raised:
        write_report(session, training.out, [])
    assert str(raised.value) == f"the report of {party}: {figure} is missing"


@pytest.mark.parametrize("told", [True, 1.5, "auc", ("auc",)])
def test_figures_that_are_no_table(training: MadeUpTraining, told: Any) -> None:
    session = training.session()
    for figure in [name for name in session.summaries["bank"] if name.startswith("evaluation.")]:
        del session.summaries["bank"][figure]
    session.summaries["bank"]["evaluation"] = told
    with pytest.raises(DataError, match=r"^the report of bank has no table evaluation$"):
        write_report(session, training.out, [])


def test_no_promise_without_its_figures(training: MadeUpTraining) -> None:
    session = training.with_label_dp().session()
    del session.summaries["bank"]["privacy.noise_multiplier"]
    with pytest.raises(DataError, match=r"the report of bank: privacy\.noise_multiplier is missing"):
        write_report(session, training.out, [])


@pytest.mark.parametrize("curve", ["lift", "calibration", "ranking", "histogram"])
@pytest.mark.parametrize("points", ["much", [1.0], [{"share": 0.1, "probability": 0.1}], [{"share": "x"}]])
def test_curves_of_a_partys_own_file_are_checked(training: MadeUpTraining, curve: str, points: object) -> None:
    training.report["evaluation"][curve] = points
    with pytest.raises(DataError, match="the report of bank"):
        training.written()
    assert not (training.out / "report.json").exists()


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([(3, 1), (2, 1)], "do not grow"),
        ([(3, 1), (3, 1)], "do not grow"),
        ([(-1, 1)], "point 0 of ranking is impossible"),
        ([(3, 0)], "ends without rows of both classes"),
    ],
)
def test_counts_of_a_ranking_must_be_counts(training: MadeUpTraining, points: list[tuple[int, int]], said: str) -> None:
    training.report["evaluation"]["ranking"] = [
        {"threshold": 0.5, "true_positives": true, "false_positives": false} for true, false in points
    ]
    with pytest.raises(DataError, match=f"the report of bank.*{said}"):
        training.written()


@pytest.mark.parametrize(
    ("curve", "point"),
    [
        ("calibration", {"rows": 24, "probability": 0.5, "positives": 1.5}),
        ("calibration", {"rows": 0, "probability": 0.5, "positives": 0.5}),
        ("lift", {"share": 0.0, "lift": 1.0}),
        ("histogram", {"low": 1.0, "high": 0.5, "positives": 1, "negatives": 1}),
        ("histogram", {"low": 0.0, "high": 0.5, "positives": -1, "negatives": 1}),
        ("ranking", {"threshold": 2.0, "true_positives": 1, "false_positives": 1}),
    ],
)
def test_a_point_that_no_rows_can_give_is_named(training: MadeUpTraining, curve: str, point: dict[str, Any]) -> None:
    training.report["evaluation"][curve] = [point]
    with pytest.raises(DataError, match=f"the report of bank: point 0 of {curve} is impossible"):
        training.written()
    assert not (training.out / "report.json").exists()


def test_there_is_no_report_of_an_unknown_protocol() -> None:
    with pytest.raises(DataError, match="a 'magic' job has no report"):
        kind_of("magic")


def test_text_of_a_peer_does_not_steer_a_terminal(training: MadeUpTraining) -> None:
    facts = figures_of(training.submitted(rows__dropped_columns=("\x1b[2J" + "x" * 1000,)).content)
    (name,) = facts.rows["bank"].dropped_columns or ()
    assert name.isprintable()
    assert len(name) == 300


@pytest.mark.parametrize("trained", [100, 128, 160, 200, 600, 700, 704, 767, 780])
def test_the_smallest_batch_is_that_of_the_plan(training: MadeUpTraining, trained: int) -> None:
    plan = RowPlan.of(np.arange(trained), test_fraction=0, validation_fraction=0, batch_rows=128)
    training.settings["taylor"] = {"batch_rows": 128}
    facts = figures_of(training.submitted(rows__trained=trained, rows__batches=len(plan.batches)).content)
    assert facts.smallest_batch == min(map(len, plan.batches))


# --- the shape of what data parties report ------------------------------------------------------------------


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("evaluation", [EVALUATION, VALUES, None])
def test_what_a_data_party_reports_is_understood(training: MadeUpTraining, private: bool, evaluation: Any) -> None:
    """The test compares PARTY_REPORT, its stand-in in these tests, with the shape of the real report."""
    if private:
        training.with_label_dp()
    made, report = _report_of_a_party(private, evaluation)
    assert report.keys() == PARTY_REPORT.keys()
    for table in ("rows", "fit"):
        assert report[table].keys() == PARTY_REPORT[table].keys()
    if private:
        assert report["privacy"].keys() == PRIVACY.keys()
    session = training.session()
    session.summaries["bank"] = made.fields_for_coordinator()
    facts = figures_of(write_report(session, training.out, []).content)
    assert (report["rows"]["dropped_columns"], report["rows"]["shrunk"]) == (["same"], 7)
    assert (facts.rows["bank"].dropped_columns, facts.rows["bank"].shrunk) == (None, None)
    assert (facts.rows["bank"].common, facts.rows["bank"].features) == (100, 4)
    assert (facts.evaluation is not None) == (evaluation is not None and not private)
    assert (facts.privacy is not None) == private


def _report_of_a_party(private: bool, evaluation: dict[str, Any] | None) -> tuple[VerticalReport, dict[str, Any]]:
    session = SimpleNamespace(
        id=SESSION,
        me=SimpleNamespace(name="bank", role="active", dataset="loans"),
        parameters={"protocol": "taylor"},
        members={name: SimpleNamespace(role=role) for name, role in ROLES.items()},
    )
    plan = SimpleNamespace(train=range(60), validation=range(15), test=range(25), batches=[range(60)])
    prepared = SimpleNamespace(
        rows=SimpleNamespace(features=np.zeros((100, 4))),
        plan=plan,
        standardiser=SimpleNamespace(columns=("a", "b", "same", "d"), dropped=("same",)),
        rows_shrunk=7,
        labels=PreparedLabels(),
    )
    charged = Charged(**PRIVACY) if private else None
    laps = PARTY_REPORT["timing"]
    made = VerticalReport.of(session, prepared, FitFigures(4), evaluation, charged, laps)  # type: ignore[arg-type]
    return made, made.content(session)  # type: ignore[arg-type]
