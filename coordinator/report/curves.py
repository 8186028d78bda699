"""Curves of a model's test rows, from the active party's own report: read, checked and drawn in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.quality.intervals import share_interval
from blindfit.coordinator.report.plots import LINE, MUTED, NEGATIVE, POSITIVE, Plot, figure_of, svg_of
from blindfit.coordinator.report.reading import read
from blindfit.coordinator.terminal.wording import count, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT_INCHES = 2.7
BAND = "The band holds each point with 95% chance over the draw of the test rows."


class Point(Protocol):
    @property
    def is_possible(self) -> bool:
        """True for numbers that rows can give; a file may have others."""
        ...


P = TypeVar("P", bound=Point)


@dataclass(frozen=True)
class LiftPoint:
    share: float
    lift: float

    @property
    def is_possible(self) -> bool:
        return 0 < self.share <= 1 and self.lift >= 0


@dataclass(frozen=True)
class CalibrationPoint:
    rows: int
    probability: float
    positives: float

    @property
    def is_possible(self) -> bool:
        return self.rows > 0 and 0 <= self.probability <= 1 and 0 <= self.positives <= 1


@dataclass(frozen=True)
class RankingPoint:
    """Rows with at least this probability."""

    threshold: float
    true_positives: int
    false_positives: int

    @property
    def is_possible(self) -> bool:
        return 0 <= self.threshold <= 1 and min(self.true_positives, self.false_positives) >= 0


@dataclass(frozen=True)
class ClassBin:
    """Test rows with a probability in [low, high]."""

    low: float
    high: float
    positives: int
    negatives: int

    @property
    def is_possible(self) -> bool:
        return self.low < self.high and min(self.positives, self.negatives) >= 0


@dataclass(frozen=True)
class RowBin:
    """Rows with a probability, or a value, in [low, high]."""

    low: float
    high: float
    rows: int

    @property
    def is_possible(self) -> bool:
        return self.low < self.high and self.rows >= 0


@dataclass(frozen=True)
class Curves:
    """Curves of an evaluation; all empty if only the coordinator's figures are known."""

    lift: tuple[LiftPoint, ...] = ()
    calibration: tuple[CalibrationPoint, ...] = ()
    ranking: tuple[RankingPoint, ...] = ()
    histogram: tuple[ClassBin, ...] = ()

    def plots(self) -> list[Plot]:
        """Return a plot of each curve that has enough points."""
        return [
            *([class_histogram(self.histogram)] if self.histogram else []),
            *([calibration_plot(self.calibration)] if self.calibration else []),
            *([roc_plot(self.ranking), precision_recall_plot(self.ranking)] if self.ranking else []),
            *([lift_plot(self.lift)] if self.lift else []),
        ]


# --- reading -----------------------------------------------------------------------------------------


def curves_of(evaluation: Mapping[str, Any], party: str) -> Curves:
    """Return the curves of an evaluation.

    Raises:
        DataError: a curve is wrong; names the party and the curve.
    """
    return Curves(
        lift=points_of(LiftPoint, evaluation, party, "lift"),
        calibration=points_of(CalibrationPoint, evaluation, party, "calibration"),
        ranking=_ranking(evaluation, party),
        histogram=points_of(ClassBin, evaluation, party, "histogram"),
    )


def points_of(kind: type[P], table: Mapping[str, Any], party: str, name: str) -> tuple[P, ...]:
    """Return points; raise DataError if a point is incomplete or impossible, which names the party and the point."""
    points = table.get(name, [])
    if not isinstance(points, list):
        raise DataError(f"the report of {party}: {name} is not a list")
    found = tuple(read(kind, {name: point}, party, name) for point in points)
    for number, point in enumerate(found):
        if not point.is_possible:
            raise DataError(f"the report of {party}: point {number} of {name} is impossible")
    return found


def _ranking(evaluation: Mapping[str, Any], party: str) -> tuple[RankingPoint, ...]:
    """Return counts that only grow, of rows of both classes: shares are made from them."""
    points = points_of(RankingPoint, evaluation, party, "ranking")
    start = RankingPoint(0.0, 0, 0)
    for before, after in pairwise([start, *points]):
        added = after.true_positives - before.true_positives, after.false_positives - before.false_positives
        if min(added) < 0 or not sum(added):
            raise DataError(f"the report of {party}: the counts of evaluation.ranking do not grow")
    if points and not (points[-1].true_positives and points[-1].false_positives):
        raise DataError(f"the report of {party}: evaluation.ranking ends without rows of both classes")
    return points


# --- plots -----------------------------------------------------------------------------------------------


