"""A proof that a ciphertext holds a plaintext, checked with only the public key: the r of c = (1 + n)^m r^n mod n^2.

Under a key whose n is square-free, which its proof shows (key_proof), a ciphertext has one m mod n: the key's maker can
open it to no other number. If another party re-randomised c, r is uniform, independent of how c was made. Only the
private key finds it (`PrivateKey.roots`).

Source: Damgaard, Jurik 2001, "A Generalisation, a Simplification and Some Applications of Paillier's Probabilistic
Public-Key System", section 4.2.
"""

from __future__ import annotations

import gmpy2

from blindfit.algorithms.paillier.keys import PublicKey


def opens(public_key: PublicKey, ciphertext: int, plaintext: int, root: int) -> bool:
    """Return True if the ciphertext, prime to n, is the plaintext's under this r; a power mod n^2.

    The caller has checked the key, with its proof.

    Args:
        plaintext: in (-n/2, n/2).
    """
    n = gmpy2.mpz(public_key.n)
    if not 0 < root < n or gmpy2.gcd(root, n) != 1 or 2 * abs(plaintext) >= n:
        return False
    return bool((1 + n * plaintext) * gmpy2.powmod(root, n, n * n) % (n * n) == ciphertext)
