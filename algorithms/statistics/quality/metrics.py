"""The quality of predictions, from 0/1 labels and one probability for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.linear.logistic import Floats


def log_loss(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """Return the mean of -log(probability of the label that occurred).

    Probabilities are kept one rounding step away from 0 and 1, as scikit-learn does, so one confident mistake costs 36.
    """
    happened, given = _check(labels, probabilities)
    smallest = np.finfo(np.float64).eps
    inside = np.clip(given, smallest, 1 - smallest)
    return float(-np.mean(np.where(happened, np.log(inside), np.log1p(-inside))))


def normalised_entropy(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """Divide the log loss by that of always predicting the rate of these labels: 1 is worthless, 0 perfect."""
    happened, given = _check(labels, probabilities)
    _require_both_classes(happened, "normalised entropy")
    return log_loss(happened, given) / log_loss(happened, np.full(len(happened), happened.mean()))


def gain_kept(private: float, non_private: float, constant: float) -> float:
    """Share the gain in log loss: the private model's part of the non-private model's gain over the constant.

    1 is the whole gain, 0 as good as the constant, below 0 worse than the constant. The arguments are log losses.
    """
    gain = constant - non_private
    if not gain > 0:
        raise DataError(
            f"the non-private model's log loss {non_private:.6g} is no better than the constant's, {constant:.6g}: "
            "there is no gain to keep"
        )
    return (constant - private) / gain


def auc(labels: ArrayLike, ranking: ArrayLike) -> float:
    """Return P(a random positive scores above a random negative), ties counting half (Mann and Whitney's U)."""
    happened, given = _check(labels, ranking, probabilities=False)
    _require_both_classes(happened, "AUC")
    positives, negatives = given[happened], np.sort(given[~happened])
    below, not_above = (int(np.searchsorted(negatives, positives, side).sum()) for side in ("left", "right"))
    return (below + not_above) / (2 * len(positives) * len(negatives))


def accuracy(labels: ArrayLike, probabilities: ArrayLike, threshold: float = 0.5) -> float:
    """Return the share of rows with the right class; the class is 1 if the probability is above the threshold."""
    happened, given = _check(labels, probabilities)
    return float(np.mean((given > threshold) == happened))


@dataclass(frozen=True)
class CalibrationBin:
    """Rows whose probability lies in (low, high], the first bin including 0."""

    low: float
    high: float
    n_rows: int
    mean_probability: float
    label_rate: float


def calibration_table(labels: ArrayLike, probabilities: ArrayLike, n_bins: int = 10) -> list[CalibrationBin]:
    """Compare predictions with labels, over equal bins of the probability; empty bins are left out."""
    if n_bins < 1:
        raise ConfigError(f"n_bins must be at least 1, not {n_bins}")
    happened, given = _check(labels, probabilities)
    edges = np.linspace(0, 1, n_bins + 1)
    bins = np.searchsorted(edges[1:-1], given)
    counts = np.bincount(bins, minlength=n_bins)
    predicted = np.bincount(bins, weights=given, minlength=n_bins)
    positives = np.bincount(bins, weights=happened, minlength=n_bins)
    return [
        CalibrationBin(
            float(edges[b]),
            float(edges[b + 1]),
            int(counts[b]),
            predicted[b] / counts[b],
            positives[b] / counts[b],
        )
        for b in np.flatnonzero(counts)
    ]


def _check(
    labels: ArrayLike, given: ArrayLike, *, probabilities: bool = True
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Floats]:
    label_array, values = np.asarray(labels), np.asarray(given, dtype=np.float64)
    if label_array.ndim != 1 or label_array.shape != values.shape or not len(values):
        raise DataError(f"labels of shape {label_array.shape} do not go with predictions of shape {values.shape}")
    bad_label = ~np.isin(label_array, (0, 1))
    if bad_label.any():
        raise DataError(f"row {int(np.argmax(bad_label))}: the label is neither 0 nor 1")
    bad = ~((values >= 0) & (values <= 1)) if probabilities else ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"row {row}: {values[row]} is not a {'probability' if probabilities else 'finite score'}")
    return label_array.astype(bool), values


def _require_both_classes(happened: np.ndarray[tuple[int], np.dtype[np.bool_]], metric: str) -> None:
    if happened.all() or not happened.any():
        raise DataError(f"all {len(happened)} labels are {int(happened[0])}: {metric} needs both classes")
