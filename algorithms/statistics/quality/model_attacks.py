"""Leaks of a fitted logistic model about the rows of its fit: two attacks that need only the model.

- Membership: a row that was trained on tends to have a smaller loss than another row (Yeom et al. 2018, Privacy risk in
  machine learning: the loss threshold, without shadow models).
- Inversion: an attacker knows a row's label and all features but one. The attacker tries every value of that feature,
  and believes the values by which the model finds the label likelier (Fredrikson et al. 2014, 2015), each weighed by
  its frequency.

Each attack is measured on members and on non-members of the same population. An equal result for both is what features
and label reveal of each other, which no training can hide. A better result for members is what training revealed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.quality.metrics import auc

Labels = NDArray[np.bool_]
Predict = Callable[[Floats], Floats]
"""Raw features (n, columns) -> the model's probabilities (n,)."""

MOST_CANDIDATES = 32
_FALSE_POSITIVES = 0.01
_LEAST_ROWS = 10
_NEAR = 1e-12
_DIGITS = 12  # of a belief, because the order of a sum's terms must not rank rows


# --- measured figures ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Auc:
    """An area under the curve: 0.5 is worthless, 1 is perfect; low and high at the requested confidence."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Membership:
    """Result of a membership attack.

    Args:
        auc: AUC of the loss, members being the positives.
        advantage: the largest true-positive less false-positive rate of all thresholds.
        advantage_by_chance: bound for a model without any leak, at the requested confidence.
        tpr_at_low_fpr: share of members found with at most 1% of the non-members taken for members.
        members, non_members: numbers of rows.
    """

    auc: Auc
    advantage: float
    advantage_by_chance: float
    tpr_at_low_fpr: float
    members: int
    non_members: int

    @property
    def found(self) -> bool:
        """True if members are distinguished better than by chance."""
        return self.auc.low > 0.5


@dataclass(frozen=True)
class Inversion:
    """Result of an inversion attack.

    Args:
        column: column of the guessed value: above the non-members' middle, or not.
        members, non_members: quality of the guess for each.
        accuracy: accuracy of the guess, on members.
        baseline: accuracy, on members, of always guessing the value that is more common among the non-members.
    """

    column: str
    members: Auc
    non_members: Auc
    accuracy: float
    baseline: float

    @property
    def found(self) -> bool:
        """True if training revealed something: members are worse off than non-members beyond both uncertainties."""
        return self.members.low > max(0.5, self.non_members.high)


def auc_with_interval(truth: NDArray[np.bool_], scores: Floats, confidence: float) -> Auc:
    """Return the areas from which the measured one is not too far (Newcombe 2006, Statistics in Medicine 25, method 5).

    Unlike intervals around the measured area, this one has a width at 1 and at 0 too.
    """
    found = auc(truth, scores)
    positives = int(truth.sum())
    negatives = len(truth) - positives
    z = float(ndtri((1 + confidence) / 2))

    from scipy.optimize import brentq  # here, as it takes long to import, and the command line imports this

    def excess(area: float) -> float:
        return (found - area) ** 2 - z * z * _variance(area, positives, negatives)

    # At 1 and at 0 the measured area is itself a root, and not the right one.
    low = 0.0 if found == 0 else float(brentq(excess, 0.0, min(found, 1 - _NEAR)))
    high = 1.0 if found == 1 else float(brentq(excess, max(found, _NEAR), 1.0))
    return Auc(found, low, high)


def _variance(area: float, positives: int, negatives: int) -> float:
    n = (positives + negatives) / 2
    inflation = 2 * n - 1 - (3 * n - 3) / ((2 - area) * (1 + area))
    return area * (1 - area) * inflation / (positives * negatives)


# --- membership ---------------------------------------------------------------------------------


def row_losses(labels: Labels, probabilities: Floats) -> Floats:
    """Return -ln of the probability that the model gave to the label, one for each row."""
    given = np.where(labels, probabilities, 1 - probabilities)
    return np.asarray(-np.log(np.maximum(given, np.finfo(np.float64).tiny)))


def membership(member_losses: Floats, non_member_losses: Floats, confidence: float) -> Membership:
    _require_rows(len(member_losses), len(non_member_losses))
    members, others = len(member_losses), len(non_member_losses)
    truth = np.concatenate((np.ones(members, dtype=bool), np.zeros(others, dtype=bool)))
    area = auc_with_interval(truth, -np.concatenate((member_losses, non_member_losses)), confidence)
    true_positives, false_positives = _rates(member_losses, non_member_losses)
    return Membership(
        auc=area,
        advantage=float(np.max(true_positives - false_positives)),
        advantage_by_chance=_chance(members, others, confidence),
        tpr_at_low_fpr=float(np.max(true_positives[false_positives <= _FALSE_POSITIVES])),
        members=members,
        non_members=others,
    )


def _rates(member_losses: Floats, non_member_losses: Floats) -> tuple[Floats, Floats]:
    """Return the shares of both sides with a loss up to every threshold; the lowest threshold takes no row."""
    thresholds = np.unique(np.concatenate((member_losses, non_member_losses)))
    both = [np.searchsorted(np.sort(side), thresholds, side="right") / len(side)
            for side in (member_losses, non_member_losses)]  # fmt: skip
    return np.append(0.0, both[0]), np.append(0.0, both[1])


def _chance(members: int, others: int, confidence: float) -> float:
    """Bound, by Massart, the one-sided distance of two empirical laws that are the same, in its large-sample form."""
    return math.sqrt(-math.log(1 - confidence) / 2 * (members + others) / (members * others))


# --- inversion ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows as they were read: features (n, columns), labels (n,)."""

    features: Floats
    labels: Labels


