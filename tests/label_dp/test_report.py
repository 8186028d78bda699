"""The report of a label-dp job: its promises, its errors, and what the coordinator never gets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from rich.console import Console

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report.content import content_of_party
from blindfit.coordinator.report.sections import Section, statement_text
from blindfit.coordinator.systems import kind_of
from blindfit.coordinator.terminal.json_output import Found
from blindfit.parties.label_dp.report import MOST_DRAWN_ROWS
from tests.report.drawn_once import every_plot_drawn_once

TOPICS = [
    "unit", "neighbours", "epsilon", "delta", "mechanism", "noise", "composition",
    "learnt-active", "learnt-measurement", "learnt-coordinator", "learnt-key-node", "collusion", "not-covered",
]  # fmt: skip
LAPLACE = {"mechanism": "laplace", "regressor": "linear"}


@pytest.fixture(autouse=True)
def _plots() -> Iterator[None]:
    with every_plot_drawn_once():
        yield


def statement(written) -> dict[str, str]:
    return {s["topic"]: " ".join(s["sentences"]) for s in written.content["privacy_statement"]}


def shown(written) -> str:
    console = Console(width=160, record=True)
    Found({}, written.summarise()).show(console)
    return console.export_text()


def test_the_statement_has_every_topic(made_up):
    said = statement(made_up(**LAPLACE).written())
    assert list(said) == TOPICS
    assert "epsilon = 4." in said["epsilon"]
    assert said["delta"].startswith("delta = 0:")
    assert "laplace, on each label by itself" in said["mechanism"]
    assert "[0, 10]" in said["mechanism"]
    assert "A noisy label of each of its 3,000 rows, held-out ones included." in said["learnt-active"]
    assert "The ids of the 3,000 rows, and no feature." in said["learnt-measurement"]


def test_no_label_is_left_to_fit(made_up):
    made = made_up(**LAPLACE)
    made.withheld = 2400  # all that are not held out
    said = "the labels of all training rows are withheld: each person has released others already"
    with pytest.raises(DataError, match=said):
        made.report()


def test_it_says_what_the_prior_cost(made_up):
    said = statement(made_up(mechanism="rp-with-prior", epsilon_prior=1.0).written())["mechanism"]
    assert "Epsilon 1 of each row paid for an estimate" in said
    assert "(laplace)" in said


def test_it_says_whether_the_bias_was_removed(made_up):
    additive = statement(made_up(**LAPLACE).written())["noise"]
    removed = statement(made_up(mechanism="rp-with-prior").written())["noise"]
    kept = statement(made_up(mechanism="rp-with-prior", debias=False).written())["noise"]
    assert "The mean of a released label is the clipped and rounded label" in additive
    assert "Its bias was removed" in removed
    assert "was not removed" in kept


def test_what_the_terminal_says_of_errors(made_up):
    assert "below the error of a constant, estimated from 600 noisy labels" in shown(made_up(**LAPLACE).written())
    biased = shown(made_up(mechanism="rr-on-bins", debias=False).written())
    assert "against noisy labels, with their bias and noise" in biased
    assert "The bias of rr-on-bins was not removed" in biased
    known = made_up(**LAPLACE)
    known.true = {"rows": 50, "mse": 0.25, "mae": 0.4, "r2": 0.9}
    assert "mean squared 0.25, on 50 true labels" in shown(known.written())


def test_the_gain_is_near_the_true_one(made_up):
    found = made_up(**LAPLACE).report().evaluation["released"]
    # The labels' variance is 3.5, of which the model leaves 0.25.
    assert abs(found["gain"] - 3.25) < 4 * found["gain_error"] + 0.5
    assert found["gain_error"] < 1


def test_the_page_shows_laws_fit_and_evaluation(made_up):
    page = made_up(**LAPLACE).written().html_path.read_text("utf-8")
    for title in ("Law of the mechanism", "Noisy labels against fitted", "Weights", "Evaluation", "Privacy statement"):
        assert f">{title}<" in page
    assert "no true label was used" in page
    trees = made_up(mechanism="staircase", regressor="decision-tree").written().html_path.read_text("utf-8")
    assert ">Weights<" not in trees
    assert "No model of this session" not in trees


def test_a_page_on_true_labels_says_so(made_up):
    known = made_up(**LAPLACE, evaluate_on="study")
    known.true = {"rows": 50, "mse": 0.25, "mae": 0.4, "r2": 0.9}
    written = known.written()
    assert "on 50 rows of shop with true labels, which are not in the training" in written.html_path.read_text("utf-8")
    assert "Its own true labels" in statement(written)["learnt-active"]


def test_the_coordinator_gets_no_label_weight_or_error(made_up):
    written = made_up(**LAPLACE).written(here=False)
    told = json.dumps(written.content)
    for word in ("mse", "gain", "laws", "fitted", "weights", "intercept", "receipt"):
        assert f'"{word}' not in told
    assert "This page holds no weight and no error" in written.html_path.read_text("utf-8")
    assert "kept by shop" in shown(written)


def test_the_summary_is_what_a_report_is_made_of(made_up):
    shown = made_up(**LAPLACE).report().fields_for_coordinator()
    parts = {name.split(".")[0] for name in shown}
    assert parts == {"rows", "privacy", "fit", "timing", "bytes_sent", "messages_sent"}


def test_a_party_makes_a_page_of_its_own(made_up):
    made = made_up(**LAPLACE)
    made.report()
    content = content_of_party(kind_of, made.out / "shop")
    assert content["parties"]["meter"]["role"] == "measurement"
    sections = [Section(**section) for section in content["privacy_statement"]]
    assert "What meter (measurement server) learnt" in statement_text(sections)


def test_rows_without_a_label_are_told(made_up):
    made = made_up(**LAPLACE)
    made.withheld = 900
    written = made.written()
    assert made.report().rows.to_dict() == {
        "sent": 3000, "trained": 1500, "held_out": 600, "withheld": 900, "features": 3, "dropped_columns": [],
    }  # fmt: skip
    assert "900 rows of 3,000 (30%) got no label" in written.html_path.read_text("utf-8")


def test_few_points_are_drawn(made_up):
    drawn = made_up(**LAPLACE).report().plots["held_out"]
    assert len(drawn["fitted"]) == len(drawn["noisy"]) == MOST_DRAWN_ROWS


def test_noise_that_drowns_a_model_is_a_caution(made_up):
    made = made_up(**LAPLACE)
    made.epsilon = 0.01
    assert "predictions would be off by about" in made.written().html_path.read_text("utf-8")


def test_a_figure_that_is_missing_is_named(made_up):
    made = made_up(**LAPLACE)
    made.report()
    path = made.out / "shop" / "report.json"
    report = json.loads(path.read_text())
    del report["evaluation"]["released"]["rows"]
    path.write_text(json.dumps(report))
    with pytest.raises(DataError, match=r"the report of shop: evaluation.released.rows is missing"):
        content_of_party(kind_of, made.out / "shop")
