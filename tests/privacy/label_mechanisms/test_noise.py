"""The additive mechanisms: their variances, their claims, and vectors of exact integers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid
from blindfit.algorithms.privacy.label_mechanisms.block_noise import GeometricBlocks
from blindfit.algorithms.privacy.label_mechanisms.drawing import below, exp_bounds, heavier, loss_of_weights, words
from blindfit.algorithms.privacy.label_mechanisms.gaussian import Gaussian, GaussianTables
from blindfit.algorithms.privacy.label_mechanisms.laplace import Laplace, laplace_noise
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase, squared_errors, staircase_noise
from tests.privacy.label_mechanisms.examples import uniform
from tests.privacy.noise_checks import faults_of_normal

UNIT = LabelGrid(0.0, 1.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 8.0, 20.0])
def test_staircase_is_better_than_laplace(epsilon):
    laplace = Laplace(UNIT, epsilon).variance(0.5)
    squared = Staircase.optimal(UNIT, epsilon, "squared").variance(0.5)
    absolute = Staircase.optimal(UNIT, epsilon, "absolute").variance(0.5)
    assert squared <= laplace
    assert squared <= absolute
    assert laplace == pytest.approx(2 / epsilon**2, rel=1e-6)
    if epsilon >= 4:
        assert squared < 0.75 * laplace
        assert squared < absolute


def test_staircase_at_epsilon_8_has_its_known_variances():
    assert Staircase.optimal(UNIT, 8.0, "squared").variance(0.5) == pytest.approx(0.0034, abs=2e-4)
    assert Staircase.optimal(UNIT, 8.0, "absolute").variance(0.5) == pytest.approx(0.0066, abs=2e-4)


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 9.0])
def test_squared_errors_are_the_variances(epsilon):
    for high in (1, 7, 40):
        assert squared_errors(epsilon, 40)[high - 1] == pytest.approx(staircase_noise(epsilon, 40, high).variance)


@given(st.floats(1e-4, 30), st.sampled_from([1, 2, 3, 100, 2**16]))
@settings(max_examples=60, deadline=None)
def test_noise_keeps_epsilon_at_every_epsilon(epsilon, cells):
    for noise in (laplace_noise(epsilon, cells), staircase_noise(epsilon, cells, 1 + cells // 3)):
        assert max(noise.blocks.ratios) <= exp_bounds(epsilon)[0]
        assert noise.privacy_loss == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 0.4, 3.0])
def test_block_ratios_are_those_of_the_weights(epsilon):
    blocks = GeometricBlocks.of(epsilon)
    weights = blocks.weights(200)
    met = {Fraction(a, b) for a, b in pairwise(weights)}
    assert met == set(blocks.ratios)


# --- Gaussian -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-5), (1.0, 1e-5), (8.0, 1e-5), (1.0, 1e-9)])
def test_gaussian_is_hardly_wider_than_the_analytic_one(epsilon, delta):
    mechanism = Gaussian(UNIT, epsilon, delta)
    least = analytic_noise_multiplier(epsilon, delta)
    assert least < mechanism.noise_std_steps / UNIT.cells < least * 1.001
    assert mechanism.privacy_loss()[0] == epsilon
    assert 0.99 * delta < mechanism.privacy_loss()[1] <= delta


@pytest.mark.parametrize(("cells", "epsilon"), [(4, 1.0), (16, 3.0), (64, 6.0)])
def test_gaussian_keeps_delta_on_coarse_grids(cells, epsilon):
    mechanism = Gaussian(LabelGrid(0.0, 1.0, cells), epsilon, 1e-3)
    near, far = (mechanism.law(label) for label in (0.0, 1.0))
    moved = dict(zip(far.outputs.tolist(), far.probabilities, strict=True))
    pairs = zip(near.outputs.tolist(), near.probabilities, strict=True)
    delta = sum(max(0.0, p - math.exp(epsilon) * moved.get(k, 0.0)) for k, p in pairs)
    assert 0 < delta <= mechanism.privacy_loss()[1] <= 1e-3


def test_a_delta_finer_than_the_tables_is_refused():
    with pytest.raises(ConfigError, match="finer than its tables"):
        Gaussian(UNIT, 20.0, 1e-9)


@pytest.mark.parametrize("std", [200.0, 300.0, 50_000.0, 5e6])
def test_one_table_and_two_draw_a_gaussian(std):
    drawn = GaussianTables.of(std).draw(100_000, uniform(3))
    jitter = np.random.default_rng(1).random(len(drawn)) - 0.5  # the reference is continuous
    assert faults_of_normal(drawn + jitter, std) == []


@pytest.mark.parametrize("std", [260.0, 1000.0])
def test_two_tables_have_the_law_of_one(std):
    """The sum's law by convolution of the tables themselves."""
    tables = GaussianTables.of(std)
    assert tables.coarse is not None
    coarse, fine = (symmetric_law(table) for table in (tables.coarse, tables.fine))
    spread = np.zeros((len(coarse) - 1) * tables.spacing + 1)
    spread[:: tables.spacing] = coarse
    law = np.convolve(spread, fine)
    k = np.arange(len(law)) - len(law) // 2
    wanted = np.exp(-0.5 * (k / std) ** 2) / (std * math.sqrt(2 * math.pi))
    near = np.abs(k) < 7 * std
    assert law[near] == pytest.approx(wanted[near], rel=1e-4)
    assert np.abs(law - wanted).sum() < 1e-12


def symmetric_law(cumulative: np.ndarray) -> np.ndarray:
    weights = np.diff(np.concatenate(([0], cumulative.astype(np.float64))))
    weights[0] /= 2
    both = np.concatenate((weights[:0:-1], [2 * weights[0]], weights[1:]))
    return both / both.sum()


# --- vectors ------------------------------------------------------------------------------------


def test_words_are_the_source_cut_up():
    drawn = words(3, lambda m: (5 | 7 << 64 | (2**64 - 1) << 128) % m)
    assert drawn.tolist() == [5, 7, 2**64 - 1]


def test_below_throws_the_surplus_away():
    m = 2**63 + 1
    answers = iter([m | 4 << 64, m - 1])
    assert below(m, 2, lambda bound: next(answers)).tolist() == [m - 1, 4]


@given(st.floats(1e-4, 30), st.integers(1, 2**30))
def test_the_heavier_weight_is_the_largest_that_keeps_epsilon(epsilon, lighter):
    weight = heavier(lighter, epsilon)
    assert Fraction(weight, lighter) <= exp_bounds(epsilon)[1] < Fraction(weight + 1, lighter)
    assert loss_of_weights(weight, lighter) <= epsilon
