"""Encrypted vectors decrypt to the results of integers, or the operation is refused before it is done."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import phe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import BlindfitError, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import ReceivedCiphertext
from blindfit.algorithms.paillier.interop import private_key_to_phe, public_key_to_phe
from blindfit.algorithms.paillier.kernel import power_products
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, insecure_private_key
from blindfit.algorithms.paillier.randomisers import OwnKey
from blindfit.algorithms.paillier.vectors import EncryptedVector, check_fits, concatenate, decrypt, encrypt, to_fixed
from tests.paillier.tools import LAW, encrypted, integers_of, nothing_computed, seeded, source

NUMBERS = st.integers(-100, 100) | st.integers(-(2**100), 2**100)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5)


def decrypted(vector: EncryptedVector[Any], key: PrivateKey) -> list[int]:
    fixed = decrypt(vector, key)
    assert fixed.frac_bits == vector.frac_bits
    return [int(value) for value in fixed.values]


def columns_of(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


@pytest.fixture(scope="session")
def other_key() -> PrivateKey:
    return insecure_private_key(512, uniform=seeded(513))


# --- laws -----------------------------------------------------------------------------------------


@LAW
@given(numbers=st.lists(NUMBERS, max_size=5), frac_bits=st.integers(0, 40))
def test_decryption_inverts_encryption(insecure_test_key: PrivateKey, numbers: list[int], frac_bits: int) -> None:
    vector = encrypted(numbers, insecure_test_key, frac_bits=frac_bits)
    assert (len(vector), vector.frac_bits) == (len(numbers), frac_bits)
    assert vector.bound == max(map(abs, numbers), default=0)
    assert decrypted(vector, insecure_test_key) == numbers


@LAW
@given(pairs=PAIRS)
def test_sums_and_differences(insecure_test_key: PrivateKey, pairs: list[tuple[int, int]]) -> None:
    a, b = columns_of(pairs)
    a_enc, b_enc = encrypted(a, insecure_test_key, frac_bits=7), encrypted(b, insecure_test_key, frac_bits=7)
    plain = Fixed.from_integers(b, 7)
    sums, differences = [x + y for x, y in pairs], [x - y for x, y in pairs]
    for result, expected in (
        (a_enc + b_enc, sums),
        (a_enc + plain, sums),
        (a_enc - b_enc, differences),
        (a_enc - plain, differences),
        (-a_enc, [-x for x in a]),
        (a_enc - a_enc, [0] * len(a)),
    ):
        assert decrypted(result, insecure_test_key) == expected
        assert result.frac_bits == 7
    assert (a_enc + b_enc).bound == (a_enc - plain).bound == a_enc.bound + b_enc.bound
    assert (-a_enc).bound == a_enc.bound


@LAW
@given(pairs=PAIRS, factor=NUMBERS)
def test_scaling(insecure_test_key: PrivateKey, pairs: list[tuple[int, int]], factor: int) -> None:
    a, b = columns_of(pairs)
    a_enc = encrypted(a, insecure_test_key, frac_bits=5)
    each, same = a_enc.scale(Fixed.from_integers(b, 6)), a_enc.scale(Fixed.from_integers(factor, 6))
    assert decrypted(each, insecure_test_key) == [x * y for x, y in pairs]
    assert decrypted(same, insecure_test_key) == [x * factor for x in a]
    assert each.frac_bits == same.frac_bits == 11
    assert (each.bound, same.bound) == (a_enc.bound * max(map(abs, b), default=0), a_enc.bound * abs(factor))


@LAW
@given(numbers=st.lists(NUMBERS, max_size=6), data=st.data())
def test_parts_and_joins(insecure_test_key: PrivateKey, numbers: list[int], data: st.DataObject) -> None:
    which = data.draw(st.slices(len(numbers)))
    indices = data.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=8)) if numbers else []
    vector = encrypted(numbers, insecure_test_key, frac_bits=3)
    with nothing_computed(vector.public_key):
        part, taken, joined = vector[which], vector.take(indices), concatenate([vector, vector[which], vector])
    assert decrypted(part, insecure_test_key) == numbers[which]
    assert decrypted(taken, insecure_test_key) == [numbers[i] for i in indices]
    assert decrypted(joined, insecure_test_key) == numbers + numbers[which] + numbers


@LAW
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=5))
def test_rerandomising_changes_ciphertexts_and_nothing_else(insecure_test_key: PrivateKey, numbers: list[int]) -> None:
    vector = encrypted(numbers, insecure_test_key, frac_bits=2, bound=2**101)
    again = vector.rerandomize(source(insecure_test_key))
    assert decrypted(again, insecure_test_key) == numbers
    assert (again.frac_bits, again.bound) == (2, 2**101)
    assert not set(integers_of(again.ciphertext)) & set(integers_of(vector.ciphertext))


def test_reals_go_through() -> None:
    key = insecure_private_key(512, uniform=seeded(1))
    x, y, w = np.array([1.5, -2.25, 0.0]), np.array([0.5, 4.0, -1.0]), np.array([-3.0, 0.125, 2.0])
    x_enc = encrypt(Fixed.from_reals(x, 16), source(key))
    result = (x_enc + Fixed.from_reals(y, 16)).scale(Fixed.from_reals(w, 10)) - Fixed.from_reals(x, 26)
    assert decrypt(result, key).to_reals().tolist() == ((x + y) * w - x).tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(insecure_test_key: PrivateKey, threads: int) -> None:
    vector = encrypted(range(-5, 6), insecure_test_key)
    assert decrypt(vector, insecure_test_key, threads=threads).values.tolist() == list(range(-5, 6))


# --- python-paillier ------------------------------------------------------------------------------


@LAW
@given(pairs=st.lists(st.tuples(NUMBERS, st.integers(-(2**60), 2**60)), min_size=1, max_size=3))
def test_python_paillier_gives_the_same_ciphertexts(
    insecure_test_key: PrivateKey, pairs: list[tuple[int, int]]
) -> None:
    theirs, n = public_key_to_phe(insecure_test_key.public_key), insecure_test_key.public_key.n
    a, b = columns_of(pairs)
    a_enc, b_enc = encrypted(a, insecure_test_key), encrypted(b, insecure_test_key)

    def of_phe(vector: EncryptedVector[Any]) -> list[phe.EncryptedNumber]:
        return [phe.EncryptedNumber(theirs, integer) for integer in integers_of(vector.ciphertext)]

    for ours, others in (
        (a_enc + b_enc, [x + y for x, y in zip(of_phe(a_enc), of_phe(b_enc), strict=True)]),
        (a_enc + Fixed.from_integers(b), [x + y for x, y in zip(of_phe(a_enc), b, strict=True)]),
        (a_enc.scale(Fixed.from_integers(b)), [x * y for x, y in zip(of_phe(a_enc), b, strict=True)]),
    ):
        assert integers_of(ours.ciphertext) == [number.ciphertext(be_secure=False) for number in others]
        raw = [private_key_to_phe(insecure_test_key).raw_decrypt(c) for c in integers_of(ours.ciphertext)]
        assert [m - n if m > n // 2 else m for m in raw] == decrypted(ours, insecure_test_key)


def test_numbers_that_python_paillier_encrypted_are_received(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    theirs = [public_key_to_phe(public_key).raw_encrypt(m % public_key.n) for m in (5, -6, 0)]
    data = b"".join(integer.to_bytes(public_key.ciphertext_bytes, "big") for integer in theirs)
    received = ReceivedCiphertext(public_key.ciphertext_bytes, data)
    vector = EncryptedVector.receive(received, public_key, length=3, frac_bits=1, bound=6, culprit="passive")
    assert decrypted(vector, insecure_test_key) == [5, -6, 0]


# --- bounds ---------------------------------------------------------------------------------------


def test_the_largest_numbers_fit_and_the_next_do_not(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    half = public_key.n // 2
    assert decrypted(encrypted([half, -half], insecure_test_key), insecure_test_key) == [half, -half]
    check_fits(half, public_key)
    for wrong in (half + 1, public_key.n, 2**2000):
        with pytest.raises(RangeError, match="a 512-bit key holds 511") as refused:
            check_fits(wrong, public_key)
        assert "larger key" in refused.value.hint


def test_what_could_wrap_is_refused_before_it_is_computed(insecure_test_key: PrivateKey) -> None:
    key, zeros = insecure_test_key, Fixed.from_integers([0, 0])
    half = key.public_key.n // 2
    large, one = encrypted([0, 1], key, bound=half), encrypted([1, 0], key)
    refused: list[Callable[[], object]] = [
        lambda: large + one,
        lambda: large - one,
        lambda: one + large,
        lambda: large + Fixed.from_integers([1, 0]),
        lambda: large - Fixed.from_integers([0, 1]),
        lambda: large.scale(Fixed.from_integers([0, 2])),
        lambda: large.scale(Fixed.from_integers(-2)),
        lambda: one.scale(Fixed.from_integers(half + 1)),
        lambda: encrypt(Fixed.from_integers([half + 1]), source(key)),
        lambda: encrypt(zeros, source(key), bound=half + 1),
        lambda: large.within(half + 1),
    ]
    with nothing_computed(key.public_key):
        for operation in refused:
            with pytest.raises(RangeError, match="a result could need"):
                operation()
    assert decrypted(large + zeros, key) == decrypted(large.scale(Fixed.from_integers(1)), key) == [0, 1]


def test_ten_thousand_extreme_inputs_never_wrap(insecure_test_key: PrivateKey) -> None:
    """Every result is that of integers, or was refused although it might have been right: never anything else."""
    key, rng, length = insecure_test_key, random.Random(11), 50
    half = key.public_key.n // 2
    edges = [0, 1, 2, half, half - 1, half // 2, half // 2 + 1, half // 3, 2**255, 2**256, 2**62, 2**63]
    outcomes = {"exact": 0, "refused": 0}
    for round_ in range(100):
        limits = [rng.choice(edges), rng.choice(edges)]
        x, y = ([rng.choice([limit, -limit, min(1, limit), 0]) for _ in range(length)] for limit in limits)
        x_enc = encrypted(x, key)
        try:
            if round_ % 4 == 0:
                expected, result = [a + b for a, b in zip(x, y, strict=True)], x_enc + encrypted(y, key)
            elif round_ % 4 == 1:
                expected, result = [a - b for a, b in zip(x, y, strict=True)], x_enc - encrypted(y, key)
            elif round_ % 4 == 2:
                expected, result = [a - b for a, b in zip(x, y, strict=True)], x_enc - Fixed.from_integers(y)
            else:
                expected = [a * b for a, b in zip(x, y, strict=True)]
                result = x_enc.scale(Fixed.from_integers(y))
        except RangeError:
            outcomes["refused"] += 2 * length
        else:
            assert decrypted(result, key) == expected
            outcomes["exact"] += 2 * length
    assert sum(outcomes.values()) == 10_000
    assert min(outcomes.values()) > 1000


def test_a_decrypted_number_past_the_bound_is_refused(insecure_test_key: PrivateKey) -> None:
    """A peer has encrypted more than the protocol allows."""
    vector = encrypted([3, -7, 5], insecure_test_key)
    assert decrypted(vector.within(7), insecure_test_key) == [3, -7, 5]
    with pytest.raises(RangeError, match="larger than the protocol allows") as refused:
        decrypt(vector.within(6), insecure_test_key)
    assert "7" not in str(refused.value)
    assert to_fixed([6, -6], 0, 6).values.tolist() == [6, -6]
    for wrong in (7, -7):
        with pytest.raises(RangeError, match="larger than the protocol allows"):
            to_fixed([0, wrong], 0, 6)


def test_products_are_counted_as_the_docstrings_say(insecure_test_key: PrivateKey) -> None:
    public_key = PublicKey.from_bytes(insecure_test_key.public_key.to_bytes())
    kernel, prepared = public_key.kernel, OwnKey(insecure_test_key)  # OwnKey multiplies mod p^2 and q^2
    plain, factors = Fixed.from_integers([1, 2, 3, 4, 5]), Fixed.from_integers([7, 0, -1, 1, 2])

    def counted(operation: Callable[[], object]) -> int:
        before = kernel.counts.products
        operation()
        return kernel.counts.products - before

    prepared.public_key = public_key
    x_enc = encrypt(plain, prepared)
    assert counted(lambda: encrypt(plain, prepared)) == 2 * 5
    assert counted(lambda: x_enc.rerandomize(prepared)) <= 2 * 5
    assert counted(lambda: x_enc + x_enc) == 5
    assert counted(lambda: x_enc + plain) == counted(lambda: x_enc - plain) == 0
    assert counted(lambda: x_enc - x_enc) == 4 * 5
    assert counted(lambda: -x_enc) == 3 * 5
    assert counted(lambda: x_enc.scale(factors)) == power_products(7) + power_products(2) + 3


# --- refused --------------------------------------------------------------------------------------


def test_vectors_that_do_not_belong_together(insecure_test_key: PrivateKey, other_key: PrivateKey) -> None:
    key = insecure_test_key
    a, b = encrypted([1, 2], key, frac_bits=4), encrypted([1, 2], other_key, frac_bits=4)
    finer, longer = encrypted([1, 2], key, frac_bits=5), encrypted([1, 2, 3], key, frac_bits=4)
    grid = Fixed.from_integers([[1, 2]], 4)
    wrong: list[tuple[Callable[[], object], type[BlindfitError], str]] = [
        (lambda: a + b, LocalProtocolError, "different keys"),
        (lambda: a - b, LocalProtocolError, "different keys"),
        (lambda: concatenate([a, b]), LocalProtocolError, "different keys"),
        (lambda: decrypt(a, other_key), LocalProtocolError, "another key"),
        (lambda: a.rerandomize(source(other_key)), LocalProtocolError, "another key"),
        (lambda: a + finer, RangeError, "4 and of 5 fraction bits"),
        (lambda: a - finer, RangeError, "4 and of 5 fraction bits"),
        (lambda: a + Fixed.from_integers([1, 2], 3), RangeError, "4 and of 3 fraction bits"),
        (lambda: concatenate([a, finer]), RangeError, "several scales"),
        (lambda: concatenate([]), RangeError, "no vectors"),
        (lambda: a + longer, RangeError, "vectors of 2 and of 3"),
        (lambda: a - longer, RangeError, "vectors of 2 and of 3"),
        (lambda: a + Fixed.from_integers([1], 4), RangeError, r"shape \(1,\)"),
        (lambda: a + Fixed.from_integers(1, 4), RangeError, r"shape \(\)"),
        (lambda: a - grid, RangeError, r"shape \(1, 2\)"),
        (lambda: a.scale(Fixed.from_integers([1, 2, 3])), RangeError, r"shape \(3,\)"),
        (lambda: a.scale(grid), RangeError, r"shape \(1, 2\)"),
        (lambda: encrypt(grid, source(key)), RangeError, r"shape \(1, 2\)"),
        (lambda: encrypt(Fixed.from_integers(1), source(key)), RangeError, r"shape \(\)"),
        (lambda: encrypt(Fixed.from_integers([3, -9]), source(key), bound=8), RangeError, "larger than the bound"),
    ]
    with nothing_computed(key.public_key, other_key.public_key):
        for operation, error, text in wrong:
            with pytest.raises(error, match=text):
                operation()


def test_what_is_received_has_the_protocols_length_and_scale(
    insecure_test_key: PrivateKey, other_key: PrivateKey
) -> None:
    sent = encrypted([1, -2], insecure_test_key, frac_bits=9).ciphertext
    for received in (sent, ReceivedCiphertext(*sent.to_wire())):
        public_key = insecure_test_key.public_key
        vector = EncryptedVector.receive(received, public_key, length=2, frac_bits=3, bound=40, culprit="active")
        assert (vector.frac_bits, vector.bound) == (3, 40)
        assert decrypted(vector, insecure_test_key) == [1, -2]
        for wrong_key, length in ((public_key, 1), (public_key, 3), (public_key, 0)):
            with pytest.raises(MalformedMessage, match="another key or length") as refused:
                EncryptedVector.receive(received, wrong_key, length=length, frac_bits=3, bound=40, culprit="active")
            assert (refused.value.culprit, refused.value.field) == ("active", "ciphertext")
    with pytest.raises(MalformedMessage, match="another key or length"):
        EncryptedVector.receive(sent, other_key.public_key, length=2, frac_bits=3, bound=40, culprit="active")


# --- at full size ---------------------------------------------------------------------------------


def test_every_operation_at_2048_bits(real_key: PrivateKey) -> None:
    rng = random.Random(2048)
    a, b = ([rng.randrange(-(2**900), 2**900) for _ in range(3)] for _ in range(2))
    a_enc, b_enc, plain = encrypted(a, real_key), encrypted(b, real_key), Fixed.from_integers(b)
    checks = [
        (a_enc, a),
        (a_enc + b_enc, [x + y for x, y in zip(a, b, strict=True)]),
        (a_enc + plain, [x + y for x, y in zip(a, b, strict=True)]),
        (a_enc - b_enc, [x - y for x, y in zip(a, b, strict=True)]),
        (a_enc - plain, [x - y for x, y in zip(a, b, strict=True)]),
        (-a_enc, [-x for x in a]),
        (a_enc.scale(plain), [x * y for x, y in zip(a, b, strict=True)]),
        (a_enc.scale(Fixed.from_integers(-3)), [-3 * x for x in a]),
        (a_enc[1:], a[1:]),
        (a_enc.take([2, 0]), [a[2], a[0]]),
        (a_enc.rerandomize(source(real_key)), a),
    ]
    joined = concatenate([vector for vector, _ in checks])
    assert decrypted(joined, real_key) == [number for _, numbers in checks for number in numbers]
    half = real_key.public_key.n // 2
    assert decrypted(encrypted([half, -half], real_key), real_key) == [half, -half]
    with pytest.raises(RangeError, match="2048-bit key"):
        a_enc.scale(Fixed.from_integers(2**1148))
