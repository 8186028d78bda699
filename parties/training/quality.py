"""Quality of a model on rows that it was not fitted to, in the form of a party's report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.parties.training.report import Own, Table


@dataclass(frozen=True)
class Confusion(Table):
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int

    @property
    def positives(self) -> int:
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> int:
        return self.true_negatives + self.false_positives

    @property
    def larger_class(self) -> float:
        """Accuracy of a guess that always takes the larger class; 0 without rows."""
        rows = self.positives + self.negatives
        return max(self.positives, self.negatives) / rows if rows > 0 else 0.0


@dataclass(frozen=True, repr=False, kw_only=True)
class ClassFigures(Table):
    """Figures of a classifier.

    Attributes:
        average_precision: average precision; None if the figures were computed in shares, which do not give it.
        slope: slope of the model's log odds, if it was fitted to rows that the model was not trained on. The figures of
            a row then use a fit to other rows.
        offset: offset of the log odds, fitted together with the slope.
        log_loss_before: log loss of the log odds as they were trained.
    """

    rows: int
    auc: float
    average_precision: Own[float] = None
    ks: float
    accuracy: float
    log_loss: float
    threshold: float
    confusion: Confusion
    lift: Own[list[Any]] = None
    calibration: Own[list[Any]] = None
    ranking: Own[list[Any]] = None
    histogram: Own[list[Any]] = None
    slope: float | None = None
    offset: float | None = None
    log_loss_before: float | None = None

    @property
    def is_calibrated(self) -> bool:
        """True if log loss, accuracy, confusion matrix, calibration and histogram are out of fold."""
        return self.slope is not None and self.offset is not None


@dataclass(frozen=True, kw_only=True)
class ValueFigures(Table):
    """Figures of a model of numbers.

    Attributes:
        mae: mean absolute error; None if the figures were computed in shares, because sums of squares do not give it.
    """

    rows: int
    mse: float
    mae: float | None = None
    r2: float


def class_figures(evaluation: Mapping[str, Any]) -> ClassFigures:
    """Return the figures of `evaluate_classes` as a type."""
    return ClassFigures(**{**evaluation, "confusion": Confusion(**evaluation["confusion"])})


def quality_of(evaluation: Mapping[str, Any] | None) -> ClassFigures | ValueFigures | None:
    """Return the figures of test rows as a type; None without figures."""
    if evaluation is None:
        return None
    return class_figures(evaluation) if "auc" in evaluation else ValueFigures(**evaluation)
