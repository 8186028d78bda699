"""Figures of a model on rows that it was not fitted to, read in the same way in every report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from blindfit.coordinator.report.curves import Curves, curves_of
from blindfit.coordinator.report.reading import fullest, read
from blindfit.parties.training.quality import ClassFigures, ValueFigures

FEW_TEST_ROWS = 100


@dataclass(frozen=True)
class Evaluation:
    """Figures of an evaluation. Its source decides how many there are: the coordinator gets no curve."""

    classes: ClassFigures | None = None
    values: ValueFigures | None = None
    curves: Curves = field(default_factory=Curves)


def evaluation_of(report: Mapping[str, Any], active: str) -> Evaluation | None:
    """Return the active party's own evaluation if its report is here; else the coordinator's part, or None.

    Raises:
        DataError: a figure is missing or wrong; names the figure.
    """
    own = fullest(report, active)
    found = own.get("evaluation")
    if not found:
        return None
    if not isinstance(found, Mapping) or "auc" not in found:
        return Evaluation(values=read(ValueFigures, own, active, "evaluation"))
    return class_evaluation(own, active)


def class_evaluation(own: Mapping[str, Any], active: str) -> Evaluation:
    """Return the evaluation of a classifier, from its party's report.

    Raises:
        DataError: a figure is missing or wrong; names the figure.
    """
    return Evaluation(
        classes=read(ClassFigures, own, active, "evaluation"),
        curves=curves_of(own["evaluation"], active),
    )
