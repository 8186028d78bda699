"""The tests that a public key passes before anything is encrypted under it.

Nobody can see from a modulus that it has exactly two prime factors, nor from hs that it is an n-th residue: this takes
trust in the maker. A party that does not trust the maker ignores hs, encrypts with r^n, and has a proof that this hides
(key_proof).
"""

from __future__ import annotations

from math import isqrt

import gmpy2

from blindfit.algorithms.errors import BlindfitError, MalformedMessage, RangeError
from blindfit.algorithms.paillier import key_proof
from blindfit.algorithms.paillier.keys import KEY_BITS, PublicKey

LEAST_BITS = min(KEY_BITS)
MOST_BITS = 8192  # a larger modulus only costs us time
PRIME_ROUNDS = 40
FERMAT_STEPS = 512

NO_HS = "it has no hs, which fast encryption needs"
NO_PROOF = "nothing proves that r^n hides under it"
_HINTS = {
    NO_HS: "a key from elsewhere is used as one whose maker is not trusted",
    NO_PROOF: "its owner can load the key pair with Blindfit, which adds the proof",
}


def check_public_key(key: PublicKey, *, min_bits: int = LEAST_BITS, maker_trusted: bool, culprit: str = "") -> None:
    """Refuse an unsafe key. The cost is a primality test and, for an untrusted maker, the proof.

    Args:
        key: the key.
        min_bits: smallest size of the modulus; lower than the default only in tests.
        maker_trusted: True if hs will be used. The key must then have an hs that looks right; otherwise the proof must
            hold.
        culprit: the peer that sent the key; empty for our own key.

    Raises:
        MalformedMessage: the key is refused, and a peer sent it.
        RangeError: the key is refused.

    Example:
        >>> paillier.check_public_key(key.public_key, min_bits=512, maker_trusted=True)
        >>> paillier.check_public_key(paillier.PublicKey(15, None), maker_trusted=False)
        Traceback (most recent call last):
        blindfit.algorithms.errors.RangeError: the public key is refused: its modulus has 4 bits, ...
    """
    fault = _modulus_fault(key.n, min_bits)
    if not fault:
        fault = _hs_fault(key.n, key.hs) if maker_trusted else _proof_fault(key)
    if fault:
        raise _refusal(fault, culprit)


def _refusal(fault: str, culprit: str) -> BlindfitError:
    hint = _HINTS.get(fault, "")
    if not culprit:
        return RangeError(f"the public key is refused: {fault}", hint=hint)
    refusal = MalformedMessage(culprit=culprit, field="public_key", reason=fault)
    refusal.hint = hint
    return refusal


def _modulus_fault(n: int, min_bits: int) -> str:
    """Return the first fault of n; empty if n passes; cheap tests first."""
    if n <= 0:
        return "its modulus is not positive"
    if not min_bits <= n.bit_length() <= MOST_BITS:
        return f"its modulus has {n.bit_length()} bits, not {min_bits} to {MOST_BITS}"
    if n % 2 == 0:
        return "its modulus is even"
    if key_proof.has_small_factor(n):
        return f"its modulus has a prime factor below {key_proof.ALPHA}"
    if gmpy2.is_power(n):
        return "its modulus is a perfect power"
    if _has_close_factors(n):
        return "two factors of its modulus are so close that it can be factored"
    if gmpy2.is_prime(n, PRIME_ROUNDS):
        return "its modulus is a prime"
    return ""


def _has_close_factors(n: int) -> bool:
    """Try Fermat's method: n = a^2 - b^2 with a just above the root of n."""
    least = isqrt(n - 1) + 1
    return any(gmpy2.is_square(a * a - n) for a in range(least, least + FERMAT_STEPS))


def _hs_fault(n: int, hs: int | None) -> str:
    """hs = (-x^2)^n mod n^2 has a Jacobi symbol of 1, and neither 1 nor -1 mod n unless somebody chose it so."""
    if hs is None:
        return NO_HS
    if n % 4 != 1:
        return "its primes are not 3 mod 4, which hs needs"
    if not 1 < hs < n * n - 1:
        return "its hs is not between 1 and n^2 - 1"
    if gmpy2.gcd(hs, n) != 1:
        return "its hs is not prime to n"
    if hs % n in (1, n - 1):
        return "its hs hides nothing: it is 1 or -1 mod n"
    if gmpy2.jacobi(hs, n) != 1:
        return "its hs is not of the form (-x^2)^n"
    return ""


def _proof_fault(key: PublicKey) -> str:
    return "" if key_proof.verify(key.n, key.proof) else NO_PROOF
