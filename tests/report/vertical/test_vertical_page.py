"""report.html of a vertical training: one file, nothing to load, nothing to run, the privacy statement last."""

from __future__ import annotations

import copy
import html
import re
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.jobs.party_page import render_party
from blindfit.coordinator.report.curves import (
    CalibrationPoint,
    ClassBin,
    Curves,
    LiftPoint,
    RankingPoint,
    calibration_plot,
)
from blindfit.coordinator.report.plots import weight_plots
from blindfit.coordinator.taylor.plots import loss_plot
from tests.report.pages import (
    HOSTILE,
    Elements,
    check_it_ends_with_the_privacy_statement,
    check_nothing_is_loaded_or_run,
)
from tests.report.vertical.conftest import VALUES, MadeUpTraining
from tests.reports import write_report


def test_the_page_shows_the_key_figures(page) -> None:
    text = Elements(page()).text
    for shown in (
        "780",
        "of 1,200; 240 for the test",
        "3 + 1 + 1",
        "hold-out loss 0.519",
        "0.8731",
        "0.6123",
        "Average precision",
        "0.8612",
        "0.7982 (0.715 to 0.862)",
        "81.2%",
    ):
        assert shown in text
    for heading in (
        "Weights of bank",
        "Weights of shop",
        "Hold-out loss",
        "Evaluation",
        "Scores by class",
        "Calibration",
        "ROC",
        "Precision and recall",
        "Lift",
        "Defences",
    ):
        assert heading in text
    for heading in ("Rows and columns", "Time", "Parties", "All weights (5)", "The job, with every default"):
        assert heading in text
    assert "taylor.batch_rows" in text
    assert "walr.frac_bits" not in text
    assert "no differential privacy" in text


def test_the_confusion_matrix(page) -> None:
    cells = re.findall(r'<td class="(right|wrong)" title="([a-z ]+)">(\d+)</td>', page())
    assert cells == [
        ("right", "true positives", "91"),
        ("wrong", "false negatives", "22"),
        ("wrong", "false positives", "23"),
        ("right", "true negatives", "104"),
    ]


def test_precision_and_recall(page, training: MadeUpTraining) -> None:
    text = Elements(page()).text
    assert f"{91 / 114:.4f}" in text
    assert f"{91 / 113:.4f}" in text
    training.report["evaluation"]["confusion"] |= {"true_positives": 0, "false_positives": 0}
    assert re.search('Precision</td><td class="number">\N{EN DASH}<', page())


def test_nothing_is_loaded_or_run(page) -> None:
    check_nothing_is_loaded_or_run(page(), plots=9)


def test_it_ends_with_the_privacy_statement(page) -> None:
    check_it_ends_with_the_privacy_statement(page())


def test_names_are_escaped(training: MadeUpTraining) -> None:
    training.name = HOSTILE
    training.weights["bank"] = {HOSTILE: 0.5, "a]]>-->": 0.1, "price $x^2$": -0.25}
    training.report["rows"]["dropped_columns"] = [HOSTILE]
    training.with_label_dp(population=HOSTILE, unit=HOSTILE)
    for party in training.chain:
        training.write_party(party)
    session = training.session()
    session.job.parties["bank"] = session.job.parties["bank"].model_copy(update={"dataset": HOSTILE})
    written = write_report(session, training.out, list(training.roles)).html_path.read_text("utf-8")
    elements = Elements(written)
    assert "script" not in elements.tags
    assert elements.text.count(HOSTILE) >= 8  # title, heading, plot, tables, budget, job, statement
    assert "price $x^2$" in html.unescape(written)  # read as a name, not as a formula


def test_a_submitted_jobs_page_says_where_the_parts_are(training: MadeUpTraining) -> None:
    elements = Elements(training.submitted().html_path.read_text("utf-8"))
    assert elements.tags.count("svg") == 1  # the losses
    assert "This page holds no weight" in elements.text
    assert "kept by shop" in elements.text
    assert f"models/{training.report['session']}" in elements.text
    assert "All weights" not in elements.text
    assert "0.8731" in elements.text


def test_under_label_dp_the_evaluation_stays_where_the_labels_are(training: MadeUpTraining) -> None:
    training.with_label_dp()
    here = Elements(training.written().html_path.read_text("utf-8"))
    assert "0.8731" in here.text
    assert "Privacy budget" in here.text
    elsewhere = Elements(training.submitted().html_path.read_text("utf-8"))
    assert "0.8731" not in elsewhere.text
    assert "under label DP figures made from labels are not published" in elsewhere.text


@pytest.mark.parametrize(
    ("settings", "test_rows", "why"),
    [
        ({"split": {"test_fraction": 0.0}}, 0, "no rows were kept for a test"),
        (
            {"align": {"method": "linkage", "fields": ["name", "born:date", "postcode"]}},
            0,
            "after linkage nobody learns",
        ),
    ],
)
def test_without_an_evaluation_the_page_says_why(
    training: MadeUpTraining, settings: dict[str, Any], test_rows: int, why: str
) -> None:
    training.settings = settings
    training.with_roles(bank="active", shop="passive", notary="key_node")
    training.report["evaluation"] = None
    training.report["rows"]["test"] = test_rows
    assert why in Elements(training.written().html_path.read_text("utf-8")).text


