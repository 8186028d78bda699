"""A row that stands out in its party's columns leaks: one combination of columns is nearly that row only.

x_i^T (X^T X)^+ g / h_i = r_i + what the other rows add, nothing where the leverage h_i is 1

The residual r_i contains the label. How it moves from epoch to epoch is how the others' score of the row moves, with or
without label DP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.statistics.vertical.gradient_leaks import shorten_rows
from blindfit.algorithms.statistics.vertical.loss import leverages
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from tests.attacks.views import Data, Rows, Seen, Setting, Training, plan_of, simulate, with_intercept

Floats = NDArray[np.float64]
Flags = Callable[[Rows], list[Rows]]  # function of a batch: the rows where each flag is 1
ROWS = 2000


def guesses(seen: Seen) -> tuple[Rows, Floats]:
    """Return each batch's row with the largest leverage, and a guess at its label from all epochs."""
    rows, labels = [], []
    for number in sorted({view.number for view in seen.views}):
        views = seen.of_batch(number)
        columns = seen.reals(views[0].batch)
        worst = int(leverages(columns).argmax())
        alone = columns[worst] @ np.linalg.pinv(columns.T @ columns)
        rows.append(int(views[0].batch[worst]))
        labels.append(-2 * float(alone @ np.mean([seen.others(view) for view in views], axis=0)))
    return np.array(rows), np.array(labels)


def moves(seen: Seen, number: int) -> tuple[int, Floats]:
    """Return one batch's row with the largest leverage, and how the others' 2a z moves there, (epochs - 1,)."""
    views = seen.of_batch(number)
    columns = seen.reals(views[0].batch)
    found = leverages(columns)
    worst = int(found.argmax())
    alone = columns[worst] @ np.linalg.pinv(columns.T @ columns) / found[worst]
    return int(views[0].batch[worst]), np.diff([float(alone @ seen.others(view)) for view in views])


# --- 2,000 rows, labels that nothing else reveals ------------------------------------------------------------


def rare_value(batch: Rows) -> list[Rows]:
    """Return a column that is 1 in one row of the batch."""
    return [batch[:1]]


def nested_values(batch: Rows) -> list[Rows]:
    """Return two columns, of 45 rows and of 44 of them."""
    return [batch[:45], batch[1:45]]


ATTACKED: tuple[Flags, ...] = (rare_value, nested_values)


@dataclass
class Guesses:
    """Results for several data sets: True for each row that stands out most in its batch and was guessed."""

    right: list[bool] = field(default_factory=list)
    stood_out: list[bool] = field(default_factory=list)

    @property
    def share(self) -> float:
        return float(np.mean(self.right))


def attack(ones: Flags, setting: Setting, data_sets: int = 10) -> Guesses:
    found = Guesses()
    for seed in range(data_sets):
        rng = np.random.default_rng(seed)
        plan = plan_of(ROWS, replace(setting, seed=seed))
        data = Data(
            (with_intercept(rng.standard_normal((ROWS, 5))), columns_with(ones, plan, rng)),
            np.where(rng.random(ROWS) < 0.5, 1.0, -1.0),
        )
        training = simulate(data, replace(setting, seed=seed))
        rows, labels = guesses(training.seen[1])
        found.right += (labels * data.y[rows] > 0).tolist()
        found.stood_out.append(shorten_rows(training.columns[1], training.plan.batches)[1] > 0)
    return found


def columns_with(ones: Flags, plan: RowPlan, rng: np.random.Generator) -> Floats:
    """Return three columns that hide nothing, and flags."""
    flags = np.zeros((ROWS, len(ones(plan.batches[0]))))
    for batch in plan.batches:
        for column, rows in enumerate(ones(batch)):
            flags[rows, column] = 1
    return np.hstack([rng.standard_normal((ROWS, 3)), flags])


def label_dp(seed: int, **changes: Any) -> Training:
    """Train with the active party as reader: its intercept and rare column make a column that is 0 in
    all rows but one.
    """
    rng = np.random.default_rng(seed)
    setting = Setting(epsilon=1.0, seed=seed, **changes)
    plan = plan_of(ROWS, setting)
    data = Data(
        (with_intercept(columns_with(rare_value, plan, rng)), rng.standard_normal((ROWS, 5))),
        np.where(rng.random(ROWS) < 0.5, 1.0, -1.0),
    )
    return simulate(data, setting)


def median_error(training: Training) -> float:
    """Return the relative error of a lone row's moves of the score: the median over the batches."""
    reader, other = training.seen
    errors = []
    for number in range(len(training.plan.batches)):
        row, found = moves(reader, number)
        scores = [other.grid.scores(other.features[[row]], view.weights)[0] for view in other.of_batch(number)]
        truth = 2 * other.grid.loss.square * np.diff(scores)
        errors.append(float(np.linalg.norm(found - truth) / np.linalg.norm(truth)))
    return float(np.median(errors))
