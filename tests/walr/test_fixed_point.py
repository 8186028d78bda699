"""Fixed point: the bound holds for the integers themselves, for any reals."""

from __future__ import annotations

from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.fixed_point import (
    MAX_COLUMNS,
    MAX_FRAC_BITS,
    MAX_NORM_BOUND,
    MIN_FRAC_BITS,
    enforce_norm_bound,
    norm_bound_steps,
    quantise_rows,
)

BOUNDS = st.one_of(st.integers(1, 50), st.integers(1, MAX_NORM_BOUND), st.just(MAX_NORM_BOUND))
FRAC_BITS = st.integers(MIN_FRAC_BITS, MAX_FRAC_BITS)
SHAPES = array_shapes(min_dims=2, max_dims=2, max_side=6)
FINITE = arrays(np.float64, SHAPES, elements=st.floats(allow_nan=False, allow_infinity=False))
INTEGERS = arrays(np.int32, SHAPES, elements=st.integers(-(2**31), 2**31 - 1))


def squares(row: np.ndarray) -> int:
    return sum(int(x) ** 2 for x in row)


# --- reals to integers --------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(FINITE, BOUNDS, FRAC_BITS)
def test_every_integer_row_is_within_the_bound(rows: np.ndarray, bound: int, frac_bits: int) -> None:
    for row in quantise_rows(rows, bound, frac_bits):
        assert squares(row) <= bound**2


@settings(deadline=None)
@given(FINITE, BOUNDS, FRAC_BITS)
def test_rounding_is_toward_zero(rows: np.ndarray, bound: int, frac_bits: int) -> None:
    quantised = quantise_rows(rows, bound, frac_bits)
    for real, integer in zip(rows.ravel().tolist(), quantised.ravel().tolist(), strict=True):
        assert abs(integer) <= abs(real) * 2.0**frac_bits
        assert integer * real >= 0


@settings(deadline=None)
@given(arrays(np.float64, SHAPES, elements=st.floats(-2, 2)), FRAC_BITS)
def test_a_short_row_is_only_truncated(rows: np.ndarray, frac_bits: int) -> None:
    quantised = quantise_rows(rows, 2 ** (frac_bits + 1) * 3, frac_bits)  # at most 6 columns of 2: a norm below 5
    np.testing.assert_array_equal(quantised, np.trunc(rows * 2.0**frac_bits))


@pytest.mark.parametrize("size", [1e3, 1e150, 1e300, np.finfo(float).max])
def test_a_huge_row_keeps_its_direction(size: float) -> None:
    (row,) = quantise_rows(np.array([[size, -size, 0.0, size / 2]]), 3 * 2**16, 16)
    np.testing.assert_allclose(row / 2**16, [2, -2, 0, 1], atol=2**-15)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(wrong: float) -> None:
    with pytest.raises(RangeError, match="not finite"):
        quantise_rows(np.array([[0.0, 1.0], [wrong, 1.0]]), 2**16, 16)


def test_rounding_to_nearest_would_pass_the_bound() -> None:
    """Rounding goes toward zero because of this: otherwise half of the rows of norm R came out longer."""
    real = np.random.default_rng(0).normal(size=(1000, 50))
    real *= 4 / np.linalg.norm(real, axis=1, keepdims=True)
    nearest = np.rint(real * 2**16).astype(np.int64)
    assert np.mean([squares(row) > (4 * 2**16) ** 2 for row in nearest]) > 0.4
    assert max(squares(row) for row in quantise_rows(real, 4 * 2**16, 16)) <= (4 * 2**16) ** 2


# --- integers to shorter integers ---------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(INTEGERS, BOUNDS)
def test_only_rows_that_are_too_long_change(rows: np.ndarray, bound: int) -> None:
    before = rows.copy()
    enforced, scaled = enforce_norm_bound(rows, bound)
    long = [squares(row) > bound**2 for row in rows]
    assert scaled == sum(long)
    assert (enforced is rows) == (scaled == 0)
    np.testing.assert_array_equal(rows, before)
    for row, old, was_long in zip(enforced, rows, long, strict=True):
        assert squares(row) <= bound**2
        if not was_long:
            np.testing.assert_array_equal(row, old)
        else:  # shorter, in about the same direction
            shrink = bound / np.sqrt(float(squares(old)))
            np.testing.assert_allclose(row, old * shrink, atol=1.001)


def row_of_squared_norm(target: int, first: list[int]) -> list[int]:
    """`first` and a few more integers, whose squares add up to exactly the target."""
    row, left = list(first), target - sum(x * x for x in first)
    while left > 0:
        row.append(isqrt(left))
        left -= row[-1] ** 2
    return row


