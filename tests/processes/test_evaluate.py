"""`blindfit evaluate`: how good a model is, by one more noisy sum of labels that the active party never sees."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.done_once import Kept, folder
from tests.world import World
from tests.world.measured import shop_and_meter

EVALUATE = """
name = "tried"
protocol = "evaluate"
[parties.shop]
role = "active"
config = "shop.toml"
dataset = "rows"
[parties.meter]
role = "measurement"
config = "meter.toml"
dataset = "labels"
[privacy]
epsilon = 1.0
"""


@pytest.fixture(scope="module")
def first_training(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    project = shop_and_meter(folder(tmp_path_factory))
    for name in ("shop", "meter"):
        project.edit(f"{name}.toml", "[policy]", '[policy]\nsystems = ["walr", "evaluate"]')
    project.edit("meter.toml", "epsilon = 2.0", "epsilon = 4.0")
    project.path("evaluate.toml").write_text(EVALUATE)
    assert project.blindfit("run", "job.toml", "--out", "out").returncode == 0
    return Kept(project)


@pytest.fixture
def trained(first_training: Kept) -> Iterator[World]:
    with first_training.anew() as project:
        yield project


def evaluated(project: World, *arguments: str) -> dict:
    done = project.blindfit("evaluate", "evaluate.toml", "--model", "out", "--out", "tried", *arguments)
    assert done.returncode == 0, done.stderr
    return {"said": done.stdout, **json.loads(project.path("tried/report.json").read_text())}


def true_figures(project: World, only: set[str] | None) -> dict[str, float]:
    with project.path("labels.csv").open() as file:
        labels = {row["id"]: int(row["label"]) for row in csv.DictReader(file)}
    chosen = [label for row, label in labels.items() if only is None or row in only]
    return {"positive_rate": sum(chosen) / len(chosen), "rows": len(chosen)}


def held_out(project: World) -> set[str]:
    with project.path("out/shop/held_out_scores.csv").open() as file:
        return {row["id"] for row in csv.DictReader(file)}


def test_held_out_rows(trained: World) -> None:
    report = evaluated(trained, "--network", "1ms")
    network = "simulated: 1 ms one way (2 ms there and back)"
    assert report["network"] == network
    assert f"network  {network}" in report["said"]
    true = true_figures(trained, held_out(trained))
    assert report["rows"]["counted"] == true["rows"]
    rate = report["figures"]["positive_rate"]
    reach = (rate["high"] - rate["low"]) / 2
    assert rate["value"] == pytest.approx(true["positive_rate"], abs=3 * reach)  # 6 deviations
    assert report["figures"].keys() >= {"log_loss", "accuracy", "auc", "ks", "mean_prediction"}
    assert "Released: shop learnt one noisy sum" in report["said"]
    page = trained.path("tried/report.html").read_text()
    assert "Released figures" in page
    assert "AUC of score bins" in page
    assert network in page


def test_all_rows_of_the_dataset_and_fewer_figures(trained: World) -> None:
    report = evaluated(trained, "--set", "evaluate.rows=all", "--set", 'evaluate.figures=["calibration"]')
    true = true_figures(trained, None)
    assert report["rows"]["counted"] == true["rows"]
    assert report["figures"].keys() == {"positive_rate", "mean_prediction"}
    reach = report["figures"]["positive_rate"]["high"] - report["figures"]["positive_rate"]["value"]
    assert report["figures"]["positive_rate"]["value"] == pytest.approx(true["positive_rate"], abs=3 * reach)


def test_it_is_charged_once_and_the_same_question_again_costs_nothing(trained: World) -> None:
    first, second = evaluated(trained), evaluated(trained)
    assert first["privacy"]["spent_epsilon"] > 1.3  # two releases at epsilon 1
    assert second["privacy"]["spent_epsilon"] == first["privacy"]["spent_epsilon"]
    assert second["figures"] == first["figures"]
    ledger = trained.blindfit("ledger", "meter.toml").stdout
    assert " 2 " in ledger
    third = evaluated(trained, "--set", "privacy.release=again")
    assert third["privacy"]["spent_epsilon"] > first["privacy"]["spent_epsilon"]
    assert third["figures"] != first["figures"]


def test_past_the_budget_no_row_is_sent(trained: World) -> None:
    done = trained.blindfit(
        "evaluate", "evaluate.toml", "--model", "out", "--out", "x", "--set", "privacy.epsilon=2.0",
        "--set", "privacy.release=a",
    )  # fmt: skip
    assert done.returncode == 0
    again = ("--set", "privacy.epsilon=2.0", "--set", "privacy.release=b")
    while done.returncode == 0:
        again = (*again[:-1], f"{again[-1]}b")
        done = trained.blindfit("evaluate", "evaluate.toml", "--model", "out", "--out", "x", *again)
    assert "would exceed the budget" in done.stderr or "budget" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--session", "walr-none"], "it has no model.json of that session"),
        (["--session", "a", "--model", "out"], "--session and --model both name a training"),
        (["--model", "nowhere"], "nowhere/report.json cannot be read"),
        (["--model", "out", "--set", "evaluate.figures=[]"], "one at least"),
        (["--model", "out", "--set", 'evaluate.figures=["auc","auc"]'], "each figure once"),
        (["--model", "out", "--set", "evaluate.score_bound=0"], "score_bound must be"),
        (["--model", "out", "--set", "evaluate.bins=1"], "evaluate.bins"),
        (["--model", "out", "--set", 'evaluate.figures=["accuracy"]', "--set", "evaluate.bins=5"], "bins does nothing"),
        ([], "evaluate.session is missing"),
    ],
)
def test_bad_input_is_one_line(trained: World, arguments: list[str], said: str) -> None:
    done = trained.blindfit("evaluate", "evaluate.toml", "--out", "tried", *arguments)
    assert done.returncode != 0
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert not trained.path("tried/report.json").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,probability\nu1,1.5\n", "row 1: the probability is not between 0 and 1"),
        ("id,probability\nu1,nan\n", "row 1: the probability is not between 0 and 1"),
        ("id,weight\nu1,0.5\n", "is not a table of id and probability"),
        ("", "is not a table of id and probability"),
        ("id,probability\n", "there is no row to evaluate on"),
    ],
)
def test_scores_that_are_none(trained: World, content: str, said: str) -> None:
    """The launcher moves the file there, so the file is written in the place of the training's own."""
    path: Path = trained.path("out/shop/held_out_scores.csv")
    path.write_text(content)
    done = trained.blindfit("evaluate", "evaluate.toml", "--model", "out", "--out", "tried")
    assert done.returncode != 0
    assert said in done.stderr, done.stderr


