"""Sums of products equal those of integers, computed in any way and at any place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import phe
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier import multi_exponentiation, sums
from blindfit.algorithms.paillier.interop import public_key_to_phe
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.multi_exponentiation import (
    MOST_GROUP,
    Plan,
    column_powers,
    plan_columns,
    plan_rows,
    row_powers,
    signed_bits,
)
from blindfit.algorithms.paillier.sums import columns_dot, rows_dot
from blindfit.algorithms.paillier.vectors import decrypt
from tests.each_case import each_case
from tests.paillier.tools import LAW, PicklingWorkers, encrypted, integers_of, nothing_computed, seeded

N = (2**89 - 1) * (2**107 - 1)
LARGEST = 2**62 - 1


@st.composite
def matrices(draw: st.DrawFn, *, bits: int = 60, max_rows: int = 9, max_columns: int = 6) -> np.ndarray:
    """Draw matrices of every width and sign; often with zeros, and with the largest number of the width."""
    limit = 2 ** draw(st.integers(1, bits)) - 1
    shape = draw(st.tuples(st.integers(0, max_rows), st.integers(0, max_columns)))
    least = draw(st.sampled_from([-limit, 0]))
    return draw(hnp.arrays(np.int64, shape, elements=st.integers(least, limit) | st.sampled_from([0, limit, -limit])))


def bases_for(count: int, seed: int = 0) -> tuple[Kernel, Residues, list[int]]:
    """Return a small kernel, residues with powers of 1 + n, and the same as integers."""
    kernel, draw = Kernel(N), seeded(seed)
    values = [1 + draw(N * N - 1) for _ in range(count)]
    exponents = kernel.ones_plus(draw(N) - N // 2 for _ in range(count)).exponents
    residues = Residues(kernel.residues(values).values, exponents)
    return kernel, residues, [int(c) for c in kernel.integers(residues)]


def product_of_powers(bases: list[int], exponents: np.ndarray) -> int:
    product = 1
    for base, exponent in zip(bases, exponents.tolist(), strict=True):
        product = product * pow(base, exponent, N * N) % (N * N)
    return product


# --- products of powers ---------------------------------------------------------------------------


@LAW
@given(matrices(bits=62))
def test_products_of_powers_of_columns_and_rows(exponents: np.ndarray) -> None:
    rows, columns = exponents.shape
    kernel, bases, c = bases_for(rows)
    expected = [product_of_powers(c, exponents[:, j]) for j in range(columns)]
    assert kernel.integers(column_powers(kernel, bases, exponents)) == expected
    assert kernel.integers(row_powers(kernel, bases, np.ascontiguousarray(exponents.T))) == expected


def feasible_plans(bits: int) -> list[Plan]:
    windows = [w for w in range(1, bits + 2) if -(-(bits + 1) // w) <= 9]
    return [Plan("buckets", w, 0) for w in windows] + [Plan("subsets", g, 0) for g in range(1, MOST_GROUP + 1)]


@pytest.mark.parametrize("bits", [1, 2, 7, 16, 62])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (14, 2)])
def test_every_plan_gives_the_same_ciphertexts(
    bits: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, bases, c = bases_for(shape[0], seed=bits)
    exponents = np.random.default_rng(bits).integers(1 - 2**bits, 2**bits, shape)
    exponents[0, 0] = 2**bits - 1
    columns = [product_of_powers(c, exponents[:, j]) for j in range(shape[1])]
    plans = feasible_plans(bits)
    for plan in plans:
        monkeypatch.setattr(multi_exponentiation, "plan_columns", lambda *_, plan=plan: plan)
        assert kernel.integers(column_powers(kernel, bases, exponents)) == columns, plan
        monkeypatch.setattr(multi_exponentiation, "MOST_TABLE_ENTRIES", 2)  # many blocks of rows
        assert kernel.integers(column_powers(kernel, bases, exponents)) == columns, plan
        monkeypatch.undo()
    assert {plan.way for plan in plans} == {"buckets", "subsets"}
    for group in range(1, MOST_GROUP + 5 if bits < 3 else 8):
        monkeypatch.setattr(multi_exponentiation, "plan_rows", lambda *_, group=group: group)
        assert kernel.integers(row_powers(kernel, bases, np.ascontiguousarray(exponents.T))) == columns, group


@each_case("exponent", [0, 1, -1, 2**61, -(2**61), LARGEST, -LARGEST])
def test_extreme_exponents(exponent: int) -> None:
    kernel, bases, c = bases_for(6)
    exponents = np.full((6, 2), exponent, np.int64)
    exponents[3, 1] = 0
    expected = [product_of_powers(c, exponents[:, j]) for j in range(2)]
    assert kernel.integers(column_powers(kernel, bases, exponents)) == expected
    assert kernel.integers(row_powers(kernel, bases, np.ascontiguousarray(exponents.T))) == expected


def test_many_rows_of_large_numbers() -> None:
    kernel, bases, c = bases_for(2000)
    exponents = np.full((2000, 1), LARGEST, np.int64)
    exponents[::2] *= -1
    expected = [product_of_powers(c, exponents[:, 0])]
    assert kernel.integers(column_powers(kernel, bases, exponents)) == expected


# --- plans ----------------------------------------------------------------------------------------


def test_a_plan_is_the_cheapest_and_can_be_done() -> None:
    ways = set()
    for rows in (1, 3, 100, 10_000, 10**6):
        for columns in (1, 10, 1000):
            for bits in (1, 8, 16, 40, 62):
                plan = plan_columns(rows, columns, bits)
                ways.add(plan.way)
                assert 0 < plan.cost < 2 * rows * columns * (bits + 1) + 20 * columns * bits + 100
                assert plan.parameter <= (bits + 1 if plan.way == "buckets" else MOST_GROUP)
                assert 1 <= plan_rows(rows, columns * (bits + 1)) <= 16
    assert ways == {"buckets", "subsets"}


@pytest.mark.parametrize(("shape", "bits"), [((2000, 20), 16), ((500, 10), 16), ((128, 20), 16), ((3000, 5), 30)])
def test_counted_products_of_columns_are_near_the_plan(shape: tuple[int, int], bits: int) -> None:
    """The plan's unit is the time of one product; a product of split residues takes little more than half of it."""
    kernel, bases, _ = bases_for(shape[0])
    exponents = np.random.default_rng(0).integers(1 - 2**bits, 2**bits, shape)
    kernel.counts.products = 0
    column_powers(kernel, bases, exponents)
    plan = plan_columns(*shape, bits)
    assert 0.9 * plan.cost < kernel.counts.products < 2 * plan.cost


