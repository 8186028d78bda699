"""Probabilities from scores whose scale is off: p = sigmoid(slope z + offset), fitted on held-out rows.

Source: Platt 1999, "Probabilistic outputs for support vector machines", with the smoothed targets: with them, rows that
the scores separate without a mistake give no infinite slope.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.statistics.linear.logistic import RealRows, sigmoid
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit

Floats = npt.NDArray[np.float64]
LEAST_ROWS = 20  # of a fit: fewer rows determine a slope no better than a guess


@dataclass(frozen=True, slots=True)
class Platt:
    """Slope and offset; the identity unless they were fitted."""

    slope: float = 1.0
    offset: float = 0.0

    def probabilities(self, scores: Floats) -> Floats:
        return sigmoid(self.slope * scores + self.offset)


IDENTITY = Platt()


def fit_platt(scores: Floats, positive: npt.NDArray[np.bool_]) -> Platt | None:
    """Fit slope and offset; None if rows are few, have one class, or their scores do not predict the label."""
    positives = int(positive.sum())
    negatives = len(positive) - positives
    spread = float(np.std(scores))
    if len(scores) < LEAST_ROWS or not positives or not negatives or not 0 < spread < np.inf:
        return None
    targets = np.where(positive, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    rows = np.column_stack([scores / spread, np.ones(len(scores))])
    try:
        found = fit(RealRows(rows), rows.T @ targets / len(rows), SolverSettings(l2=0.0))
    except BlindfitError:
        return None
    slope, offset = float(found.weights[0]) / spread, float(found.weights[1])
    usable = found.converged and slope > 0 and np.isfinite([slope, offset]).all()
    return Platt(slope, offset) if usable else None


def out_of_fold(scores: Floats, positive: npt.NDArray[np.bool_]) -> Floats | None:
    """Return the probability of each row by a fit to the other half of the rows; None if a half gives no fit.

    Rows come in a random order, so halves are the first and the last.
    """
    half = len(scores) // 2
    halves = slice(None, half), slice(half, None)
    fits = [fit_platt(scores[rows], positive[rows]) for rows in halves]
    if fits[0] is None or fits[1] is None:
        return None
    return np.concatenate([fits[1].probabilities(scores[halves[0]]), fits[0].probabilities(scores[halves[1]])])
