"""How good a model was on rows that it was not fitted to: figures and curves, read and drawn alike in every report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report.plots import LINE, MUTED, NEGATIVE, POSITIVE, Plot, figure_of, svg_of
from blindfit.coordinator.report.reading import fullest, read
from blindfit.coordinator.report.wording import count

FEW_TEST_ROWS = 100
HEIGHT_INCHES = 2.7

P = TypeVar("P", "LiftPoint", "CalibrationPoint")


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
    slope: float | None = None
    offset: float | None = None
    log_loss_before: float | None = None


@dataclass(frozen=True)
class ValueFigures:
    """Of a model of numbers."""

    rows: int
    mse: float
    r2: float
    mae: float | None = None  # which does not follow from sums of squares


@dataclass(frozen=True)
class LiftPoint:
    share: float
    lift: float


@dataclass(frozen=True)
class CalibrationPoint:
    rows: int
    probability: float
    positives: float


@dataclass(frozen=True)
class Confusion:
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int


@dataclass(frozen=True)
class Evaluation:
    """Where it comes from decides how much of it there is: the coordinator gets no curve."""

    classes: ClassFigures | None = None
    confusion: Confusion | None = None
    values: ValueFigures | None = None
    lift: tuple[LiftPoint, ...] = ()
    calibration: tuple[CalibrationPoint, ...] = ()


def evaluation_of(report: Mapping[str, Any], active: str) -> Evaluation | None:
    """The active party's own, where its report is here; else what it told the coordinator, if anything.

    Raises:
        DataError: names the figure that is missing or wrong.
    """
    own = fullest(report, active)
    if not own.get("evaluation"):
        return None
    if "auc" not in own["evaluation"]:
        return Evaluation(values=read(ValueFigures, own, active, "evaluation"))
    return Evaluation(
        classes=read(ClassFigures, own, active, "evaluation"),
        confusion=read(Confusion, own, active, "evaluation.confusion"),
        lift=points_of(LiftPoint, own["evaluation"], active, "lift"),
        calibration=points_of(CalibrationPoint, own["evaluation"], active, "calibration"),
    )


def points_of(
    kind: type[P], evaluation: Mapping[str, Any], party: str, name: Literal["lift", "calibration"]
) -> tuple[P, ...]:
    """A curve; none where only the coordinator's figures are known.

    Raises:
        DataError: names the party and what is not a curve.
    """
    points = evaluation.get(name, [])
    if not isinstance(points, list):
        raise DataError(f"what {party} reports: evaluation.{name} is not a list")
    return tuple(read(kind, {name: point}, party, name) for point in points)


# --- plots -----------------------------------------------------------------------------------------------


def curves(calibration: Sequence[CalibrationPoint], lift: Sequence[LiftPoint]) -> list[Plot]:
    """Those that there is something to draw of."""
    return [plot for plot in (calibration_plot(calibration), lift_plot(lift)) if plot is not None]


def lift_plot(points: Sequence[LiftPoint]) -> Plot | None:
    if not points:
        return None
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.plot([0, 100], [1, 1], color=MUTED, linewidth=0.9, linestyle="--")
    axes.plot(
        [100 * p.share for p in points],
        [p.lift for p in points],
        color=POSITIVE,
        linewidth=1.6,
        marker="o",
        markersize=4,
    )
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 1.08 * max(p.lift for p in points))
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("best rows, % of the test rows", color=MUTED)
    note = "How many times as many positives as on average there are among the rows with the highest probabilities."
    return Plot("Lift", note, svg_of(figure))


def calibration_plot(points: Sequence[CalibrationPoint]) -> Plot | None:
    if not points:
        return None
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9, linestyle="--")
    axes.plot(
        [p.probability for p in points],
        [p.positives for p in points],
        color=NEGATIVE,
        linewidth=1.2,
        marker="o",
        markersize=5,
    )
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.04, 1.04)
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("mean probability", color=MUTED)
    axes.set_ylabel("share of positives", color=MUTED)
    note = (
        f"Test rows in {count(len(points))} groups by probability; those of a calibrated model lie on the dashed line."
    )
    return Plot("Calibration", note, svg_of(figure))