def test_sixteen_bits_cost_about_two_products_an_element() -> None:
    kernel, bases, _ = bases_for(5000)
    exponents = np.random.default_rng(0).integers(1 - 2**16, 2**16, (5000, 10))
    kernel.counts.products = 0
    column_powers(kernel, bases, exponents)
    assert 1.5 < kernel.counts.products / exponents.size < 3


def test_products_of_rows_are_as_many_as_their_tables() -> None:
    kernel, bases, _ = bases_for(10)
    exponents = np.random.default_rng(0).integers(1 - 2**16, 2**16, (4000, 10))
    kernel.counts.products = 0
    row_powers(kernel, bases, exponents)
    assert kernel.counts.products / 4000 < 1.5 * 10 * 17 / 8


@each_case(("number", "bits"), [(0, 0), (1, 1), (-1, 0), (255, 8), (-256, 8), (256, 9), (-LARGEST, 62)])
def test_bits_in_twos_complement(number: int, bits: int) -> None:
    assert signed_bits(np.array([[0, number]])) == bits
    assert signed_bits(np.zeros((0, 2), np.int64)) == 0


# --- encrypted sums -------------------------------------------------------------------------------


def weights_for(count: int) -> list[int]:
    draw = seeded(count)
    return [draw(2**33) - 2**32 for _ in range(count)]


def dot(X: np.ndarray, w: list[int]) -> list[int]:
    return (X.astype(object) @ np.array(w, dtype=object)).tolist() if X.size else [0] * len(X)


