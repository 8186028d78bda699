"""A dataset that grows: a snapshot, a release and a warm start for each cadence, and their total cost."""

from __future__ import annotations

import json
import re

import pytest

from blindfit.parties.training.public_model import load_pretrained
from tests.world import World
from tests.world.measured import write_rows

EPSILON = "privacy.epsilon=0.5"
LAST_COUNTS = "walr.l2=1e4"


def model(project: World, cadence: int) -> dict:
    return json.loads(project.path(f"out{cadence}/shop/model.json").read_text())


def run(project: World, cadence: int, *arguments: str) -> None:
    done = project.blindfit("run", "job.toml", "--out", f"out{cadence}", "--set", EPSILON, *arguments)
    assert done.returncode == 0, done.stderr


def next_month(project: World, n_rows: int) -> None:
    write_rows(project.root, n_rows, seed=n_rows)
    for file, dataset in (("shop.toml", "rows"), ("meter.toml", "labels")):
        assert project.blindfit("snapshot", file, dataset).returncode == 0


def test_three_cadences(project: World) -> None:
    project.edit("meter.toml", "epsilon = 2.0", "epsilon = 4.0")
    planned = project.blindfit(
        "plan", "job.toml", "--set", EPSILON, "--epsilon", "0.5", "--cadences", "3", "--draws", "2", "--out", "plan"
    )
    assert planned.returncode == 0, planned.stderr
    assert "3 releases" in planned.stdout
    (row,) = json.loads(project.path("plan/plan.json").read_text())["epsilons"]
    run(project, 1)
    for cadence, n_rows in ((2, 1800), (3, 2100)):
        next_month(project, n_rows)
        run(project, cadence, "--set", f"walr.init=out{cadence - 1}/shop/model.json")
    report = json.loads(project.path("out3/shop/report.json").read_text())["privacy"]
    assert report["releases"] == 3
    assert report["spent_epsilon"] == pytest.approx(row["epsilon_of_cadences"], rel=1e-6)
    ledger = project.blindfit("ledger", "meter.toml").stdout
    assert ledger.count("noisy sum") == 3


def test_a_fit_shrinks_towards_the_last_model(project: World) -> None:
    """With l2 that outweighs the data it is the last model, in the scale of the new rows."""
    project.edit("meter.toml", "epsilon = 2.0", "epsilon = 4.0")
    run(project, 1)
    next_month(project, 1800)
    run(project, 2, "--set", "walr.init=out1/shop/model.json", "--set", LAST_COUNTS)
    run(project, 3, "--set", LAST_COUNTS)
    raw = {}
    for cadence in (1, 2, 3):
        found = model(project, cadence)
        raw[cadence] = [weight / found["standardiser"]["std"][name] for name, weight in found["weights"].items()]
    assert raw[2] == pytest.approx(raw[1], rel=1e-2)
    assert max(map(abs, raw[3])) < 0.01


def test_what_is_not_a_model_of_these_columns(project: World) -> None:
    run(project, 1)
    stored = project.path("out1/shop/model.json").read_text()
    project.path("other.json").write_text(re.sub(r'"f(\d)"', r'"g\1"', stored))
    done = project.blindfit("run", "job.toml", "--out", "x", "--set", "walr.init=other.json")
    assert done.returncode != 0
    assert "it lacks f0, f1, f2, f3; only it has g0" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_it_is_no_public_model_where_features_are_private(project: World) -> None:
    """A dp-lr job protects whole rows: only pretrained.json, which comes from public rows, may be its start."""
    run(project, 1)
    path = project.path("out1/shop/model.json")
    with pytest.raises(Exception, match="format"):
        load_pretrained(path)
