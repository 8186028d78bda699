"""Ranges that hold a figure with a chance of 95%, over the random choice of test rows.

The formulas are written out here: scipy.stats has the first, but its import takes longer than writing a report.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

LEVEL = 0.95
Range = tuple[float, float]
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_EDGE = 1e-9  # of an AUC: at 0 and at 1 its variance would be 0
_HALVINGS = 50  # to the last bit that a page could show


def share_interval(part: int, whole: int) -> Range:
    """Return Wilson's interval of a share of rows, which is neither empty nor outside [0, 1] at 0 and at 1.

    Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference".
    """
    share, square = part / whole, _Z**2 / whole
    middle = share + square / 2
    half = _Z * sqrt((share * (1 - share) + square / 4) / whole)
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return (0.0 if not part else low), (1.0 if part == whole else high)  # which rounding would miss


def auc_interval(auc: float, positives: int, negatives: int) -> Range:
    """Return the interval by Newcombe's method 5, which is not empty at an AUC of 1 either.

    Source: Newcombe 2006, "Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part
    2", from the variance of Hanley and McNeil 1982.
    """
    return _auc_end(auc, positives, negatives, 0.0), _auc_end(auc, positives, negatives, 1.0)


def _auc_end(auc: float, positives: int, negatives: int, outermost: float) -> float:
    """Return the true AUC, towards `outermost`, from which the measured AUC is z standard deviations away."""

    def is_too_far(true: float) -> bool:
        correlated = 1 + ((positives + negatives) / 2 - 1) * ((1 - true) / (2 - true) + true / (1 + true))
        return abs(auc - true) > _Z * sqrt(true * (1 - true) * correlated / (positives * negatives))

    near, far = min(max(auc, _EDGE), 1 - _EDGE), outermost
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if is_too_far(middle) else (middle, far)
    return auc if auc == outermost else near
