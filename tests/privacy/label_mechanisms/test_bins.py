"""The bins of randomised response are the best ones, by the linear program and by a plain dynamic program."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, prior_from_counts
from blindfit.algorithms.privacy.label_mechanisms.rr_on_bins import RROnBins, error_of_bins, optimal_bins
from tests.each_case import each_case


def running_sums(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    centred = y - p @ y
    return np.concatenate((np.zeros((3, 1)), np.cumsum([p, p * centred, p * centred**2], axis=1)), axis=1)


def found_error(p: np.ndarray, y: np.ndarray, epsilon: float) -> float:
    starts, _ = optimal_bins(np.stack([p, p * y, p * y**2]), math.exp(epsilon))
    return error_of_bins(running_sums(p, y), starts, math.exp(epsilon))


def plain_error(p: np.ndarray, y: np.ndarray, epsilon: float) -> float:
    """A[i][j] = min over r of A[r][j - 1] + L(r, i], then the best d: Ghazi et al. 2023, Algorithm 2."""
    k, ratio = len(y), math.exp(epsilon)

    def cost(r: int, i: int) -> float:
        s0, s1, s2 = ((p * y**m).sum() + (ratio - 1) * (p * y**m)[r:i].sum() for m in range(3))
        return float(s2 - s1**2 / s0)

    costs = {(r, i): cost(r, i) for r in range(k) for i in range(r + 1, k + 1)}
    least, best = {0: 0.0}, math.inf
    for d in range(1, k + 1):
        least = {i: min(least[r] + costs[r, i] for r in range(d - 1, i) if r in least) for i in range(d, k + 1)}
        best = min(best, least[k] / (d - 1 + ratio))
    return best


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=9).filter(any),
    st.floats(0.01, 20),
    st.integers(1, 5),
)
@settings(max_examples=150, deadline=None)
def test_equals_the_plain_dynamic_program(counts, epsilon, power):
    p = np.array(counts) / sum(counts)
    y = np.arange(len(counts), dtype=np.float64) ** power  # far from even, where a monotone search would fail
    assert found_error(p, y, epsilon) == pytest.approx(plain_error(p, y, epsilon), rel=1e-9, abs=1e-9 * y[-1] ** 2)


@each_case("epsilon", [0.1, 1.0, 2.0, 4.0])
def test_no_law_on_a_fine_set_of_outputs_has_less_error(epsilon):
    y = np.array([0.0, 1.0, 2.0, 4.0, 7.0])
    p = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    starts, values = optimal_bins(np.stack([p, p * y, p * y**2]), math.exp(epsilon))
    outputs = np.union1d(np.linspace(0, 7, 57), values)
    assert found_error(p, y, epsilon) == pytest.approx(least_error(p, y, outputs, epsilon), rel=1e-6)
    assert 1 <= len(starts) <= len(y)


def least_error(p: np.ndarray, y: np.ndarray, outputs: np.ndarray, epsilon: float) -> float:
    k, m = len(y), len(outputs)
    inequalities = []
    for i in range(k):
        for other in range(k):
            for j in range(m if other != i else 0):
                row = np.zeros((k, m))
                row[i, j], row[other, j] = 1, -math.exp(epsilon)
                inequalities.append(row.ravel())
    errors = p[:, None] * (outputs - y[:, None]) ** 2
    sums = np.kron(np.eye(k), np.ones(m))
    return float(linprog(errors.ravel(), np.array(inequalities), np.zeros(len(inequalities)), sums, np.ones(k)).fun)


def test_rounding_moves_bins_to_its_multiples_and_values_down():
    grid = LabelGrid(0.0, 10.0, 1000)
    prior = prior_from_counts([0, 10], [1])
    rounded, free = (RROnBins.optimal(grid, 4.0, prior, rounding) for rounding in (1.0, None))
    assert all(start % 100 == 0 for start in rounded.starts)
    assert len(free.starts) == len(rounded.starts) > 3
    # Rounding down takes half a unit from a uniform label.
    assert np.mean(free.values) - np.mean(rounded.values) == pytest.approx(50, abs=15)


def test_one_distinct_value_has_one_bin_with_that_value():
    grid = LabelGrid(0.0, 1.0, 100)
    mechanism = RROnBins.optimal(grid, 1.0, prior_from_counts([0.299, 0.301], [1]), None)
    assert (mechanism.starts, mechanism.values) == ((0,), (30,))
    assert mechanism.privacy_loss() == (0.0, 0.0)
