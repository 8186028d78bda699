"""Keys and vectors to and from python-paillier (`phe`), which is imported only here, and only on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.paillier.ciphertext_checks import check_ciphertexts
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, private_key_of_primes
from blindfit.algorithms.paillier.vectors import EncryptedVector
from blindfit.algorithms.randomness import UniformInt, system_uniform

_BASE_BITS = 4  # python-paillier's exponents count powers of 16


def public_key_to_phe(key: PublicKey) -> Any:
    """Return a phe.PaillierPublicKey; hs and the proof stay behind."""
    return load_phe().PaillierPublicKey(key.n)


def public_key_from_phe(key: Any) -> PublicKey:
    """Return the key without hs and proof; both need the private key, see `private_key_from_phe`."""
    return PublicKey(int(key.n), None)


def private_key_to_phe(key: PrivateKey) -> Any:
    """Return a phe.PaillierPrivateKey."""
    return load_phe().PaillierPrivateKey(public_key_to_phe(key.public_key), key.p, key.q)


def private_key_from_phe(key: Any, *, uniform: UniformInt = system_uniform) -> PrivateKey:
    """Return the key with a proof, and with our own hs if both primes are 3 mod 4 and gcd(p - 1, q - 1) = 2.

    Raises:
        DataError: the primes do not make a Paillier key.
    """
    return private_key_of_primes(int(key.p), int(key.q), uniform=uniform)


def vector_to_phe(vector: EncryptedVector[FreshCiphertext]) -> list[Any]:
    """Return a phe.EncryptedNumber for each number, all of one exponent.

    Raises:
        RangeError: frac_bits is not a multiple of 4, and python-paillier's exponents are powers of 16.
    """
    if vector.frac_bits % _BASE_BITS:
        raise RangeError(
            f"{vector.frac_bits} fraction bits are not a power of 16, as python-paillier's exponents are",
            hint="encrypt with a frac_bits that is a multiple of 4",
        )
    key, exponent = public_key_to_phe(vector.public_key), -vector.frac_bits // _BASE_BITS
    integers = vector.public_key.kernel.integers(vector.residues)
    return [load_phe().EncryptedNumber(key, int(integer), exponent) for integer in integers]


def vector_from_phe(
    numbers: Sequence[Any], public_key: PublicKey, *, bound: int | None = None
) -> EncryptedVector[Ciphertext]:
    """Return the numbers at the finest of their scales; each number of a coarser scale costs a power.

    Args:
        bound: largest magnitude, in steps of that scale; by default python-paillier's, a third of the modulus.

    Raises:
        DataError: the list is empty, or a number is under another key.
        RangeError: a ciphertext is invalid.
    """
    if not numbers or any(int(number.public_key.n) != public_key.n for number in numbers):
        raise DataError("the list of encrypted numbers is empty, or one is under another key")
    finest = min(0, *(number.exponent for number in numbers))
    integers = [int(number.ciphertext(be_secure=False)) for number in numbers]
    check_ciphertexts(public_key.n, integers)
    kernel = public_key.kernel
    shifts = [1 << _BASE_BITS * (number.exponent - finest) for number in numbers]
    residues = kernel.powers_each(kernel.residues(integers), shifts)
    largest = public_key.n // 3 if bound is None else bound
    return EncryptedVector(Ciphertext(public_key, residues), -finest * _BASE_BITS, largest)


def load_phe() -> Any:
    """Import python-paillier; raise ConfigError if it is not installed."""
    try:
        import phe
    except ImportError:
        raise ConfigError("python-paillier is not installed", hint="run `pip install 'phe>=1.5'`") from None
    return phe
