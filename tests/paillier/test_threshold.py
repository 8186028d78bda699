"""A shared key: all parties together decrypt, and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from blindfit.algorithms.errors import BlindfitError, DataError, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.keys import PrivateKey, insecure_private_key
from blindfit.algorithms.paillier.packing import PackedVector, pack
from blindfit.algorithms.paillier.sums import columns_dot
from blindfit.algorithms.paillier.threshold import (
    KeyShare,
    PartialDecryption,
    ReceivedPartialDecryption,
    combine,
    deal,
    partial_decrypt,
)
from blindfit.algorithms.paillier.vectors import EncryptedVector
from tests.each_case import each_case
from tests.paillier.tools import LAW, encrypted, nothing_computed, seeded

Vector = EncryptedVector[Ciphertext] | PackedVector[Ciphertext]


def partials_of(vector: Vector, shares: tuple[KeyShare, ...]) -> list[PartialDecryption]:
    return [partial_decrypt(vector, share) for share in shares]


def combined(vector: Vector, shares: tuple[KeyShare, ...]) -> list[int]:
    fixed = combine(vector, partials_of(vector, shares), len(shares))
    assert fixed.frac_bits == vector.frac_bits
    return [int(value) for value in fixed.values]


def integers(partial: PartialDecryption) -> list[int]:
    return [int(integer) for integer in partial.public_key.kernel.integers(partial.residues)]


@pytest.fixture(scope="session")
def other_key() -> PrivateKey:
    return insecure_private_key(512, uniform=seeded(513))


# --- together -------------------------------------------------------------------------------------


@each_case("parties", [2, 3, 4, 5])
def test_all_parties_decrypt(insecure_test_key: PrivateKey, parties: int) -> None:
    shares = deal(insecure_test_key, parties)
    numbers = [0, 1, -1, 2**200, -(2**200), 12345]
    vector = encrypted(numbers, insecure_test_key, frac_bits=9)
    assert combined(vector, shares) == numbers
    small = encrypted([3, -4, 5] * 9, insecure_test_key, frac_bits=9)
    assert combined(pack(small, 40), shares) == [3, -4, 5] * 9
    assert combined(small - small, shares) == [0] * 27
    backwards = combine(vector, partials_of(vector, shares)[::-1], parties)
    assert backwards.values.tolist() == numbers


@LAW
@given(numbers=st.lists(st.integers(-(2**60), 2**60), max_size=4), parties=st.integers(2, 5))
def test_what_they_decrypt_is_what_the_key_decrypts(
    insecure_test_key: PrivateKey, numbers: list[int], parties: int
) -> None:
    shares, vector = deal(insecure_test_key, parties), encrypted(numbers, insecure_test_key)
    assert combined(vector, shares) == numbers
    assert combined(pack(vector, 64), shares) == numbers


def test_the_largest_numbers(insecure_test_key: PrivateKey) -> None:
    half = insecure_test_key.public_key.n // 2
    shares = deal(insecure_test_key, 3)
    assert combined(encrypted([half, -half], insecure_test_key), shares) == [half, -half]


def test_sums_of_products_are_decrypted_together(insecure_test_key: PrivateKey) -> None:
    total = columns_dot(Fixed.from_integers([[1, -2], [3, 4]], 5), encrypted([10, -20], insecure_test_key, frac_bits=5))
    for vector in (total, pack(total, 30)):
        result = combine(vector, partials_of(vector, deal(insecure_test_key, 2)), 2)
        assert result.values.tolist() == [-50, -100]
        assert result.frac_bits == 10


def test_a_combination_costs_a_product_for_each_party_but_one(insecure_test_key: PrivateKey) -> None:
    vector, shares = encrypted([1, 2, 3], insecure_test_key), deal(insecure_test_key, 4)
    partials = partials_of(vector, shares)
    counts = vector.public_key.kernel.counts
    before = counts.products
    combine(vector, partials, 4)
    assert counts.products - before == 3 * 3


# --- the shares -----------------------------------------------------------------------------------


@each_case("parties", [2, 3, 5, 255])
def test_the_shares_add_up_to_the_exponent(insecure_test_key: PrivateKey, parties: int) -> None:
    p, q = insecure_test_key.p, insecure_test_key.q
    n, lam = p * q, lcm(p - 1, q - 1)
    shares = deal(insecure_test_key, parties)
    assert [(share.index, share.parties) for share in shares] == [(i, parties) for i in range(parties)]
    total = int(sum(share.exponent for share in shares)) % (n * lam)
    assert (total % n, total % lam) == (1, 0)
    assert all(0 <= share.exponent < n * lam for share in shares)


def test_every_share_alone_is_uniform(insecure_test_key: PrivateKey) -> None:
    n, lam = insecure_test_key.public_key.n, lcm(insecure_test_key.p - 1, insecure_test_key.q - 1)
    uniform = seeded(8)
    dealt = [deal(insecure_test_key, 3, uniform) for _ in range(500)]
    for index in range(3):
        fractions = [float(shares[index].exponent) / float(n * lam) for shares in dealt]
        assert kstest(fractions, "uniform").pvalue > 1e-4


def test_a_seed_repeats_a_dealing(insecure_test_key: PrivateKey) -> None:
    assert deal(insecure_test_key, 3, seeded(1)) == deal(insecure_test_key, 3, seeded(1))
    assert deal(insecure_test_key, 3, seeded(1)) != deal(insecure_test_key, 3, seeded(2))
    assert deal(insecure_test_key, 3) != deal(insecure_test_key, 3)


@each_case("parties", [-1, 0, 1, 256])
def test_too_few_or_too_many_parties(insecure_test_key: PrivateKey, parties: int) -> None:
    with pytest.raises(RangeError, match="2 to 255 parties"):
        deal(insecure_test_key, parties)


def test_no_text_shows_an_exponent(insecure_test_key: PrivateKey) -> None:
    for share in deal(insecure_test_key, 2):
        for secret in (str(share.exponent), format(share.exponent, "x"), repr(share.exponent)):
            assert secret not in repr(share) + str(share) + f"{share}" + f"{[share]}"


def test_shares_travel_as_octets(insecure_test_key: PrivateKey, other_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    shares = deal(insecure_test_key, 3)
    data = [share.to_bytes() for share in shares]
    assert {len(octets) for octets in data} == {2 + public_key.ciphertext_bytes}
    arrived = tuple(KeyShare.from_bytes(octets, public_key) for octets in data)
    assert arrived == shares
    vector = encrypted([7, -8], insecure_test_key)
    assert combined(vector, arrived) == [7, -8]
    extreme = KeyShare(public_key, 254, 255, public_key.n**2 - 1)
    assert KeyShare.from_bytes(extreme.to_bytes(), public_key) == extreme


def test_octets_that_are_no_share_are_refused(insecure_test_key: PrivateKey, real_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    right = deal(insecure_test_key, 3)[1].to_bytes()
    too_large = bytes([3, 1]) + (public_key.n**2).to_bytes(public_key.ciphertext_bytes, "big")
    wrong = [b"", right[:2], right[:-1], right + b"\0", too_large, bytes([3, 1]) + b"\xff" * (len(right) - 2)]
    wrong += [bytes(head) + right[2:] for head in ((0, 0), (1, 0), (3, 3), (3, 255), (2, 2))]
    for octets in wrong:
        with pytest.raises(DataError, match="share") as refused:
            KeyShare.from_bytes(octets, public_key)
        assert right[2:].hex() not in str(refused.value)
    with pytest.raises(DataError, match="not a share of this"):
        KeyShare.from_bytes(right, real_key.public_key)


# --- not together ---------------------------------------------------------------------------------


@each_case("parties", [2, 3, 5])
def test_all_but_one_learn_nothing(insecure_test_key: PrivateKey, parties: int) -> None:
    """If any party is missing, the product is not 1 + m n: a uniform power of the ciphertext is still in it."""
    public_key, shares = insecure_test_key.public_key, deal(insecure_test_key, parties)
    vector = encrypted([5, -6, 0], insecure_test_key)
    partials = partials_of(vector, shares)
    for size in range(1, parties):
        for coalition in combinations(partials, size):
            with pytest.raises(RangeError, match="do not fit together"):
                combine(vector, coalition, size)
            products = [1, 1, 1]
            for partial in coalition:
                products = [a * b % public_key.n**2 for a, b in zip(products, integers(partial), strict=True)]
            assert 1 not in {product % public_key.n for product in products}


def test_partials_that_do_not_belong_together_are_refused(insecure_test_key: PrivateKey, other_key: PrivateKey) -> None:
    key = insecure_test_key
    vector, other = encrypted([5, -6, 0], key), encrypted([5, -6, 0], key)
    shares, dealt_again = deal(key, 3), deal(key, 3)
    a, b, c = partials_of(vector, shares)
    foreign = partial_decrypt(encrypted([5, -6, 0], other_key), deal(other_key, 3)[2])
    shorter = partial_decrypt(vector[:2], shares[2])
    longer = partial_decrypt(encrypted([1, 2, 3, 4], key), shares[2])
    wrong: list[tuple[list[PartialDecryption], type[BlindfitError], str]] = [
        ([], LocalProtocolError, "3 partial decryptions"),
        ([a, b], LocalProtocolError, "3 partial decryptions"),
        ([a, b, c, c], LocalProtocolError, "3 partial decryptions"),
        ([a, b, foreign], LocalProtocolError, "under the vector's key"),
        ([a, b, shorter], LocalProtocolError, "of its length"),
        ([a, b, longer], LocalProtocolError, "of its length"),
        (partials_of(vector[:2], shares), LocalProtocolError, "of its length"),
        ([a, b, b], RangeError, "do not fit together"),
        ([a, b, partial_decrypt(other, shares[2])], RangeError, "do not fit together"),
        ([a, b, partial_decrypt(vector, dealt_again[2])], RangeError, "do not fit together"),
        ([a, b, partial_decrypt(vector.take([1, 0, 2]), shares[2])], RangeError, "do not fit together"),
    ]
    for partials, error, text in wrong:
        with pytest.raises(error, match=text):
            combine(vector, partials, 3)
    assert combine(vector, [c, a, b], 3).values.tolist() == [5, -6, 0]


@each_case("packed", [False, True])
@each_case("position", [0, 1, 2])
def test_an_altered_partial_is_refused(insecure_test_key: PrivateKey, packed: bool, position: int) -> None:
    numbers = encrypted([5, -6, 7], insecure_test_key)
    vector: Vector = pack(numbers, 400) if packed else numbers
    shares, n = deal(insecure_test_key, 2), insecure_test_key.public_key.n
    kernel = vector.public_key.kernel
    good = partials_of(vector, shares)
    alter: list[Callable[[int], int]] = [
        lambda c: c * 2 % n**2,
        lambda c: c + 1,
        lambda c: pow(c, -1, n**2),
        lambda c: c ^ 1 << 700,
        lambda c: c * (1 + 2**450 * n) % n**2,  # decrypts, to a number past the bound
    ]
    for change in alter:
        values = integers(good[1])
        values[position] = change(values[position])
        with pytest.raises(RangeError):
            combine(vector, [good[0], PartialDecryption(vector.public_key, kernel.residues(values))], 2)


def test_a_number_past_the_bound_is_refused(insecure_test_key: PrivateKey) -> None:
    shares = deal(insecure_test_key, 2)
    vector = encrypted([41], insecure_test_key).within(40)
    for lying in (vector, pack(vector, 8)):
        with pytest.raises(RangeError, match="larger than the protocol allows"):
            combine(lying, partials_of(lying, shares), 2)


def test_a_bad_ciphertext_is_never_raised_to_a_share(insecure_test_key: PrivateKey, other_key: PrivateKey) -> None:
    public_key, share = insecure_test_key.public_key, deal(insecure_test_key, 2)[0]
    n, p = public_key.n, insecure_test_key.p
    reasons = set()
    for bad in (0, n, 5 * n, p, 3 * p, n**2, n**2 + 1, n**2 - n):
        ciphertext = Ciphertext(public_key, public_key.kernel.residues([2, bad, 3]))
        with nothing_computed(public_key), pytest.raises(RangeError) as refused:
            partial_decrypt(EncryptedVector(ciphertext, 0, 1), share)
        reasons.add(str(refused.value))
    assert reasons == {"a ciphertext is invalid"}
    foreign = encrypted([1], other_key)
    with nothing_computed(public_key, other_key.public_key), pytest.raises(LocalProtocolError, match="another key"):
        partial_decrypt(foreign, share)


# --- on the way -----------------------------------------------------------------------------------


def test_partials_travel_as_octets(insecure_test_key: PrivateKey) -> None:
    public_key, shares = insecure_test_key.public_key, deal(insecure_test_key, 2)
    vector = encrypted([5, -6, 0], insecure_test_key)
    mine, theirs = partials_of(vector, shares)
    width, data = theirs.to_wire()
    assert (width, len(data)) == (public_key.ciphertext_bytes, 3 * public_key.ciphertext_bytes)
    for message in (theirs, ReceivedPartialDecryption(width, data)):
        received = message.open(public_key, length=3, culprit="passive")
        assert combine(vector, [mine, received], 2).values.tolist() == [5, -6, 0]


def test_a_malformed_partial_names_its_sender(insecure_test_key: PrivateKey, real_key: PrivateKey) -> None:
    public_key, shares = insecure_test_key.public_key, deal(insecure_test_key, 2)
    n, width = public_key.n, public_key.ciphertext_bytes
    sent = partial_decrypt(encrypted([5, -6], insecure_test_key), shares[0])
    _, data = sent.to_wire()
    lengths = [
        ReceivedPartialDecryption(width, data[:-1]),
        ReceivedPartialDecryption(width, data + b"\0"),
        ReceivedPartialDecryption(width, b""),
        ReceivedPartialDecryption(width, data[:width]),
        ReceivedPartialDecryption(width - 1, data),
        ReceivedPartialDecryption(2 * width, data),
        ReceivedPartialDecryption(0, b""),
        partial_decrypt(encrypted([5], insecure_test_key), shares[0]),
    ]
    contents = [
        ReceivedPartialDecryption(width, data[:width] + bad.to_bytes(width, "big"))
        for bad in (0, n, 7 * n, insecure_test_key.q, n**2, 256**width - 1)
    ]
    for messages, reason in ((lengths, "is of another key or length"), (contents, "a ciphertext is invalid")):
        for message in messages:
            with pytest.raises(MalformedMessage) as refused:
                message.open(public_key, length=2, culprit="passive")
            assert (refused.value.culprit, refused.value.field) == ("passive", "partial_decryption")
            assert refused.value.reason == reason
    with pytest.raises(MalformedMessage, match="another key or length"):
        sent.open(real_key.public_key, length=2, culprit="passive")


# --- at full size ---------------------------------------------------------------------------------


def test_parties_decrypt_at_2048_bits(real_key: PrivateKey) -> None:
    shares = deal(real_key, 3)
    numbers = [2**1000, -(2**1000), -1]
    vector = encrypted(numbers, real_key, frac_bits=16)
    assert combined(vector, shares) == numbers
    small = encrypted(list(range(-2, 3)), real_key)
    assert combined(pack(small, 60), shares) == [-2, -1, 0, 1, 2]
    with pytest.raises(RangeError, match="do not fit together"):
        combine(vector, partials_of(vector, shares)[:2], 2)
