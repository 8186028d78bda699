"""The test that a number passes before it is treated as a ciphertext.

Decrypting 0, or any other multiple of n, gives (p + q)^-1 mod n, and so the private key.
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from blindfit.algorithms.errors import RangeError


def check_ciphertexts(modulus: int, integers: Sequence[int]) -> None:
    """Check that every integer is in (0, n^2) and prime to n; one product mod n each, one gcd for all.

    Args:
        modulus: n of the public key.

    Raises:
        RangeError: the same error for every fault, without the position, so that a peer that probes learns nothing.
    """
    n = mpz(modulus)
    n_squared = n * n
    product = mpz(1)
    for integer in integers:
        if not 0 < integer < n_squared:
            product = mpz(0)
            break
        product = product * integer % n
    if gmpy2.gcd(product, n) != 1:
        raise RangeError("a ciphertext is invalid")
