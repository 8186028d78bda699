"""Keys: how they are made, printed and encoded, and python-paillier's."""

from __future__ import annotations

import json
import pickle
import random
import sys
from collections.abc import Callable
from math import gcd

import gmpy2
import phe
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.paillier import interop, key_proof
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import (
    KEY_BITS,
    PrivateKey,
    PublicKey,
    generate_private_key,
    insecure_private_key,
    private_key_of_primes,
)
from blindfit.algorithms.paillier.vectors import decrypt
from tests.each_case import each_case
from tests.paillier.tools import encrypted

same_key_for_all = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
numbers = st.integers(min_value=0, max_value=2**200)
public_keys = st.builds(PublicKey, numbers, st.none() | numbers, st.lists(numbers, max_size=5).map(tuple))


# --- making ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[512, *KEY_BITS])
def key(request: pytest.FixtureRequest) -> PrivateKey:
    if request.param == 3072:
        return generate_private_key(3072, uniform=random.Random(3072).randrange)
    return request.getfixturevalue("insecure_test_key" if request.param == 512 else "real_key")


def test_primes_are_of_the_form_that_hs_needs(key: PrivateKey) -> None:
    p, q = key.p, key.q
    assert all(gmpy2.is_prime(prime, 50) and gmpy2.is_strong_bpsw_prp(prime) and prime % 4 == 3 for prime in (p, q))
    assert gcd(p - 1, q - 1) == 2
    assert gcd(p * q, (p - 1) * (q - 1)) == 1


