"""A data party's aligned rows, split publicly and scaled on its own training rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.columns.derived import derive_matrix, fill_gaps, fit_recipes, with_given_numbers
from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.vertical import gradient_leaks
from blindfit.algorithms.statistics.vertical.class_weights import LARGEST_CLASS_WEIGHT, balance
from blindfit.algorithms.statistics.vertical.grid import LABEL_BOUND
from blindfit.algorithms.statistics.vertical.row_plan import BATCH_SIZES, RowPlan
from blindfit.parties.training.feature_bounds import Bounds, in_order, scale_of
from blindfit.parties.training.rows import PartyRows

log = structlog.get_logger(__name__)

Floats = NDArray[np.float64]

Positions = NDArray[np.int64]

FEATURE_BOUND = 8.0


@dataclass(frozen=True, repr=False)
class Prepared:
    """A party's aligned rows, scaled on its training rows."""

    rows: PartyRows
    plan: RowPlan
    standardiser: Standardiser
    columns: Floats  # (n, k) in the form of the training: standardised, the intercept last, clipped, shortened
    rows_shrunk: int
    labels: PreparedLabels


@dataclass(frozen=True, repr=False)
class PreparedLabels:
    """A party's labels in the form of the training.

    Attributes:
        y: labels (n,) in the form of the loss, 0 in slots without a row; None at a passive party.
        hidden: y with its jitter, the only form on which gradients depend; y itself for labels without jitter.
        mean: offset that converts a linear model's predictions back.
        scale: factor that converts a linear model's predictions back. Offset and factor come from the public range, or
            from the training rows' labels with their jitter, because the gradients reveal both.
        range: public range, if the dataset declares one.
        clipped: number of labels outside the range, or too far from the mean for the protocol's numbers.
    """

    y: Floats | None = None
    hidden: Floats | None = None
    mean: float = 0.0
    scale: float = 1.0
    range: tuple[float, float] | None = None
    clipped: int = 0


@dataclass(frozen=True)
class Preparation:
    """The parts of a job that concern its parties' rows.

    Args:
        table: table of the job's options for its system.
        validation_fraction: fraction of rows for the hold-out loss.
        batch_rows: rows of a batch; None takes the number in `batch_sizes` that suits the rows.
        match_rate: least fraction of a batch's slots with matches at which rows that stand out in the batch are
            shortened; None never shortens them.
        norm_bound: largest norm of a row, for each root of its columns, under differential privacy; None without it.
        feature_bounds: public bounds that scale columns in place of the training rows, by feature, if whole rows are
            protected.
    """

    table: Literal["taylor", "falcon"]
    test_fraction: float
    validation_fraction: float
    batch_rows: int | None
    model: Literal["logistic", "linear"]
    intercept: bool
    match_rate: float | None
    norm_bound: float | None = None
    feature_bounds: Mapping[str, Bounds] | None = None
    batch_sizes: Sequence[int] = BATCH_SIZES

    def plan(self, order: Positions) -> RowPlan:
        """Return the aligned rows that are trained on, and their batches; the plan is the same at every party.

        Args:
            order: random order of the aligned rows; a party without rows, which needs only the sizes, takes any order.
        """
        return RowPlan.of(
            order,
            test_fraction=self.test_fraction,
            validation_fraction=self.validation_fraction,
            batch_rows=self.batch_rows,
            batch_sizes=self.batch_sizes,
            table=self.table,
        )


def prepare(
    rows: PartyRows,
    names: tuple[str, ...],
    chosen: Preparation,
    order: Positions,
    *,
    active: bool,
    label_range: tuple[float, float] | None = None,
    table: TableRecord | None = None,
    jitter: Floats | None = None,
) -> Prepared:
    """Split in the agreed order, scale by the training rows or by public bounds, and append the intercept at the active
    party.

    Every column keeps its place. A column that is constant in training is zero, and so is its weight: to leave the
    column out would reveal that to the others. Rows are clipped to their norm before rows that stand out are shortened,
    because shortening some rows makes others stand out.

    Args:
        table: record of the columns for the model, with the recipes that compute further columns.
        jitter: number (n,) that is added to each label before it is scaled, in the label's own units; None adds
            nothing.
    """
    plan = chosen.plan(order)
    if table is not None and table.recipes:
        rows, table = _compute_recipes(rows, names, chosen, plan, table)
        names = table.made
    standardiser = replace(_scale(rows, names, chosen, plan), table=table)
    columns = np.zeros(rows.features.shape)
    columns[:, list(standardiser.kept)] = standardiser.transform(rows.features)
    if active and chosen.intercept:
        columns = append_constant(columns)
    columns[~rows.there] = 0.0  # slots of linkage in which this party has no row
    columns = np.clip(columns, -FEATURE_BOUND, FEATURE_BOUND)
    shrunk = 0
    if chosen.norm_bound is not None:
        columns = clip_rows(columns, chosen.norm_bound * math.sqrt(len(columns.T)))
    if chosen.match_rate is not None:
        columns, shrunk = gradient_leaks.shorten_rows(columns, plan.batches, match_rate=chosen.match_rate)
    labels = PreparedLabels()
    if rows.labels is not None:
        noise = np.zeros(len(rows.labels)) if jitter is None else jitter
        is_class = chosen.model == "logistic"
        labels = _classes(rows, noise) if is_class else _numbers(rows, plan, chosen, label_range, noise)
    return Prepared(rows, plan, standardiser, columns, shrunk, labels)


