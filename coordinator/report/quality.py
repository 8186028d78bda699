"""Quality of a model on its test rows, in the words of pages and of the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from blindfit.algorithms.statistics.quality.intervals import Range, auc_interval, share_interval
from blindfit.coordinator.report.evaluation import Evaluation
from blindfit.coordinator.report.page import UNKNOWN, Card
from blindfit.coordinator.report.plots import Plot
from blindfit.coordinator.terminal.wording import count, figure, percent, quantity
from blindfit.parties.training.quality import ClassFigures, Confusion

CLOSE = 0.85  # a slope, or its inverse, above this is nearly right
OUT_OF_FOLD = "out of fold"
FIGURES_OUT_OF_FOLD = (
    "Log loss, accuracy, confusion matrix, calibration and histogram are out of fold: each half of the test rows is "
    "judged by a slope and offset that were fitted to the other half. The other figures are not affected. The active "
    "party's test_scores.csv has both probabilities of each test row."
)


@dataclass(frozen=True)
class Cell:
    """A cell of the confusion matrix."""

    count: str
    name: str
    is_right: bool


def cards(evaluation: Evaluation | None) -> Iterator[Card]:
    """Yield the cards, the most informative first."""
    if evaluation is not None and evaluation.classes is not None:
        classes = evaluation.classes
        note = _range(auc_range(evaluation)) or f"KS {classes.ks:.3f}"
        yield Card("AUC", f"{classes.auc:.4f}", f"{note}, on {quantity(classes.rows, 'test row')}")
        yield Card("Log loss", f"{classes.log_loss:.4f}", _before(classes) or "on the test rows")
        at = f"at probability {figure(classes.threshold)}"
        how = f"{at}, {OUT_OF_FOLD}" if classes.is_calibrated else at
        yield Card("Accuracy", percent(classes.accuracy), f"{how}; {by_the_larger_class(classes)}")
    if evaluation is not None and evaluation.values is not None:
        values = evaluation.values
        yield Card("R squared", f"{values.r2:.4f}", f"on {quantity(values.rows, 'test row')}")
        yield Card("Mean squared error", figure(values.mse), "on the test rows")
        if values.mae is not None:
            yield Card("Mean absolute error", figure(values.mae), "on the test rows")


def lines(evaluation: Evaluation | None) -> Iterator[tuple[str, str]]:
    """Yield the lines of the page's table."""
    if evaluation is not None and evaluation.classes is not None:
        classes = evaluation.classes
        yield "AUC", f"{classes.auc:.4f}{_in_brackets(auc_range(evaluation))}"
        if classes.average_precision is not None:
            yield "Average precision", f"{classes.average_precision:.4f}"
        yield "KS statistic", f"{classes.ks:.4f}"
        fold = f", {OUT_OF_FOLD}" if classes.is_calibrated else ""
        yield f"Log loss{fold}", f"{classes.log_loss:.4f}"
        if classes.is_calibrated:
            yield "Log loss before calibration", figure(classes.log_loss_before or classes.log_loss)
        possible = 0 <= classes.accuracy <= 1  # a peer may have reported any number
        right = round(classes.accuracy * classes.rows) if possible else -1
        yield f"Accuracy at {figure(classes.threshold)}{fold}", _share(right, classes.rows)
        yield "Accuracy of always guessing the larger class", percent(classes.confusion.larger_class)
        yield from _rates(classes.confusion, fold)
    if evaluation is not None and evaluation.values is not None:
        yield "R squared", f"{evaluation.values.r2:.4f}"
        yield "Mean squared error", figure(evaluation.values.mse)
        if evaluation.values.mae is not None:
            yield "Mean absolute error", figure(evaluation.values.mae)


def by_the_larger_class(classes: ClassFigures) -> str:
    """Return the accuracy to compare the model's accuracy with."""
    return f"always guessing the larger class: {classes.confusion.larger_class:.4f}"


def _before(classes: ClassFigures) -> str:
    """Return the log loss before calibration; an empty text if nothing was calibrated."""
    if classes.log_loss_before is None:
        return ""
    return f"{OUT_OF_FOLD}; {classes.log_loss_before:.4f} before calibration"


def remark(evaluation: Evaluation | None) -> str:
    """Return how the probabilities were calibrated and the figures were made; empty without calibration."""
    classes = None if evaluation is None else evaluation.classes
    if classes is None or classes.slope is None or classes.offset is None:
        return ""
    return f"Calibrated: {calibration(classes.slope, classes.offset)}. {FIGURES_OUT_OF_FOLD}"


