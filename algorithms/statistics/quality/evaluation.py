"""The quality of a model on rows that it was not trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.quality import metrics
from blindfit.algorithms.statistics.quality.ranking import average_precision, probability_histogram, ranking_curve

Floats = npt.NDArray[np.float64]
BINS = 10


def evaluate_classes(labels: Floats, probabilities: Floats, threshold: float) -> dict[str, Any]:
    """Evaluate a binary classifier.

    Args:
        labels: (n,) 0 or 1. probabilities: (n,). threshold: threshold of the confusion matrix and the accuracy.

    Returns:
        auc, average_precision, ks, accuracy, log_loss; confusion (true and false positives and negatives); lift of the
        best tenths of the rows; calibration (mean probability and share of positives in tenths). Also ranking (counts
        at cuts, for ROC and precision-recall curves) and histogram (of the probabilities, by class).


    Raises:
        DataError: no rows, or all of one class.
    """
    positive = labels > 0
    if not len(labels) or positive.all() or not positive.any():
        raise DataError("an evaluation needs rows of both classes", hint="raise split.test_fraction")
    predicted = probabilities >= threshold
    return {
        "rows": len(labels),
        "auc": metrics.auc(positive, probabilities),
        "average_precision": average_precision(positive, probabilities),
        "ks": kolmogorov_smirnov(positive, probabilities),
        "accuracy": float(np.mean(predicted == positive)),
        "log_loss": metrics.log_loss(positive, probabilities),
        "threshold": threshold,
        "confusion": {
            "true_positives": int((predicted & positive).sum()),
            "false_positives": int((predicted & ~positive).sum()),
            "true_negatives": int((~predicted & ~positive).sum()),
            "false_negatives": int((~predicted & positive).sum()),
        },
        "lift": lift(positive, probabilities),
        "calibration": calibration(positive, probabilities),
        "ranking": ranking_curve(positive, probabilities),
        "histogram": probability_histogram(probabilities, positive),
    }


def evaluate_values(values: Floats, predictions: Floats) -> dict[str, Any]:
    """Evaluate a regression: mean squared and absolute error, and the share of the variance explained."""
    if not len(values):
        raise DataError("an evaluation needs rows", hint="raise split.test_fraction")
    errors = predictions - values
    variance = float(np.var(values))
    mse = float(np.mean(errors**2))
    return {
        "rows": len(values),
        "mse": mse,
        "mae": float(np.mean(np.abs(errors))),
        "r2": 1 - mse / variance if variance > 0 else 0.0,
    }


def kolmogorov_smirnov(positive: npt.NDArray[np.bool_], ranking: Floats) -> float:
    """Return the largest distance between the two classes' distributions of the score."""
    order = np.argsort(ranking, kind="stable")
    sorted_positive, sorted_ranking = positive[order], ranking[order]
    gap = np.cumsum(sorted_positive) / positive.sum() - np.cumsum(~sorted_positive) / (~positive).sum()
    last_of_ties = np.append(np.diff(sorted_ranking) > 0, True)
    return float(np.abs(gap[last_of_ties]).max())


def lift(positive: npt.NDArray[np.bool_], ranking: Floats) -> list[dict[str, float]]:
    """Return, for the best 10%, 20% .. of the rows, their share of positives over that of all rows."""
    order = np.argsort(-ranking, kind="stable")
    base = float(positive.mean())
    cuts = [max(1, round(len(order) * tenth / BINS)) for tenth in range(1, BINS + 1)]
    return [{"share": cut / len(order), "lift": float(positive[order[:cut]].mean()) / base} for cut in cuts]


def calibration(positive: npt.NDArray[np.bool_], probabilities: Floats) -> list[dict[str, float]]:
    """Return, for tenths of the rows by probability, mean probability and share of positives."""
    order = np.argsort(probabilities, kind="stable")
    return [
        {
            "rows": len(part),
            "probability": float(probabilities[part].mean()),
            "positives": float(positive[part].mean()),
        }
        for part in np.array_split(order, min(BINS, len(order)))
    ]