def roc_plot(points: Sequence[RankingPoint]) -> Plot:
    positives, negatives = points[-1].true_positives, points[-1].false_positives
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9, linestyle="--")
    shares = [(p.false_positives / negatives, p.true_positives, positives) for p in points]
    _draw_band(axes, [(0.0, 0, positives), *shares])
    _unit_axes(axes, "share of negatives above the threshold", "of positives")
    note = f"{count(positives)} positives and {count(negatives)} negatives, at every threshold. {BAND}"
    return Plot("ROC", note, svg_of(figure))


def precision_recall_plot(points: Sequence[RankingPoint]) -> Plot:
    positives, negatives = points[-1].true_positives, points[-1].false_positives
    base = positives / (positives + negatives)
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.plot([0, 1], [base, base], color=MUTED, linewidth=0.9, linestyle="--")
    named = [(p.true_positives / positives, p.true_positives, p.true_positives + p.false_positives) for p in points]
    _draw_band(axes, named)
    _unit_axes(axes, "recall: share of positives above the threshold", "precision")
    note = f"Dashed: the share of positives, {percent(base)}, which is the precision of a guess. {BAND}"
    return Plot("Precision and recall", note, svg_of(figure))


def _draw_band(axes: Axes, shares: Sequence[tuple[float, int, int]]) -> None:
    """Draw the interval of each share, given as x, its part and its whole."""
    at = [x for x, _, _ in shares]
    low, high = zip(*(share_interval(part, whole) for _, part, whole in shares), strict=True)
    axes.fill_between(at, low, high, color=POSITIVE, alpha=0.18, linewidth=0)
    axes.plot(at, [part / whole for _, part, whole in shares], color=POSITIVE, linewidth=1.6)


def _unit_axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.04, 1.04)
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel(x, color=MUTED)
    axes.set_ylabel(y, color=MUTED)


def class_histogram(bins: Sequence[ClassBin]) -> Plot:
    """Return a histogram of each class, in shares of this class: one class may be rare."""
    figure, axes = figure_of(HEIGHT_INCHES)
    for label, colour, of_class in (
        ("negatives", NEGATIVE, [b.negatives for b in bins]),
        ("positives", POSITIVE, [b.positives for b in bins]),
    ):
        total = sum(of_class) or 1
        axes.stairs(
            [100 * rows / total for rows in of_class], _edges(bins), color=colour, fill=True, alpha=0.45, label=label
        )
    _histogram_axes(axes, "probability", "% of the class")
    axes.legend(frameon=False, fontsize=9)
    note = (
        "Test rows of each class by their probability: the less the two overlap, the better the model separates them."
    )
    return Plot("Scores by class", note, svg_of(figure))


def row_histogram(bins: Sequence[RowBin], of: str) -> Plot:
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.stairs([b.rows for b in bins], _edges(bins), color=POSITIVE, fill=True, alpha=0.6)
    _histogram_axes(axes, of, "rows")
    return Plot("Scores", f"The scored rows, by their {of}.", svg_of(figure))


def _histogram_axes(axes: Axes, x: str, y: str) -> None:
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=LINE, linewidth=0.7)
    axes.set_xlabel(x, color=MUTED)
    axes.set_ylabel(y, color=MUTED)


def _edges(bins: Sequence[ClassBin] | Sequence[RowBin]) -> list[float]:
    return [bins[0].low, *(b.high for b in bins)]


def lift_plot(points: Sequence[LiftPoint]) -> Plot:
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.plot([0, 100], [1, 1], color=MUTED, linewidth=0.9, linestyle="--")
    shares, lifts = [100 * p.share for p in points], [p.lift for p in points]
    axes.plot(shares, lifts, color=POSITIVE, linewidth=1.6, marker="o", markersize=4)
    axes.set_xlim(0, 102)
    axes.set_ylim(0, 1.08 * max(lifts))
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("best rows, % of the test rows", color=MUTED)
    note = "The share of positives among the rows with the highest probabilities, divided by the average share."
    return Plot("Lift", note, svg_of(figure))


def calibration_plot(points: Sequence[CalibrationPoint]) -> Plot:
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9, linestyle="--")
    at = [p.probability for p in points]
    low, high = zip(*(share_interval(round(p.positives * p.rows), p.rows) for p in points), strict=True)
    axes.vlines(at, low, high, color=NEGATIVE, linewidth=1.2, alpha=0.5)
    axes.plot(at, [p.positives for p in points], color=NEGATIVE, linewidth=1.2, marker="o", markersize=5)
    _unit_axes(axes, "mean probability", "share of positives")
    within = sum(a <= p.probability <= b for p, a, b in zip(points, low, high, strict=True))
    note = (
        f"Test rows in {count(len(points))} groups by probability, each with the range that holds its share with 95% "
        f"chance. For a calibrated model these ranges meet the dashed line: here {_of_all(within, len(points))}."
    )
    return Plot("Calibration", note, svg_of(figure))


def _of_all(some: int, every: int) -> str:
    if some == every:
        return "all do"
    return f"{count(some)} of {count(every)} do"
