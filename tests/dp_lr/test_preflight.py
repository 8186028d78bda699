"""The pre-flight of a dp-lr job."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.jobs import check as preflight
from tests.dp_lr.conftest import N_ROWS, NAMES, POLICY, Clinic, held_out_of, job

KNOTS = [40.0, 50.0, 60.0]


def found(clinic: Clinic, **changes: Any) -> dict[str, list[str]]:
    """Return the findings by level."""
    levels: dict[str, list[str]] = {"ok": [], "note": [], "warning": [], "refuses": []}
    for finding in preflight.check(read_job(job(**changes), folder=clinic.root)):
        levels[finding.level].append(f"{finding.about}: {finding.text}")
    return levels


def said(findings: list[str], text: str) -> bool:
    return any(text in finding for finding in findings)


def test_a_good_job(clinic: Clinic) -> None:
    levels = found(clinic)
    assert not levels["refuses"]
    assert not levels["warning"]
    assert said(levels["note"], "budget of patients: epsilon 0 of 4 is spent")
    assert said(levels["note"], "the model is (epsilon 2, delta 1e-05)-DP of whole rows")
    assert said(levels["ok"], "descent starts at a fit to public rows; features are standardised by public rows")
    assert said(levels["ok"], "478 rows to train on, 122 held out, 3 columns")
    assert said(levels["ok"], "noise: standard deviation of")


def test_the_ratio_is_what_a_run_of_such_gradients_has(clinic: Clinic) -> None:
    """Gradients of norm C, all in one direction, against the noise that the run would draw."""
    asked = read_job(job())
    privacy, generator = asked.parameters.run_privacy, np.random.default_rng(1)
    std = privacy.noise_multiplier() * privacy.sensitivity  # C = 1
    noise = [np.linalg.norm(generator.normal(0, std, (20, 4)).sum(axis=0)) for _ in range(4000)]
    assert asked.parameters.run_privacy.signal_to_noise(N_ROWS, 4) == pytest.approx(
        20 * N_ROWS / np.sqrt(np.mean(np.square(noise))), rel=0.03
    )


def test_noise_that_drowns_the_rows(clinic: Clinic) -> None:
    levels = found(clinic, privacy={"epsilon": 0.05})
    assert said(levels["warning"], "the model will be hardly more than its start")


def test_features_as_they_were_read(clinic: Clinic) -> None:
    assert said(found(clinic, dp_lr={})["warning"], "features are as they were read: set dp_lr.feature_bounds")


def test_no_row_to_train_on_where_their_number_is_private(clinic: Clinic) -> None:
    """The job fits no row either: its noise is that of the public number."""
    private = {"neighbours": "add-or-remove", "public_rows": 10**9, "feature_bounds": ["*:0:200"]}
    levels = found(clinic, dp_lr=private, split=clinic.hold_out_all())
    assert not levels["refuses"]
    assert said(levels["ok"], f"0 rows to train on, {held_out_of(0.5).sum()} held out")
    assert said(levels["warning"], "signal to noise is at most 0")


def test_each_iteration_is_composed(clinic: Clinic) -> None:
    levels = found(clinic, dp_lr={"budget": "iteration", "iterations": 4, "public_dataset": "archive"})
    assert said(levels["note"], "epsilon 2 of each of 4 iterations composes to 4.")
    assert said(levels["refuses"], "the budget of patients would be passed")


def test_a_spent_budget_is_told(clinic: Clinic) -> None:
    clinic.train(privacy={"epsilon": 4.0})
    assert said(found(clinic)["refuses"], "epsilon 4 of 4 is spent, and a release of epsilon 2 does not fit")
    again = found(clinic, privacy={"epsilon": 4.0})
    assert not again["refuses"]
    assert said(again["note"], "epsilon 4 of 4 is spent")
    assert said(again["ok"], "had this job before: it gets that model again, and nothing is charged")
    other = found(clinic, privacy={"epsilon": 4.0}, split={"test_fraction": 0.25})
    assert said(other["refuses"], "epsilon 4 of 4 is spent, and a release of epsilon 4 does not fit")


@pytest.mark.parametrize(
    ("settings", "changes", "expected"),
    [
        (
            {"policy": {"systems": ["dp-lr"], "min_rows": N_ROWS, "max_epsilon": 5.0}},
            {},
            "478 rows are fewer than the least",
        ),
        ({"policy": {"systems": ["walr"]}}, {}, "dp-lr is not a system in which it takes part"),
        ({}, {"privacy": {"epsilon": 5.5}}, "5.5 is more than its max_epsilon = 5"),
        ({}, {"dp_lr": {"public_dataset": "attic"}}, "clinic has no dataset named attic"),
        ({}, {"dp_lr": {"init": "none.json"}}, "none.json cannot be read: No such file"),
    ],
)
def test_what_would_be_refused(
    clinic: Clinic, settings: dict[str, Any], changes: dict[str, Any], expected: str
) -> None:
    for option, value in settings.items():
        clinic.set(option, value)
    assert said(found(clinic, **changes)["refuses"], expected)


def test_least_rows_is_for_who_trains_alone(clinic: Clinic) -> None:
    clinic.set("policy", {"systems": ["taylor"], "min_rows": 200})
    with pytest.raises(ConfigError, match=r"without the protocol dp-lr, policy\.min_rows does nothing"):
        _ = clinic.settings("clinic")
    clinic.set("policy", POLICY)
    assert clinic.settings("clinic").policy.min_rows == 100


def test_derived_columns_are_named_and_computed_alike_of_public_rows(clinic: Clinic) -> None:
    column = NAMES[0]
    derive = {
        "bin": {"by": "bins", "of": column, "edges": [50.0]},
        "curve": {"by": "spline", "of": column, "knots": KNOTS},
    }
    for name in ("patients", "archive"):
        clinic.set(f"datasets.{name}.derive", derive)
    levels = found(clinic)
    assert not levels["refuses"]
    assert said(levels["ok"], f"bin: 1 column by bins of {column}")
    assert said(levels["ok"], f"curve: 2 columns by spline of {column}")
    assert said(levels["ok"], "478 rows to train on, 122 held out, 6 columns")
    clinic.train()
    model = json.loads(clinic.output("s1", "model.json").read_text())
    assert {"bin=2", "curve=1", "curve=2"} < set(model["scale"]["columns"])
    assert [recipe["name"] for recipe in model["scale"]["table"]["recipes"]] == ["bin", "curve"]
    assert model["scale"]["table"]["recipes"][1]["knots"] == KNOTS
    clinic.set("datasets.archive.derive", {**derive, "bin": {"by": "bins", "of": column, "edges": [51.0]}})
    assert said(found(clinic)["refuses"], "datasets.archive and patients do not compute bin in the same way")
