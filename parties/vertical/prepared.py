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
from blindfit.algorithms.statistics.vertical.row_plan import BATCH_SIZES, RowPlan, count_held_out
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
    columns: Floats  # (n, k) as they are trained on: standardised, the intercept last, clipped, shortened
    rows_shrunk: int
    labels: PreparedLabels


@dataclass(frozen=True, repr=False)
class PreparedLabels:
    """Attributes:
    y: (n,) as the loss takes it, 0 in slots without a row; None at a passive party.
    hidden: y with its jitter, which is all that gradients depend on; y itself where labels have none.
    mean, scale: what turns a linear model's predictions back. From the public range, or from the training rows' labels
        with their jitter, because the gradients show both.
    range: the public one, where the dataset declares one.
    clipped: how many labels lay outside the range, or too far from the mean for the protocol's numbers.
    """

    y: Floats | None = None
    hidden: Floats | None = None
    mean: float = 0.0
    scale: float = 1.0
    range: tuple[float, float] | None = None
    clipped: int = 0


@dataclass(frozen=True)
class Preparation:
    """What a job says of its parties' rows.

    Args:
        table: the job's table of its system.
        validation_fraction: of the hold-out loss.
        batch_rows: None takes as many as suit the rows, of `batch_sizes`.
        match_rate: rows that stand out in their batch are shortened, where so many of its slots match at least; None:
            they stay as they are.
        norm_bound: under differential privacy no row is longer than this for each root of its columns; None without.
        feature_bounds: where whole rows have it, what scales columns in place of the training rows; by feature.
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

    def held_out(self, n_rows: int) -> tuple[int, int]:
        """How many of so many rows are for the test, and for the validation."""
        return count_held_out(n_rows, self.test_fraction, self.validation_fraction)

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
    """Splits in the agreed order, scales on the training rows alone or by public bounds, appends the intercept at the
    active party.

    Every column keeps its place: one that is constant in training is zero, and so is its weight. To leave it out would
    tell the others of it. Rows are clipped to their norm before those that stand out are shortened, which makes them
    shorter still: shortening some rows makes others stand out.

    Args:
        table: what the columns were made of, for the model, with the recipes that compute further ones.
        jitter: (n,) what is added to each label before it is scaled, in the label's own units; None: nothing.
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
    """The operator alone: how many labels lie outside is a fact of the labels."""
    if prepared.labels.clipped:
        log.warning("labels far out are clipped", dataset=dataset, rows=prepared.labels.clipped)


def _compute_recipes(
    rows: PartyRows, names: tuple[str, ...], chosen: Preparation, plan: RowPlan, record: TableRecord
) -> tuple[PartyRows, TableRecord]:
    """Return the rows with the model's columns, and the record with the numbers of its recipes.

    Where whole rows are protected the numbers are given. Otherwise the training rows decide them.
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
    """Rows longer than the bound, shortened to it."""
    norms = np.linalg.norm(columns, axis=1, keepdims=True)
    return np.asarray(columns * np.minimum(1.0, bound / np.maximum(norms, bound)))


def _classes(rows: PartyRows, jitter: Floats) -> PreparedLabels:
    """One class alone is trained on like two: that a job is refused for it would tell of labels."""
    labels = np.zeros(0) if rows.labels is None else rows.labels
    y = np.where(rows.there, 2 * labels - 1, 0.0)
    return PreparedLabels(y, np.where(rows.there, y + 2 * jitter, 0.0))


def _numbers(
    rows: PartyRows, plan: RowPlan, chosen: Preparation, label_range: tuple[float, float] | None, jitter: Floats
) -> PreparedLabels:
    """Clipped to their public range, where they have one. Under label DP scaled by it, to -1 .. 1, and nothing that is
    computed from labels enters; else by their own mean and deviation, and clipped where the protocol's numbers end.

    Jitter is added first: whatever range, mean and deviation a job has, it shows functions of the same numbers.

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
    """Without the slots of linkage in which this party has no row."""
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
