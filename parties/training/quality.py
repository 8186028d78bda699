"""How good a model is on rows that it was not fitted to, as a party reports it."""

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
        """Return the accuracy of whoever always guesses the larger class; 0 where there is no row."""
        rows = self.positives + self.negatives
        return max(self.positives, self.negatives) / rows if rows > 0 else 0.0


@dataclass(frozen=True, repr=False, kw_only=True)
class ClassFigures(Table):
    """Figures of a classifier.

    Attributes:
        average_precision: None if it was computed in shares, which do not give it.
        slope, offset: of its log odds, where they were fitted to rows that it was not trained on; the figures of a row
            are then by a fit to other rows.
        log_loss_before: of the log odds as they were trained.
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
        """Whether log loss, accuracy, confusion matrix, calibration and histogram are out of fold."""
        return self.slope is not None and self.offset is not None


@dataclass(frozen=True, kw_only=True)
class ValueFigures(Table):
    """Figures of a model of numbers.

    Attributes:
        mae: None if it was computed in shares: it does not follow from sums of squares.
    """

    rows: int
    mse: float
    mae: float | None = None
    r2: float


def class_figures(evaluation: Mapping[str, Any]) -> ClassFigures:
    """Return the type of what `evaluate_classes` found."""
    return ClassFigures(**{**evaluation, "confusion": Confusion(**evaluation["confusion"])})


def quality_of(evaluation: Mapping[str, Any] | None) -> ClassFigures | ValueFigures | None:
    """Return the type of what was found on test rows; None if nothing was."""
    if evaluation is None:
        return None
    return class_figures(evaluation) if "auc" in evaluation else ValueFigures(**evaluation)
