"""A job that leaves out `max_rows_per_person` gets what the server's dataset declares: forecasts must know it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.statistics.walr.evaluation_bins import Z_95
from blindfit.coordinator.cli.main import app
from tests.export.trained import shop_and_meter, train

EVALUATION = """
name = "e"
protocol = "evaluate"
parties.shop = { role = "active", config = "shop.toml", dataset = "rows" }
parties.meter = { role = "measurement", config = "meter.toml", dataset = "labels" }
privacy = { epsilon = 1.0, delta = 1e-5 }
evaluate.session = "an-earlier-one"
"""


def said(*words: str) -> str:
    return " ".join(CliRunner().invoke(app, list(words)).output.split())


def planned(root: Path) -> tuple[float, str]:
    """Return the noise of the mean at the job's epsilon, and the printed text."""
    out = str(root / "plan")
    text = said("plan", str(root / "job.toml"), "--draws", "2", "--base-rate", "0.5", "--out", out)
    plan = json.loads((root / "plan/plan.json").read_text())
    (noise,) = (one["noise_std"] for one in plan["epsilons"] if one["epsilon"] == 1.0)
    return noise, text


def test_plan_and_check_say_the_noise_of_persons(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path, person=True)
    release = json.loads((train(world) / "release.json").read_bytes())["parts"]["servers"][0]["release"]
    asked = release["asked"]
    assert asked["max_rows_per_person"] == 2
    drawn = release["answered"]["noise_std"] * 2.0 ** -asked["frac_bits"] / asked["n_rows"]
    noise, text = planned(tmp_path)
    assert noise == pytest.approx(drawn, rel=1e-3)
    assert "the labels of a person's 2 rows, delta 1e-05" in text
    assert f"standard deviation {drawn:.2g} on each coordinate of the mean" in said("check", str(tmp_path / "job.toml"))


def test_where_the_servers_file_is_elsewhere_what_is_assumed_is_said(tmp_path: Path) -> None:
    shop_and_meter(tmp_path, person=True)
    known, _ = planned(tmp_path)
    (tmp_path / "meter.toml").unlink()
    noise, text = planned(tmp_path)
    assert noise == pytest.approx(known / 2)
    assert "a label, if meter counts no more than one row of a person, delta 1e-05" in text


def test_an_evaluation_of_persons_is_told_as_widely(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path, person=True)
    for party in ("shop", "meter"):
        world.set("policy.systems", ["walr", "evaluate"], party)
    (tmp_path / "evaluate.toml").write_text(EVALUATION)
    text = said("check", str(tmp_path / "evaluate.toml"))
    _, _, figures = text.partition("95% chance (")
    noises = 2 * gaussian.noise_multiplier("analytic", 1.0, 1e-5) * int(figures.split()[0]) ** 0.5
    assert f"known to within {Z_95 * noises:.0f} / n" in text