def calibration(slope: float, offset: float) -> str:
    """Return the calibration and its effect."""
    return f"log odds x {figure(slope)} {offset:+.4g}: {_describe_slope(slope)}"


def _describe_slope(slope: float) -> str:
    if slope > 1 / CLOSE:
        return f"as trained, log odds were {percent(1 / slope)} of their right size: too cautious"
    if slope < CLOSE:
        return f"as trained, log odds were {percent(1 / slope)} of their right size: too sure"
    return "as trained, log odds were nearly right"


def _rates(cells: Confusion, fold: str) -> Iterator[tuple[str, str]]:
    yield f"Precision{fold}", _share(cells.true_positives, cells.true_positives + cells.false_positives)
    yield f"Recall{fold}", _share(cells.true_positives, cells.positives)


def _share(part: int, whole: int) -> str:
    """Return a share with its interval; a peer may have reported any numbers."""
    if not 0 <= part <= whole or not whole:
        return UNKNOWN
    return f"{part / whole:.4f}{_in_brackets(share_interval(part, whole))}"


def auc_range(evaluation: Evaluation) -> Range | None:
    """Return the range of the AUC; None if the number of rows of each class is not known."""
    classes = evaluation.classes
    if classes is None or not 0 <= classes.auc <= 1:
        return None
    cells = classes.confusion
    if cells.positives < 1 or cells.negatives < 1:
        return None
    return auc_interval(classes.auc, cells.positives, cells.negatives)


def _range(found: Range | None) -> str:
    return "" if found is None else f"{found[0]:.3f} to {found[1]:.3f}"


def _in_brackets(found: Range | None) -> str:
    return "" if found is None else f" ({_range(found)})"


def matrix(evaluation: Evaluation | None) -> list[tuple[str, list[Cell]]] | None:
    """Return the matrix: rows are true classes, columns are predicted classes."""
    if evaluation is None or evaluation.classes is None:
        return None
    confusion = evaluation.classes.confusion
    return [
        (
            "positive",
            [
                Cell(count(confusion.true_positives), "true positives", True),
                Cell(count(confusion.false_negatives), "false negatives", False),
            ],
        ),
        (
            "negative",
            [
                Cell(count(confusion.false_positives), "false positives", False),
                Cell(count(confusion.true_negatives), "true negatives", True),
            ],
        ),
    ]


def warn_of_no_gain(evaluation: Evaluation | None, advice: str) -> str:
    """Return a caution if a constant would predict the test rows at least as well; else an empty text.

    Args:
        advice: sentence about options to change.
    """
    if evaluation is None:
        return ""
    if evaluation.values is not None and not evaluation.values.r2 > 0:
        r2 = evaluation.values.r2
        return (
            f"On the test rows the model predicts no better than the mean label (R squared {r2:.4g}): it has learned "
            f"nothing, or the training has diverged. {advice}"
        )
    if evaluation.classes is None:
        return ""
    loss, constant = evaluation.classes.log_loss, _loss_of_constant(evaluation.classes.confusion)
    if loss < constant or not constant:
        return ""
    return (
        f"On the test rows the model's log loss is {figure(loss)}; one probability for every row would have "
        f"{figure(constant)}: the model has learned nothing, or the training has diverged. {advice}"
    )


def _loss_of_constant(cells: Confusion) -> float:
    """Return the log loss of the share of positives as every row's probability; 0 for impossible numbers."""
    if cells.positives < 1 or cells.negatives < 1:
        return 0.0
    shares = [of_class / (cells.positives + cells.negatives) for of_class in (cells.positives, cells.negatives)]
    return -sum(share * math.log(share) for share in shares)


def plots(evaluation: Evaluation | None) -> list[Plot]:
    return [] if evaluation is None else evaluation.curves.plots()


def in_short(evaluation: Evaluation | None) -> str:
    """Return the terminal's line; an empty text without figures."""
    if evaluation is not None and evaluation.classes is not None:
        c = evaluation.classes
        fold = f" ({OUT_OF_FOLD})" if c.is_calibrated else ""
        figures = f"AUC {c.auc:.4f}, KS {c.ks:.4f}, log loss {c.log_loss:.4f}{fold}, accuracy {c.accuracy:.4f}{fold}"
        return f"{figures}; {by_the_larger_class(c)}"
    if evaluation is not None and evaluation.values is not None:
        return f"R squared {evaluation.values.r2:.4f}, mean squared error {figure(evaluation.values.mse)}"
    return ""
