"""The rp mechanisms: their interval, the precision of their outputs, and their effect on Crime's labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, prior_from_counts
from blindfit.algorithms.privacy.label_mechanisms.intervals import debiased_variances, likeliest_interval
from blindfit.algorithms.privacy.label_mechanisms.rp_banded import RPBanded
from blindfit.algorithms.privacy.label_mechanisms.rp_with_prior import RPWithPrior
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase
from tests.each_case import each_case
from tests.privacy.label_mechanisms import crime


@each_case(("epsilon", "half_width"), [(0.1, 0.4), (0.5, 0.4), (1.0, 0.4), (2.0, 0.3), (4.0, 0.12), (8.0, 0.03)])
def test_half_width_on_crime(epsilon, half_width):
    """The optimum is flat, so it is compared by what it costs: at most 4% less than these round figures."""
    mechanism = RPWithPrior.optimal(crime.GRID, epsilon, crime.prior(), "auto")
    assert mechanism.half_steps * crime.GRID.step == pytest.approx(half_width, rel=0.25, abs=0.01)
    middle = (mechanism.low + mechanism.high) / 2
    spread = float(np.mean((crime.GRID.steps(crime.LABELS) - middle) ** 2))
    halves = np.array([mechanism.half_steps, crime.GRID.steps_of_width(half_width)])
    ours, round_figure = debiased_variances(epsilon, mechanism.length, halves, spread)
    assert 0.96 * round_figure < ours < 1.001 * round_figure


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_debiased_variance_on_crime_is_less_than_the_staircases(epsilon):
    mechanism = RPWithPrior.optimal(crime.GRID, epsilon, crime.prior(), "auto")
    staircase = Staircase.optimal(crime.GRID, epsilon, "squared").variance(0.5)
    variances = [mechanism.variance(label) / mechanism.share_near**2 for label in (0.0, 0.1, 0.3, 1.0)]
    assert np.mean(variances[:3]) < 0.75 * staircase


def test_variances_are_those_of_the_law():
    grid = LabelGrid(0.0, 1.0, 200)
    mechanism = RPWithPrior(grid, 1.5, 10, 150, 30)
    for step in (10, 60, 150):
        variance = mechanism.variance(grid.reals(step)) / mechanism.share_near**2 / grid.step**2
        assert debiased_variances(1.5, 140, np.array([30]), (step - 80) ** 2)[0] == pytest.approx(variance, rel=1e-9)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any), st.floats(0.05, 8), st.floats(0.02, 0.6))
@settings(max_examples=60, deadline=None)
def test_no_interval_beats_the_likeliest(counts, epsilon, half_width):
    grid = LabelGrid(0.0, 1.0, 2**16)
    prior = prior_from_counts(np.linspace(0, 1, len(counts) + 1), counts)

    def value(start: np.ndarray, end: np.ndarray) -> np.ndarray:
        mass = prior.mass_below(end) - prior.mass_below(start)
        return mass / (2 * half_width + math.exp(-epsilon) * (end - start))

    low, high = grid.reals(likeliest_interval(prior, grid, half_width, epsilon))
    starts, ends = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 121), np.linspace(0, 1, 121)))
    allowed = ends - starts >= min(2 * half_width, 1.0)
    assert value(low, high) >= value(starts[allowed], ends[allowed]).max() * (1 - 1e-3)
    assert high - low >= min(2 * half_width, 1.0) - 2 * grid.step


def test_labels_outside_are_counted():
    mechanism = RPWithPrior(crime.GRID, 1.0, *crime.GRID.steps([0.1, 0.5]).tolist(), 100)
    outside = np.mean((crime.LABELS < 0.095) | (crime.LABELS > 0.505))
    assert mechanism.share_outside(crime.prior()) == pytest.approx(outside, abs=0.03)


# --- bands --------------------------------------------------------------------------------------


@each_case("half_width", [0.021, 0.07, 0.11, 0.3, 0.45])
@each_case("epsilon", [0.5, 2.0, 5.0])
def test_bands_reach_the_optimal_nearness(epsilon, half_width):
    grid = LabelGrid(0.0, 1.0, 1000)
    mechanism = RPBanded(grid, epsilon, 0, grid.cells, grid.steps_of_width(half_width))
    n = math.floor(1 / (2 * half_width))
    assert mechanism.nearness == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + n), rel=1e-9)
    without_gaps = mechanism.window * math.exp(epsilon) / (mechanism.window * math.exp(epsilon) + grid.cells)
    assert mechanism.nearness > without_gaps
    for step in range(0, 1001, 37):
        law = mechanism.law(grid.reals(step))
        near = np.abs(law.outputs - step) <= mechanism.half_steps
        assert law.probabilities[near].sum() == pytest.approx(mechanism.nearness, rel=1e-9)


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.1, 4))
@settings(max_examples=60, deadline=None)
def test_every_window_meets_as_many_outputs(length, half_steps, epsilon):
    mechanism = RPBanded(LabelGrid(0.0, 1.0, 40), epsilon, 0, length, min(half_steps, 40))
    totals = {mechanism.law(label).total for label in np.arange(41) / 40}
    assert len(totals) == 1


def test_bands_follow_the_mass():
    grid = LabelGrid(0.0, 10.0, 1000)
    prior = prior_from_counts([0, 6, 7, 10], [1, 98, 1])
    mechanism = RPBanded.optimal(grid, 1.0, prior, 0.6)
    low, high = grid.reals([mechanism.low, mechanism.high])
    assert low <= 6.0
    assert high >= 7.0
    assert high - low < 2.5
