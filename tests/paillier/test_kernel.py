"""Arithmetic mod n^2 of vectors equals Python's own, and the counts of products are those of the docstrings."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise
from math import gcd, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.paillier.kernel import Counts, Kernel, Residues, power_products
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.vector_unit.unit import products_of_power
from tests.each_case import each_case
from tests.paillier.tools import LAW

MODULI = [3 * 5, 101 * 103, (2**89 - 1) * (2**107 - 1), (2**521 - 1) * (2**607 - 1), 2**127 - 1]
EXPONENTS = st.just(0) | st.integers(-20, 20) | st.integers(-(2**300), 2**300)


@dataclass
class Vector:
    """A vector for the kernel, and the same as Python's integers."""

    kernel: Kernel
    residues: Residues
    integers: list[int]


def integers(residues: Residues, n: int) -> list[int]:
    """Return the integers by the definition: value (1 + n)^exponent."""
    pairs = zip(residues.values, residues.exponents, strict=True)
    return [int(value) * pow(1 + n, int(exponent), n * n) % (n * n) for value, exponent in pairs]


def vector_of(n: int, pairs: list[tuple[int, int]]) -> Vector:
    kernel = Kernel(n)
    bare = kernel.residues(value for value, _ in pairs)
    factors = kernel.ones_plus(exponent for _, exponent in pairs)
    residues = Residues(bare.values, factors.exponents)
    return Vector(kernel, residues, integers(residues, n))


@st.composite
def vectors(draw: st.DrawFn, *, least: int = 0, most: int = 7) -> Vector:
    """Draw residues prime to n, with arbitrary powers of 1 + n."""
    n = draw(st.sampled_from(MODULI))
    return vector_of(n, draw(pairs_for(n, least, most)))


