"""A regression that is not visibly better than a constant is reported as useless, in plan and report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from blindfit.coordinator.label_dp.cautions import cautions_of
from blindfit.coordinator.label_dp.figures import Figures, figures_of
from blindfit.parties.training.quality import ValueFigures
from tests.each_case import each_case
from tests.label_dp.conftest import MadeUp

FOREST: dict[str, Any] = {"mechanism": "laplace", "regressor": "random-forest"}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """Figures of one job, which no test changes."""
    return figures_of(MadeUp(tmp_path_factory.mktemp("made_up"), FOREST).written().content)


def caution(facts: Figures, gain: float | None, error: float = 1.0) -> str:
    assert facts.on_released is not None
    changed = replace(facts, on_released=replace(facts.on_released, gain=gain, gain_error=error))
    return "".join(said for said in cautions_of(changed) if "better than a constant" in said)


def test_a_gain_within_two_errors_is_none(facts: Figures) -> None:
    said = caution(facts, 0.22, 0.27)
    assert said.startswith(
        "Nothing shows that this random-forest is better than a constant, the mean label: its gain in"
    )
    assert "0.22 +- 0.27" in said
    assert "take ridge, or raise label_dp.options.min_samples_leaf" in said
    assert caution(facts, -5.0, 2.0)
    assert caution(facts, 2.0, 1.0)
    assert not caution(facts, 2.1, 1.0)
    assert not caution(facts, None)


def test_of_a_linear_model_trees_are_not_spoken_of(facts: Figures) -> None:
    said = caution(replace(facts, fit=replace(facts.fit, regressor="ridge")), -1.0)
    assert "Nothing shows that this ridge is better" in said
    assert "Trees" not in said


@each_case(("r2", "is_said"), [(-0.2, True), (0.0, True), (0.1, False)])
def test_true_labels_know_better(facts: Figures, r2: float, is_said: bool) -> None:
    known = replace(facts, on_true=ValueFigures(rows=50, mse=1.0, mae=0.4, r2=r2))
    assert bool(caution(known, -5.0)) == is_said


def test_the_plan_says_it_before_a_label_is_released(project) -> None:
    trees = ("--set", "label_dp.regressor=random-forest", "--set", "label_dp.options={}")
    noise = ("--set", "privacy.epsilon=0.3", "--epsilon", "0.3")
    noisy = project.blindfit("plan", "job.toml", *noise, *trees, "--out", "plan")
    assert 'random-forest may be no better than a constant. Set label_dp.regressor = "ridge"' in noisy.stdout, (
        noisy.stderr
    )
