"""The vector unit gives what GMP gives; where this machine has none, that is said and everything else still works."""

from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.paillier import ifma, multi_exponentiation, vector_sums
from blindfit.algorithms.paillier.ifma import VectorUnit, limbs_of, vector_unit
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.randomisers import FixedBase, random_digits
from tests.paillier.tools import LAW, seeded

MODULI = [2**512 - 569, (2**607 - 1) ** 2, 2**1040 - 1, 3**1300, (2**2203 - 1) * (2**1279 - 1)]
needs_unit = pytest.mark.skipif(not ifma._supported(), reason="this processor has no AVX-512 IFMA")


def unit_of(modulus: int) -> VectorUnit:
    unit = vector_unit(modulus)
    assert unit is not None
    return unit


@needs_unit
@pytest.mark.parametrize("modulus", MODULI, ids=int.bit_length)
def test_numbers_come_back_and_products_are_those_of_integers(modulus: int) -> None:
    unit, draw = unit_of(modulus), seeded(1)
    numbers = [0, 1, 2, modulus - 1, modulus - 2, modulus >> 1, 1 << (modulus.bit_length() - 1)]
    numbers += [draw(modulus) for _ in range(30)]
    rows = unit.rows([mpz(number) for number in numbers])
    assert unit.integers(rows) == numbers
    indices = np.array([[draw(len(numbers)) for _ in range(9)] for _ in range(21)])
    expected = []
    for line in indices.tolist():
        product = 1
        for i in line:
            product = product * numbers[i] % modulus
        expected.append(product)
    assert unit.integers(unit.grouped_products(rows, indices)) == expected


@needs_unit
@LAW
@given(st.sampled_from(MODULI), st.integers(0, 2**40), st.integers(1, 20), st.booleans())
def test_products_of_any_two(modulus: int, seed: int, count: int, extreme: bool) -> None:
    unit, draw = unit_of(modulus), seeded(seed)
    a, b = ([modulus - 1 - draw(3) if extreme else draw(modulus) for _ in range(count)] for _ in range(2))
    products = unit.products(unit.rows([mpz(x) for x in a]), unit.rows([mpz(x) for x in b]))
    assert unit.integers(products) == [x * y % modulus for x, y in zip(a, b, strict=True)]


@needs_unit
def test_a_long_chain_stays_in_range() -> None:
    """Nothing is subtracted on the way: numbers must stay below twice the modulus for ever."""
    modulus = 2**1040 - 1
    unit = unit_of(modulus)
    rows = unit.rows([mpz(modulus - 1)] * 3)
    for _ in range(500):
        rows = unit.products(rows, rows)
        assert all(ifma._joined(rows)[i] < 2 * modulus for i in range(3))
    assert unit.integers(rows) == [1] * 3


@needs_unit
def test_an_index_outside_the_table_reads_nothing() -> None:
    unit = unit_of(MODULI[0])
    rows = unit.rows([mpz(2), mpz(3)])
    for wrong in (-1, 2):
        with pytest.raises(IndexError):
            unit.grouped_products(rows, np.array([[0, wrong]]))
    assert len(unit.grouped_products(rows, np.empty((0, 4), dtype=np.int64))) == 0


@needs_unit
def test_a_unit_that_multiplies_wrongly_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorUnit, "products", lambda _self, a, _b: a)
    monkeypatch.setattr(VectorUnit, "grouped_products", lambda _self, table, indices: table[indices[:, 0]])
    assert vector_unit(MODULI[1]) is None


def test_small_moduli_have_none() -> None:
    assert vector_unit(2**89 - 1) is None
    assert limbs_of(2**102 - 1) == 2
    assert limbs_of(2**103 - 1) == 3


@pytest.mark.parametrize("shape", [(1, 1), (13, 3), (70, 2), (5, 40)])
@pytest.mark.parametrize("bits", [1, 12, 62])
def test_sums_are_the_same_with_and_without(
    shape: tuple[int, int], bits: int, monkeypatch: pytest.MonkeyPatch, insecure_test_key: PrivateKey
) -> None:
    n, draw = int(insecure_test_key.public_key.n), seeded(bits)
    fast, slow = Kernel(n), Kernel(n)
    monkeypatch.setattr(slow, "unit", None)
    exponents = np.array([[draw(2 ** (bits + 1)) - 2**bits for _ in range(shape[1])] for _ in range(shape[0])])
    exponents[0, 0] = -(2**bits)
    bases = Residues(
        slow.residues([2 + draw(n * n - 2) for _ in range(shape[0])]).values, [mpz(draw(n)) for _ in range(shape[0])]
    )
    for powers, matrix in (
        (multi_exponentiation.column_powers, exponents),
        (multi_exponentiation.row_powers, np.ascontiguousarray(exponents.T)),
    ):
        assert fast.integers(powers(fast, bases, matrix)) == slow.integers(powers(slow, bases, matrix))


@pytest.mark.parametrize(("exponent_bits", "window_bits"), [(256, 8), (37, 5), (1, 8)])
def test_powers_of_a_fixed_base_are_the_same_with_and_without(
    exponent_bits: int, window_bits: int, monkeypatch: pytest.MonkeyPatch, insecure_test_key: PrivateKey
) -> None:
    n = int(insecure_test_key.public_key.n)
    fast, slow = Kernel(n), Kernel(n)
    monkeypatch.setattr(slow, "unit", None)
    digits = random_digits(11, -(-exponent_bits // window_bits), window_bits, seeded(3))
    powers = [FixedBase(kernel, 12345, exponent_bits, window_bits).powers(digits) for kernel in (fast, slow)]
    assert fast.integers(powers[0]) == slow.integers(powers[1])


@needs_unit
@pytest.mark.parametrize("shape", [(128, 20), (16, 64), (1000, 2)])
def test_the_products_are_counted(shape: tuple[int, int], insecure_test_key: PrivateKey) -> None:
    kernel, draw = Kernel(int(insecure_test_key.public_key.n)), seeded(5)
    exponents = np.array([[draw(2**13) - 2**12 for _ in range(shape[1])] for _ in range(shape[0])])
    bases = kernel.residues([2 + draw(10**30) for _ in range(shape[0])])
    multi_exponentiation.column_powers(kernel, bases, exponents)
    planned = vector_sums.column_products(*shape, 12)
    assert 0.9 * planned < kernel.counts.products < 1.2 * planned + 8 * sum(shape)