def test_primes_are_of_one_length_and_far_apart(key: PrivateKey) -> None:
    bits = key.public_key.bits
    assert bits in (512, *KEY_BITS)
    assert key.p.bit_length() == key.q.bit_length() == bits // 2
    assert key.q - key.p >= 2 ** (bits // 2 - 100)


def test_hs_is_an_nth_power_of_minus_a_square(key: PrivateKey) -> None:
    n, hs = key.public_key.n, key.public_key.hs
    assert hs is not None
    order_of_nth_powers = (key.p - 1) * (key.q - 1) // 2
    assert pow(hs, order_of_nth_powers, n * n) == 1
    assert gmpy2.legendre(hs, key.p) == gmpy2.legendre(hs, key.q) == -1
    root = pow(hs, pow(n, -1, (key.p - 1) * (key.q - 1)), n)  # h itself
    assert pow(root, n, n * n) == hs


def test_the_same_randomness_gives_the_same_key_and_other_randomness_another() -> None:
    first, again, other = (insecure_private_key(256, uniform=random.Random(seed).randrange) for seed in (1, 1, 2))
    assert first == again
    assert first.public_key.n != other.public_key.n


@each_case("bits", [0, 512, 1024, 2047, 4096])
def test_sizes_not_on_offer_are_refused(bits: int) -> None:
    with pytest.raises(RangeError) as refused:
        generate_private_key(bits)
    assert "2048 or 3072" in refused.value.hint


@each_case("bits", [-2, 16, 254, 513])
def test_even_the_insecure_door_is_not_open_for_every_size(bits: int) -> None:
    with pytest.raises(RangeError):
        insecure_private_key(bits)


def test_widths_are_fixed(key: PrivateKey) -> None:
    assert key.public_key.ciphertext_bytes == 2 * key.public_key.bits // 8
    assert PublicKey(2**16, None).ciphertext_bytes == 6  # 17 bits
    assert (key.public_key.n**2 - 1).bit_length() <= 8 * key.public_key.ciphertext_bytes


# --- what a key shows -----------------------------------------------------------------------------


def test_nothing_secret_is_in_a_text(insecure_test_key: PrivateKey) -> None:
    shown = (
        repr(insecure_test_key)
        + str(insecure_test_key)
        + repr([insecure_test_key])
        + repr(insecure_test_key.public_key)
    )
    assert insecure_test_key.public_key.fingerprint[:16] in shown
    assert "512 bits" in shown
    for secret in (insecure_test_key.p, insecure_test_key.q):
        for written in (str(secret), format(secret, "x")):
            assert written[:12] not in shown


def test_a_private_key_is_not_pickled(insecure_test_key: PrivateKey) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(insecure_test_key)


def test_a_pickled_public_key_has_no_secret_and_no_counts(insecure_test_key: PrivateKey) -> None:
    public_key = insecure_test_key.public_key
    public_key.kernel.powers(public_key.kernel.residues([2]), 3)
    pickled = pickle.dumps(public_key)
    for secret in (insecure_test_key.p, insecure_test_key.q):
        assert secret.to_bytes(32, "little")[:12] not in pickled
    copy = pickle.loads(pickled)
    assert copy == public_key
    assert copy.proof == public_key.proof
    assert copy.kernel.counts.products == 0


def test_one_kernel_a_key_and_equality_ignores_it() -> None:
    key, same = PublicKey(77, 5), PublicKey(77, 5, (1, 2))
    assert key.kernel is key.kernel
    assert key.kernel is not same.kernel
    assert key == same
    assert hash(key) == hash(same)
    assert key != PublicKey(77, None)
    assert key != PublicKey(91, 5)


def test_the_fingerprint_is_of_the_modulus_alone() -> None:
    # sha256 of the octets 01 00
    expected = "47dc540c94ceb704a23875c11273e16bb0b8a87aed84de911f2133568115f254"
    assert PublicKey(256, None).fingerprint == PublicKey(256, 3, (4,)).fingerprint == expected


# --- encoding -------------------------------------------------------------------------------------


@given(public_keys)
def test_public_keys_survive_octets_and_json(key: PublicKey) -> None:
    for copy in (PublicKey.from_bytes(key.to_bytes()), PublicKey.from_json(json.loads(json.dumps(key.to_json())))):
        assert (copy.n, copy.hs, copy.proof) == (key.n, key.hs, key.proof)


@given(public_keys, public_keys)
def test_two_keys_share_no_encoding(key: PublicKey, other: PublicKey) -> None:
    same = (key.n, key.hs, key.proof) == (other.n, other.hs, other.proof)
    assert (key.to_bytes() == other.to_bytes()) == same


@given(public_keys, st.data())
def test_octets_that_were_changed_are_refused_or_another_key(key: PublicKey, data: st.DataObject) -> None:
    octets = bytearray(key.to_bytes())
    octets[data.draw(st.integers(0, len(octets) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        other = PublicKey.from_bytes(bytes(octets))
    except DataError:
        return
    assert other.to_bytes() == octets


@given(st.binary(max_size=100))
def test_octets_of_another_kind_are_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        PublicKey.from_bytes(data)


def test_octets_that_are_short_or_followed_by_others_are_refused(insecure_test_key: PrivateKey) -> None:
    octets = insecure_test_key.public_key.to_bytes()
    for end in range(len(octets)):
        with pytest.raises(DataError):
            PublicKey.from_bytes(octets[:end])
    with pytest.raises(DataError, match="followed"):
        PublicKey.from_bytes(octets + b"\0")


FIRST_LINE = b"blindfit paillier public key v1\n"
SEVEN = b"\0\0\0\x01\x07"


@each_case(
    ("octets", "reason"),
    [
        (FIRST_LINE.replace(b"v1", b"v2") + b"\0\1" + SEVEN + b"\0\0\0\0", "version"),
        (FIRST_LINE.replace(b"public", b"secret") + b"\0\1" + SEVEN + b"\0\0\0\0", "version"),
        (FIRST_LINE + b"\0\1" + b"\0\0\0\x02\x00\x07" + b"\0\0\0\0", "leading zeros"),
        (FIRST_LINE + b"\0\1" + b"\0\0\0\x01\x00" + b"\0\0\0\0", "leading zeros"),
        (FIRST_LINE + b"\0\0" + b"\0\0\0\0", "count"),
        (FIRST_LINE + b"\0\2" + SEVEN + SEVEN + b"\0\0\0\0", "count"),
        (FIRST_LINE + b"\0\1" + SEVEN + b"\0\2" + SEVEN + SEVEN + b"\0\0", "count"),
        (FIRST_LINE + b"\0\1" + b"\xff\xff\xff\xff\x07" + b"\0\0\0\0", "too early"),
        (FIRST_LINE + b"\0\1" + SEVEN + b"\0\0\xff\xff", "too early"),
    ],
)
def test_malformed_octets_are_refused(octets: bytes, reason: str) -> None:
    assert PublicKey.from_bytes(FIRST_LINE + b"\0\1" + SEVEN + b"\0\0\0\0") == PublicKey(7, None)
    with pytest.raises(DataError, match=reason):
        PublicKey.from_bytes(octets)


@each_case(
    "change",
    [
        {"n": "0x7"},
        {"n": "07"},
        {"n": "F"},
        {"n": "-7"},
        {"n": ""},
        {"n": 7},
        {"n": None},
        {"n": ["7"]},
        {"hs": "-1"},
        {"hs": False},
        {"proof": "12"},
        {"proof": None},
        {"proof": ["-1"]},
        {"proof": [1]},
        {"format": "blindfit paillier public key v2"},
        {"p": "7"},
    ],
)
def test_malformed_json_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(DataError):
        PublicKey.from_json(PublicKey(7, 5, (1, 2)).to_json() | change)


@each_case("content", [None, [], "n", 7, {}, {"n": "7"}])
def test_json_of_another_kind_is_refused(content: object) -> None:
    with pytest.raises(DataError):
        PublicKey.from_json(content)


def test_private_keys_survive_octets(key: PrivateKey) -> None:
    copy = PrivateKey.from_bytes(key.to_bytes())
    assert copy == key
    assert copy.public_key.proof == key.public_key.proof


def test_a_private_key_of_three_factors_is_refused(insecure_test_key: PrivateKey) -> None:
    octets = insecure_test_key.to_bytes()
    at = octets.index(b"\n") + 1
    with pytest.raises(DataError, match=r"^a key's encoding has a wrong count of numbers$"):
        PrivateKey.from_bytes(octets[:at] + b"\0\3\0\0\0\1\7" + octets[at + 2 :])


@same_key_for_all
@given(st.data())
def test_a_private_key_with_any_octet_changed_is_refused(insecure_test_key: PrivateKey, data: st.DataObject) -> None:
    octets = bytearray(insecure_test_key.to_bytes())
    octets[data.draw(st.integers(0, len(octets) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DataError) as refused:
        PrivateKey.from_bytes(bytes(octets))
    assert not any(letter.isdigit() for letter in str(refused.value).replace("(p - 1)(q - 1)", ""))


def test_a_private_key_that_is_short_or_followed_by_octets_is_refused(insecure_test_key: PrivateKey) -> None:
    octets = insecure_test_key.to_bytes()
    for wrong in (b"", octets[:-1], octets[:100], octets + b"\0", insecure_test_key.public_key.to_bytes()):
        with pytest.raises(DataError):
            PrivateKey.from_bytes(wrong)


P, Q = (int(gmpy2.next_prime(2**130 * k)) for k in (3, 5))
SAFE = next(p for p in (int(gmpy2.next_prime(2**130 + k)) for k in range(0, 10**6, 50)) if gmpy2.is_prime(2 * p + 1))


@each_case(
    ("p", "q", "reason"),
    [
        (Q, P, "does not belong"),
        (1, P * Q, "does not belong"),
        (-Q, -P, "does not belong"),
        (P, P, "does not belong"),
        (2, P, "two odd primes"),
        (P, P * Q, "two odd primes"),
        (P * P, Q * Q, "two odd primes"),
        (SAFE, 2 * SAFE + 1, r"not prime to \(p - 1\)"),
    ],
)
def test_numbers_that_are_no_key_are_refused(p: int, q: int, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        PrivateKey(p, q, PublicKey(p * q, None)).validate()


def test_a_private_key_with_anothers_modulus_is_refused() -> None:
    with pytest.raises(DataError, match="does not belong"):
        PrivateKey(P, Q, PublicKey(P * Q + 2, None))


@each_case(
    "wrong_hs",
    [
        lambda n, hs: 1,
        lambda n, hs: 0,
        lambda n, hs: n,
        lambda n, hs: hs + n * n,
        lambda n, hs: hs * (1 + n) % n**2,  # encrypts a plaintext of 1
        lambda n, hs: hs * hs % n**2,  # a square
        lambda n, hs: hs % n,
    ],
)
def test_a_private_key_with_a_wrong_hs_is_refused(
    insecure_test_key: PrivateKey, wrong_hs: Callable[[int, int], int]
) -> None:
    key, public_key = insecure_test_key, insecure_test_key.public_key
    assert public_key.hs is not None
    with pytest.raises(DataError, match="hs"):
        PrivateKey(key.p, key.q, PublicKey(public_key.n, wrong_hs(public_key.n, public_key.hs))).validate()


def test_a_private_key_with_anothers_proof_is_refused(insecure_test_key: PrivateKey) -> None:
    key = insecure_test_key
    proof = (1, *key.public_key.proof[1:])
    with pytest.raises(DataError, match="proof"):
        PrivateKey(key.p, key.q, PublicKey(key.public_key.n, key.public_key.hs, proof)).validate()


# --- python-paillier ------------------------------------------------------------------------------


def test_keys_go_to_phe_and_come_back(real_key: PrivateKey) -> None:
    theirs = interop.private_key_to_phe(real_key)
    assert isinstance(theirs, phe.PaillierPrivateKey)
    assert interop.public_key_to_phe(real_key.public_key) == theirs.public_key
    back = interop.private_key_from_phe(theirs)
    assert (back.p, back.q) == (real_key.p, real_key.q)
    check_public_key(back.public_key, maker_trusted=True)
    check_public_key(back.public_key, maker_trusted=False)
    assert interop.public_key_from_phe(theirs.public_key) == PublicKey(real_key.public_key.n, None)


def test_phes_own_key_is_proved_and_works() -> None:
    _, theirs = phe.generate_paillier_keypair(n_length=512)
    ours = interop.private_key_from_phe(theirs)
    ours.validate()
    assert key_proof.verify(ours.public_key.n, ours.public_key.proof)
    ciphertexts = [theirs.public_key.raw_encrypt(m) for m in (0, 1, theirs.public_key.n - 5)]
    assert ours.decrypt_residues(ours.public_key.kernel.residues(ciphertexts)) == [0, 1, -5]


def test_numbers_come_from_phe_at_their_finest_scale(insecure_test_key: PrivateKey) -> None:
    theirs = interop.public_key_to_phe(insecure_test_key.public_key)
    numbers = [theirs.encrypt(x, precision=p) for x, p in ((0.5, 2**-4), (-3, 1), (0.125, 2**-8), (0, 1))]
    assert len({number.exponent for number in numbers}) == 3
    vector = interop.vector_from_phe(numbers, insecure_test_key.public_key)
    assert decrypt(vector, insecure_test_key).to_reals().tolist() == [0.5, -3.0, 0.125, 0.0]
    assert vector.bound == insecure_test_key.public_key.n // 3
    assert interop.vector_from_phe(numbers[1:2], insecure_test_key.public_key, bound=7).bound == 7


def test_numbers_of_another_key_or_none_do_not_come(insecure_test_key: PrivateKey) -> None:
    other = phe.PaillierPublicKey(insecure_test_key.public_key.n + 2)
    for numbers in ([], [phe.EncryptedNumber(other, 1, 0)]):
        with pytest.raises(DataError, match="the list of encrypted numbers is empty, or one is under another key"):
            interop.vector_from_phe(numbers, insecure_test_key.public_key)


@pytest.mark.parametrize("integer", [0, -1])
def test_a_ciphertext_of_phe_that_is_none(insecure_test_key: PrivateKey, integer: int) -> None:
    theirs = interop.public_key_to_phe(insecure_test_key.public_key)
    with pytest.raises(RangeError):
        interop.vector_from_phe([phe.EncryptedNumber(theirs, integer, 0)], insecure_test_key.public_key)


def test_a_vector_goes_to_phe_at_a_power_of_16(insecure_test_key: PrivateKey) -> None:
    theirs = interop.private_key_to_phe(insecure_test_key)
    there = interop.vector_to_phe(encrypted([24, -1], insecure_test_key, frac_bits=4))
    assert [theirs.decrypt(number) for number in there] == [1.5, -0.0625]
    with pytest.raises(RangeError, match="6 fraction bits are not a power of 16") as refused:
        interop.vector_to_phe(encrypted([24], insecure_test_key, frac_bits=6))
    assert refused.value.hint == "encrypt with a frac_bits that is a multiple of 4"


def test_primes_of_another_form_get_no_hs() -> None:
    p, q = (next(x for x in primes_from(2**130 * k) if x % 4 == 1) for k in (3, 5))
    public_key = private_key_of_primes(q, p).public_key
    assert public_key.hs is None
    check_public_key(public_key, min_bits=256, maker_trusted=False)
    with pytest.raises(RangeError, match="no hs"):
        check_public_key(public_key, min_bits=256, maker_trusted=True)


def primes_from(start: int) -> list[int]:
    primes = [int(gmpy2.next_prime(start))]
    while len(primes) < 50:
        primes.append(int(gmpy2.next_prime(primes[-1])))
    return primes


@each_case(("p", "q"), [(P, P), (0, P), (-P, -Q), (P, 4), (P, P * Q), (SAFE, 2 * SAFE + 1)])
def test_factors_that_make_no_key_are_refused(p: int, q: int) -> None:
    with pytest.raises(DataError):
        private_key_of_primes(p, q)


def test_without_phe_a_conversion_says_what_to_install(real_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "phe", None)
    with pytest.raises(ConfigError) as missing:
        interop.private_key_to_phe(real_key)
    assert "phe>=1.5" in missing.value.hint