@pytest.mark.parametrize(
    ("slope", "offset", "told"),
    [(2.0, -0.25, "log odds x 2 -0.25: as trained, log odds were 50%"), (1.0, 0.0, "too few, or carried too little")],
)
def test_after_linkage_the_active_partys_page_tells_the_calibration(
    training: MadeUpTraining, slope: float, offset: float, told: str
) -> None:
    training.settings = {"align": {"method": "linkage", "fields": ["name", "born:date", "postcode"]}}
    training.with_roles(bank="active", shop="passive", notary="key_node")
    training.report |= {"evaluation": None, "calibration": {"slope": slope, "offset": offset}}
    training.report["rows"]["test"] = 0
    assert told in Elements(training.written().html_path.read_text("utf-8")).text
    assert told not in Elements(training.submitted().html_path.read_text("utf-8")).text


def test_a_linear_model(training: MadeUpTraining) -> None:
    training.settings["taylor"] = {"model": "linear"}
    training.report["evaluation"] = copy.deepcopy(VALUES)
    text = Elements(training.written().html_path.read_text("utf-8")).text
    for shown in ("R squared", "0.7153", "Mean squared error", "3.25", "Linear regression"):
        assert shown in text
    assert "predicted" not in text


def test_constant_columns_are_named(training: MadeUpTraining) -> None:
    text = Elements(training.submitted(rows__dropped_columns=("always", "never")).html_path.read_text("utf-8")).text
    assert "constant columns of bank, dropped" in text
    assert "always, never" in text


# --- cautions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "caution"),
    [
        (
            "leverage",
            "taylor.unsafe, leverage): rows that stand out: a gradient can reveal a single row's label or score.",
        ),
        ("label-bits", "more passive columns than a batch hides labels from"),
        ("no-jitter", "labels without jitter: a few batches can reveal every label"),
        ("small-hold-out", "a hold-out loss of few rows, which the key node reads"),
        ("class-weights", "class weights, which differences of gradients show, and labels with them"),
    ],
)
def test_an_unsafe_flag_is_prominent(training: MadeUpTraining, flag: str, caution: str) -> None:
    training.settings["taylor"] = {"unsafe": [flag]}
    written = training.written()
    assert "Read this first" in written.html_path.read_text("utf-8")
    assert caution in Elements(written.html_path.read_text("utf-8")).text


@pytest.mark.parametrize(
    ("losses", "caution"),
    [
        (("0.69", "0.6", "0.55", "0.5"), "The hold-out loss still fell by 0.05 in the last of 4 epochs"),
        (("0.6", "0.5", "0.7", "0.9"), "The hold-out loss was 0.5 after epoch 2 and 0.9 at the end"),
    ],
)
def test_losses_that_say_something(training: MadeUpTraining, losses: tuple[str, ...], caution: str) -> None:
    training.settings["taylor"] = {"epochs": 4}
    training.losses = losses
    assert caution in Elements(training.written().html_path.read_text("utf-8")).text


@pytest.mark.parametrize(
    ("epochs", "losses", "said"),
    [
        (4, ("0.69", "0.6", "0.55", "0.5"), "hold-out loss 0.5"),
        (20, ("0.69", "0.5", "0.51", "0.52"), "hold-out loss 0.52, no longer falling"),
        (4, (), "the number that the job asked for"),
        (20, (), "the hold-out loss no longer fell"),
    ],
)
def test_why_training_ended(training: MadeUpTraining, epochs: int, losses: tuple[str, ...], said: str) -> None:
    training.settings["taylor"] = {"epochs": epochs}
    training.losses = losses
    text = Elements(training.written().html_path.read_text("utf-8")).text
    assert said in text
    assert ("the number that the job asked for" in text) == (said == "the number that the job asked for")
    assert ("no longer f" in text) == (epochs > 4)


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({"rows__test": 40}, "The model was tested on only 40 rows"),
        ({"rows__shrunk": 78}, "78 training rows of bank (10%) stood out among its 3 features"),
    ],
)
def test_other_cautions(page, changes: dict[str, Any], caution: str) -> None:
    assert caution in Elements(page(**changes)).text


def test_a_training_that_has_not_settled_is_a_caution_for_those_who_have_the_partys_report(
    training: MadeUpTraining,
) -> None:
    training.report["fit"]["settled"] = False
    caution = "The training has not settled at bank, post and shop"
    assert caution in Elements(training.written().html_path.read_text("utf-8")).text
    assert not [name for told in training.session().summaries.values() for name in told if "settled" in name]
    assert "not settled" not in Elements(training.submitted().html_path.read_text("utf-8")).text


def test_a_large_delta(training: MadeUpTraining) -> None:
    text = Elements(training.with_label_dp(delta=0.01).written().html_path.read_text("utf-8")).text
    assert "delta = 0.01 is not below one in the number of rows" in text


