"""Ranges that hold a figure with 95 % chance, over which rows happened to be the test rows."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

LEVEL = 0.95
Range = tuple[float, float]
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_EDGE = 1e-9  # of an AUC: at 0 and at 1 its variance is none


def share_interval(part: int, whole: int) -> Range:
    """Of a share of rows: Wilson's, which is neither empty nor outside [0, 1] at 0 and at 1."""
    from scipy.stats import binomtest  # here, as it takes long to import, and few commands draw

    found = binomtest(part, whole).proportion_ci(LEVEL, method="wilson")
    return float(found.low), float(found.high)


def auc_interval(auc: float, positives: int, negatives: int) -> Range:
    """Newcombe's method 5, which is not empty at an AUC of 1 either.

    Source: Newcombe 2006, "Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part
    2", from the variance of Hanley and McNeil 1982.
    """
    return _auc_end(auc, positives, negatives, 0.0), _auc_end(auc, positives, negatives, 1.0)


def _auc_end(auc: float, positives: int, negatives: int, outermost: float) -> float:
    """The true AUC, towards `outermost`, from which the one that was seen is z standard deviations away."""
    from scipy.optimize import brentq

    def beyond(true: float) -> float:
        correlated = 1 + ((positives + negatives) / 2 - 1) * ((1 - true) / (2 - true) + true / (1 + true))
        return abs(auc - true) - _Z * sqrt(true * (1 - true) * correlated / (positives * negatives))

    if auc == outermost:
        return outermost
    return float(brentq(beyond, min(max(auc, _EDGE), 1 - _EDGE), outermost))
