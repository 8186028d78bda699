"""A bad public key is never used: every malformed one is refused, and the proof holds only for good ones."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import gmpy2
import pytest

from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.paillier import key_proof
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, private_key_of_primes
from tests.each_case import each_case

BITS = 512


@cache
def prime(bits: int, seed: int, remainder: int = 3) -> int:
    """Return a prime of exactly this many bits, the two top ones set, of this remainder mod 4."""
    candidate = gmpy2.mpz(random.Random(seed).getrandbits(bits) | 3 << bits - 2)
    while candidate % 4 != remainder or not gmpy2.is_prime(candidate):
        candidate = gmpy2.next_prime(candidate)
    return int(candidate)


F = 3 * 2**254 + 25_691  # the first from there that is prime, as 2 F + 1 is
DEGENERATE = F * (2 * F + 1)  # gcd(n, phi(n)) = F

MALFORMED_MODULI = {
    "negative": (-prime(256, 1) * prime(256, 2), "not positive"),
    "zero": (0, "not positive"),
    "one": (1, "has 1 bits"),
    "short": (prime(255, 1) * prime(255, 2), "has 510 bits"),
    "long": (1 << 8192 | 1, "has 8193 bits"),
    "even": (2 * prime(511, 1), "even"),
    "even, two primes besides": (4 * prime(256, 1) * prime(256, 2), "even"),
    "factor 3": (3 * prime(511, 1), "prime factor below 65537"),
    "largest small factor": (65521 * prime(510, 1), "prime factor below 65537"),
    "square": (prime(256, 1) ** 2, "perfect power"),
    "cube": (prime(171, 1) ** 3, "perfect power"),
    "17th power": (prime(31, 1) ** 17, "perfect power"),
    "square of a key": ((prime(129, 1) * prime(128, 2)) ** 2, "perfect power"),
    "neighbouring primes": (prime(256, 1) * int(gmpy2.next_prime(prime(256, 1))), "so close"),
    "close primes": (prime(256, 1) * int(gmpy2.next_prime(prime(256, 1) + 2**131)), "so close"),
    "prime": (prime(512, 1), "a prime"),
    "prime, 1 mod 4": (prime(512, 1, 1), "a prime"),
}


@each_case("maker_trusted", [True, False])
@each_case(("n", "reason"), MALFORMED_MODULI.values(), ids=MALFORMED_MODULI)
def test_malformed_moduli_are_refused(n: int, reason: str, maker_trusted: bool) -> None:
    with pytest.raises(RangeError, match=reason):
        check_public_key(PublicKey(n, 4), min_bits=BITS, maker_trusted=maker_trusted)


def test_a_prime_is_refused_even_with_a_proof() -> None:
    """Anyone who sees a prime modulus can decrypt, and every unit has an n-th root mod a prime n."""
    n = prime(512, 1)
    proof = tuple(key_proof._challenges(n))  # x^n = x
    assert key_proof.verify(n, proof)
    with pytest.raises(RangeError, match="a prime"):
        check_public_key(PublicKey(n, None, proof), min_bits=BITS, maker_trusted=False)


@pytest.mark.parametrize("maker_trusted", [True, False])
def test_good_keys_pass(real_key: PrivateKey, insecure_test_key: PrivateKey, maker_trusted: bool) -> None:
    check_public_key(real_key.public_key, maker_trusted=maker_trusted)
    check_public_key(insecure_test_key.public_key, min_bits=BITS, maker_trusted=maker_trusted)


@pytest.mark.parametrize("maker_trusted", [True, False])
def test_small_keys_are_refused_unless_the_checker_asks_for_them(
    insecure_test_key: PrivateKey, maker_trusted: bool
) -> None:
    for min_bits in ({}, {"min_bits": BITS + 1}):
        with pytest.raises(RangeError, match="has 512 bits"):
            check_public_key(insecure_test_key.public_key, maker_trusted=maker_trusted, **min_bits)


def test_a_peer_who_sends_a_bad_key_is_named(insecure_test_key: PrivateKey) -> None:
    with pytest.raises(MalformedMessage) as refused:
        check_public_key(insecure_test_key.public_key, maker_trusted=False, culprit="hospital")
    assert (refused.value.culprit, refused.value.field) == ("hospital", "public_key")
    assert "512 bits" in refused.value.reason


# --- hs -------------------------------------------------------------------------------------------

MALFORMED_HS: dict[str, tuple[Callable[[PrivateKey], int | None], str]] = {
    "missing": (lambda key: None, "no hs"),
    "0": (lambda key: 0, "between"),
    "1": (lambda key: 1, "between"),
    "-1": (lambda key: -1, "between"),
    "n^2 - 1": (lambda key: key.public_key.n**2 - 1, "between"),
    "n^2": (lambda key: key.public_key.n**2, "between"),
    "too large": (lambda key: int(key.public_key.hs or 0) + key.public_key.n**2, "between"),
    "multiple of n": (lambda key: 5 * key.public_key.n, "not prime to n"),
    "multiple of p": (lambda key: 5 * key.p, "not prime to n"),
    "1 + n": (lambda key: 1 + key.public_key.n, "1 or -1 mod n"),
    "1 + 7n": (lambda key: 1 + 7 * key.public_key.n, "1 or -1 mod n"),
    "-1 + 7n": (lambda key: -1 + 7 * key.public_key.n, "1 or -1 mod n"),
    "wrong Jacobi symbol": (
        lambda key: next(hs for hs in range(2, 1000) if gmpy2.jacobi(hs, key.public_key.n) == -1),
        "form",
    ),
}


@each_case(("hs", "reason"), MALFORMED_HS.values(), ids=MALFORMED_HS)
def test_a_malformed_hs_is_refused_where_it_would_be_used_and_harmless_where_not(
    insecure_test_key: PrivateKey, hs: Callable[[PrivateKey], int | None], reason: str
) -> None:
    key = replace(insecure_test_key.public_key, hs=hs(insecure_test_key))
    with pytest.raises(RangeError, match=reason):
        check_public_key(key, min_bits=BITS, maker_trusted=True)
    check_public_key(key, min_bits=BITS, maker_trusted=False)


def test_primes_of_another_form_are_refused_where_hs_would_be_used() -> None:
    key = private_key_of_primes(prime(256, 1, 1), prime(256, 2, 3)).public_key
    check_public_key(key, min_bits=BITS, maker_trusted=False)
    with pytest.raises(RangeError, match="3 mod 4"):
        check_public_key(replace(key, hs=4), min_bits=BITS, maker_trusted=True)


def test_refusals_that_can_be_helped_have_a_hint(insecure_test_key: PrivateKey) -> None:
    key = insecure_test_key.public_key
    for refused_key, maker_trusted in ((PublicKey(key.n, None), True), (replace(key, proof=()), False)):
        for culprit in ("", "hospital"):
            with pytest.raises((RangeError, MalformedMessage)) as refused:
                check_public_key(refused_key, min_bits=BITS, maker_trusted=maker_trusted, culprit=culprit)
            assert refused.value.hint


# --- the proof ------------------------------------------------------------------------------------


def test_under_a_degenerate_key_a_randomiser_hides_next_to_nothing() -> None:
    """The proof excludes this case: modulo one factor r^n is 1 or -1."""
    n, factor = DEGENERATE, 2 * F + 1
    assert {pow(r, n, factor) for r in range(2, 200)} == {1, factor - 1}


def test_proofs_of_good_keys_hold(real_key: PrivateKey, insecure_test_key: PrivateKey) -> None:
    for key in (real_key, insecure_test_key):
        assert len(key.public_key.proof) == key_proof.ROOTS == 8
        assert key_proof.verify(key.public_key.n, key.public_key.proof)
        assert key_proof.prove(key.p, key.q) == key.public_key.proof


def best_forgery(n: int, p: int, q: int) -> tuple[int, ...]:
    """Return roots modulo the factor where they exist, and anything modulo the other."""
    root = pow(n, -1, p - 1)
    return tuple(
        int(gmpy2.powmod(challenge % p, root, p) * q * gmpy2.invert(q, p) + p * gmpy2.invert(p, q)) % n
        for challenge in key_proof._challenges(n)
    )


def test_a_degenerate_modulus_has_no_proof() -> None:
    p, q = F, 2 * F + 1
    forged = best_forgery(DEGENERATE, p, q)
    challenges = key_proof._challenges(DEGENERATE)
    assert all(pow(s, DEGENERATE, p) == c % p for s, c in zip(forged, challenges, strict=True))  # the best one can do
    assert not key_proof.verify(DEGENERATE, forged)
    with pytest.raises(RangeError, match="nothing proves"):
        check_public_key(PublicKey(DEGENERATE, None, forged), min_bits=BITS, maker_trusted=False)


def test_a_degenerate_modulus_would_pass_if_its_maker_chose_the_challenges(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof rests on the hash."""
    monkeypatch.setattr(key_proof, "_challenge", lambda n, index: pow(index + 2, n, n))
    assert key_proof.verify(DEGENERATE, tuple(range(2, 2 + key_proof.ROOTS)))