@settings(deadline=None, max_examples=200)
@given(
    st.one_of(st.integers(2**10, MAX_NORM_BOUND), st.just(MAX_NORM_BOUND)),
    st.lists(st.floats(-1, 1), max_size=40),
    st.integers(-2, 2),
)
def test_one_step_past_the_bound_is_seen(bound: int, shape: list[float], excess: int) -> None:
    """In float64 a sum of squares would equal the bound's square here: up to 2^50 and one."""
    first = [int(x * bound / 7) for x in shape]
    row = np.array([row_of_squared_norm(bound**2 + excess, first)], np.int32)
    assert squares(row[0]) == bound**2 + excess
    enforced, scaled = enforce_norm_bound(row, bound)
    assert scaled == (excess > 0)
    assert squares(enforced[0]) <= bound**2


def test_a_row_that_rounding_left_too_long_shrinks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    directions = fixed_point._directions

    def rounded_up(rows: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
        unit, factor = directions(rows, bound)
        return unit, factor * (1 + 1e-7)

    monkeypatch.setattr(fixed_point, "_directions", rounded_up)
    rows = np.random.default_rng(0).integers(-(2**31), 2**31 - 1, (60, 8)).astype(np.int32)
    enforced, scaled = enforce_norm_bound(rows, MAX_NORM_BOUND)
    assert scaled == 60
    assert all(0.999 * MAX_NORM_BOUND**2 < squares(row) <= MAX_NORM_BOUND**2 for row in enforced)


def test_the_largest_sizes_are_exact() -> None:
    at_bound = np.full((1, MAX_COLUMNS), MAX_NORM_BOUND // 64, np.int32)
    assert squares(at_bound[0]) == MAX_NORM_BOUND**2
    past = at_bound.copy()
    past[0, 17] += 1
    assert enforce_norm_bound(at_bound, MAX_NORM_BOUND)[1] == 0
    assert enforce_norm_bound(past, MAX_NORM_BOUND)[1] == 1
    most = np.full((1, MAX_COLUMNS), MAX_NORM_BOUND, np.int32)
    assert squares(enforce_norm_bound(most, MAX_NORM_BOUND)[0][0]) <= MAX_NORM_BOUND**2


@pytest.mark.parametrize("bound", [1, 3, 2**16, MAX_NORM_BOUND])
def test_ten_thousand_extreme_inputs_never_wrap(bound: int) -> None:
    rng = np.random.default_rng(bound)
    edges = [2.0**31, 2.0**63, 2.0**1023, np.finfo(float).max, 5e-324, 1e-300, 0.0, 1.0, bound / 2**16]
    reals = rng.choice(np.array([*edges, *(-e for e in edges)]), size=(1250, 8))
    ends = np.array([-(2**31), 2**31 - 1, -bound, bound, bound + 1, 0, 1, -1], np.int64).astype(np.int32)
    integers = rng.choice(ends, size=(1250, 8))
    quantised, (enforced, _) = quantise_rows(reals, bound, 16), enforce_norm_bound(integers, bound)
    assert all(squares(row) <= bound**2 for row in [*quantised, *enforced])
    assert not (np.sign(quantised) * np.sign(reals) < 0).any()
    assert not (np.sign(enforced) * np.sign(integers) < 0).any()


def test_no_rows_are_no_rows() -> None:
    assert quantise_rows(np.zeros((0, 3)), 5, 16).shape == (0, 3)
    assert enforce_norm_bound(np.zeros((0, 3), np.int32), 5)[1] == 0


# --- the bound itself ---------------------------------------------------------------------------


@given(st.floats(2**-4, 2.0), FRAC_BITS)
def test_the_bound_is_rounded_down(bound: float, frac_bits: int) -> None:
    steps = norm_bound_steps(bound, frac_bits)
    assert steps <= bound * 2**frac_bits < steps + 1


@pytest.mark.parametrize("bound", [0.0, -1.0, 1e-9, 513.0, 1e300, 1e308, np.float64(1e308), np.inf, np.nan])
def test_a_bound_that_does_not_fit_is_refused(bound: float) -> None:
    with pytest.raises(RangeError, match="norm_bound"):
        norm_bound_steps(bound, 16)


@pytest.mark.parametrize("frac_bits", [-1, 3, 25, 64])
def test_a_grid_that_does_not_fit_is_refused(frac_bits: int) -> None:
    with pytest.raises(RangeError, match="frac_bits"):
        norm_bound_steps(1.0, frac_bits)
