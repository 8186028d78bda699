"""Measure the scores of held-out rows: one set of figures for all systems and baselines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.statistics.quality import metrics
from blindfit.algorithms.statistics.quality.evaluation import evaluate_values

Floats = NDArray[np.float64]
SURE = 0.001


@dataclass(frozen=True)
class Quality:
    """Figures of scores.

    Attributes:
        auc, log_loss: figures for labels 0 and 1; None if the label is a number.
        r2: share of the variance that a linear model explains; None if labels are 0 and 1.
    """

    auc: float | None = None
    log_loss: float | None = None
    r2: float | None = None

    @property
    def figures(self) -> dict[str, float]:
        """Return the known figures by name."""
        found = {"auc": self.auc, "log_loss": self.log_loss, "r2": self.r2}
        return {name: value for name, value in found.items() if value is not None}


def quality_of(truth: Floats, scores: Floats, *, is_linear: bool) -> Quality:
    """Return the quality of scores.

    A label-dp model predicts a value for labels 0 and 1, which may be below 0 or above 1. If any score is outside, the
    log
    loss takes all scores as probabilities between 0.001 and 0.999.

    Args:
        truth: (n,) labels. scores: (n,) probabilities, or predicted values.
        is_linear: True if the label is a number.
    """
    if is_linear:
        return Quality(r2=float(evaluate_values(truth, scores)["r2"]))
    is_probability = bool(((scores >= 0) & (scores <= 1)).all())
    probabilities = scores if is_probability else np.clip(scores, SURE, 1 - SURE)
    return Quality(auc=metrics.auc(truth, scores), log_loss=metrics.log_loss(truth, probabilities))