@LAW
@given(X=matrices())
def test_sums_are_those_of_integers(insecure_test_key: PrivateKey, X: np.ndarray) -> None:
    for function, matrix in ((columns_dot, X), (rows_dot, np.ascontiguousarray(X.T))):
        w = weights_for(len(X))
        w_enc = encrypted(w, insecure_test_key, frac_bits=20)
        result = function(Fixed.from_integers(matrix, 12), w_enc)
        assert decrypt(result, insecure_test_key).values.tolist() == dot(X.T, w)
        assert (len(result), result.frac_bits) == (X.shape[1], 32)
        magnitudes = np.abs(X.astype(object)).sum(axis=0) if X.size else [0]
        assert result.bound == max([0, *magnitudes]) * w_enc.bound


@each_case("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 5), (5, 1)])
@each_case("number", [0, 1, -7])
def test_thin_and_empty_matrices(insecure_test_key: PrivateKey, shape: tuple[int, int], number: int) -> None:
    w = weights_for(shape[0])
    X, w_enc = np.full(shape, number), encrypted(w, insecure_test_key)
    expected = [number * sum(w)] * shape[1]
    assert decrypt(columns_dot(Fixed.from_integers(X), w_enc), insecure_test_key).values.tolist() == expected
    assert decrypt(rows_dot(Fixed.from_integers(X.T), w_enc), insecure_test_key).values.tolist() == expected


def test_wide_types_of_small_numbers_are_taken(insecure_test_key: PrivateKey) -> None:
    X = Fixed.from_integers(np.array([[3, -4], [5, LARGEST]], dtype=object))
    result = columns_dot(X, encrypted([2, -1], insecure_test_key))
    assert decrypt(result, insecure_test_key).values.tolist() == [1, -8 - LARGEST]


def test_python_paillier_gives_the_same_ciphertexts(insecure_test_key: PrivateKey) -> None:
    theirs = public_key_to_phe(insecure_test_key.public_key)
    X = np.random.default_rng(5).integers(-(2**30), 2**30, (6, 3))
    w_enc = encrypted(weights_for(6), insecure_test_key)
    w_phe = [phe.EncryptedNumber(theirs, c) for c in integers_of(w_enc.ciphertext)]
    expected = [
        sum((w * int(x) for w, x in zip(w_phe[1:], X[1:, j], strict=True)), w_phe[0] * int(X[0, j])) for j in range(3)
    ]
    for result in (columns_dot(Fixed.from_integers(X), w_enc), rows_dot(Fixed.from_integers(X.T), w_enc)):
        assert integers_of(result.ciphertext) == [number.ciphertext(be_secure=False) for number in expected]


# --- workers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (40, 7), (7, 40)])
@pytest.mark.parametrize("count", [2, 3, 50])
def test_workers_give_the_same_ciphertexts(
    insecure_test_key: PrivateKey, shape: tuple[int, int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "LEAST_PRODUCTS", 2)
    X = np.random.default_rng(1).integers(-(2**16), 2**16, shape)
    for function, matrix in ((columns_dot, X), (rows_dot, np.ascontiguousarray(X.T))):
        workers = PicklingWorkers(count)
        w_enc = encrypted(weights_for(len(X)), insecure_test_key)
        fixed = Fixed.from_integers(matrix)
        before = w_enc.public_key.kernel.counts.products
        shared = function(fixed, w_enc, workers=workers)
        assert workers.tasks == min(count, len(matrix))
        assert w_enc.public_key.kernel.counts.products - before >= len(matrix)
        alone = function(fixed, w_enc)
        assert integers_of(shared.ciphertext) == integers_of(alone.ciphertext)
        assert (shared.frac_bits, shared.bound) == (alone.frac_bits, alone.bound)


def test_only_much_work_goes_to_workers(insecure_test_key: PrivateKey) -> None:
    little, much = Fixed.from_integers(np.ones((3, 3), int)), Fixed.from_integers(np.zeros((100, 100), int))
    for function in (columns_dot, rows_dot):
        workers = PicklingWorkers(3)
        function(little, encrypted([1] * 3, insecure_test_key), workers=workers)
        function(little[:0], encrypted([1] * (0 if function is columns_dot else 3), insecure_test_key), workers=workers)
        assert workers.tasks == 0
        function(much, encrypted([1] * 100, insecure_test_key), workers=workers)
        assert workers.tasks == 3


# --- refused --------------------------------------------------------------------------------------

Sum = Callable[..., Any]


@pytest.mark.parametrize("function", [columns_dot, rows_dot])
def test_what_does_not_fit_is_refused_before_it_is_computed(function: Sum, insecure_test_key: PrivateKey) -> None:
    key, half = insecure_test_key, insecure_test_key.public_key.n // 2
    two, most = encrypted([1, 2], key), encrypted([1, 2], key, bound=half // 2 + 1)
    ones = np.ones((2, 2), np.int64)
    wide = np.array([[2**62, 0], [0, 0]], dtype=object)
    refused = [
        (np.ones((3, 3), np.int64), two, r"shape \(3, 3\)"),
        (np.ones((0, 0), np.int64), two, r"shape \(0, 0\)"),
        (np.ones(2, np.int64), two, r"shape \(2,\)"),
        (np.ones((2, 2, 1), np.int64), two, r"shape \(2, 2, 1\)"),
        (np.array(1), two, r"shape \(\)"),
        (wide, two, "more than 62 bits"),
        (-wide, two, "more than 62 bits"),
        (np.array([[-(2**63), 0], [0, 0]]), two, "more than 62 bits"),
        (np.array([[2**64, 0], [0, 0]], dtype=object), two, "more than 62 bits"),
        (ones, most, "a result could need"),
        (-ones, most, "a result could need"),
    ]
    with nothing_computed(key.public_key):
        for matrix, vector, text in refused:
            with pytest.raises(RangeError, match=text):
                function(Fixed.from_integers(matrix), vector)
    assert len(function(Fixed.from_integers(np.eye(2, dtype=np.int64)), most)) == 2


@pytest.mark.parametrize("function", [columns_dot, rows_dot])
def test_the_right_side_is_checked(function: Sum, insecure_test_key: PrivateKey) -> None:
    X = Fixed.from_integers(np.ones((2, 5), np.int64))
    right, wrong = (2, 5) if function is columns_dot else (5, 2)
    assert len(function(X, encrypted([1] * right, insecure_test_key))) == wrong
    with pytest.raises(RangeError, match=r"it must have \((5, any|any, 2)\)"):
        function(X, encrypted([1] * wrong, insecure_test_key))


@pytest.mark.parametrize("function", [columns_dot, rows_dot])
def test_sums_at_the_very_bound_are_exact(function: Sum, insecure_test_key: PrivateKey) -> None:
    """Sums of magnitudes past 64 bits, and a result as large as its bound, which is half the modulus."""
    key, half = insecure_test_key, insecure_test_key.public_key.n // 2
    X = Fixed.from_integers([[LARGEST] * 4, [-LARGEST] * 4] if function is rows_dot else [[LARGEST, -LARGEST]] * 4)
    most = half // (4 * LARGEST)
    result = function(X, encrypted([most] * 4, key))
    assert result.bound == 4 * LARGEST * most
    assert decrypt(result, key).values.tolist() == [4 * LARGEST * most, -4 * LARGEST * most]
    one_more = encrypted([most + 1] * 4, key)
    with nothing_computed(key.public_key), pytest.raises(RangeError, match="a result could need"):
        function(X, one_more)


# --- at full size ---------------------------------------------------------------------------------


def test_sums_at_2048_bits(real_key: PrivateKey) -> None:
    rng = np.random.default_rng(7)
    X, w = rng.integers(-(2**16), 2**16, (12, 5)), weights_for(12)
    w_enc = encrypted(w, real_key)
    by_columns = columns_dot(Fixed.from_integers(X), w_enc)
    by_rows = rows_dot(Fixed.from_integers(X.T), w_enc)
    assert integers_of(by_columns.ciphertext) == integers_of(by_rows.ciphertext)
    assert decrypt(by_rows, real_key).values.tolist() == dot(X.T, w)
