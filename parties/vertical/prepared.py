"""A data party's aligned rows, split publicly and scaled on its own training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.statistics import gradient_leaks
from blindfit.algorithms.statistics.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from blindfit.parties.training.rows import PartyRows

Floats = NDArray[np.float64]

Positions = NDArray[np.int64]

FEATURE_BOUND = 8.0


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
    model: Literal["logistic", "linear"]
    intercept: bool
    match_rate: float | None

    def plan(self, order: Positions) -> RowPlan:
        """Which aligned rows are trained on, in which batches; the same at every party.

        Args:
            order: of the aligned rows, random; who has no rows and needs the sizes alone takes any.
        """
        return RowPlan.of(
            order,
            test_fraction=self.test_fraction,
            validation_fraction=self.validation_fraction,
            batch_rows=self.batch_rows,
        )


def prepare(
    rows: PartyRows, names: tuple[str, ...], chosen: Preparation, order: Positions, *, active: bool
) -> Prepared:
    """Splits in the agreed order, scales on the training rows alone, appends the intercept at the active party.

    Every column keeps its place: one that is constant in training is zero, and so is its weight. To leave it out would
    tell the others of it.
    """
    plan = chosen.plan(order)
    fitted_on = with_rows(rows, plan.train)
    standardiser = Standardiser.fit([rows.features[fitted_on]], names)
    columns = np.zeros(rows.features.shape)
    columns[:, list(standardiser.kept)] = standardiser.transform(rows.features)
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
        return np.where(rows.there, 2 * labels - 1, 0.0), 0.0, 1.0
    mean, scale = float(train.mean()), float(train.std()) or 1.0
    return np.where(rows.there, (labels - mean) / scale, 0.0), mean, scale


def with_rows(rows: PartyRows, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Without the slots of linkage in which this party has no row."""
    return positions[rows.there[positions]]
