"""The additive mechanisms: their variances, their claims, and vectors of exact integers."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.privacy.gaussian import LEAST_STD_STEPS, analytic_noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid
from blindfit.algorithms.privacy.label_mechanisms.block_noise import BlockNoise, GeometricBlocks
from blindfit.algorithms.privacy.label_mechanisms.drawing import below, exp_bounds, heavier, loss_of_weights, words
from blindfit.algorithms.privacy.label_mechanisms.gaussian import Gaussian, fine_enough
from blindfit.algorithms.privacy.label_mechanisms.gaussian_tables import (
    GaussianTables,
    HalfGaussian,
    parts_of,
    table_delta,
)
from blindfit.algorithms.privacy.label_mechanisms.laplace import Laplace, laplace_noise
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase, squared_errors, staircase_noise
from tests.each_case import each_case
from tests.privacy.label_mechanisms.examples import uniform
from tests.privacy.noise_checks import faults_of_normal

UNIT = LabelGrid(0.0, 1.0)


@each_case("epsilon", [0.01, 0.5, 1.0, 4.0, 8.0, 20.0])
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


@each_case("epsilon", [0.3, 2.0, 9.0])
def test_squared_errors_are_the_variances(epsilon):
    for high in (1, 7, 40):
        assert squared_errors(epsilon, 40)[high - 1] == pytest.approx(staircase_noise(epsilon, 40, high).variance)


@given(st.floats(1e-4, 30), st.sampled_from([1, 2, 3, 100, 2**16]))
@settings(max_examples=60, deadline=None)
def test_noise_keeps_epsilon_at_every_epsilon(epsilon, cells):
    for noise in (laplace_noise(epsilon, cells), staircase_noise(epsilon, cells, 1 + cells // 3)):
        assert max(noise.blocks.ratios) <= exp_bounds(epsilon)[0]
        assert noise.privacy_loss == pytest.approx(epsilon, rel=1e-5)


@each_case("table", [[1, 2], [2, 3, 1], [3, 0], [300, 200, 110]])
def test_a_table_that_does_not_fall_or_falls_too_far_makes_no_noise(table):
    """Between neighbouring labels a weight falls by e at most."""
    blocks = GeometricBlocks.of(1.0)
    assert BlockNoise(1.0, blocks, np.array([300, 200, 111], np.uint64)).epsilon == 1.0
    with pytest.raises(RangeError, match=f"64 bits do not hold a noise of epsilon 1 on {len(table)} cells") as refused:
        BlockNoise(1.0, blocks, np.array(table, np.uint64))
    assert refused.value.hint == "use fewer cells"


@each_case("epsilon", [0.05, 0.4, 3.0])
def test_block_ratios_are_those_of_the_weights(epsilon):
    blocks = GeometricBlocks.of(epsilon)
    weights = blocks.weights(200)
    met = {Fraction(a, b) for a, b in pairwise(weights)}
    assert met == set(blocks.ratios)


# --- Gaussian -----------------------------------------------------------------------------------


@each_case(("epsilon", "delta"), [(0.05, 1e-5), (1.0, 1e-5), (8.0, 1e-5), (1.0, 1e-9)])
def test_gaussian_is_hardly_wider_than_the_analytic_one(epsilon, delta):
    mechanism = Gaussian(UNIT, epsilon, delta)
    least = analytic_noise_multiplier(epsilon, delta)
    assert least < mechanism.noise_std_steps / UNIT.cells < least * 1.001
    assert mechanism.privacy_loss()[0] == epsilon
    assert 0.99 * delta < mechanism.privacy_loss()[1] <= delta


@each_case(("cells", "epsilon"), [(4, 1.0), (16, 3.0), (64, 6.0)])
def test_gaussian_keeps_delta_on_coarse_grids(cells, epsilon):
    mechanism = Gaussian(LabelGrid(0.0, 1.0, cells), epsilon, 1e-3)
    near, far = (mechanism.law(label) for label in (0.0, 1.0))
    moved = dict(zip(far.outputs.tolist(), far.probabilities, strict=True))
    pairs = zip(near.outputs.tolist(), near.probabilities, strict=True)
    delta = sum(max(0.0, p - math.exp(epsilon) * moved.get(k, 0.0)) for k, p in pairs)
    assert 0 < delta <= mechanism.privacy_loss()[1] <= 1e-3


def true_delta(mechanism: Gaussian) -> float:
    """Sum the delta of the two labels that are furthest apart over the integers, to a relative precision of 1e-9.

    The loss falls as the output grows from -infinity, so delta is a sum over all outputs below the one where it is
    epsilon.
    """
    std, cells = mechanism.noise_std_steps, mechanism.grid.cells
    last = math.floor(cells / 2 - mechanism.epsilon * std**2 / cells)
    first = min(last, 0) - math.ceil(12 * std)
    k = np.arange(first, last + 1, dtype=np.float64)
    loss = cells * (cells - 2 * k) / (2 * std**2)
    law = np.exp(-0.5 * (k / std) ** 2) / (std * math.sqrt(2 * math.pi))
    return float((law * -np.expm1(mechanism.epsilon - loss)).sum())


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 1.0, 4.3, 4.5, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0])
def test_gaussian_keeps_delta_at_every_epsilon_and_on_the_grid_that_is_chosen(epsilon):
    for delta in (1e-12, 1e-9, 1e-5, 1e-2):
        mechanism = Gaussian(fine_enough(LabelGrid(0.0, 1.0, 1), epsilon, delta), epsilon, delta)
        assert fine_enough(UNIT, epsilon, delta).cells == max(UNIT.cells, mechanism.grid.cells)
        assert LEAST_STD_STEPS <= mechanism.noise_std_steps < 2.1 * LEAST_STD_STEPS
        least = analytic_noise_multiplier(epsilon, delta)
        assert least <= mechanism.noise_std_steps / mechanism.grid.cells < least * 1.05
        # The tables' part can be no more than what is allowed for it.
        assert 0.3 * delta < true_delta(mechanism) <= delta - table_delta(mechanism.noise_std_steps, epsilon)
        assert mechanism.privacy_loss()[1] <= delta


def test_a_grid_that_is_fine_enough_stays_as_it_is():
    assert fine_enough(UNIT, 1.0, 1e-5) == UNIT
    assert fine_enough(LabelGrid(0.0, 1.0, 2), 1e-3, 1e-5).cells == 2**6
    with pytest.raises(ConfigError, match="too narrow for 524288 cells"):
        fine_enough(LabelGrid(1e12, 1e12 + 20), 50.0, 1e-5)


def test_a_delta_finer_than_the_tables_is_refused_and_the_one_that_is_named_is_not():
    with pytest.raises(ConfigError, match="finer than its tables") as refused:
        Gaussian(UNIT, 50.0, 1e-32)
    assert (words := refused.value.hint.split())[:4] == ["use", "a", "delta", "of"]
    assert Gaussian(UNIT, 50.0, float(words[4])).privacy_loss()[1] <= float(words[4])


@pytest.mark.parametrize("std", [0.9, 40.0])
def test_a_table_misses_less_of_its_law_than_is_charged(std):
    weights = HalfGaussian.of(std).weights
    assert sum(weights) == 2**192
    with decimal.localcontext() as context:
        context.prec = 80
        width = 2 * decimal.Decimal(std) ** 2
        law = [(-(decimal.Decimal(k) ** 2) / width).exp() for k in range(math.ceil(25 * std))]
        total = sum(law)
        beyond = law[len(weights) :]
        missed = sum(abs(w / decimal.Decimal(2**192) - p / total) for w, p in zip(weights, law, strict=False))
        missed += sum(beyond) / total
    assert 0 < missed < table_delta(std, 0.0) / 2  # 1 + e^0 = 2


def test_a_draw_is_decided_by_later_bits_where_the_first_word_does_not():
    table = HalfGaussian.of(3.0)
    begins = np.cumsum(np.array(table.weights, dtype=object)).tolist()[:-1]

    def source(first: int, later: int):
        return lambda bound: first if bound == 2**64 else later

    for place, begin in enumerate(begins):
        first, later = divmod(begin, 2**128)
        if begin // 2**128 in [other // 2**128 for other in begins if other != begin]:
            continue  # several begin within one word
        assert table.draw(1, source(first, later)).tolist() == [place + 1]
        assert table.draw(1, source(first, later - 1)).tolist() == [place]
        assert table.draw(1, source(first + 1, 0)).tolist() == [place + 1]
        assert table.draw(1, source(first - 1, 2**128 - 1)).tolist() == [place]
    assert table.draw(1, source(2**64 - 1, 2**128 - 1)).tolist() == [len(begins)]
    assert table.draw(1, source(0, 0)).tolist() == [0]


@pytest.mark.parametrize("std", [200.0, 1300.0, 50_000.0, 5e6, 3e8])
def test_tables_draw_a_gaussian(std):
    drawn = GaussianTables.of(std).draw(100_000, uniform(3))
    jitter = np.random.default_rng(1).random(len(drawn)) - 0.5  # the reference is continuous
    assert faults_of_normal(drawn + jitter, std) == []


@pytest.mark.parametrize("std", [1100.0, 3000.0])
def test_two_tables_have_the_law_of_one(std):
    """The sum's law by convolution of the tables themselves."""
    (one, fine_table), (spacing, coarse_table) = GaussianTables.of(std).parts
    assert one == 1
    fine, coarse = symmetric_law(fine_table), symmetric_law(coarse_table)
    law = np.zeros((len(coarse) - 1) * spacing + len(fine))
    for i, mass in enumerate(coarse):  # np.convolve would multiply by the zeros between them too
        law[i * spacing :][: len(fine)] += mass * fine
    k = np.arange(len(law)) - len(law) // 2
    wanted = np.exp(-0.5 * (k / std) ** 2) / (std * math.sqrt(2 * math.pi))
    near = np.abs(k) < 7 * std
    assert law[near] == pytest.approx(wanted[near], rel=1e-4)
    assert np.abs(law - wanted).sum() < 1e-12


@each_case("std", [1025.0, 6e4, 262_145.0, 3e5, 5e8])
def test_parts_are_short_and_make_up_the_whole(std):
    """Given the sum, each multiplied part is at least 3.8 times as wide as the spacing of the part added to it."""
    parts = parts_of(std)
    assert sum((multiplier * part) ** 2 for multiplier, part in parts) == pytest.approx(std**2, rel=1e-14)
    assert max(part for _, part in parts) <= 1024
    for (finer, fine), (spacing, _) in pairwise(parts):
        above = sum((multiplier * part) ** 2 for multiplier, part in parts if multiplier >= spacing)
        given_the_sum = (1 / above + 1 / (finer * fine) ** 2) ** -0.5
        assert given_the_sum > 3.8 * spacing


def symmetric_law(table: HalfGaussian) -> np.ndarray:
    weights = np.array(table.weights, dtype=np.float64)
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
