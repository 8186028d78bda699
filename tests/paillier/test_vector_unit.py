"""The vector unit gives the same as GMP; a machine without one reports so, and everything else still works."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from gmpy2 import mpz, powmod
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.paillier import multi_exponentiation, vector_sums
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.kernel import Kernel, Residues, power_products
from blindfit.algorithms.paillier.keys import PrivateKey, insecure_private_key
from blindfit.algorithms.paillier.randomisers import FixedBase, random_digits
from blindfit.algorithms.paillier.threshold import combine, deal, partial_decrypt
from blindfit.algorithms.paillier.vector_unit import unit as ifma
from blindfit.algorithms.paillier.vector_unit.shape import TABLE_SIZE
from blindfit.algorithms.paillier.vector_unit.unit import VectorUnit, limbs_of, products_of_power, vector_unit
from blindfit.algorithms.paillier.vectors import EncryptedVector
from tests.each_case import each_case
from tests.paillier.tools import LAW, encrypted, seeded

ROOTS = [2**256 - 189, 2**260 - 1, 2**412 - 1, 2**607 - 1, 3**650, (2**2203 - 1) * (2**1279 - 1)]
COUNTS = [1, 3, 4, 5, 7, 8, 9, 13, 16, 17]  # lanes full and not, of both widths
needs_unit = pytest.mark.skipif(not ifma._is_supported(), reason="this processor has no AVX-512 IFMA")


def unit_of(n: int) -> VectorUnit:
    unit = vector_unit(n)
    assert unit is not None
    return unit


def values(unit: VectorUnit, rows: ifma.Rows) -> list[tuple[int, int]]:
    """Return the r and s of every row, which its arithmetic keeps below 2 n."""
    half = unit.limbs // 2
    return list(zip(ifma._join(rows[:, :half]), ifma._join(rows[:, half:]), strict=True))


def extremes(n: int) -> list[int]:
    """Return the numbers that carry farthest, and those without a carry."""
    return [0, 1, 2, n - 1, n, n + 1, n * (n - 1), n * n - n - 1, n * n - 1, 1 << (n.bit_length() - 1)]


@needs_unit
@each_case("n", ROOTS, ids=int.bit_length)
def test_numbers_come_back_and_products_are_those_of_integers(n: int) -> None:
    unit, draw, modulus = unit_of(n), seeded(1), n * n
    numbers = [*extremes(n), modulus - 2, modulus >> 1, *(draw(modulus) for _ in range(30))]
    rows = unit.rows([mpz(number) for number in numbers])
    assert unit.integers(rows) == numbers
    indices = np.array([[draw(len(numbers)) for _ in range(9)] for _ in range(21)])
    expected = []
    for line in indices.tolist():
        product = 1
        for i in line:
            product = product * numbers[i] % modulus
        expected.append(product)
    assert unit.integers(unit.multiply_groups(rows, indices)) == expected


@needs_unit
@LAW
@given(st.sampled_from(ROOTS), st.integers(0, 2**40), st.integers(1, 20), st.booleans())
def test_products_of_any_two(n: int, seed: int, count: int, extreme: bool) -> None:
    unit, draw, modulus = unit_of(n), seeded(seed), n * n
    a, b = ([modulus - 1 - draw(3) if extreme else draw(modulus) for _ in range(count)] for _ in range(2))
    products = unit.products(unit.rows([mpz(x) for x in a]), unit.rows([mpz(x) for x in b]))
    assert unit.integers(products) == [x * y % modulus for x, y in zip(a, b, strict=True)]


@needs_unit
def test_a_long_chain_stays_in_range() -> None:
    """Nothing is subtracted on the way: both halves must stay below 2 n for ever, also where R is 16 n all but 1."""
    n = 2**412 - 1
    unit = unit_of(n)
    rows = largest = np.concatenate([unit.rows([mpz(n * n - 1)] * 3), _row_below_twice(unit)])
    for squarings in [0, 1] * 200:
        rows = unit.multiply_groups(np.concatenate([rows, largest]), np.arange(8).reshape(2, 4).T, squarings)
        assert all(r < 2 * n and s < 2 * n for r, s in values(unit, rows))


def _row_below_twice(unit: VectorUnit) -> ifma.Rows:
    """Return the largest halves that a row may have."""
    half = ifma._limbs(unit.limbs // 2, [2 * unit.n - 1])
    return np.concatenate([half, half], axis=1)


@needs_unit
@each_case("n", ROOTS, ids=int.bit_length)
@each_case("squarings", [1, 2, 13])
def test_squares_between_factors(n: int, squarings: int) -> None:
    unit, numbers = unit_of(n), extremes(n)
    indices = np.array([[i, (i + 3) % len(numbers), 8] for i in range(len(numbers))])
    products = unit.multiply_groups(unit.rows([mpz(number) for number in numbers]), indices, squarings)
    expected = []
    for i, j, k in indices.tolist():
        once = pow(numbers[i], 2**squarings, n * n) * numbers[j]
        expected.append(pow(once, 2**squarings, n * n) * numbers[k] % (n * n))
    assert unit.integers(products) == expected


@needs_unit
@each_case("count", COUNTS)
def test_powers_with_lanes_full_and_not(count: int) -> None:
    n, draw = ROOTS[3], seeded(count)
    unit, bases = unit_of(n), [draw(n * n) for _ in range(count)]
    exponent = draw(2**200)
    assert unit.integers(unit.powers(unit.rows(bases), exponent)) == [pow(base, exponent, n * n) for base in bases]


@needs_unit
@pytest.mark.parametrize("n", ROOTS, ids=int.bit_length)
def test_powers_of_the_largest_numbers_to_any_exponent(n: int) -> None:
    unit, numbers = unit_of(n), extremes(n)
    rows = unit.rows([mpz(number) for number in numbers])
    exponents = [0, 1, 2, 31, 32, 33, 2**64, 2**65 - 1, *([n, n - 1, n * n - 1] if n < ROOTS[-1] else [])]
    for exponent in exponents:
        powers = unit.powers(rows, exponent)
        assert all(r < 2 * n and s < 2 * n for r, s in values(unit, powers))
        assert unit.integers(powers) == [powmod(number, exponent, n * n) for number in numbers]


@needs_unit
def test_every_digit_of_an_exponent_and_no_more_is_read() -> None:
    n = ROOTS[0]
    unit = unit_of(n)
    three = unit.rows([mpz(3)])
    for digit in range(TABLE_SIZE):
        exponent = (digit << 5) + 7
        assert unit.integers(unit.powers(three, exponent)) == [pow(3, exponent, n * n)]


@needs_unit
def test_a_power_multiplies_as_often_for_all_exponents_of_as_many_digits() -> None:
    unit = unit_of(ROOTS[0])
    rows = unit.rows([mpz(5)] * 3)
    for exponent in (2**254, 2**255 - 1, 2**250 + 1):
        before = unit.multiplied
        unit.powers(rows, exponent)
        assert unit.multiplied - before == 3 * products_of_power(exponent) == 3 * (31 + 50 * 6)


@needs_unit
def test_an_index_outside_the_table_reads_nothing() -> None:
    unit = unit_of(ROOTS[0])
    rows = unit.rows([mpz(2), mpz(3)])
    for wrong in (-1, 2):
        with pytest.raises(IndexError):
            unit.multiply_groups(rows, np.array([[0, wrong]]))
    assert len(unit.multiply_groups(rows, np.empty((0, 4), dtype=np.int64))) == 0


@needs_unit
def test_a_unit_that_multiplies_wrongly_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorUnit, "multiply_groups", lambda _self, table, indices, squarings=0: table[indices[:, 0]])
    assert vector_unit(ROOTS[1]) is None


@needs_unit
def test_a_unit_whose_powers_or_squares_are_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    powers, grouped = VectorUnit.powers, VectorUnit.multiply_groups
    with monkeypatch.context() as tampered:
        tampered.setattr(VectorUnit, "powers", lambda unit, rows, exponent: powers(unit, rows, exponent ^ 1))
        assert vector_unit(ROOTS[1]) is None
    with monkeypatch.context() as tampered:
        tampered.setattr(
            VectorUnit, "multiply_groups", lambda unit, table, indices, squarings=0: grouped(unit, table, indices)
        )
        assert vector_unit(ROOTS[1]) is None
    assert vector_unit(ROOTS[1]) is not None


@needs_unit
def test_a_unit_shows_and_pickles_no_modulus() -> None:
    unit = unit_of(ROOTS[2])
    assert str(ROOTS[2]) not in repr(unit)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(unit)


def test_small_moduli_have_none() -> None:
    assert vector_unit(2**89 - 1) is None
    assert vector_unit(2**255 - 19) is None
    assert limbs_of(2**100 - 1) == 2
    assert limbs_of(2**101 - 1) == 3


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
@each_case("shape", [(128, 20), (16, 64), (1000, 2)])
def test_the_products_are_counted(shape: tuple[int, int], insecure_test_key: PrivateKey) -> None:
    kernel, draw = Kernel(int(insecure_test_key.public_key.n)), seeded(5)
    exponents = np.array([[draw(2**13) - 2**12 for _ in range(shape[1])] for _ in range(shape[0])])
    bases = kernel.residues([2 + draw(10**30) for _ in range(shape[0])])
    multi_exponentiation.column_powers(kernel, bases, exponents)
    planned = vector_sums.column_products(*shape, 12)
    assert 0.9 * planned < kernel.counts.products < 1.2 * planned + 8 * sum(shape)


# --- where it serves ------------------------------------------------------------------------------


def without_unit(n: int) -> Kernel:
    """Return a kernel as on a processor without a vector unit."""
    kernel = Kernel(n)
    kernel.__dict__["unit"] = None
    return kernel


@each_case("count", [1, 7, 8, 9, 20])
@each_case("exponent", [0, 1, 2**64, 2**1023 + 12345, 2**1024 - 1])
def test_powers_are_the_same_with_and_without(count: int, exponent: int, insecure_test_key: PrivateKey) -> None:
    n, draw = int(insecure_test_key.public_key.n), seeded(count)
    bases = Residues([mpz(draw(n * n)) for _ in range(count)], [mpz(draw(n)) - n // 2 for _ in range(count)])
    kernels = [Kernel(n), without_unit(n)]
    results = [kernel.integers(kernel.powers(bases, exponent)) for kernel in kernels]
    assert results[0] == results[1]


@needs_unit
def test_the_unit_takes_long_powers_alone_and_counts_them(insecure_test_key: PrivateKey) -> None:
    n = int(insecure_test_key.public_key.n)
    kernel, exponent = Kernel(n), 2**200 + 1
    unit = kernel.unit
    assert unit is not None
    for count, by_unit in ((1, False), (3, False), (4, True), (9, True)):
        before, multiplied = kernel.counts.products, unit.multiplied
        kernel.powers(kernel.residues(range(2, 2 + count)), exponent)
        expected = count * (products_of_power(exponent) + 2 if by_unit else power_products(exponent))
        assert kernel.counts.products - before == expected
        assert unit.multiplied - multiplied == (expected if by_unit else 0)


@each_case(("groups", "size"), [(1, 1), (1, 6), (3, 5), (9, 2), (12, 1)])
@each_case("shift_bits", [2, 51])
def test_shifted_products_are_the_same_with_and_without(
    groups: int, size: int, shift_bits: int, insecure_test_key: PrivateKey
) -> None:
    n, draw, count = int(insecure_test_key.public_key.n), seeded(shift_bits), groups * size
    bases = Residues([mpz(draw(n * n)) for _ in range(count)], [mpz(draw(n)) - n // 2 for _ in range(count)])
    kernels = [Kernel(n), without_unit(n)]
    results = [kernel.integers(kernel.multiply_shifted(bases, size, shift_bits)) for kernel in kernels]
    whole = kernels[1].integers(bases)
    expected = []
    for start in range(0, count, size):
        product = 1
        for t, c in enumerate(whole[start : start + size]):
            product = product * pow(int(c), 2 ** (shift_bits * t), n * n) % (n * n)
        expected.append(product)
    assert results == [expected, expected]


@each_case("count", [1, 8, 17])
@each_case("threads", [1, 2])
def test_decryption_is_the_same_with_and_without(count: int, threads: int, insecure_test_key: PrivateKey) -> None:
    fast, slow = replace(insecure_test_key), replace(insecure_test_key)
    for prime in slow._primes:
        prime.kernel.__dict__["unit"] = None
    kernel, n = insecure_test_key.public_key.kernel, insecure_test_key.public_key.n
    draw = seeded(count)
    ciphertexts = kernel.residues([mpz(2 + draw(n * n - 2)) for _ in range(count)])
    assert fast.decrypt_residues(ciphertexts, threads=threads) == slow.decrypt_residues(ciphertexts, threads=threads)


@needs_unit
def test_decryption_multiplies_by_the_unit(insecure_test_key: PrivateKey) -> None:
    key = replace(insecure_test_key)
    ciphertexts = key.public_key.kernel.residues([mpz(3)] * 8)
    key.decrypt_residues(ciphertexts)
    for prime in key._primes:
        unit = prime.kernel.unit
        assert unit is not None
        assert unit.multiplied > 8 * products_of_power(insecure_test_key.p)


def test_small_keys_are_decrypted_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorUnit, "powers", lambda *_: pytest.fail("the vector unit took a power"))
    key = insecure_private_key(400, uniform=seeded(400))
    assert [prime.kernel.unit for prime in key._primes] == [None, None]
    plaintexts = list(range(-9, 9))
    encrypted = key.public_key.kernel.ones_plus(plaintexts)
    assert key.decrypt_residues(encrypted) == plaintexts


def test_a_partial_decryption_is_the_same_with_and_without(insecure_test_key: PrivateKey) -> None:
    fast, slow = (replace(insecure_test_key.public_key) for _ in range(2))
    slow.kernel.__dict__["unit"] = None
    plaintexts = [5, -7, 2**40, 0, 1, 2, 3, 4, 5]
    vector = encrypted(plaintexts, insecure_test_key)
    partials = []
    for public_key in (fast, slow):
        here = EncryptedVector(Ciphertext(public_key, vector.ciphertext.residues), 0, vector.bound)
        shares = [replace(share, public_key=public_key) for share in deal(insecure_test_key, 2, seeded(7))]
        made = [partial_decrypt(here, share) for share in shares]
        assert [int(value) for value in combine(here, made, 2).values] == plaintexts
        partials.append([partial.to_wire() for partial in made])
    assert partials[0] == partials[1]