def test_no_caution_where_all_is_well(page) -> None:
    assert "Read this first" not in page()
    assert "Read this first" not in page(rows__shrunk=39)  # 5% of 780


# --- plots -----------------------------------------------------------------------------------------------


def test_weights_of_all_parties_are_on_one_scale() -> None:
    models = {
        "a": {"model": "logistic", "weights": {"x": 4.0}, "intercept": 0.5},
        "b": {"model": "logistic", "weights": {"y": 0.01}},
        "c": {"model": "logistic", "weights": {}},
    }
    plots = weight_plots(models)
    assert [plot.title for plot in plots] == ["Weights of a", "Weights of b"]
    assert all(re.search(r">4<", str(plot.svg)) for plot in plots)
    assert "Intercept 0.5" in plots[0].note
    assert "log-odds" in plots[0].note
    assert "standard deviations" in weight_plots({"a": {"model": "linear", "weights": {"x": 0.0}}})[0].note


def test_losses_after_a_linkage_are_called_shares_of_the_first() -> None:
    plot = loss_plot([1.0, 0.8], 100, relative=True)
    assert plot is not None
    assert "as a share of the loss after the first" in plot.note


@pytest.mark.parametrize("losses", [[], [0.7]])
def test_no_plot_of_too_few_losses(losses: list[float]) -> None:
    assert loss_plot(losses, 10) is None


def test_a_long_training_is_drawn() -> None:
    plot = loss_plot([0.5 + 0.9**i for i in range(2000)], 10)
    assert plot is not None
    assert len(plot.svg) < 80_000


def test_no_curves_of_nothing() -> None:
    assert Curves().plots() == []


def test_curves_of_one_point() -> None:
    curves = Curves(
        lift=(LiftPoint(1.0, 1.0),),
        calibration=(CalibrationPoint(3, 0.5, 1.0),),
        ranking=(RankingPoint(0.5, 1, 1),),
        histogram=(ClassBin(0.0, 1.0, 0, 3),),
    )
    assert [plot.title for plot in curves.plots()] == [
        "Scores by class",
        "Calibration",
        "ROC",
        "Precision and recall",
        "Lift",
    ]


@pytest.mark.parametrize(
    ("positives", "said"), [(0.5, "all do"), (0.95, "1 of 2 do")], ids=["calibrated", "far from it"]
)
def test_a_sentence_tells_whether_groups_lie_where_they_should(positives: float, said: str) -> None:
    points = (CalibrationPoint(100, 0.2, 0.2), CalibrationPoint(100, 0.5, positives))
    assert calibration_plot(points).note.endswith(f"meet the dashed line: here {said}.")


@pytest.mark.parametrize(
    "told", [{"auc": 1.7}, {"confusion": {"false_negatives": -91}}, {"accuracy": -3.0}, {"accuracy": 1e308}]
)
def test_a_peers_impossible_figures_have_no_range(training: MadeUpTraining, told: dict[str, Any]) -> None:
    evaluation = training.report["evaluation"]
    for name, value in told.items():
        evaluation[name] = {**evaluation[name], **value} if isinstance(value, dict) else value
    assert "Log loss" in training.written().html_path.read_text()


# --- a party's own page ------------------------------------------------------------------------------------


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("party", ["bank", "shop"])
def test_a_partys_own_page(training: MadeUpTraining, tmp_path: Path, party: str, private: bool) -> None:
    if private:
        training.with_label_dp()
    directory = training.write_party(party, tmp_path / "own")
    render_party(directory)
    elements = Elements((directory / "report.html").read_text("utf-8"))
    is_active = party == "bank"
    assert elements.tags.count("svg") == (6 if is_active else 1)
    for shown in (*training.weights[party], "taylor.batch_rows", "What notary (key node) learnt", "model.json"):
        assert shown in elements.text
    assert ("0.8731" in elements.text) == is_active
    assert "bank keeps the evaluation in its own report" in elements.text or is_active
    if private:
        assert ("Privacy budget" in elements.text) == is_active
        assert "epsilon = 2" in elements.text


def test_a_partys_own_page_without_its_model(training: MadeUpTraining, tmp_path: Path) -> None:
    directory = training.write_party("bank", tmp_path / "own")
    (directory / "model.json").unlink()
    render_party(directory)
    assert "Calibration" in (directory / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "report.json",
            '{"party": "bank", "job": {"protocol": "taylor"}}',
            "is not the report of an active or a passive party",
        ),
        (
            "report.json",
            '{"party": "bank", "job": {"protocol": "magic"}}',
            "a 'magic' job has no report",
        ),
        ("model.json", "{}", "model"),
        ("model.json", '{"format": "blindfit-walr-model-1"}', "model"),
    ],
)
def test_a_partys_broken_files(training: MadeUpTraining, tmp_path: Path, name: str, content: str, message: str) -> None:
    directory = training.write_party("bank", tmp_path / "own")
    (directory / name).write_text(content)
    with pytest.raises(DataError, match=message):
        render_party(directory)
    assert not (directory / "report.html").exists()
