"""`blindfit check` of a label-dp job: possible leaks, the noise, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, LabelMechanism
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.jobs.check import Finding, check
from blindfit.coordinator.label_dp.preflight import expected_mechanism, trees_on_noise
from blindfit.parties.label_dp.settings import LabelDPSettings
from tests.label_dp.conftest import COLUMNS

GRID = LabelGrid(0.0, 10.0)


def found(project, *overrides: str) -> list[Finding]:
    return check(load_job(project.path("job.toml"), overrides))


def text(findings: list[Finding], level: str = "") -> str:
    return "\n".join(f"{f.about}: {f.text}" for f in findings if level in ("", f.level))


def test_it_says_who_learns_what(project):
    said = text(found(project), "note")
    assert "meter sees the ids of all of shop's rows, held-out ones too, and no feature" in said
    assert "shop learns a noisy label of each of its rows (staircase)" in said
    assert "(epsilon 4, delta 0) label DP" in said
    assert "budget of people: epsilon 0 of 6 is spent" in said
    assert "MB to send" in said
    assert not any(finding.refuses for finding in found(project))


@pytest.mark.parametrize("mechanism", ["laplace", "staircase", "rp-with-prior", "unbiased"])
def test_the_noise_is_told_against_the_range(project, mechanism):
    said = text(found(project, f"label_dp.mechanism={mechanism}"), "ok")
    assert "times the range [0, 10]" in said
    assert ("if labels were spread evenly" in said) == (mechanism in ("rp-with-prior", "unbiased"))
    if mechanism == "laplace":  # range / epsilon, times the root of two
        assert f"standard deviation {10 / 4 * np.sqrt(2):.3g} on each label" in said


def test_derived_columns_are_named(project):
    project.set("datasets.rows.derive", {"bin": {"by": "bins", "of": COLUMNS[0], "bins": 4}}, "shop")
    said = text(found(project), "ok")
    assert f"shop: bin: 3 columns by bins of {COLUMNS[0]}" in said
    assert f"held out, {len(COLUMNS) + 3} columns" in said


def test_noise_that_drowns_a_model_is_a_warning(project):
    assert "expect a weak model" in text(found(project, "privacy.epsilon=0.01"), "warning")
    assert "expect a weak model" not in text(found(project))


def test_a_bias_that_stays_is_a_warning(project):
    findings = found(project, "label_dp.mechanism=rr-on-bins", "label_dp.debias=false")
    assert "the bias of rr-on-bins stays" in text(findings, "warning")
    assert "bias: up to" in text(findings)


def test_too_few_rows_are_refused(project):
    project.edit("meter.toml", "min_rows = 500", "min_rows = 3001")
    assert "meter: 3000 rows are fewer than the least that this party's policy asks for, 3001" in text(
        found(project), "refuses"
    )


def test_a_spent_budget_is_told(project):
    project.edit("meter.toml", "epsilon = 6.0", "epsilon = 3.0")
    assert "the budget of people would be passed" in text(found(project), "refuses")


def test_policies_of_both_parties_are_looked_at(project):
    project.edit("shop.toml", "max_epsilon = 5.0", "max_epsilon = 3.0")
    project.edit("meter.toml", '"label-dp"', '"walr"')
    said = text(found(project), "refuses")
    assert "shop refuses the job: privacy.epsilon: 4 is more than its max_epsilon = 3" in said
    assert "meter refuses the job: protocol: label-dp is not a system in which it takes part" in said


def test_settings_that_make_no_mechanism_are_refused(project):
    wide = ("label_dp.mechanism=rp-with-prior", "label_dp.half_width=11")
    assert "half_width 11 is wider than the labels' range, 10" in text(found(project, *wide), "refuses")


def test_binary_labels_are_for_another_protocol(project):
    project.edit("meter.toml", 'label_kind = "number"\n', "")
    labels = project.path("meter.toml").read_text().splitlines(keepends=True)
    kept, skipping = [], False
    for line in labels:
        skipping = line.startswith("label_range") or (skipping and not line.startswith("]"))
        if not skipping and not (line.startswith("]") and kept and kept[-1] == 'label = "spend"\n'):
            kept.append(line)
    project.path("meter.toml").write_text("".join(kept))
    project.columns("labels", spend=[0, 1] * (len(project.table("labels")["spend"]) // 2))
    assert "labels has no labels that are numbers" in text(found(project), "refuses")


@pytest.mark.parametrize("regressor", ["decision-tree", "random-forest", "gradient-boosting"])
def test_trees_that_would_follow_the_noise(project, regressor):
    trees = (f"label_dp.regressor={regressor}", "label_dp.options={}")
    noisy = text(found(project, "privacy.epsilon=0.3", *trees), "warning")
    assert (
        f'{regressor} may be no better than a constant. Set label_dp.regressor = "ridge", or raise label_dp.options'
        in noisy
    )
    assert "no better than a constant" not in text(found(project, "privacy.epsilon=0.3"), "warning")


def test_large_leaves_stand_noise():
    forest = LabelDPSettings(mechanism="laplace", regressor="random-forest")
    assert "a tree of 64 leaves follows the noise: the mean of a leaf is off by about 8.0%" in trees_on_noise(
        forest, 10_000, 1.0
    )
    large = forest.model_copy(update={"options": {"min_samples_leaf": 5000}})
    assert trees_on_noise(large, 10_000, 1.0) == ""
    assert trees_on_noise(forest, 10_000, 0.1) == ""


def test_a_mechanism_that_is_asked_for_again_is_the_same_and_any_other_another(project):
    def expected(*overrides: str, grid: LabelGrid = GRID, rows: int = 0) -> LabelMechanism:
        return expected_mechanism(grid, load_job(project.path("job.toml"), overrides), rows)[0]

    kind = ("label_dp.mechanism=rr-on-bins", "label_dp.debias=false")
    rounded = (*kind, "label_dp.rounding=2.0")
    made = expected(*rounded)
    assert expected(*rounded) is made
    others = [
        expected(*rounded, "privacy.epsilon=2"),
        expected(*kind, "label_dp.rounding=1.0"),
        expected(*rounded, grid=LabelGrid(0.0, 20.0)),
        expected(*rounded, rows=2),
    ]
    assert all(other.parameters() != made.parameters() for other in others)
