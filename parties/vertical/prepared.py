"""A data party's aligned rows, split publicly and scaled on its own training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics import gradient_leaks
from blindfit.algorithms.statistics.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.taylor import signed_labels
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from blindfit.parties.training.rows import PartyRows

Floats = NDArray[np.float64]

FEATURE_BOUND = 8.0
ConstantColumns = Literal["error", "drop"]


@dataclass(frozen=True, repr=False)
class Prepared:
    """A party's aligned rows, scaled on its training rows."""

    rows: PartyRows
    plan: RowPlan
    standardiser: Standardiser
    columns: Floats  # (n, k) standardised, the intercept last; training rows that stood out are shrunk
    rows_shrunk: int
    y: Floats | None  # as the loss takes it
    label_mean: float
    label_scale: float


@dataclass(frozen=True)
class Preparation:
    """What a job says of its parties' rows.

    Args:
        validation_fraction: of the hold-out loss.
        match_rate: rows that stand out in their batch are shortened, where so many of its slots match at least; None:
            they stay as they are.
    """

    test_fraction: float
    validation_fraction: float
    batch_rows: int
    seed: int
    model: Literal["logistic", "linear"]
    intercept: bool
    constant_columns: ConstantColumns
    match_rate: float | None

    def plan(self, n_rows: int) -> RowPlan:
        """Which aligned rows are trained on, in which batches; the same at every party."""
        return RowPlan.draw(
            n_rows,
            test_fraction=self.test_fraction,
            validation_fraction=self.validation_fraction,
            batch_rows=self.batch_rows,
            seed=self.seed,
        )


def prepare(rows: PartyRows, names: tuple[str, ...], chosen: Preparation, *, active: bool) -> Prepared:
    """Splits publicly, scales on the training rows alone, appends the intercept at the active party."""
    plan = chosen.plan(len(rows.features))
    fitted_on = with_rows(rows, plan.train)
    standardiser = Standardiser.fit([rows.features[fitted_on]], names, constant_columns=chosen.constant_columns)
    columns = standardiser.transform(rows.features)
    if active and chosen.intercept:
        columns = append_constant(columns)
    columns[~rows.there] = 0.0  # slots of linkage in which this party has no row
    shrunk = 0
    if chosen.match_rate is not None:
        clipped = np.clip(columns, -FEATURE_BOUND, FEATURE_BOUND)
        columns, shrunk = gradient_leaks.shorten_rows(clipped, plan.batches, match_rate=chosen.match_rate)
    y, mean, scale = (None, 0.0, 1.0) if rows.labels is None else _labels(rows, plan, chosen.model)
    return Prepared(rows, plan, standardiser, columns, shrunk, y, mean, scale)


def _labels(rows: PartyRows, plan: RowPlan, model: str) -> tuple[Floats, float, float]:
    """As the loss takes them, and what turns a linear model's predictions back; slots without a row get 0."""
    labels = np.zeros(0) if rows.labels is None else rows.labels
    train = labels[with_rows(rows, plan.train)]
    if model == "logistic":
        signed_labels(train)  # one class alone in training is refused
        if len(plan.test):
            _refuse_one_class(labels[plan.test])
        y = np.zeros(len(labels))
        y[rows.there] = signed_labels(labels[rows.there])
        return y, 0.0, 1.0
    mean, scale = float(train.mean()), float(train.std())
    if scale == 0:
        raise DataError("every label is the same: there is nothing to learn")
    return np.where(rows.there, (labels - mean) / scale, 0.0), mean, scale


def _refuse_one_class(labels: Floats) -> None:
    """Before the training, not after it: the model could not be evaluated."""
    if len(np.unique(labels)) < 2:
        raise DataError(
            "the test rows are all of one class, so the model could not be evaluated",
            hint="choose a larger split.test_fraction, or 0",
        )


def with_rows(rows: PartyRows, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Without the slots of linkage in which this party has no row."""
    return positions[rows.there[positions]]
