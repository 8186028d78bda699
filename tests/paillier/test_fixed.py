"""Fixed-point numbers of any size are exact or refused."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.fixed_point import MAX_BITS, Fixed
from tests.each_case import each_case
from tests.paillier.tools import LAW

FRAC_BITS = st.integers(0, 30)
EDGES = [sign * (2**bits + off) for bits in (31, 32, 61, 62, 63, 64) for off in (-1, 0, 1) for sign in (1, -1)]
INTEGERS = st.integers(-(2**20), 2**20) | st.sampled_from(EDGES) | st.integers(-(2**200), 2**200)
PAIRS = st.lists(st.tuples(INTEGERS, INTEGERS), max_size=6)
INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, -(2**62), 2**62, 2**31, 0])


def integers(fixed: Fixed) -> list[int]:
    return [int(value) for value in fixed.values.flat]


# --- reals ----------------------------------------------------------------------------------------


@LAW
@given(st.lists(st.floats(-(2.0**31), 2.0**31), max_size=8), FRAC_BITS)
def test_reals_come_back_within_half_a_step(reals: list[float], frac_bits: int) -> None:
    fixed = Fixed.from_reals(reals, frac_bits)
    assert fixed.values.dtype == np.int64
    for real, integer, back in zip(reals, integers(fixed), fixed.to_reals().tolist(), strict=True):
        assert abs(Fraction(real) * 2**frac_bits - integer) <= Fraction(1, 2)
        assert back == float(Fraction(integer, 2**frac_bits))


@LAW
@given(st.lists(st.integers(-(2**53), 2**53), max_size=8), FRAC_BITS)
def test_reals_on_the_grid_come_back_as_they_were(steps: list[int], frac_bits: int) -> None:
    reals = [step / 2**frac_bits for step in steps]
    assert Fixed.from_reals(reals, frac_bits).to_reals().tolist() == reals


def test_ties_go_to_the_even_neighbour() -> None:
    assert integers(Fixed.from_reals([0.5, 1.5, 2.5, -0.5, -1.5, 1.25], 0)) == [0, 2, 2, 0, -2, 1]


@each_case("wrong", [np.nan, np.inf, -np.inf, 2.0**MAX_BITS, -(2.0**MAX_BITS), 1e300, -1e308])
@each_case("frac_bits", [0, 40])
def test_reals_that_do_not_fit_are_refused_quietly(wrong: float, frac_bits: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RangeError, match="not finite or does not fit in 62 bits"):
            Fixed.from_reals([1.0, wrong, 2.0], frac_bits)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_real_fits(sign: int) -> None:
    largest = float(np.nextafter(2.0**MAX_BITS, 0))
    assert integers(Fixed.from_reals([sign * largest], 0)) == [sign * int(largest)]


@LAW
@given(st.lists(INTEGERS, max_size=6), FRAC_BITS)
def test_integers_as_reals_are_the_nearest_floats(numbers: list[int], frac_bits: int) -> None:
    reals = Fixed.from_integers(numbers, frac_bits).to_reals()
    assert reals.dtype == np.float64
    assert reals.tolist() == [float(Fraction(number, 2**frac_bits)) for number in numbers]


def test_integers_past_every_float_are_refused() -> None:
    with pytest.raises(RangeError, match="larger than any float64"):
        Fixed.from_integers([2**1100], 16).to_reals()


# --- integers -------------------------------------------------------------------------------------


@LAW
@given(st.lists(INTEGERS, max_size=6), FRAC_BITS)
def test_integers_stay_as_they_are(numbers: list[int], frac_bits: int) -> None:
    fixed = Fixed.from_integers(numbers, frac_bits)
    assert integers(fixed) == numbers
    assert fixed.bound == max(map(abs, numbers), default=0)
    assert (fixed.shape, len(fixed), fixed.frac_bits) == ((len(numbers),), len(numbers), frac_bits)


@each_case("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, object])
def test_every_type_of_integer_is_taken(dtype: Any) -> None:
    numbers = np.array([[0, 1], [2, 127]], dtype=dtype)
    if dtype == np.uint64:
        numbers[0, 0] = 2**64 - 1
    fixed = Fixed.from_integers(numbers)
    assert integers(fixed) == [int(number) for number in numbers.flat]
    assert fixed.shape == (2, 2)


@each_case("wrong", [[1.0], [1, 2.5], [2**63, -1.0], ["1"], [None], [True], [1j], np.array([1.0])])
def test_what_is_not_an_integer_is_refused(wrong: Any) -> None:
    with pytest.raises(RangeError, match="not integers"):
        Fixed.from_integers(wrong)


def test_its_text_has_no_number() -> None:
    fixed = Fixed.from_integers([271828, 314159])
    assert "271828" not in repr(fixed) + str(fixed)


# --- arithmetic -----------------------------------------------------------------------------------


@LAW
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
@given(pairs=PAIRS)
def test_arithmetic_is_that_of_integers(operation: Callable[[Any, Any], Any], pairs: list[tuple[int, int]]) -> None:
    a, b = (Fixed.from_integers([pair[side] for pair in pairs], 3) for side in (0, 1))
    assert integers(operation(a, b)) == [operation(x, y) for x, y in pairs]


@LAW
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
@given(x=INT64, y=INT64)
def test_64_bit_integers_never_wrap(operation: Callable[[Any, Any], Any], x: int, y: int) -> None:
    a, b = (Fixed(np.array([value], np.int64), 0) for value in (x, y))
    assert integers(operation(a, b)) == [operation(x, y)]
    assert integers(-a) == [-x]
    assert a.bound == abs(x)


@LAW
@given(st.lists(INTEGERS, max_size=6))
def test_a_minus_changes_every_sign(numbers: list[int]) -> None:
    assert integers(-Fixed.from_integers(numbers)) == [-number for number in numbers]


def test_scales_are_checked_when_adding_and_added_when_multiplying() -> None:
    a, b = Fixed.from_reals([1.5], 4), Fixed.from_reals([2.25], 6)
    for operation in (operator.add, operator.sub):
        assert operation(a, a).frac_bits == 4
        with pytest.raises(RangeError, match="4 and of 6 fraction bits"):
            operation(a, b)
    assert (a * b).frac_bits == 10
    assert (a * b).to_reals().tolist() == [1.5 * 2.25]


# --- shapes ---------------------------------------------------------------------------------------


@LAW
@given(INTEGERS, INTEGERS)
def test_one_number_has_shape_nothing(x: int, y: int) -> None:
    a, b = Fixed.from_integers(x), Fixed.from_integers([y])[0]
    for result, expected in ((a, x), (b, y), (a + b, x + y), (a - b, x - y), (a * b, x * y), (-a, -x)):
        assert result.shape == ()
        assert integers(result) == [expected]
        assert result.bound == abs(expected)
        assert result.to_reals().shape == ()


def test_one_real_has_shape_nothing() -> None:
    fixed = Fixed.from_reals(1.5, 2) * Fixed.from_reals(2.0, 2)
    assert (fixed.shape, integers(fixed), fixed.frac_bits) == ((), [48], 4)


def test_parts_keep_the_scale() -> None:
    fixed = Fixed.from_integers(np.arange(12).reshape(3, 4), 5)
    assert integers(fixed[1:]) == list(range(4, 12))
    assert integers(fixed[:, 2]) == [2, 6, 10]
    assert fixed[1:].frac_bits == fixed[:, 2].frac_bits == 5


@each_case("shape", [(0,), (0, 3), (3, 0)])
def test_no_numbers(shape: tuple[int, ...]) -> None:
    for empty in (Fixed.from_reals(np.zeros(shape), 8), Fixed.from_integers(np.zeros(shape, object), 8)):
        assert empty.shape == (empty + empty).shape == (empty - empty).shape == (-empty).shape == shape
        assert (empty * empty).frac_bits == 16
        assert empty.to_reals().shape == shape
        assert empty.bound == 0
