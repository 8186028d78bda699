"""Rows that stand out in their party's columns: 2,000 rows, labels that nothing else tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from blindfit.algorithms.statistics.gradient_leaks import check_leverage
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from tests.attacks import lone_rows
from tests.attacks.views import (
    DEFAULTS,
    Data,
    Floats,
    Rows,
    Setting,
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
    refused: list[bool] = field(default_factory=list)

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
        guesses.refused.append(bool(check_leverage(training.columns[1], training.plan.batches)))
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
def test_jitter_and_noise_do_not_hide_a_lone_row_but_it_is_refused(ones: Callable[[Rows], list[Rows]]) -> None:
    guesses = attack(ones, replace(DEFAULTS, shorten=False))
    assert guesses.share > 0.95
    assert all(guesses.refused)


@BOTH
def test_a_shortened_row_is_not_refused_and_its_label_stays_in_doubt(ones: Callable[[Rows], list[Rows]]) -> None:
    """At leverage .5 and jitter .25 a guess is right with probability .79."""
    guesses = attack(ones, DEFAULTS)
    assert not any(guesses.refused)
    assert guesses.share < 0.79 + 0.1