def inversion(
    predict: Predict, members: Table, non_members: Table, column: int, name: str, confidence: float
) -> Inversion:
    """Measure an inversion; raise DataError for too few rows, or a column without a value to guess."""
    _require_rows(len(members.labels), len(non_members.labels))
    known = non_members.features[:, column]
    middle = _middle(known, name)
    candidates = np.quantile(known, _evenly(min(MOST_CANDIDATES, len(known))), method="inverted_cdf")
    truths = [table.features[:, column] > middle for table in (members, non_members)]
    for truth, whose in zip(truths, ("members", "non-members"), strict=True):
        if truth.all() or not truth.any():
            raise DataError(f"column {name}: nothing to guess, as all {whose} lie on one side of {middle:g}")
    beliefs = [_belief(predict, table, column, candidates, middle) for table in (members, non_members)]
    common = bool((known > middle).mean() > 0.5)
    return Inversion(
        column=name,
        members=auc_with_interval(truths[0], beliefs[0], confidence),
        non_members=auc_with_interval(truths[1], beliefs[1], confidence),
        accuracy=float(np.mean((beliefs[0] > 0.5) == truths[0])),
        baseline=float(np.mean(truths[0] == common)),
    )


def _middle(values: Floats, name: str) -> float:
    """Return a number between two values, with about as many values above as below."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        raise DataError(f"column {name} has the same value in every non-member: there is nothing to guess")
    nearest = int(np.argmin(np.abs(np.searchsorted(np.sort(values), distinct[1:]) / len(values) - 0.5)))
    return float((distinct[nearest] + distinct[nearest + 1]) / 2)


def _evenly(n: int) -> Floats:
    return (np.arange(n) + 0.5) / n


def _belief(predict: Predict, table: Table, column: int, candidates: Floats, middle: float) -> Floats:
    """Return the attacker's belief that the value lies above the middle, given the rest of the row and the label."""
    above, total = np.zeros(len(table.labels)), np.zeros(len(table.labels))
    tried = table.features.copy()
    for candidate in candidates:
        tried[:, column] = candidate
        likelihood = np.exp(-row_losses(table.labels, predict(tried)))
        total += likelihood
        if candidate > middle:
            above += likelihood
    return np.round(above / total, _DIGITS)


def _require_rows(members: int, non_members: int) -> None:
    for whose, n in (("members", members), ("non-members", non_members)):
        if n < _LEAST_ROWS:
            raise DataError(f"{n} {whose} are too few to measure an attack", hint=f"give {_LEAST_ROWS} rows or more")