def test_a_model_that_a_later_job_wrote_over(trained: World) -> None:
    """The file is there, and has another model."""
    first = json.loads(trained.path("out/report.json").read_text())["session"]
    assert trained.blindfit("run", "job.toml", "--out", "out", "--set", "privacy.epsilon=0.5").returncode == 0
    done = trained.blindfit("evaluate", "evaluate.toml", "--session", first, "--out", "tried")
    assert "a later job may have written over it" in done.stderr


def test_at_a_large_epsilon_the_grid_is_finer(trained: World) -> None:
    """The server refuses it on the 16 bits of smaller epsilons, and so does a check if the job asks for them."""
    trained.edit("meter.toml", "epsilon = 4.0", "epsilon = 20.0")
    trained.edit("meter.toml", "max_epsilon = 2", "max_epsilon = 20")
    trained.edit("shop.toml", "max_epsilon = 5", "max_epsilon = 20")
    wide = ("--set", "privacy.epsilon=6")
    report = evaluated(trained, *wide)
    rate = report["figures"]["positive_rate"]
    true = true_figures(trained, held_out(trained))["positive_rate"]
    assert rate["value"] == pytest.approx(true, abs=3 * (rate["high"] - rate["value"]))  # 6 deviations
    model = ("--set", f"evaluate.session={json.loads(trained.path('out/report.json').read_text())['session']}")
    fine = trained.blindfit("check", "evaluate.toml", *model, *wide)
    assert fine.returncode == 0, fine.stdout
    coarse = trained.blindfit("check", "evaluate.toml", *model, *wide, "--set", "evaluate.frac_bits=16")
    assert coarse.returncode != 0
    assert "the noise is not 2^16 grid steps wide" in " ".join(coarse.stdout.split())


def test_the_servers_policy_decides(trained: World) -> None:
    trained.edit("meter.toml", '["walr", "evaluate"]', '["walr"]')
    done = trained.blindfit("evaluate", "evaluate.toml", "--model", "out", "--out", "tried")
    assert done.returncode != 0
    assert "evaluate" in done.stderr
