"""The report of a dp-lr job is true, and everything private stays with the party."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
from rich.console import Console

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.events import UNITS, WHOLE_ROWS, ReleaseEvent
from blindfit.algorithms.privacy.ledger import Charge
from blindfit.coordinator.dp_lr.cautions import cautions_of
from blindfit.coordinator.dp_lr.figures import figures_of
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.operator import ledger as ledger_view
from blindfit.coordinator.report import Written, quality
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.systems import kind_of
from blindfit.parties.store import charging
from tests.dp_lr.conftest import Clinic, job
from tests.report.drawn_once import every_plot_drawn_once
from tests.reports import write_report


@pytest.fixture(autouse=True)
def _plots() -> Iterator[None]:
    with every_plot_drawn_once():
        yield


def written(clinic: Clinic, *, here: bool = True, session: str = "s1", curves: bool = False, **changes: Any) -> Written:
    """Write the report as after `run`, or as after `submit`.

    The curves of an evaluation take most of the time, and no option changes them: they are drawn only on request."""
    told = clinic.train(session, **changes)
    told |= {name: 0.25 for name in told if name.startswith("timing.")}  # otherwise a time might look like a figure
    out = clinic.root / "out"
    if here:
        (out / "clinic").mkdir(parents=True)
        for name in ("model.json", "report.json"):
            (out / "clinic" / name).write_text(clinic.output(session, name).read_text())
    made = JobSession(read_job(job(**changes)), {}, None, id=session)  # type: ignore[arg-type]
    made.state, made.seconds, made.summaries = "DONE", {"launch": 1.0, "set_up": 0.5, "job": 2.5}, {"clinic": told}
    out.mkdir(exist_ok=True)
    with nullcontext() if curves else mock.patch.object(quality, "plots", return_value=[]):
        return write_report(made, out, ["clinic"] if here else [])


def statement_of(report: Written) -> dict[str, str]:
    return {section["topic"]: " ".join(section["sentences"]) for section in report.content["privacy_statement"]}


def test_a_report_of_no_row_that_was_trained_on(clinic: Clinic) -> None:
    """The number of rows is private, so others receive the public one."""
    private = {"neighbours": "add-or-remove", "public_rows": 10**9, "feature_bounds": ["*:0:200"]}
    report = written(clinic, dp_lr=private, split=clinic.hold_out_all())
    assert "drawn for each coordinate by itself" in statement_of(report)["noise"]


@pytest.mark.parametrize("here", [False, True])
def test_how_many_rows_there_are_is_public_or_it_is_not(clinic: Clinic, here: bool) -> None:
    private = {"neighbours": "add-or-remove", "public_rows": 1000, "feature_bounds": ["*:0:200"], "iterations": 20}
    report = written(clinic, here=here, dp_lr=private, split={"test_fraction": 0.2})
    said = statement_of(report)
    assert "How many rows there are is protected: dp_lr.public_rows, 1,000, stands for it." in said["public"]
    assert "over 800 rows, the expected number by dp_lr.public_rows." in said["noise"]
    assert "1/800" in said["delta"]
    assert "counts of rows" not in said["learnt-coordinator"]
    assert (
        "nor how many rows there are: numbers of rows here follow from dp_lr.public_rows" in said["learnt-coordinator"]
    )


def test_the_statement_says_what_was_done(clinic: Clinic) -> None:
    said = statement_of(written(clinic))
    assert "each row, features and label, a visit" in said["unit"]
    assert "one row, features and label, is replaced by another; their number is public" in said["neighbours"]
    assert "epsilon = 2." in said["epsilon"]
    assert "delta = 1e-05." in said["delta"]
    assert "20 noisy sums of clipped gradients" in said["mechanism"]
    assert "20 iterations are composed exactly to epsilon 2." in said["composition"]
    assert "epsilon 4 at delta 1e-05" in said["composition"]
    assert "1 release, which spent epsilon 2; 2 is left" in said["composition"]
    assert "a fit to public rows" in said["public"]
    assert "how many rows there are, and that both classes occur" in said["public"]
    assert "counts of rows and columns" in said["learnt-coordinator"]
    assert "clinic keeps them, and publishing them is a separate release" in said["not-covered"]
    assert "The training rows' loss was not released." in said["noise"]


def test_a_population_that_paid_for_label_dp_too_says_what_that_protects(clinic: Clinic) -> None:
    label = ReleaseEvent("gaussian", 4.0, UNITS["row"][1])
    with clinic.kept.transaction() as transaction:
        charging.enter(transaction, Charge("patients", label))
    both = composed_epsilon([label, ReleaseEvent("gaussian", 4.0, WHOLE_ROWS["replace-one"])], 1e-5)
    told = written(clinic, privacy={"epsilon": composed_epsilon([label], 1e-5)})
    said = statement_of(told)["composition"]
    assert "2 releases, which together spent epsilon" in said
    assert (
        f"together they protect where {UNITS['row'][1]}. No budget covers what the label-DP releases reveal about "
        "features" in said
    )
    spent = clinic.written("clinic", "s1", "report.json")["privacy"]["spent_epsilon"]
    assert spent == pytest.approx(both, rel=1e-6)
    shown = Console(record=True, width=300)
    ledger_view.describe(clinic.settings("clinic"), clinic.root).show(shown)
    lines = [line for line in shown.export_text().splitlines() if line.startswith("patients:")]
    assert len(lines) == 2
    assert f"is spent on protection where {UNITS['row'][1]}: all releases together" in lines[0]
    assert (
        f"is spent on protection where {WHOLE_ROWS['replace-one']}: only by the releases that protect this" in lines[1]
    )


@pytest.mark.parametrize(
    ("dp_lr", "expected"),
    [
        ({"loss_share": 0.25}, {"noise": "A share of 0.25 of the budget paid for the training loss"}),
        (
            {"batch_fraction": 0.5},
            {
                "mechanism": "takes each row with probability 0.5, in secret",
                "composition": "are composed by privacy loss distributions, rounded up",
            },
        ),
        ({"budget": "iteration", "iterations": 3}, {"composition": "Each iteration is (2, 1e-05)-DP by itself"}),
        (
            {"neighbours": "add-or-remove", "public_rows": 600},
            {"neighbours": "one row, features and label, is added or removed"},
        ),
        ({"feature_bounds": ["*:0:200"]}, {"public": "zero weights; features are mapped by declared bounds"}),
    ],
    ids=lambda given: ",".join(given),
)
def test_each_option_is_told(clinic: Clinic, dp_lr: dict[str, Any], expected: dict[str, str]) -> None:
    clinic.set("populations", {"patients": {"epsilon": 20.0, "delta": 1e-5}})
    said = statement_of(written(clinic, dp_lr=dp_lr))
    for topic, words in expected.items():
        assert words in said[topic]


def test_an_answer_given_again_says_so(clinic: Clinic) -> None:
    clinic.train("s0")
    again = written(clinic)
    assert "was released, and charged, before" in statement_of(again)["composition"]
    assert "this job was charged before" in again.html_path.read_text()


def test_the_page_has_the_model_only_where_it_is(clinic: Clinic) -> None:
    here = written(clinic, curves=True).html_path.read_text()
    report = clinic.written("clinic", "s1", "report.json")
    accuracy = f"{report['evaluation']['accuracy']:.4f}"
    assert accuracy in here
    assert all(title in here for title in ("Weights", "Loss", "Calibration", "Privacy budget", "Descent"))
    assert "one standard deviation of the public rows" in here
    (clinic.root / "out" / "clinic" / "model.json").unlink()
    submitted = written(clinic, here=False, session="s2", curves=True)
    page = submitted.html_path.read_text()
    assert "Calibration" not in page
    assert "evaluation" not in json.loads(submitted.json_path.read_text())["parties"]["clinic"]["summary"]
    assert "This page holds no weight: the coordinator gets none." in page
    assert "clinic keeps the evaluation in its own report" in page


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"privacy": {"epsilon": 0.05}}, "The model is hardly more than its start (a fit to public rows)"),
        ({"dp_lr": {"iterations": 5}}, "Declare dp_lr.feature_bounds, or scale by public rows"),
        ({"dp_lr": {"budget": "iteration", "iterations": 2, "public_dataset": "archive"}}, "All 2 iterations spent"),
        ({"split": {"test_fraction": 0.1}}, "rows were held out: the figures of the evaluation are rough"),
        ({"privacy": {"epsilon": 2.0, "delta": 0.01}}, "delta = 0.01 is not below one in the number of rows"),
    ],
)
def test_what_must_be_read_first(clinic: Clinic, changes: dict[str, Any], expected: str) -> None:
    populations = {"patients": {"epsilon": 20.0, "delta": 0.01}}
    clinic.set("populations", populations)
    cautions = cautions_of(figures_of(written(clinic, **changes).content))
    assert [caution for caution in cautions if expected in caution], cautions


def test_a_good_job_has_no_caution(clinic: Clinic) -> None:
    assert cautions_of(figures_of(written(clinic, split={"test_fraction": 0.25}).content)) == []


@pytest.mark.parametrize(
    ("part", "name", "value", "expected"),
    [
        ("privacy", "epsilon", None, "privacy.epsilon is missing"),
        ("privacy", "noise_multiplier", "much", "privacy.noise_multiplier is not a finite number"),
        ("fit", "start", "luck", "has unknown values of fit.start and fit.scale"),
        ("rows", "trained", 1.5, "rows.trained is not an integer"),
    ],
)
def test_a_figure_that_is_wrong_makes_no_report(
    clinic: Clinic, part: str, name: str, value: Any, expected: str
) -> None:
    content = json.loads(json.dumps(written(clinic, here=False).content))
    content["parties"]["clinic"]["summary"][part][name] = value
    with pytest.raises(DataError, match=re.escape(expected)):
        kind_of("dp-lr").statement.privacy_statement(content)


def test_another_protocols_model_is_none_of_this(clinic: Clinic) -> None:
    written(clinic)
    path = clinic.root / "out" / "clinic" / "model.json"
    path.write_text(path.read_text().replace("blindfit-dp-logistic-1", "blindfit-walr-model-1"))
    with pytest.raises(DataError, match="format: not blindfit-dp-logistic-1"):
        kind_of("dp-lr").check_model(json.loads(path.read_text()))
