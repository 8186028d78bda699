"""How good a model was on rows that it was not fitted to: figures, read alike in every report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from blindfit.coordinator.report.curves import Curves, curves_of
from blindfit.coordinator.report.reading import fullest, read

FEW_TEST_ROWS = 100


@dataclass(frozen=True)
class ClassFigures:
    """Of a classifier.

    Attributes:
        slope, offset: of its log odds, where they were fitted to rows that it was not trained on; the figures of a row
            are then by a fit to other rows.
        log_loss_before: of the log odds as they were trained.
    """

    rows: int
    auc: float
    ks: float
    accuracy: float
    log_loss: float
    threshold: float
    average_precision: float | None = None  # which the active party keeps, and shares do not give
    slope: float | None = None
    offset: float | None = None
    log_loss_before: float | None = None

    @property
    def is_calibrated(self) -> bool:
        """Whether log loss, accuracy, confusion matrix, calibration and histogram are out of fold."""
        return self.slope is not None and self.offset is not None


@dataclass(frozen=True)
class ValueFigures:
    """Of a model of numbers."""

    rows: int
    mse: float
    r2: float
    mae: float | None = None  # which does not follow from sums of squares


@dataclass(frozen=True)
class Confusion:
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


@dataclass(frozen=True)
class Evaluation:
    """Where it comes from decides how much of it there is: the coordinator gets no curve."""

    classes: ClassFigures | None = None
    confusion: Confusion | None = None
    values: ValueFigures | None = None
    curves: Curves = field(default_factory=Curves)


def evaluation_of(report: Mapping[str, Any], active: str) -> Evaluation | None:
    """The active party's own, where its report is here; else what it told the coordinator, if anything.

    Raises:
        DataError: names the figure that is missing or wrong.
    """
    own = fullest(report, active)
    found = own.get("evaluation")
    if not found:
        return None
    if not isinstance(found, Mapping) or "auc" not in found:
        return Evaluation(values=read(ValueFigures, own, active, "evaluation"))
    return class_evaluation(own, active)


def class_evaluation(own: Mapping[str, Any], active: str) -> Evaluation:
    """The same of a classifier, from what its party says of it.

    Raises:
        DataError: names the figure that is missing or wrong.
    """
    return Evaluation(
        classes=read(ClassFigures, own, active, "evaluation"),
        confusion=read(Confusion, own, active, "evaluation.confusion"),
        curves=curves_of(own["evaluation"], active),
    )
