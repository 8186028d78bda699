"""Anyone who has only the public key can check an opening of a ciphertext."""

from __future__ import annotations

import gmpy2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.openings import opens
from blindfit.algorithms.paillier.randomisers import FullExponent


def encrypted(key: PrivateKey, plaintext: int) -> int:
    public = key.public_key
    kernel = public.kernel
    residues = kernel.products(kernel.ones_plus([plaintext]), FullExponent(public).draw(1))
    return kernel.integers(residues)[0]


def root_of(key: PrivateKey, ciphertext: int) -> int:
    return key.roots(key.public_key.kernel.residues([ciphertext]))[0]


@given(st.integers(-(2**500), 2**500))
@settings(max_examples=50, deadline=None)
def test_a_root_opens_the_plaintext_and_no_other_does(insecure_test_key: PrivateKey, plaintext: int) -> None:
    public, ciphertext = insecure_test_key.public_key, encrypted(insecure_test_key, plaintext)
    root = root_of(insecure_test_key, ciphertext)
    assert opens(public, ciphertext, plaintext, root)
    for other in (plaintext + 1, -plaintext or 1, plaintext + public.n, plaintext - public.n):
        assert not opens(public, ciphertext, other, root)
    for other in (root + 1, root + public.n, public.n - root, 0, -root):
        assert not opens(public, ciphertext, plaintext, other)
    assert not opens(public, ciphertext + public.n**2, plaintext, root)


def test_with_a_key_of_full_size(real_key: PrivateKey) -> None:
    ciphertext = encrypted(real_key, -(2**2000))
    assert opens(real_key.public_key, ciphertext, -(2**2000), root_of(real_key, ciphertext))


def test_roots_of_what_was_randomised_again_are_new(insecure_test_key: PrivateKey) -> None:
    """The roots reveal nothing of how the ciphertext was made: each is the last r times the earlier root."""
    public = insecure_test_key.public_key
    first = encrypted(insecure_test_key, 5)
    by = 1234567
    again = int(first * gmpy2.powmod(by, public.n, public.n**2) % public.n**2)
    assert root_of(insecure_test_key, again) == root_of(insecure_test_key, first) * by % public.n


@pytest.mark.parametrize("invalid", ["zero", "factor"])
def test_what_is_no_ciphertext_has_no_root(insecure_test_key: PrivateKey, invalid: str) -> None:
    with pytest.raises(RangeError):
        root_of(insecure_test_key, 0 if invalid == "zero" else insecure_test_key.p)


def test_a_key_without_a_proof_may_open_one_ciphertext_to_two_numbers() -> None:
    """An auditor checks the key because of this: n = p^2 q, and an r that is 1 mod q and 1 + p mod p^2 has the power 1
    + n m.
    """
    p, q = 1000003, 1000033
    n = p * p * q
    root = int((1 + p) * q * gmpy2.invert(q, p * p) + p * p * gmpy2.invert(p * p, q)) % n
    ciphertext = int(gmpy2.powmod(root, n, n * n))
    other = (ciphertext - 1) // n
    other -= n if 2 * other > n else 0
    assert other != 0
    assert opens(PublicKey(n, None), ciphertext, 0, root)
    assert opens(PublicKey(n, None), ciphertext, other, 1)
    assert gmpy2.gcd(n, p * (p - 1) * (q - 1)) != 1  # the key has no proof: tests of key_proof