def tampered_proofs(n: int, proof: tuple[int, ...]) -> list[tuple[int, ...]]:
    first, *others = proof
    return [
        (),
        proof[:-1],
        (*proof, proof[0]),
        (proof[1], proof[0], *proof[2:]),
        *((*proof[:i], proof[i] ^ 1, *proof[i + 1 :]) for i in range(len(proof))),
        (first + n, *others),
        (first - n, *others),
        (n - first, *others),
        (0, *others),
        (n, *others),
    ]


def test_tampered_proofs_fail(insecure_test_key: PrivateKey, real_key: PrivateKey) -> None:
    key = insecure_test_key.public_key
    for proof in [*tampered_proofs(key.n, key.proof), real_key.public_key.proof]:
        assert not key_proof.verify(key.n, proof)
        with pytest.raises(RangeError, match="nothing proves"):
            check_public_key(replace(key, proof=proof), min_bits=BITS, maker_trusted=False)


def test_small_factors_are_those_below_alpha() -> None:
    p = prime(256, 1)
    assert key_proof.has_small_factor(65521 * p)  # the last prime before ALPHA
    assert not key_proof.has_small_factor(65537 * p)


@each_case("n", [-15, 0, 1])
def test_no_proof_holds_for_a_number_that_is_no_modulus(n: int) -> None:
    assert not key_proof.verify(n, (1,) * key_proof.ROOTS)


