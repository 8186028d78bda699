"""Calibration through the real job: the parties' files, what predictions use, and jobs without a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.session import JobSession
from tests.figures import check_classes, check_values, columns_of
from tests.world import World
from tests.world.vertical import bank_and_shops, with_numbers

HALF = "split.test_fraction=0.5"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, JobSession]:
    project = bank_and_shops(tmp_path_factory.mktemp("project"), rows=300, epochs=2)
    return project, project.run(HALF)


def test_slope_and_offset_are_the_active_partys_and_lower_the_loss(trained: tuple[World, JobSession]) -> None:
    project, session = trained
    model, report = (project.written("bank", session.id, file) for file in ("model.json", "report.json"))
    figures = report["evaluation"]
    assert model["slope"] > 1.2  # the quadratic loss makes log odds too small
    assert (figures["slope"], figures["offset"]) == (model["slope"], model["offset"])
    assert figures["log_loss"] < figures["log_loss_before"]
    for shop in ("shop-a", "shop-b"):
        assert not {"slope", "offset"} & project.written(shop, session.id, "model.json").keys()
        assert project.written(shop, session.id, "report.json")["evaluation"] is None


def test_predictions_and_test_scores_use_them(trained: tuple[World, JobSession]) -> None:
    project, session = trained
    model = project.written("bank", session.id, "model.json")
    predicted = project.run(f"predict.session={session.id}", job="predict.toml")
    table = pyarrow.csv.read_csv(project.root / "state/bank/predictions" / predicted.id / "scores.csv")
    odds = table["score"].to_numpy() * model["slope"] + model["offset"]
    assert np.allclose(table["probability"].to_numpy(), 1 / (1 + np.exp(-odds)), rtol=1e-12)
    tested = pyarrow.csv.read_csv(project.root / "state/bank/models" / session.id / "test_scores.csv")
    by_id = dict(zip(table["id"].to_pylist(), table["probability"].to_pylist(), strict=True))
    of_test = [by_id[i] for i in tested["id"].to_pylist()]
    assert np.allclose(tested["probability"].to_numpy(), of_test, rtol=1e-12)


def check_figures(project: World, session: str) -> dict[str, Any]:
    """Check the report against the file next to it, and return that file's columns."""
    columns = columns_of(project.root / "state/bank/models" / session / "test_scores.csv")
    check = check_values if "prediction" in columns else check_classes
    check(columns, project.written("bank", session, "report.json")["evaluation"])
    return columns


def test_every_figure_follows_from_the_file_next_to_the_report(trained: tuple[World, JobSession]) -> None:
    columns = check_figures(trained[0], trained[1].id)
    assert list(columns) == ["id", "label", "score", "probability", "probability_out_of_fold"]
    assert np.abs(columns["probability"] - columns["probability_out_of_fold"]).max() > 1e-3


def test_off_means_off(trained: tuple[World, JobSession]) -> None:
    project, _ = trained
    plain = project.run(HALF, "taylor.calibrate=false", "taylor.epochs=1")
    model = project.written("bank", plain.id, "model.json")
    assert (model["slope"], model["offset"]) == (1.0, 0.0)
    assert "slope" not in project.written("bank", plain.id, "report.json")["evaluation"]
    assert list(check_figures(project, plain.id)) == ["id", "label", "score", "probability"]


def test_figures_of_numbers_follow_from_their_file_too(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path, rows=120, epochs=1)
    with_numbers(project, np.random.default_rng(2).normal(50, 10, 120).round(3))
    session = project.run(HALF, 'taylor.model="linear"', 'taylor.unsafe=["label-bits"]')
    assert list(check_figures(project, session.id)) == ["id", "label", "prediction"]


def test_the_summary_tells_the_coordinator_no_more_than_the_figures(trained: tuple[World, JobSession]) -> None:
    _, session = trained
    told = {name for name in session.summaries["bank"] if name.startswith("evaluation.")}
    assert {"evaluation.slope", "evaluation.offset", "evaluation.log_loss_before"} <= told
    assert not any("slope" in name for shop in ("shop-a", "shop-b") for name in session.summaries[shop])


def test_under_label_dp_and_for_numbers_nothing_is_calibrated(trained: tuple[World, JobSession]) -> None:
    project, _ = trained
    assert not load_job(project.root / "job.toml", ["privacy.epsilon=1", "privacy.delta=1e-5"]).parameters.calibrates
    assert not load_job(project.root / "job.toml", ['taylor.model="linear"']).parameters.calibrates
    assert load_job(project.root / "job.toml").parameters.calibrates


def test_after_linkage_it_is_fitted_to_sums_over_the_hold_out_rows(trained: tuple[World, JobSession]) -> None:
    project, _ = trained
    linked = project.run("taylor.validation_fraction=0.5", job="linkage.toml")
    model = project.written("bank", linked.id, "model.json")
    assert (model["slope"], model["offset"]) != (1.0, 0.0)  # the slope fitted to so few rows is between 4 and 14
    assert not {"slope", "offset"} & project.written("shop-a", linked.id, "model.json").keys()
    report = project.written("bank", linked.id, "report.json")
    assert report["evaluation"] is None
    assert report["calibration"] == {"slope": model["slope"], "offset": model["offset"]}
    assert "calibration" not in project.written("shop-a", linked.id, "report.json")
    told = {name for name in linked.summaries["notary"] if "slope" in name or "offset" in name}
    assert not told
    same_rows = ("taylor.validation_fraction=0.5", "taylor.epochs=1")
    plain = project.run("taylor.calibrate=false", *same_rows, job="linkage.toml")
    model = project.written("bank", plain.id, "model.json")
    assert (model["slope"], model["offset"]) == (1.0, 0.0)
