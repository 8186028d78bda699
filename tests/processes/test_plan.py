"""`blindfit plan`: only from features, before anything is spent."""

from __future__ import annotations

import json

import pytest

from tests.world import World

FEW = ("--draws", "2", "--out", "plan")  # the smallest allowed number; their seed is the job's


def planned(project: World, *arguments: str, pictures: bool = False) -> dict:
    done = project.blindfit("plan", "job.toml", *FEW, *arguments, pictures=pictures)
    assert done.returncode == 0, done.stderr
    return {"said": done.stdout, **json.loads(project.path("plan/plan.json").read_text())}


def test_a_plan_needs_no_label_and_leaves_nothing(project: World) -> None:
    """A plan needs neither a ledger nor the server's file."""
    project.path("labels.csv").unlink()
    project.path("meter.toml").unlink()
    words = ("--base-rate", "0.4", "--strength", "1.5", "--epsilon", "0.5", "--epsilon", "4")
    plan = planned(project, *words, pictures=True)
    assert [row["epsilon"] for row in plan["epsilons"]] == [0.5, 1.0, 4.0]
    assert plan["base_rate"] == 0.4
    assert plan["without_noise"] < plan["epsilons"][-1]["loss"] < plan["epsilons"][0]["loss"] < 1.1
    assert "0.4 of the labels positive, scores of standard deviation 1.5" in plan["said"]
    assert not project.path("state").exists()
    page = project.path("plan/plan.html").read_text()
    assert "<path" in page  # a picture, drawn
    assert "nothing was spent" in page


def test_two_worlds_of_labels_have_one_plan(project: World) -> None:
    first = planned(project)
    lines = project.path("labels.csv").read_text().splitlines()
    flipped = [f"{line.split(',')[0]},{1 - int(line.split(',')[1])}" for line in lines[1:]]
    project.path("labels.csv").write_text("\n".join([lines[0], *flipped]) + "\n")
    assert planned(project) == first


def test_the_price_of_a_loss_and_what_was_guessed(project: World) -> None:
    plan = planned(project, "--wanted", "0.99")
    assert f"expected from epsilon {plan['min_epsilon']:.4g}." in plan["said"]
    assert "these values are defaults: give --base-rate and --strength" in plan["said"]
    none = planned(project, "--wanted", "0.01")
    assert none["min_epsilon"] is None
    assert "No epsilon up to 8 is expected to reach a loss of 0.01" in none["said"]


def test_no_gain_is_kept_where_there_is_none(project: World) -> None:
    """All labels are negative, so even without noise the loss is above that of a constant."""
    plan = planned(project, "--base-rate", "1e-9")
    assert plan["without_noise"] > 1
    table, _, _ = plan["said"].partition("Other settings")
    assert "gain kept" in table
    assert "%" not in table.partition("gain kept")[2]
    assert "100%" in planned(project)["said"]


def test_the_last_model_is_assumed(project: World) -> None:
    """The released model is known; its rate and strength are those of the labels."""
    assert project.blindfit("run", "job.toml", "--out", "out").returncode == 0
    plan = planned(project, "--model", "out/shop/model.json")
    assert plan["assumes_weights"]
    assert plan["base_rate"] == pytest.approx(0.5, abs=0.1)
    assert "scores from out/shop/model.json, of standard deviation 1." in plan["said"]


def test_public_weights_are_assumed_where_the_fit_shrinks_towards_them(project: World) -> None:
    assert project.blindfit("run", "job.toml", "--out", "out").returncode == 0
    model = json.loads(project.path("out/shop/model.json").read_text())
    public = {name: model[name] for name in ("standardiser", "weights", "intercept")}
    project.path("public.json").write_text(json.dumps({"format": "blindfit-pretrained-1", **public}))
    with_init = ("--set", "walr.init=public.json", "--epsilon", "0.05")
    plan = planned(project, *with_init)
    assert plan["assumes_weights"]
    assert "which is the best case" in plan["said"]
    assert plan["epsilons"][0]["loss"] < planned(project, *with_init, "--strength", "1.7")["epsilons"][0]["loss"]


def test_other_settings_that_are_better_are_said_as_options(project: World) -> None:
    plan = planned(project, "--set", "walr.l2=5.0", "--draws", "4")  # two leave it at 0.901
    assert "--set walr.l2=" in plan["said"]
    assert plan["settings"][plan["best_settings"]]["loss"] < 0.9 * plan["settings"]["as in the job"]["loss"]
    best = [word for option in plan["best_settings"].split() for word in ("--set", option)]
    assert "other settings of the fit bring no gain" in planned(project, *best)["said"]


def test_the_classic_gaussian_is_planned_where_it_holds(project: World) -> None:
    project.edit("job.toml", "epsilon = 1.0", 'epsilon = 0.5\nmechanism = "classic"')
    assert [row["epsilon"] for row in planned(project)["epsilons"]] == [0.1, 0.25, 0.5]


def test_more_rows_of_a_person_are_more_noise(project: World) -> None:
    one = planned(project)["epsilons"][0]["noise_std"]
    assert planned(project, "--set", "privacy.max_rows_per_person=3")["epsilons"][0]["noise_std"] == pytest.approx(
        3 * one
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base-rate", "1"], "the base rate must lie between 0 and 1, not 1"),
        (["--strength", "0"], "must be above 0 and at most 10, not 0"),
        (["--epsilon", "nan"], "--epsilon must be above 0, not nan"),
        (["--draws", "1"], "--draws must be 2 to 10,000, not 1"),
        (["--wanted", "-1"], "--wanted must be above 0, not -1"),
        (["--model", "rows.csv"], "rows.csv is not JSON"),
        (["--model", "none.json"], "none.json cannot be read: No such file or directory"),
        (["--model", "x.json", "--strength", "1"], "--strength does nothing with --model"),
        (["--set", "parties.shop.address=1"], "job.toml"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(project: World, arguments: list[str], said: str) -> None:
    done = project.blindfit("plan", "job.toml", "--out", "plan", *arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert not project.path("plan").exists()


def test_only_where_the_features_are(project: World) -> None:
    project.edit("job.toml", 'config = "shop.toml"\n', "")
    done = project.blindfit("plan", "job.toml")
    assert "a plan is made where the active party's features are" in done.stderr
