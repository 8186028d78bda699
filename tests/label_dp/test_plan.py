"""The plan finds the mechanism that loses least, from its law and the shape of the rows, without a label."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.label_dp.conftest import N_ROWS
from tests.world import World


def planned(project: World, *arguments: str) -> dict:
    done = project.blindfit("plan", "job.toml", "--out", "plan", "--epsilon", "2", *arguments)
    assert done.returncode == 0, done.stderr
    return {"said": done.stdout, **json.loads(project.path("plan/plan.json").read_text())}


def test_additive_noise_has_the_error_of_its_law(project: World) -> None:
    """Laplace: 2 / epsilon^2 of the squared range, of n labels in k weights."""
    plan = planned(project, "--epsilon", "1")
    shrink = (plan["weights"] / plan["rows"]) ** 0.5
    assert plan["rows"] <= N_ROWS
    for epsilon in ("1", "2"):
        assert plan["errors"]["laplace"][epsilon] == pytest.approx(2**0.5 / float(epsilon) * shrink, rel=1e-3)


def test_the_best_is_named_with_what_to_set(project: World) -> None:
    plan = planned(project, "--set", "label_dp.mechanism=laplace")
    own = min(plan["errors"]["laplace"], key=lambda name: abs(float(name) - 4))
    least = min((name for name in plan["errors"]), key=lambda name: plan["errors"][name][own] or np.inf)
    assert plan["best"][own] == least != "laplace"
    assert f"--set label_dp.mechanism={least}" in plan["said"]
    assert "as in the job, loses least" in planned(project, "--set", f"label_dp.mechanism={least}")["said"]


def test_no_label_is_looked_at(project: World) -> None:
    project.path("labels.csv").unlink()
    assert planned(project)["best"]


def test_what_only_walr_takes_is_refused(project: World) -> None:
    done = project.blindfit("plan", "job.toml", "--base-rate", "0.5")
    assert done.returncode == 2
    assert "--base-rate does nothing in the plan of a label-dp job" in done.stderr
