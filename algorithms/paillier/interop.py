"""Keys and vectors to and from python-paillier (`phe`), which is imported only here, and only on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.paillier.ciphertext_checks import check_ciphertexts
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, private_key_of_primes
from blindfit.algorithms.paillier.vectors import EncryptedVector
from blindfit.algorithms.randomness import UniformInt, system_uniform

if TYPE_CHECKING:
    import phe

_BASE_BITS = 4  # python-paillier's exponents count powers of 16


def public_key_to_phe(key: PublicKey) -> phe.PaillierPublicKey:
    """Return the key as python-paillier's class, without hs and proof.

    Args:
        key: the key.

    Raises:
        ConfigError: python-paillier is not installed.

    Example:
        >>> paillier.public_key_to_phe(key.public_key).n == key.public_key.n
        True
    """
    return load_phe().PaillierPublicKey(key.n)


def public_key_from_phe(key: phe.PaillierPublicKey) -> PublicKey:
    """Return a key of python-paillier as a PublicKey, without hs and proof.

    Both need the private key: see `private_key_from_phe`.

    Args:
        key: python-paillier's public key.

    Example:
        >>> paillier.public_key_from_phe(paillier.public_key_to_phe(key.public_key)).hs is None
        True
    """
    return PublicKey(int(key.n), None)


def private_key_to_phe(key: PrivateKey) -> phe.PaillierPrivateKey:
    """Return the key as python-paillier's class. That class can be pickled with its factors: keep it secret.

    Args:
        key: the key.

    Raises:
        ConfigError: python-paillier is not installed.

    Example:
        >>> paillier.private_key_to_phe(key).public_key.n == key.public_key.n
        True
    """
    return load_phe().PaillierPrivateKey(public_key_to_phe(key.public_key), key.p, key.q)


def private_key_from_phe(key: phe.PaillierPrivateKey, *, uniform: UniformInt = system_uniform) -> PrivateKey:
    """Return a key of python-paillier as a PrivateKey, with a proof.

    It has a new hs if both primes are 3 mod 4 and gcd(p - 1, q - 1) = 2.

    Args:
        key: python-paillier's private key.
        uniform: source of uniform integers; the operating system's generator by default.

    Raises:
        DataError: the primes do not make a Paillier key.

    Example:
        >>> again = paillier.private_key_from_phe(paillier.private_key_to_phe(key))
        >>> again.p == key.p, again.public_key.n == key.public_key.n
        (True, True)
    """
    return private_key_of_primes(int(key.p), int(key.q), uniform=uniform)


def vector_to_phe(vector: EncryptedVector[FreshCiphertext]) -> list[phe.EncryptedNumber]:
    """Return an encrypted number of python-paillier for each number, all of one exponent.

    Args:
        vector: the numbers, re-randomised.

    Raises:
        RangeError: frac_bits is not a multiple of 4; python-paillier's exponents are powers of 16.
        ConfigError: python-paillier is not installed.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), randomisers)
        >>> numbers = paillier.vector_to_phe(vector)
        >>> [paillier.private_key_to_phe(key).decrypt(number) for number in numbers]
        [0.5, 1.5]
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
    numbers: Sequence[phe.EncryptedNumber], public_key: PublicKey, *, bound: int | None = None
) -> EncryptedVector[Ciphertext]:
    """Return encrypted numbers of python-paillier as a vector, at the finest of their scales.

    Each number of a coarser scale costs a power.

    Args:
        numbers: python-paillier's encrypted numbers, at least one.
        public_key: their key.
        bound: largest magnitude, in steps of that scale; by default python-paillier's, a third of the modulus.

    Raises:
        DataError: the list is empty, or a number is under another key.
        RangeError: a ciphertext is invalid.

    Example:
        >>> numbers = paillier.vector_to_phe(paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), randomisers))
        >>> vector = paillier.vector_from_phe(numbers, key.public_key)
        >>> paillier.decrypt(vector, key).to_reals().tolist()
        [0.5, 1.5]
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
