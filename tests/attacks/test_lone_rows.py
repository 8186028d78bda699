"""Rows that stand out in their party's columns: 2,000 rows, labels that nothing else tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from blindfit.algorithms.statistics.gradient_leaks import shorten_rows
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from tests.attacks import lone_rows
from tests.attacks.views import (
    DEFAULTS,
    Data,
    Floats,
    Rows,
    Setting,
    Training,
    most_right_within,
    plan_of,
    simulate,
    with_intercept,
    without_defences,
)

ROWS = 2000


def rare_value(batch: Rows) -> list[Rows]:
    """A column that is 1 in one row of the batch."""
    return [batch[:1]]


def nested_values(batch: Rows) -> list[Rows]:
    """Two columns, of 45 rows and of 44 of them."""
    return [batch[:45], batch[1:45]]


@dataclass
class Guesses:
    """Over several data sets: whether each row that stands out most in its batch was guessed."""

    right: list[bool] = field(default_factory=list)
    stood_out: list[bool] = field(default_factory=list)

    @property
    def share(self) -> float:
        return float(np.mean(self.right))


def attack(ones: Callable[[Rows], list[Rows]], setting: Setting) -> Guesses:
    guesses = Guesses()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        plan = plan_of(ROWS, replace(setting, seed=seed))
        data = Data(
            (with_intercept(rng.standard_normal((ROWS, 5))), columns_with(ones, plan, rng)),
            np.where(rng.random(ROWS) < 0.5, 1.0, -1.0),
        )
        training = simulate(data, replace(setting, seed=seed))
        rows, labels = lone_rows.guesses(training.seen[1])
        guesses.right += (labels * data.y[rows] > 0).tolist()
        guesses.stood_out.append(shorten_rows(training.columns[1], training.plan.batches)[1] > 0)
    return guesses


def columns_with(ones: Callable[[Rows], list[Rows]], plan: RowPlan, rng: np.random.Generator) -> Floats:
    """Three columns that hide nothing, and flags."""
    flags = np.zeros((ROWS, len(ones(plan.batches[0]))))
    for batch in plan.batches:
        for column, rows in enumerate(ones(batch)):
            flags[rows, column] = 1
    return np.hstack([rng.standard_normal((ROWS, 3)), flags])


BOTH = pytest.mark.parametrize("ones", [rare_value, nested_values])


@BOTH
def test_without_defences_a_lone_row_gives_its_label(ones: Callable[[Rows], list[Rows]]) -> None:
    assert attack(ones, without_defences()).share > 0.99


@BOTH
def test_jitter_and_noise_do_not_hide_a_lone_row_but_it_stands_out(ones: Callable[[Rows], list[Rows]]) -> None:
    guesses = attack(ones, replace(DEFAULTS, shorten=False))
    assert guesses.share > 0.95
    assert all(guesses.stood_out)


@BOTH
def test_a_shortened_row_does_not_stand_out_and_its_label_stays_in_doubt(ones: Callable[[Rows], list[Rows]]) -> None:
    """At leverage .5 and jitter .25 a guess is right with probability .79."""
    guesses = attack(ones, DEFAULTS)
    assert not any(guesses.stood_out)
    assert guesses.share < 0.79 + 0.1


# --- label DP: it covers the label, not the others' score of the row ------------------------------------------


def label_dp(seed: int, **changes: object) -> Training:
    """The reader is the active party, whose intercept and rare column make up a column that is 0 but in one row."""
    rng = np.random.default_rng(seed)
    setting = Setting(epsilon=1.0, seed=seed, **changes)  # type: ignore[arg-type]
    plan = plan_of(ROWS, setting)
    data = Data(
        (with_intercept(columns_with(rare_value, plan, rng)), rng.standard_normal((ROWS, 5))),
        np.where(rng.random(ROWS) < 0.5, 1.0, -1.0),
    )
    return simulate(data, setting)


@BOTH
def test_under_label_dp_a_lone_rows_label_is_guessed_no_better_than_epsilon_allows(
    ones: Callable[[Rows], list[Rows]],
) -> None:
    guesses = attack(ones, Setting(epsilon=0.5, shorten=False, epochs=3))
    assert guesses.share <= most_right_within(0.5, len(guesses.right))


def median_error(training: Training) -> float:
    """Of how a lone row's score moves, over how it moves; the median over the batches."""
    reader, other = training.seen
    errors = []
    for number in range(len(training.plan.batches)):
        row, found = lone_rows.moves(reader, number)
        scores = [other.grid.scores(other.features[[row]], view.weights)[0] for view in other.of_batch(number)]
        truth = 2 * other.grid.loss.square * np.diff(scores)
        errors.append(float(np.linalg.norm(found - truth) / np.linalg.norm(truth)))
    return float(np.median(errors))


def test_under_label_dp_a_lone_rows_score_is_read_where_nothing_hides_it() -> None:
    assert median_error(label_dp(0, shorten=False, gradient_noise=0.0)) < 1e-3


@pytest.mark.parametrize("changes", [{"gradient_noise": 0.0}, {"shorten": False}, {}], ids=["short", "noise", "both"])
def test_under_label_dp_shortening_hides_it_and_fresh_noise_too(changes: dict[str, object]) -> None:
    assert median_error(label_dp(0, **changes)) > 0.3