def test_a_modulus_with_a_small_factor_has_no_proof_though_its_roots_exist() -> None:
    """A small factor leaves too much to chance, even if this one is harmless."""
    proof = key_proof.prove(257, prime(300, 1))
    n = 257 * prime(300, 1)
    assert all(pow(root, n, n) == c for root, c in zip(proof, key_proof._challenges(n), strict=True))
    assert not key_proof.verify(n, proof)


def test_roots_of_numbers_that_are_no_units_prove_nothing(
    insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, p = insecure_test_key.public_key.n, insecure_test_key.p
    monkeypatch.setattr(key_proof, "_challenge", lambda n, index: pow(p, n, n))
    assert not key_proof.verify(n, (p,) * key_proof.ROOTS)


def test_challenges_are_a_hash_of_the_modulus_and_the_index() -> None:
    """Written out: a proof that was made must hold for ever."""
    n = 2**400 + 12345
    seed = b"blindfit paillier key proof v1" + bytes([0, 0, 0, 51]) + n.to_bytes(51, "big") + bytes([0, 0, 0, 3])
    blocks = [hashlib.sha256(seed + bytes([0, 0, 0, counter])).digest() for counter in range(3)]  # 768 bits >= 529
    assert key_proof._challenge(n, 3) == int.from_bytes(b"".join(blocks), "big") % n


def test_challenges_differ_from_each_other_and_from_key_to_key(insecure_test_key: PrivateKey) -> None:
    n = insecure_test_key.public_key.n
    challenges = key_proof._challenges(n) + key_proof._challenges(n + 2)
    assert len(set(challenges)) == 2 * key_proof.ROOTS
    assert min(challenge.bit_length() for challenge in challenges) > BITS - 64  # they fill the range