def tell_of_clipping(dataset: str, prepared: Prepared) -> None:
    """Warn only the operator: the number of labels outside the range depends on the labels."""
    if prepared.labels.clipped:
        log.warning("labels far out are clipped", dataset=dataset, rows=prepared.labels.clipped)


def _compute_recipes(
    rows: PartyRows, names: tuple[str, ...], chosen: Preparation, plan: RowPlan, record: TableRecord
) -> tuple[PartyRows, TableRecord]:
    """Return the rows with the model's columns, and the record with the numbers of its recipes.

    If whole rows are protected, the settings give these numbers. Otherwise the training rows decide them.
    """
    if chosen.feature_bounds is not None:
        fitted = with_given_numbers(record)
    else:
        trained = rows.features[with_rows(rows, plan.train)]
        fitted = fit_recipes(record, dict(zip(names, trained.T, strict=True)))
    filled = fill_gaps(rows.features, names, fitted)
    return replace(rows, features=derive_matrix(filled, names, fitted, fitted.made)), fitted


def _scale(rows: PartyRows, names: tuple[str, ...], chosen: Preparation, plan: RowPlan) -> Standardiser:
    if chosen.feature_bounds is not None:
        return scale_of(names, in_order(chosen.feature_bounds, names, "feature_bounds"))
    fitted_on = with_rows(rows, plan.train)
    return Standardiser.fit([rows.features[fitted_on]], names)


def clip_rows(columns: Floats, bound: float) -> Floats:
    """Return the rows, with each row that is longer than the bound shortened to it."""
    norms = np.linalg.norm(columns, axis=1, keepdims=True)
    return np.asarray(columns * np.minimum(1.0, bound / np.maximum(norms, bound)))


def _classes(rows: PartyRows, jitter: Floats) -> PreparedLabels:
    """Return labels of two classes. A single class is trained on too: a refusal would reveal that about the labels."""
    labels = np.zeros(0) if rows.labels is None else rows.labels
    y = np.where(rows.there, 2 * labels - 1, 0.0)
    return PreparedLabels(y, np.where(rows.there, y + 2 * jitter, 0.0))


def _numbers(
    rows: PartyRows, plan: RowPlan, chosen: Preparation, label_range: tuple[float, float] | None, jitter: Floats
) -> PreparedLabels:
    """Return labels that are numbers, in the scale of the training.

    They are clipped to their public range, if there is one. Under label DP the range scales them to -1 .. 1, and
    nothing that is computed from labels enters. Otherwise their own mean and deviation scale them, and they are clipped
    at the limits of the protocol's numbers. Jitter is added first, so that jobs with different ranges, means and
    deviations reveal functions of the same numbers.

    Raises:
        ConfigError: label DP needs a range.
    """
    read = np.zeros(0) if rows.labels is None else rows.labels
    labels, jittered = (x if label_range is None else np.clip(x, *label_range) for x in (read, read + jitter))
    if chosen.norm_bound is not None:
        if label_range is None:
            raise ConfigError("label DP of numbers needs their public range: label_range is missing")
        lo, hi = label_range
        mean, scale, reach = (lo + hi) / 2, (hi - lo) / 2, 1.0
    else:
        train = jittered[with_rows(rows, plan.train)]
        mean, scale, reach = float(train.mean()), float(train.std()) or 1.0, LABEL_BOUND
    y, hidden = (np.where(rows.there, np.clip((x - mean) / scale, -reach, reach), 0.0) for x in (labels, jittered))
    clipped = rows.there & ((labels != read) | (np.abs(labels - mean) > LABEL_BOUND * scale))
    return PreparedLabels(y, hidden, mean, scale, label_range, int(clipped.sum()))


def with_rows(rows: PartyRows, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return positions without the slots of a linkage in which this party has no row."""
    return positions[rows.there[positions]]


log = structlog.get_logger(__name__)


# --- class weights, which only the active party knows -----------------------------------------------------------------


def class_weights(prepared: Prepared) -> NDArray[np.int64]:
    """Return the weights of the two classes, `balanced` on the training rows.

    Only the operator learns that a class is rare: a refusal would reveal it to everybody.
    """
    positive = _is_positive(prepared)
    weights, is_clipped = balance(positive[with_rows(prepared.rows, prepared.plan.train)])
    if is_clipped:
        log.warning("a class is so rare that its weight is clipped", weight=LARGEST_CLASS_WEIGHT)
    return weights


def class_factors(prepared: Prepared) -> NDArray[np.int64]:
    """Return the weight of each row's class, shape (n,)."""
    return class_weights(prepared)[_is_positive(prepared).astype(np.intp)]


def _is_positive(prepared: Prepared) -> NDArray[np.bool_]:
    if prepared.labels.y is None:
        raise ConfigError("only the active party knows the classes")
    return prepared.labels.y > 0
