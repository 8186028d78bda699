"""A proof that r -> r^n permutes the units mod n, that is gcd(n, phi(n)) = 1; n is enough to check it.

Under such a key, r^n with a uniform r re-randomises a ciphertext fully, whichever key its maker chose. Under another
key, say n = p (2p + 1), r^n is 1 or -1 modulo 2p + 1, and reveals what it should hide.

The proof: n-th roots of numbers that a hash derives from n. If gcd(n, phi(n)) has a prime factor f, at most one unit in
f has a root, and f >= ALPHA because n has no smaller prime factor. ROOTS roots by chance then have a probability below
2^-128. Square factors of n count as such an f, so n is square-free too. A prime n passes: the roots do not exclude it.

Source: Goldberg, Reyzin, Sagga, Baldimtsi 2018, "Efficient Noninteractive Certification of RSA Moduli and Beyond", the
Paillier protocol with alpha = 65537 and kappa = 128.
"""

from __future__ import annotations

import hashlib
from functools import cache
from math import ceil, log2

import gmpy2
from gmpy2 import mpz

from blindfit.algorithms.errors import DataError

ALPHA = 65537
SECURITY_BITS = 128
ROOTS = ceil(SECURITY_BITS / log2(ALPHA))

_TAG = b"blindfit paillier key proof v1"
_EXTRA_BITS = 128  # hashed beyond n's own length: reduced mod n, the numbers are uniform up to 2^-128


def prove(p: int, q: int) -> tuple[int, ...]:
    """Return the proof for n = p q, p and q prime: ROOTS numbers below n; a power mod n each.

    Raises:
        DataError: n is not prime to (p - 1)(q - 1), so there is nothing to prove.
    """
    n, phi = mpz(p) * q, (mpz(p) - 1) * (q - 1)
    if gmpy2.gcd(n, phi) != 1:
        raise DataError("the primes do not make a Paillier key: n is not prime to (p - 1)(q - 1)")
    root = gmpy2.invert(n, phi)
    return tuple(int(gmpy2.powmod(challenge, root, n)) for challenge in _challenges(int(n)))


def verify(n: int, proof: tuple[int, ...]) -> bool:
    """Return True if the proof holds for n; ROOTS powers mod n."""
    if n <= 1 or has_small_factor(n) or len(proof) != ROOTS or not all(0 < root < n for root in proof):
        return False
    return all(
        gmpy2.gcd(challenge, n) == 1 and gmpy2.powmod(root, n, n) == challenge
        for root, challenge in zip(proof, _challenges(n), strict=True)
    )


def has_small_factor(n: int) -> bool:
    """Return True if a prime below ALPHA divides n; one gcd with the product of these primes."""
    return bool(gmpy2.gcd(n, _product_of_small_primes()) != 1)


@cache
def _product_of_small_primes() -> int:
    return int(gmpy2.primorial(ALPHA - 1))


def _challenges(n: int) -> list[int]:
    return [_challenge(n, i) for i in range(ROOTS)]


def _challenge(n: int, index: int) -> int:
    """Return SHA-256 in counter mode over n and the index, reduced mod n."""
    octets = n.to_bytes((n.bit_length() + 7) // 8, "big")
    seed = _TAG + len(octets).to_bytes(4, "big") + octets + index.to_bytes(4, "big")
    blocks = -(-(n.bit_length() + _EXTRA_BITS) // 256)
    stream = b"".join(hashlib.sha256(seed + counter.to_bytes(4, "big")).digest() for counter in range(blocks))
    return int.from_bytes(stream, "big") % n
