"""Slope and offset of log odds, fitted to rows that a model was not trained on."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.statistics.linear.platt import LEAST_ROWS, fit_platt, out_of_fold
from blindfit.algorithms.statistics.quality import metrics
from tests.each_case import each_case


def drawn(rows: int, slope: float, offset: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores, and classes whose log odds are slope x score + offset."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rows)
    return scores, rng.random(rows) < 1 / (1 + np.exp(-(slope * scores + offset)))


def test_the_slope_is_found() -> None:
    found = fit_platt(*drawn(20_000, 2.5, -1.0))
    assert found is not None
    assert (found.slope, found.offset) == (pytest.approx(2.5, abs=0.15), pytest.approx(-1.0, abs=0.1))


@each_case("unit", [1e-6, 1.0, 1e6])
def test_the_unit_of_the_scores_does_not_matter(unit: float) -> None:
    scores, positive = drawn(500, 1.5)
    one, other = fit_platt(scores, positive), fit_platt(scores * unit, positive)
    assert one is not None
    assert other is not None
    assert np.allclose(one.probabilities(scores), other.probabilities(scores * unit), atol=1e-6)


def test_classes_that_the_scores_tell_apart_without_a_mistake_give_no_infinite_slope() -> None:
    scores = np.linspace(-1, 1, 60)
    found = fit_platt(scores, scores > 0)
    assert found is not None
    assert np.isfinite(found.slope)
    assert 0.0 < found.probabilities(scores).min() < found.probabilities(scores).max() < 1.0


@each_case(
    ("scores", "positive"),
    [
        (np.linspace(-1, 1, LEAST_ROWS - 1), np.arange(LEAST_ROWS - 1) % 2 == 0),
        (np.linspace(-1, 1, 100), np.ones(100, np.bool_)),
        (np.zeros(100), np.arange(100) % 2 == 0),
        (np.linspace(-1, 1, 100), np.linspace(-1, 1, 100) < 0),
    ],
    ids=["few rows", "one class", "one score", "the contrary"],
)
def test_where_the_rows_do_not_tell_nothing_is_fitted(scores: np.ndarray, positive: np.ndarray) -> None:
    assert fit_platt(scores, positive) is None
    assert out_of_fold(scores, positive) is None


def test_no_row_has_a_part_in_its_own_probability() -> None:
    """A changed label moves only the probabilities of the other half."""
    scores, positive = drawn(200, 2.0)
    changed = positive.copy()
    changed[3] = not changed[3]
    one, other = out_of_fold(scores, positive), out_of_fold(scores, changed)
    assert one is not None
    assert other is not None
    assert (one[:100] == other[:100]).all()
    assert (one[100:] != other[100:]).all()


def test_scores_that_are_half_as_extreme_as_they_should_be_lose_less() -> None:
    scores, positive = drawn(2000, 2.0)
    of_each = out_of_fold(scores, positive)
    assert of_each is not None
    assert metrics.log_loss(positive, of_each) < metrics.log_loss(positive, 1 / (1 + np.exp(-scores))) - 0.01