@cache
def pairs_for(n: int, least: int, most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Return a strategy, made once: making one takes longer than drawing from it."""
    edges = [1, 2, n - 1, n + 1, n * n - 1]
    units = (st.integers(1, n * n - 1) | st.sampled_from(edges)).filter(lambda value: gcd(value, n) == 1)
    return st.lists(st.tuples(units, EXPONENTS), min_size=least, max_size=most)


def inverse(integer: int, n: int) -> int:
    return pow(integer, -1, n * n)


# --- in and out -----------------------------------------------------------------------------------


@LAW
@given(vectors())
def test_integers_are_values_times_powers_of_one_plus_n(v: Vector) -> None:
    assert v.kernel.integers(v.residues) == v.integers
    assert all(0 < integer < v.kernel.modulus for integer in v.integers)
    assert v.kernel.counts == Counts(products=sum(exponent != 0 for exponent in v.residues.exponents))


@LAW
@given(st.sampled_from(MODULI), st.lists(EXPONENTS, max_size=5))
def test_a_plaintext_alone_is_one_plus_m_n(n: int, plaintexts: list[int]) -> None:
    kernel = Kernel(n)
    residues = kernel.ones_plus(plaintexts)
    assert kernel.counts == Counts()
    assert kernel.integers(residues) == [(1 + m * n) % (n * n) for m in plaintexts]


@LAW
@given(vectors(), st.data())
def test_parts_and_joins_are_those_of_lists(v: Vector, data: st.DataObject) -> None:
    which = data.draw(st.slices(len(v.integers)))
    indices = data.draw(st.lists(st.integers(0, len(v.integers) - 1))) if v.integers else []
    assert integers(v.residues[which], v.kernel.n) == v.integers[which]
    assert integers(v.residues.take(indices), v.kernel.n) == [v.integers[i] for i in indices]
    joined = Residues.concatenate([v.residues, v.residues[which], v.residues])
    assert integers(joined, v.kernel.n) == v.integers + v.integers[which] + v.integers
    assert len(joined) == 2 * len(v.integers) + len(v.integers[which])
    assert v.kernel.counts == Counts()


# --- products -------------------------------------------------------------------------------------


@LAW
@given(vectors())
def test_products(v: Vector) -> None:
    n, backwards = v.kernel.n, v.residues[::-1]
    result = v.kernel.products(v.residues, backwards)
    assert integers(result, n) == [a * b % (n * n) for a, b in zip(v.integers, v.integers[::-1], strict=True)]
    assert v.kernel.counts == Counts(products=len(v.integers))


@LAW
@given(vectors(), st.data())
def test_plaintexts_added(v: Vector, data: st.DataObject) -> None:
    size, n = len(v.integers), v.kernel.n
    plaintexts = data.draw(st.lists(EXPONENTS, min_size=size, max_size=size))
    result = v.kernel.plus(v.residues, plaintexts)
    assert v.kernel.counts == Counts()
    assert integers(result, n) == [c * (1 + m * n) % (n * n) for c, m in zip(v.integers, plaintexts, strict=True)]


@LAW
@given(vectors(least=1), st.integers(0, 7), st.data())
def test_grouped_products(v: Vector, split: int, data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.lists(st.integers(0, len(v.integers) - 1), max_size=6), max_size=5))
    bases = Residues.concatenate([v.kernel.split(v.residues[:split]), v.residues[split:]])
    v.kernel.counts = Counts()
    indices = np.array([index for group in groups for index in group], np.int64)
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
    result = v.kernel.multiply_groups(bases, indices, ends)
    expected = [prod(v.integers[i] for i in group) % v.kernel.modulus for group in groups]
    assert integers(result, v.kernel.n) == expected
    assert v.kernel.integers(result) == expected
    products = sum(max(0, len(group) - 1) for group in groups)
    assert v.kernel.counts.products == products + sum(exponent != 0 for exponent in result.exponents)


@each_case("sizes", [[], [0], [1], [2], [3], [0, 0], [0, 1, 0], [5, 0, 4, 0]])
@each_case("split", [0, 5, 9])
def test_groups_of_every_size(sizes: list[int], split: int) -> None:
    n = MODULI[1]
    v = vector_of(n, [(n * n - 1 - i, 0) for i in range(9)])  # large: what is not reduced shows
    bases = Residues.concatenate([v.kernel.split(v.residues[:split]), v.residues[split:]])
    indices = np.arange(sum(sizes), dtype=np.int64)
    result = v.kernel.multiply_groups(bases, indices, np.cumsum(sizes, dtype=np.int64))
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    expected = [prod(v.integers[end - size : end]) % (n * n) for end, size in zip(ends, sizes, strict=True)]
    assert v.kernel.integers(result) == expected


@LAW
@given(vectors(least=1), st.integers(1, 4), st.integers(0, 3), st.booleans(), st.data())
def test_bucket_products(v: Vector, largest: int, columns: int, split: bool, data: st.DataObject) -> None:
    """In every few consecutive groups the last counts to the first power, the one before it squared, and so on."""
    count, group = columns * largest, st.lists(st.integers(0, len(v.integers) - 1), max_size=4)
    groups = data.draw(st.lists(group, min_size=count, max_size=count))
    bases = v.kernel.split(v.residues) if split else v.residues
    v.kernel.counts = Counts()
    indices = np.array([index for group in groups for index in group], np.int64)
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
    result = v.kernel.bucket_products(bases, indices, ends, largest)
    products = sum(max(0, len(group) - 1) for group in groups) + 2 * (count - columns)
    assert v.kernel.counts == Counts(products=products)
    powers = [
        pow(prod(v.integers[i] for i in g), largest - k % largest, v.kernel.modulus) for k, g in enumerate(groups)
    ]
    expected = [prod(powers[k : k + largest]) % v.kernel.modulus for k in range(0, count, largest)]
    assert integers(result, v.kernel.n) == expected
    assert v.kernel.integers(result) == expected


@LAW
@given(vectors())
def test_values_apart_from_their_powers_of_one_plus_n(v: Vector) -> None:
    values, exponents = v.kernel.apart(v.residues)
    assert all(0 <= exponent < v.kernel.n for exponent in exponents)
    assert integers(values, v.kernel.n) == values.values == v.residues.values
    assert integers(v.kernel.plus(values, exponents), v.kernel.n) == v.integers
    assert v.kernel.counts == Counts()


# --- inverses -------------------------------------------------------------------------------------


@LAW
@given(vectors())
def test_inverses(v: Vector) -> None:
    n = v.kernel.n
    assert integers(v.kernel.inverses(v.residues), n) == [inverse(integer, n) for integer in v.integers]
    assert v.kernel.counts == Counts(products=3 * len(v.integers), inversions=1)


@LAW
@given(vectors())
def test_a_split_vector_is_the_same_with_values_of_half_the_size(v: Vector) -> None:
    split = v.kernel.split(v.residues)
    assert integers(split, v.kernel.n) == v.integers
    assert all(0 < value < v.kernel.n for value in split.values)
    assert v.kernel.counts == Counts(products=4 * len(v.integers), inversions=1)


@LAW
@given(vectors())
def test_a_split_vector_with_its_inverses(v: Vector) -> None:
    n = v.kernel.n
    both = v.kernel.split_with_inverses(v.residues)
    assert integers(both, n) == v.integers + [inverse(integer, n) for integer in v.integers]
    assert all(0 < value < n for value in both.values)
    assert v.kernel.counts == Counts(products=4 * len(v.integers), inversions=1)


@pytest.mark.parametrize("n", [3 * 5, 5 * 7])
def test_every_unit_of_a_tiny_modulus(n: int) -> None:
    units = [integer for integer in range(1, n * n) if gcd(integer, n) == 1]
    kernel = Kernel(n)
    both = kernel.split_with_inverses(kernel.residues(units))
    assert kernel.integers(both) == units + [inverse(unit, n) for unit in units]


INVERTING: dict[str, Callable[[Kernel, Residues], object]] = {
    "inverses": Kernel.inverses,
    "split": Kernel.split,
    "split_with_inverses": Kernel.split_with_inverses,
    "powers_each": lambda kernel, a: kernel.powers_each(a, [-1] * len(a)),
    "power_tables": lambda kernel, a: kernel.power_tables(a, 4),
    "subset_tables": lambda kernel, a: kernel.subset_tables(a, 2),
}


@each_case("name", INVERTING)
@each_case("position", [0, 2, 4])
@each_case("wrong", [0, 3, 5, 15, 30, 45])
def test_what_is_not_prime_to_n_is_refused(name: str, position: int, wrong: int) -> None:
    kernel = Kernel(15)
    values = [2, 4, 7, 8, 11]
    values[position] = wrong
    with pytest.raises(RangeError, match="a ciphertext is not prime to its modulus"):
        INVERTING[name](kernel, kernel.residues(values))


# --- powers ---------------------------------------------------------------------------------------


@LAW
@given(vectors(), st.integers(0, 40) | st.integers(0, 2**200))
def test_powers(v: Vector, exponent: int) -> None:
    """The tests of the vector unit check which of the two computes them."""
    before = 0 if v.kernel.unit is None else v.kernel.unit.multiplied
    result = v.kernel.powers(v.residues, exponent)
    assert integers(result, v.kernel.n) == [pow(c, exponent, v.kernel.modulus) for c in v.integers]
    by_unit = v.kernel.unit is not None and v.kernel.unit.multiplied > before
    each = products_of_power(exponent) + 2 if by_unit else power_products(exponent)
    assert v.kernel.counts == Counts(products=len(v.integers) * each)


@LAW
@given(vectors(), st.data())
def test_powers_each_with_its_own_sign(v: Vector, data: st.DataObject) -> None:
    size = len(v.integers)
    signed = st.integers(-3, 3) | st.integers(-(2**100), 2**100)
    exponents = data.draw(st.lists(signed, min_size=size, max_size=size))
    before = integers(v.residues, v.kernel.n)
    result = v.kernel.powers_each(v.residues, exponents)
    expected = [pow(c, e, int(v.kernel.modulus)) for c, e in zip(v.integers, exponents, strict=True)]
    assert integers(result, v.kernel.n) == expected
    assert integers(v.residues, v.kernel.n) == before
    negative = sum(exponent < 0 for exponent in exponents)
    products = sum(power_products(abs(exponent)) for exponent in exponents) + 3 * negative
    assert v.kernel.counts == Counts(products=products, inversions=int(negative > 0))


def test_products_of_a_power() -> None:
    """A power takes a squaring for every bit after the first, and the products of a sliding window."""
    assert [power_products(exponent) for exponent in (0, 1)] == [0, 0]
    for bits in (256, 512, 2048, 4096):
        assert 1.1 * bits < power_products(2**bits - 1) < 1.3 * bits
    assert all(fewer <= more for fewer, more in pairwise(power_products(2**bits) for bits in range(4200)))


# --- tables ---------------------------------------------------------------------------------------


@LAW
@given(vectors(), st.integers(1, 9))
def test_tables_of_powers(v: Vector, size: int) -> None:
    tables = v.kernel.power_tables(v.residues, size)
    assert integers(tables, v.kernel.n) == [pow(c, e, v.kernel.modulus) for c in v.integers for e in range(size)]
    assert all(0 < value < v.kernel.n for value in tables.values)
    assert v.kernel.counts == Counts(products=(size + 4) * len(v.integers), inversions=1)


@LAW
@given(vectors(), st.integers(1, 5))
def test_tables_of_subsets(v: Vector, group: int) -> None:
    tables = v.kernel.subset_tables(v.residues, group)
    expected = []
    for start in range(0, len(v.integers), group):
        bases = v.integers[start : start + group]
        for entry in range(2 ** len(bases)):
            chosen = [base for bit, base in enumerate(bases) if entry >> bit & 1]
            expected.append(prod(chosen) % v.kernel.modulus)
    assert integers(tables, v.kernel.n) == expected
    assert all(0 < value < v.kernel.n for value in tables.values)
    assert v.kernel.counts == Counts(products=len(expected) + 4 * len(v.integers), inversions=1)


# --- the rest -------------------------------------------------------------------------------------


def test_an_empty_vector_gives_empty_ones() -> None:
    kernel, none = Kernel(15), np.zeros(0, np.int64)
    empty = kernel.residues([])
    results = [
        empty,
        kernel.ones_plus([]),
        empty[:],
        empty.take([]),
        Residues.concatenate([]),
        Residues.concatenate([empty, empty]),
        kernel.products(empty, empty),
        kernel.plus(empty, []),
        kernel.multiply_groups(empty, none, none),
        kernel.inverses(empty),
        kernel.split(empty),
        kernel.split_with_inverses(empty),
        kernel.powers(empty, 7),
        kernel.powers_each(empty, []),
        kernel.power_tables(empty, 4),
        kernel.subset_tables(empty, 3),
    ]
    assert [len(result) for result in results] == [0] * len(results)
    assert kernel.integers(empty) == []
    assert kernel.counts.products == 0


def test_lengths_that_differ_are_refused() -> None:
    kernel = Kernel(15)
    two, one = kernel.residues([2, 4]), kernel.residues([2])
    for wrong in (
        lambda: kernel.products(two, one),
        lambda: kernel.plus(two, [1]),
        lambda: kernel.powers_each(two, [1]),
    ):
        with pytest.raises(ValueError, match="zip"):
            wrong()


def test_counts_add_up() -> None:
    counts = Counts(3, 1)
    counts.add(Counts(4, 2))
    assert counts == Counts(products=7, inversions=3)


def test_a_pickled_kernel_carries_no_counts() -> None:
    kernel = Kernel(15)
    kernel.inverses(kernel.residues([2, 4]))
    arrived = pickle.loads(pickle.dumps(kernel))
    assert (arrived.n, arrived.modulus, arrived.counts) == (15, 225, Counts())
    assert kernel.counts.products > 0


def test_pickled_residues_are_the_same() -> None:
    v = vector_of(15, [(2, -7), (224, 3)])
    assert integers(pickle.loads(pickle.dumps(v.residues)), 15) == v.integers


def test_every_operation_at_2048_bits(real_key: PrivateKey) -> None:
    n = real_key.public_key.n
    modulus = n * n
    v = vector_of(n, [(pow(7, 2**40 + i, modulus), 3**700 * (i - 2)) for i in range(5)])
    kernel, c = v.kernel, v.integers
    order = np.array([4, 0, 2], np.int64)
    split = kernel.split(v.residues)
    inverses = [inverse(integer, n) for integer in c]
    checks: list[tuple[Any, list[int]]] = [
        (v.residues, c),
        (kernel.products(v.residues, v.residues), [x * x % modulus for x in c]),
        (kernel.multiply_groups(split, order, np.array([3])), [c[4] * c[0] * c[2] % modulus]),
        (kernel.inverses(v.residues), inverses),
        (split, c),
        (kernel.split_with_inverses(v.residues), c + inverses),
        (kernel.powers(v.residues, 12345), [pow(x, 12345, modulus) for x in c]),
        (kernel.powers_each(v.residues, [-2, -1, 0, 1, 2]), [pow(c[e + 2], e, modulus) for e in range(-2, 3)]),
        (kernel.power_tables(v.residues[:1], 4), [pow(c[0], e, modulus) for e in range(4)]),
        (kernel.subset_tables(v.residues[:2], 2), [1, c[0], c[1], c[0] * c[1] % modulus]),
    ]
    for result, expected in checks:
        assert kernel.integers(result) == expected
    assert reduce(gcd, c, n) == 1
