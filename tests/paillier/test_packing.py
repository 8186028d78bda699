"""Several numbers in one ciphertext: each comes back from its slot, or the operation was refused."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import BlindfitError, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, ReceivedCiphertext
from blindfit.algorithms.paillier.kernel import power_products
from blindfit.algorithms.paillier.keys import PrivateKey, insecure_private_key
from blindfit.algorithms.paillier.packing import Layout, PackedVector, decrypt_packed, encrypt_packed, pack
from blindfit.algorithms.paillier.vectors import concatenate
from tests.each_case import each_case
from tests.paillier.tools import LAW, encrypted, nothing_computed, seeded, source

SLOT_BITS = st.integers(2, 60) | st.sampled_from([64, 100, 170, 255, 510])


def decrypted(vector: PackedVector[Ciphertext], key: PrivateKey) -> list[int]:
    fixed = decrypt_packed(vector, key)
    assert fixed.frac_bits == vector.frac_bits
    return [int(value) for value in fixed.values]


def packed(
    numbers: list[int], slot_bits: int, key: PrivateKey, *, frac_bits: int = 0, bound: int | None = None
) -> PackedVector[FreshCiphertext]:
    return encrypt_packed(Fixed.from_integers(numbers, frac_bits), slot_bits, source(key), bound=bound)


@st.composite
def slots_and_numbers(draw: st.DrawFn, *, headroom_bits: int = 0) -> tuple[int, list[int]]:
    """Draw slots of some width, and numbers that fit, the largest too; in one ciphertext or in several."""
    slot_bits = draw(SLOT_BITS.filter(lambda bits: bits > 1 + headroom_bits))
    limit = 2 ** (slot_bits - 1 - headroom_bits) - 1
    numbers = st.integers(-limit, limit) | st.sampled_from([limit, -limit, 0])
    return slot_bits, draw(st.lists(numbers, max_size=20))


@pytest.fixture(scope="session")
def other_key() -> PrivateKey:
    return insecure_private_key(512, uniform=seeded(513))


# --- layouts --------------------------------------------------------------------------------------


@LAW
@given(slots_and_numbers(), st.integers(1, 9))
def test_parting_inverts_joining(drawn: tuple[int, list[int]], slots: int) -> None:
    slot_bits, numbers = drawn
    layout = Layout(len(numbers), slot_bits, slots)
    plaintexts = layout.join(numbers)
    assert len(plaintexts) == layout.ciphertexts == -(-len(numbers) // slots)
    assert all(2 * abs(plaintext) < 2 ** (slot_bits * slots) for plaintext in plaintexts)
    assert layout.split(plaintexts) == numbers


@each_case("bits", [512, 2048])
@each_case("slot_bits", [2, 3, 17, 64, 100, 255, 256, 510])
def test_a_layout_has_as_many_slots_as_fit(
    bits: int, slot_bits: int, insecure_test_key: PrivateKey, real_key: PrivateKey
) -> None:
    public_key = (insecure_test_key if bits == 512 else real_key).public_key
    layout = Layout.of(public_key, 1, slot_bits)
    largest = sum((2 ** (slot_bits - 1) - 1) << (slot_bits * slot) for slot in range(layout.slots))
    assert 2 * largest < public_key.n < 2 * (largest << (slot_bits + 2))


@each_case("slot_bits", [-1, 0, 1, 511, 512, 10_000])
def test_slots_that_do_not_fit_are_refused(insecure_test_key: PrivateKey, slot_bits: int) -> None:
    with pytest.raises(RangeError, match="do not fit under a 512-bit key"):
        Layout.of(insecure_test_key.public_key, 4, slot_bits)


@each_case("plaintext", [2**16, -(2**16), 2**40, 128, -129 - 2**16])
def test_what_is_left_past_the_last_slot_is_refused(plaintext: int) -> None:
    layout = Layout(2, 8, slots=2)
    assert layout.split([5 - 3 * 256]) == [5, -3]
    with pytest.raises(RangeError, match="more than its slots"):
        Layout(1, 8, slots=2).split([plaintext])
    with pytest.raises(RangeError, match="more than its slots"):
        layout.split([plaintext << 8])


# --- laws -----------------------------------------------------------------------------------------


@LAW
@given(drawn=slots_and_numbers(), frac_bits=st.integers(0, 30))
def test_every_number_comes_back(insecure_test_key: PrivateKey, drawn: tuple[int, list[int]], frac_bits: int) -> None:
    slot_bits, numbers = drawn
    ours = pack(encrypted(numbers, insecure_test_key, frac_bits=frac_bits), slot_bits)
    sent = packed(numbers, slot_bits, insecure_test_key, frac_bits=frac_bits)
    slots = (512 - 2) // slot_bits
    for vector in (ours, sent, ours.rerandomize(source(insecure_test_key))):
        assert decrypted(vector, insecure_test_key) == numbers
        assert (len(vector), vector.frac_bits) == (len(numbers), frac_bits)
        assert vector.bound == max(map(abs, numbers), default=0)
        assert len(vector.ciphertext) == -(-len(numbers) // slots)
        assert vector.layout == Layout(len(numbers), slot_bits, slots)


@LAW
@given(drawn=slots_and_numbers(headroom_bits=1))
def test_packed_vectors_add(insecure_test_key: PrivateKey, drawn: tuple[int, list[int]]) -> None:
    slot_bits, numbers = drawn
    backwards = numbers[::-1]
    expected = [a + b for a, b in zip(numbers, backwards, strict=True)]
    ours, sent = pack(encrypted(numbers, insecure_test_key), slot_bits), packed(backwards, slot_bits, insecure_test_key)
    for total in (ours + sent, sent + ours, ours + Fixed.from_integers(backwards)):
        assert decrypted(total, insecure_test_key) == expected
        assert total.bound == ours.bound + sent.bound


@each_case("count", [0, 1, 2, 9, 10, 11, 19, 20, 21, 50])
def test_full_and_partial_packs(insecure_test_key: PrivateKey, count: int) -> None:
    """Ten slots a ciphertext; all at one end, so that every slot borrows from the next."""
    for numbers in ([-(2**50) + 1] * count, [2**50 - 1] * count, [(-1) ** i * i for i in range(count)]):
        vector = pack(encrypted(numbers, insecure_test_key), 51)
        assert len(vector.ciphertext) == -(-count // 10)
        assert decrypted(vector, insecure_test_key) == numbers
        assert decrypted(packed(numbers, 51, insecure_test_key), insecure_test_key) == numbers


def test_packs_of_parts_are_joined_like_any_vector(insecure_test_key: PrivateKey) -> None:
    a, b = encrypted([1, -2, 3], insecure_test_key), encrypted([40, -50], insecure_test_key)
    joined = pack(concatenate([a, b - Fixed.from_integers([1, 1])]), 20)
    assert decrypted(joined, insecure_test_key) == [1, -2, 3, 39, -51]


@pytest.mark.parametrize("has_unit", [True, False])
def test_packing_costs_little_more_than_its_squarings(
    insecure_test_key: PrivateKey, has_unit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = encrypted([1] * 30, insecure_test_key)
    kernel = vector.public_key.kernel
    if not has_unit:
        monkeypatch.setattr(kernel, "unit", None)
    counts, before = kernel.counts, kernel.counts.products
    pack(vector, 51)
    cost = 27 * (power_products(2**51) + 1) if kernel.unit is None else 27 * 52 + 30 + 3
    assert 27 * 51 <= counts.products - before == cost <= 27 * 70
    before = counts.products
    pack(vector, 51) + Fixed.from_integers([0] * 30)
    assert counts.products - before == cost


def test_threads_change_nothing(insecure_test_key: PrivateKey) -> None:
    vector = packed(list(range(-30, 30)), 51, insecure_test_key)
    assert decrypt_packed(vector, insecure_test_key, threads=3).values.tolist() == list(range(-30, 30))


# --- bounds ---------------------------------------------------------------------------------------


def test_what_could_spill_is_refused_before_it_is_computed(insecure_test_key: PrivateKey) -> None:
    key, public_key = insecure_test_key, insecure_test_key.public_key
    wide, narrow = encrypted([0, 0], key, bound=128), encrypted([0, 0], key, bound=127)
    half = packed([0, 0], 8, key, bound=64)
    refused: list[Callable[[], object]] = [
        lambda: pack(wide, 8),
        lambda: packed([128], 8, key),
        lambda: packed([-128], 8, key),
        lambda: packed([0], 8, key, bound=128),
        lambda: half + half,
        lambda: half + Fixed.from_integers([0, -64]),
        lambda: PackedVector(half.ciphertext, half.layout, 0, 128),
    ]
    with nothing_computed(public_key):
        for operation in refused:
            with pytest.raises(RangeError, match="a slot has 8"):
                operation()
        with pytest.raises(RangeError, match="larger than the bound"):
            packed([9], 8, key, bound=8)
    assert decrypted(pack(narrow, 8), key) == [0, 0]
    assert decrypted(half + Fixed.from_integers([63, -63]), key) == [63, -63]


def test_ten_thousand_extreme_inputs_never_wrap(insecure_test_key: PrivateKey) -> None:
    key, rng, count = insecure_test_key, random.Random(3), 100
    outcomes = {"exact": 0, "refused": 0}
    for _ in range(50):
        slot_bits = rng.choice([2, 8, 51, 64, 255, 510])
        limit = 1 << (slot_bits - 1)
        ends = [0, 1, limit // 2 - 1, limit // 2, limit - 1, limit]
        bounds = rng.choice(ends), rng.choice(ends)
        a, b = ([rng.choice([bound, -bound, 0]) for _ in range(count)] for bound in bounds)
        try:
            total = packed(a, slot_bits, key) + packed(b, slot_bits, key)
        except RangeError:
            outcomes["refused"] += 2 * count
        else:
            assert decrypted(total, key) == [x + y for x, y in zip(a, b, strict=True)]
            outcomes["exact"] += 2 * count
    assert sum(outcomes.values()) == 10_000
    assert min(outcomes.values()) > 1000


@each_case("number", [41, -41, 127])
def test_a_decrypted_number_past_the_bound_is_refused(insecure_test_key: PrivateKey, number: int) -> None:
    """A peer has packed more than the protocol allows, within its slot."""
    sent = packed([1, number], 8, insecure_test_key).ciphertext
    layout, public_key = Layout.of(insecure_test_key.public_key, 2, 8), insecure_test_key.public_key
    received = PackedVector.receive(sent, public_key, layout, frac_bits=0, bound=40, culprit="passive")
    with pytest.raises(RangeError, match="larger than the protocol allows"):
        decrypt_packed(received, insecure_test_key)


@each_case("plaintext", [2**500, -(2**505), 2**16, -(2**300)])
def test_a_decrypted_pack_of_more_than_its_slots_is_refused(insecure_test_key: PrivateKey, plaintext: int) -> None:
    sent = encrypted([plaintext], insecure_test_key).ciphertext
    layout, public_key = Layout.of(insecure_test_key.public_key, 2, 8), insecure_test_key.public_key
    received = PackedVector.receive(sent, public_key, layout, frac_bits=0, bound=40, culprit="passive")
    with pytest.raises(RangeError):
        decrypt_packed(received, insecure_test_key)


# --- refused --------------------------------------------------------------------------------------


def test_vectors_that_do_not_belong_together(insecure_test_key: PrivateKey, other_key: PrivateKey) -> None:
    key = insecure_test_key
    a = packed([1, 2], 20, key, frac_bits=4)
    grid, number = Fixed.from_integers([[1, 2]], 4), Fixed.from_integers(1, 4)
    wrong: list[tuple[Callable[[], object], type[BlindfitError], str]] = [
        (lambda: a + packed([1, 2], 20, other_key, frac_bits=4), LocalProtocolError, "different keys"),
        (lambda: decrypt_packed(a, other_key), LocalProtocolError, "another key"),
        (lambda: a.rerandomize(source(other_key)), LocalProtocolError, "another key"),
        (lambda: a + packed([1, 2], 21, key, frac_bits=4), RangeError, "different layouts"),
        (lambda: a + packed([1, 2], 20, key, frac_bits=5), RangeError, "different scales or lengths"),
        (lambda: a + packed([1, 2, 3], 20, key, frac_bits=4), RangeError, "different scales or lengths"),
        (lambda: a + Fixed.from_integers([1, 2], 3), RangeError, "different scales or lengths"),
        (lambda: a + Fixed.from_integers([1], 4), RangeError, "different scales or lengths"),
        (lambda: a + grid, RangeError, "different scales or lengths"),
        (lambda: a + number, RangeError, "different scales or lengths"),
        (lambda: encrypt_packed(grid, 20, source(key)), RangeError, r"shape \(1, 2\)"),
        (lambda: encrypt_packed(number, 20, source(key)), RangeError, r"shape \(\)"),
    ]
    for operation, error, text in wrong:
        with pytest.raises(error, match=text):
            operation()


def test_what_is_received_has_the_protocols_layout(insecure_test_key: PrivateKey, other_key: PrivateKey) -> None:
    public_key, numbers = insecure_test_key.public_key, list(range(25))
    sent, layout = packed(numbers, 51, insecure_test_key).ciphertext, Layout.of(public_key, 25, 51)
    for message in (sent, ReceivedCiphertext(*sent.to_wire())):
        received = PackedVector.receive(message, public_key, layout, frac_bits=6, bound=30, culprit="active")
        assert (received.frac_bits, received.bound, received.layout) == (6, 30, layout)
        assert decrypted(received, insecure_test_key) == numbers
        for length in (0, 20, 31):
            other = Layout.of(public_key, length, 51)
            with pytest.raises(MalformedMessage, match="another key or length") as refused:
                PackedVector.receive(message, public_key, other, frac_bits=6, bound=30, culprit="active")
            assert refused.value.culprit == "active"
    with pytest.raises(MalformedMessage, match="another key or length"):
        PackedVector.receive(sent, other_key.public_key, layout, frac_bits=6, bound=30, culprit="active")


# --- at full size ---------------------------------------------------------------------------------


def test_every_operation_at_2048_bits(real_key: PrivateKey) -> None:
    rng = np.random.default_rng(0)
    numbers, others = (rng.integers(-(2**60), 2**60, 45).tolist() for _ in range(2))
    a, b = pack(encrypted(numbers, real_key), 64), packed(others, 64, real_key)
    assert len(a.ciphertext) == len(b.ciphertext) == 2
    total = a + b + Fixed.from_integers([7] * 45)
    expected = [x + y + 7 for x, y in zip(numbers, others, strict=True)]
    assert decrypted(total, real_key) == decrypted(total.rerandomize(source(real_key)), real_key) == expected
