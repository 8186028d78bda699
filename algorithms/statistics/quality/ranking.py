"""A classifier's ranking of rows: the counts behind its ROC and precision-recall curves, and scores by class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
MOST_OF_A_CLASS = 50  # points of a curve, equally far apart in positives; and as many in negatives
HISTOGRAM_BINS = 20


def average_precision(positive: Booleans, probabilities: Floats) -> float:
    """Return the area under the precision-recall curve, by steps: precision, weighted by each cut's gain in recall."""
    _, true, false = _cuts(positive, probabilities)
    return float(np.sum(np.diff(true, prepend=0) / true[-1] * true / (true + false)))


def ranking_curve(positive: Booleans, probabilities: Floats) -> list[dict[str, Any]]:
    """Count, from the highest probability down, the rows of each class with at least that probability.

    Returns:
        Up to 2 MOST_OF_A_CLASS tables {threshold, true_positives, false_positives}; the last has all rows.
    """
    thresholds, true, false = _cuts(positive, probabilities)
    kept = np.unique(np.concatenate([_apart(true), _apart(false), [len(thresholds) - 1]]))
    return [
        {"threshold": float(thresholds[i]), "true_positives": int(true[i]), "false_positives": int(false[i])}
        for i in kept
    ]


def probability_histogram(probabilities: Floats, positive: Booleans | None = None) -> list[dict[str, Any]]:
    """Count rows by probability, in bins of equal width.

    Returns:
        HISTOGRAM_BINS tables {low, high, rows}, or with `positive` {low, high, positives, negatives}.
    """
    if positive is None:
        return _histogram({"rows": probabilities}, 0.0, 1.0)
    return _histogram({"positives": probabilities[positive], "negatives": probabilities[~positive]}, 0.0, 1.0)


def value_histogram(values: Floats) -> list[dict[str, Any]]:
    """Count predicted values, in bins of equal width between the least and the largest."""
    return _histogram({"rows": values}, float(values.min()), float(values.max())) if len(values) else []


def _histogram(parts: dict[str, Floats], low: float, high: float) -> list[dict[str, Any]]:
    edges = np.histogram_bin_edges(np.zeros(0), HISTOGRAM_BINS, (low, high))
    counts = {name: np.histogram(values, edges)[0] for name, values in parts.items()}
    return [
        {"low": float(edges[b]), "high": float(edges[b + 1]), **{name: int(each[b]) for name, each in counts.items()}}
        for b in range(HISTOGRAM_BINS)
    ]


def _cuts(positive: Booleans, probabilities: Floats) -> tuple[Floats, Integers, Integers]:
    """Return each probability that occurs, from the highest, and the rows of each class with at least that."""
    order = np.argsort(-probabilities, kind="stable")
    ranked = probabilities[order]
    last_of_ties = np.append(np.diff(ranked) < 0, True)
    true, false = (np.cumsum(rows[order])[last_of_ties] for rows in (positive, ~positive))
    return ranked[last_of_ties], true, false


def _apart(counts: Integers) -> Integers:
    """Return the places where cumulative counts first reach each of MOST_OF_A_CLASS equal steps."""
    return np.searchsorted(counts, np.linspace(1, counts[-1], MOST_OF_A_CLASS)).astype(np.int64)
