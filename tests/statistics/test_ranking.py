"""Counts behind curves, and the ranges of figures, compared with scikit-learn and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binomtest, norm
from sklearn.metrics import average_precision_score, roc_auc_score

from blindfit.algorithms.statistics.quality.intervals import auc_interval, share_interval
from blindfit.algorithms.statistics.quality.ranking import (
    HISTOGRAM_BINS,
    MOST_OF_A_CLASS,
    average_precision,
    probability_histogram,
    ranking_curve,
    value_histogram,
)
from tests.each_case import each_case


def scored(rows: int, ties: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows)
    positive = rng.random(rows) < 0.2
    probabilities = 1 / (1 + np.exp(-rng.normal(loc=1.5 * positive - 1)))
    return positive, probabilities if ties is None else np.round(probabilities * ties) / ties


@each_case(("rows", "ties"), [(10, None), (300, None), (300, 4), (5000, None), (5000, 100)])
def test_average_precision_is_that_of_scikit_learn(rows: int, ties: int | None) -> None:
    positive, probabilities = scored(rows, ties)
    expected = average_precision_score(positive, probabilities)
    assert average_precision(positive, probabilities) == pytest.approx(expected, abs=1e-12)


@each_case(("rows", "ties"), [(10, None), (300, 4), (5000, None)])
def test_each_point_of_the_curve_counts_the_rows_above_its_threshold(rows: int, ties: int | None) -> None:
    positive, probabilities = scored(rows, ties)
    points = ranking_curve(positive, probabilities)
    assert len(points) <= 2 * MOST_OF_A_CLASS
    for point in points:
        above = probabilities >= point["threshold"]
        assert point["true_positives"] == (above & positive).sum()
        assert point["false_positives"] == (above & ~positive).sum()
    assert (points[-1]["true_positives"], points[-1]["false_positives"]) == (positive.sum(), (~positive).sum())


def test_few_points_tell_the_area_of_many_rows() -> None:
    positive, probabilities = scored(20_000)
    points = ranking_curve(positive, probabilities)
    true, false = (
        np.array([0, *(point[name] for point in points)]) / points[-1][name]
        for name in ("true_positives", "false_positives")
    )
    assert np.trapezoid(true, false) == pytest.approx(roc_auc_score(positive, probabilities), abs=1e-3)


def test_every_row_is_in_one_bin_of_its_class() -> None:
    positive, probabilities = scored(1000)
    probabilities[:2] = 0.0, 1.0
    bins = probability_histogram(probabilities, positive)
    assert (len(bins), bins[0]["low"], bins[-1]["high"]) == (HISTOGRAM_BINS, 0.0, 1.0)
    assert sum(b["positives"] for b in bins) == positive.sum()
    assert sum(b["negatives"] for b in bins) == (~positive).sum()
    first = probabilities < bins[0]["high"]
    assert probability_histogram(probabilities)[0] == {"low": 0.0, "high": 0.05, "rows": int(first.sum())}


def test_values_are_binned_from_the_least_to_the_largest() -> None:
    bins = value_histogram(np.array([-3.0, 5.0, 5.0]))
    assert (bins[0]["low"], bins[-1]["high"], bins[0]["rows"], bins[-1]["rows"]) == (-3.0, 5.0, 1, 2)
    assert sum(b["rows"] for b in value_histogram(np.full(4, 2.0))) == 4  # all alike
    assert value_histogram(np.zeros(0)) == []


# --- ranges ------------------------------------------------------------------------------------------


def test_ranges_of_shares_are_those_of_wilson() -> None:
    """Wilson's own example of 1927 in Newcombe's table of 1998: 81 of 263, 0.2553 to 0.3662; and 0 of
    20, 0 to 0.1611.
    """
    assert share_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert share_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


@each_case("whole", [1, 2, 30, 10_000])
def test_ranges_of_shares_are_those_of_scipy(whole: int) -> None:
    for part in {0, 1, whole // 3, whole - 1, whole}:
        expected = binomtest(part, whole).proportion_ci(method="wilson")
        assert share_interval(part, whole) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("auc", "low"), [(0.8, 0.6), (0.95, 0.5)])
def test_ends_of_an_auc_are_where_the_score_is_z(auc: float, low: float) -> None:
    """Another root finder agrees; the score falls from the end to the AUC."""

    def score(true: float) -> float:
        correlated = 1 + 39 * ((1 - true) / (2 - true) + true / (1 + true))
        return (auc - true) / np.sqrt(true * (1 - true) * correlated / (30 * 50)) - norm.ppf(0.975)

    assert auc_interval(auc, 30, 50)[0] == pytest.approx(brentq(score, low, auc), abs=1e-9)


@each_case(("positives", "negatives"), [(1, 1), (5, 200), (50, 50)])
@each_case("auc", [0.0, 0.3, 0.5, 0.97, 1.0])
def test_a_range_of_an_auc_holds_it_and_is_never_empty(auc: float, positives: int, negatives: int) -> None:
    low, high = auc_interval(auc, positives, negatives)
    assert 0 <= low <= auc <= high <= 1
    assert high - low > 0.01


@pytest.mark.parametrize("distance", [0.5, 1.5, 2.5])
def test_the_range_of_an_auc_holds_the_true_one(distance: float) -> None:
    """The range holds it 19 times in 20, for normal scores with a known AUC. Below 90% of 1,000 has a chance under
    1e-9.
    """
    rng = np.random.default_rng(7)
    truth, held = norm.cdf(distance / np.sqrt(2)), 0
    for scores in rng.normal(size=(1000, 90)):
        found = (scores[:30, None] + distance > scores[30:]).mean()  # an AUC is the share of pairs in order
        low, high = auc_interval(found, 30, 60)
        held += low <= truth <= high
    assert held >= 900
