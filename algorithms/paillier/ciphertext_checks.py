"""What a number must be before it is treated as a ciphertext.

Decrypting 0, or any other multiple of n, gives (p + q)^-1 mod n, and so the private key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import gmpy2
from gmpy2 import mpz

from blindfit.algorithms.errors import RangeError

if TYPE_CHECKING:
    from blindfit.algorithms.paillier.keys import PublicKey


def check_ciphertexts(public_key: PublicKey, integers: Sequence[int]) -> None:
    """Checks that every integer is in (0, n^2) and prime to n; one product mod n each, one gcd for all.

    Raises:
        RangeError: the same for whatever was wrong, without the position, so that a peer who probes learns nothing.
    """
    n = mpz(public_key.n)
    modulus = n * n
    product = mpz(1)
    for integer in integers:
        if not 0 < integer < modulus:
            product = mpz(0)
            break
        product = product * integer % n
    if gmpy2.gcd(product, n) != 1:
        raise RangeError("a ciphertext is invalid")
