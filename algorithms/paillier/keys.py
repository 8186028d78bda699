"""Paillier keys: their generation, their encodings, and decryption.

    n = p q      p, q prime, 3 mod 4, gcd(p - 1, q - 1) = 2; plaintexts are in (-n/2, n/2)
    hs           h^n mod n^2 with h = -x^2. If one trusts the key's maker, hs^a from a short a hides a plaintext.
    proof        shows that r^n hides under n, without trust in the maker (key_proof)

Source: Paillier 1999; Damgard, Jurik, Nielsen 2010, section 4.2 (hs); Kocher 1996, section 10 (blinding).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import gmpy2
from gmpy2 import mpz

from blindfit.algorithms.errors import DataError, RangeError
from blindfit.algorithms.paillier import key_proof
from blindfit.algorithms.paillier.blinding import Blinding
from blindfit.algorithms.paillier.ciphertext_checks import check_ciphertexts
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.randomness import UniformInt, system_uniform

KEY_BITS = (2048, 3072)
PRIME_ROUNDS = 40  # Baillie-PSW and 16 rounds of Miller-Rabin
LEAST_DISTANCE_BITS = 100  # |p - q| > 2^(bits/2 - 100), as FIPS 186-5 has it

_PUBLIC_FORMAT = "blindfit paillier public key v1"
_PRIVATE_FORMAT = "blindfit paillier private key v1"


# --- the public key -------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PublicKey:
    """The public part of a key pair, not checked. `check_public_key` checks it.

    Attributes:
        n: the modulus.
        hs: an n-th residue mod n^2 of unknown order; None for a key from elsewhere.
        proof: tuple of integers that shows that r^n hides under n; empty if the key has no proof.
        kernel_type: class that computes under this key in this process; `to_bytes` and `to_json` omit it.

    Example:
        >>> public = key.public_key
        >>> paillier.PublicKey.from_bytes(public.to_bytes()) == public
        True
    """

    n: int
    hs: int | None
    proof: tuple[int, ...] = field(default=(), compare=False)
    kernel_type: type[Kernel] = field(default=Kernel, compare=False)

    @property
    def bits(self) -> int:
        """Number of bits of the modulus."""
        return self.n.bit_length()

    @property
    def ciphertext_bytes(self) -> int:
        """Width of one ciphertext in octets."""
        return 2 * _width(self.n)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of n, big-endian, in hex."""
        return hashlib.sha256(self.n.to_bytes(_width(self.n), "big")).hexdigest()

    @cached_property
    def kernel(self) -> Kernel:
        """Arithmetic mod n^2 that counts the products of this object."""
        return self.kernel_type(self.n)

    def __repr__(self) -> str:
        return f"PublicKey({self.bits} bits, {self.fingerprint[:16]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PublicKey, (self.n, self.hs, self.proof, self.kernel_type)  # without the kernel and its counts

    def to_bytes(self) -> bytes:
        """Return the key as octets; each key has exactly one encoding."""
        return _encode(_PUBLIC_FORMAT, self._numbers())

    @classmethod
    def from_bytes(cls, data: bytes) -> PublicKey:
        """Return the key of these octets, not checked.

        Args:
            data: result of `to_bytes`.

        Raises:
            DataError: these octets are not the result of `to_bytes`.
        """
        return cls._of_numbers(_decode(_PUBLIC_FORMAT, data, 3))

    def to_json(self) -> dict[str, Any]:
        """Return the key ready for JSON, with its numbers in lower-case hex."""
        n, hs, proof = ([format(number, "x") for number in numbers] for numbers in self._numbers())
        return {"format": _PUBLIC_FORMAT, "n": n[0], "hs": hs[0] if hs else None, "proof": proof}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> PublicKey:
        """Return the key of this content, not checked.

        Args:
            content: result of `to_json`.

        Raises:
            DataError: the content is not a result of `to_json`.
        """
        try:
            n, hs, proof = content["n"], content["hs"], content["proof"]
            key = cls(int(n, 16), None if hs is None else int(hs, 16), tuple(int(root, 16) for root in proof))
            whole = key.to_json() == content and min(key.n, key.hs or 0, *key.proof) >= 0
        except (ValueError, TypeError, KeyError):
            whole = False
        if not whole:
            raise DataError("not a public key as Blindfit writes it")
        return key

    def _numbers(self) -> tuple[tuple[int, ...], ...]:
        return (self.n,), () if self.hs is None else (self.hs,), self.proof

    @classmethod
    def _of_numbers(cls, numbers: Sequence[tuple[int, ...]]) -> PublicKey:
        n, hs, proof = numbers
        if len(n) != 1 or len(hs) > 1:
            raise DataError("a key's encoding has a wrong count of numbers")
        return cls(n[0], hs[0] if hs else None, proof)


# --- the private key ------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """A private key, the factors p < q of n. Its repr hides the factors, and it cannot be pickled.

    Args:
        p: the smaller factor.
        q: the larger factor.
        public_key: the public part.

    Raises:
        DataError: p and q are not the factors of the public key's n, the smaller one first.

    Example:
        >>> restored = paillier.PrivateKey.from_bytes(key.to_bytes())
        >>> restored == key, str(key.p) in repr(key)
        (True, False)
    """

    p: int
    q: int
    public_key: PublicKey

    def __post_init__(self) -> None:
        if not 1 < self.p < self.q or self.p * self.q != self.public_key.n:
            raise DataError("a private key does not belong to its public key")

    def __repr__(self) -> str:
        return f"PrivateKey({self.public_key.bits} bits, {self.public_key.fingerprint[:16]})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not pickled")

    def to_bytes(self) -> bytes:
        """Return the key as octets, in the clear: encrypt them before you store them. Each key has one encoding."""
        return _encode(_PRIVATE_FORMAT, [(self.p, self.q), *self.public_key._numbers()])

    @classmethod
    def from_bytes(cls, data: bytes) -> PrivateKey:
        """Return the key of these octets, validated.

        Args:
            data: result of `to_bytes`.

        Raises:
            DataError: these octets are not the result of `to_bytes`, or the numbers are not a key.
        """
        factors, *public = _decode(_PRIVATE_FORMAT, data, 4)
        if len(factors) != 2:
            raise DataError("a key's encoding has a wrong count of numbers")
        key = cls(*factors, PublicKey._of_numbers(public))
        key.validate()
        return key

    def validate(self) -> None:
        """Check everything that the owner of the factors can check: two primality tests, the proof, two short powers.

        Raises:
            DataError: a test fails; the error names the fault, and no number.
        """
        _check_primes(self.p, self.q)
        key = self.public_key
        if key.hs is not None and not self._is_hs(key.hs):
            raise DataError("the hs of a key is not that of its primes")
        if key.proof and not key_proof.verify(key.n, key.proof):
            raise DataError("the proof of a key does not hold")

    def _is_hs(self, hs: int) -> bool:
        """Return True if hs is the n-th power of a non-residue, below n^2, and the primes are such that this hides."""
        return (
            _allow_hs(self.p, self.q)
            and 0 < hs < self.public_key.n**2
            and all(prime.is_nth_power(hs) and gmpy2.legendre(hs, prime.prime) == -1 for prime in self._primes)
        )

    # --- decryption -------------------------------------------------------------------------------

    def decrypt_residues(
        self, residues: Residues, *, threads: int = 1, uniform: UniformInt = system_uniform
    ) -> list[int]:
        """Return the plaintexts of ciphertexts, each in (-n/2, n/2); nothing is decrypted unless all are valid.

        Every ciphertext is blinded before p or q touches it, so the time taken reveals nothing about a base that a peer
        chose.

        Args:
            residues: ciphertexts of the public key's kernel.
            threads: number of threads that share the powers.
            uniform: source of uniform integers for the blinding; the operating system's generator by default.

        Raises:
            RangeError: a ciphertext is invalid.

        Cost: an element takes a power mod p^2 and one mod q^2, with exponents of half of n's bits (together a quarter
        of r^n), and three products; every thirty-third takes two more such powers.
        """
        if threads < 1:
            raise RangeError(f"{threads} threads cannot decrypt")
        return self._plaintexts(self._blind(self._valid(residues), uniform), threads)

    def _valid(self, residues: Residues) -> list[int]:
        """Return the ciphertexts as integers; raise RangeError if one is invalid."""
        integers = self.public_key.kernel.integers(residues)
        check_ciphertexts(self.public_key.n, integers)
        return integers

    def roots(self, residues: Residues) -> list[int]:
        """Return the r below n of each ciphertext (1 + n)^m r^n, which shows its plaintext (openings).

        The cost is a power mod n. It takes the same time for every base, which a peer chose, and every exponent.

        Args:
            residues: ciphertexts of the public key's kernel.

        Raises:
            RangeError: a ciphertext is invalid.
        """
        n = mpz(self.public_key.n)
        exponent = gmpy2.invert(n, (self.p - 1) * (self.q - 1))
        return [int(gmpy2.powmod_sec(integer % n, exponent, n)) for integer in self._valid(residues)]

    def _blind(self, integers: Sequence[int], uniform: UniformInt) -> list[int]:
        """Return encryptions of the same plaintexts."""
        kernel = self.public_key.kernel
        rho = self._blinding.take(len(integers), lambda: self._nth_power(_random_unit(self.public_key.n, uniform)))
        return kernel.integers(kernel.products(kernel.residues(integers), rho))

    @cached_property
    def _blinding(self) -> Blinding:
        return Blinding(self.public_key.kernel)

    def _nth_power(self, unit: int) -> int:
        """Return a number with the law of r^n mod n^2 for a uniform unit: its p-th power mod p^2 and q-th mod q^2."""
        (mod_p2, p2), (mod_q2, q2) = ((prime.nth_power(unit), prime.kernel.modulus) for prime in self._primes)
        return int(mod_p2 + (mod_q2 - mod_p2) * gmpy2.invert(p2, q2) % q2 * p2)

    def _plaintexts(self, integers: list[int], threads: int) -> list[int]:
        mod_p, mod_q = self._plaintexts_mod_primes(integers, threads)
        return [self._join(m_p, m_q) for m_p, m_q in zip(mod_p, mod_q, strict=True)]

    def _plaintexts_mod_primes(self, integers: list[int], threads: int) -> list[list[int]]:
        """Return all plaintexts mod p, and all mod q; each thread has a slice of either (powers need no lock)."""
        lanes = max(prime.kernel.lanes for prime in self._primes)
        size = max(1, -(-len(integers) // (threads * lanes))) * lanes
        slices = [integers[i : i + size] for i in range(0, len(integers), size)]
        with ThreadPoolExecutor(threads) as pool:
            mapped = pool.map if threads > 1 else map
            halves = [mapped(prime.plaintexts, slices) for prime in self._primes]
            return [[plaintext for part in half for plaintext in part] for half in halves]

    def _join(self, mod_p: int, mod_q: int) -> int:
        """Return the plaintext nearest to 0 that is mod_p mod p and mod_q mod q."""
        return self._nearest_to_0(mod_p + (mod_q - mod_p) * self._p_inverse % self.q * self.p)

    def _nearest_to_0(self, plaintext: int) -> int:
        return int(plaintext if 2 * plaintext < self.public_key.n else plaintext - self.public_key.n)

    @cached_property
    def _primes(self) -> tuple[_Prime, _Prime]:
        return _Prime(self.p, self.q), _Prime(self.q, self.p)

    @cached_property
    def _p_inverse(self) -> int:
        return int(gmpy2.invert(self.p, self.q))


class _Prime:
    """One prime factor of n, and arithmetic mod its square."""

    def __init__(self, prime: int, other: int) -> None:
        self.prime = mpz(prime)
        self.kernel = Kernel(prime)
        self._minus_other_inverse = gmpy2.invert(-other, self.prime)

    def plaintexts(self, ciphertexts: Sequence[int]) -> list[int]:
        """Return the plaintexts mod p: c^(p - 1) = (1 + n)^(m (p - 1)) = 1 - m q p mod p^2."""
        p = self.prime
        powers = self._powers(ciphertexts, int(p) - 1)
        return [(power - 1) // p * self._minus_other_inverse % p for power in powers]

    def nth_power(self, unit: int) -> int:
        """Return a p-th power mod p^2; p-th powers are the n-th powers, since q is prime to p - 1."""
        return self._powers([unit], int(self.prime))[0]

    def is_nth_power(self, integer: int) -> bool:
        return self._powers([integer], int(self.prime) - 1) == [1]

    def _powers(self, integers: Sequence[int], exponent: int) -> list[int]:
        kernel = self.kernel
        bases = kernel.residues(integer % kernel.modulus for integer in integers)
        return kernel.integers(kernel.powers(bases, exponent))


# --- making keys ----------------------------------------------------------------------------------


def generate_private_key(bits: int = min(KEY_BITS), *, uniform: UniformInt = system_uniform) -> PrivateKey:
    """Return a new key pair.

    Args:
        bits: bits of the modulus, 2048 or 3072. More bits are safer, and every operation is slower.
        uniform: source of uniform integers; the operating system's generator by default.

    Returns:
        The private key, with its `public_key`.

    Raises:
        RangeError: Blindfit does not offer keys of this size.

    Example:
        >>> paillier.generate_private_key(2048).public_key.bits
        2048
    """
    check_key_bits(bits)
    return _new_private_key(bits, uniform)


def check_key_bits(bits: int) -> None:
    """Raise RangeError if Blindfit does not offer keys of this size."""
    if bits not in KEY_BITS:
        raise RangeError(f"a key of {bits} bits is not on offer", hint="choose " + " or ".join(map(str, KEY_BITS)))


def insecure_private_key(bits: int, *, uniform: UniformInt = system_uniform) -> PrivateKey:
    """Return a key pair of any size, only for tests: other code refuses it as too small.

    Raises:
        RangeError: not even a test can use a key of this size.
    """
    if bits < 256 or bits % 2:
        raise RangeError(f"a key of {bits} bits is too small or not even")
    return _new_private_key(bits, uniform)


def private_key_of_primes(p: int, q: int, *, uniform: UniformInt = system_uniform) -> PrivateKey:
    """Return the key pair of two primes, with a proof, and with an hs where the primes allow one.

    Raises:
        DataError: p and q are not distinct primes, or n is not prime to (p - 1)(q - 1).
    """
    _check_primes(p, q)
    p, q = min(p, q), max(p, q)
    proof = key_proof.prove(p, q)
    hs = _random_hs(p * q, uniform) if _allow_hs(p, q) else None
    return PrivateKey(p, q, PublicKey(p * q, hs, proof))


def _new_private_key(bits: int, uniform: UniformInt) -> PrivateKey:
    while True:
        p, q = _random_prime(bits // 2, uniform), _random_prime(bits // 2, uniform)
        if _allow_hs(p, q) and abs(p - q) >> (bits // 2 - LEAST_DISTANCE_BITS):
            return private_key_of_primes(p, q, uniform=uniform)


def _random_prime(bits: int, uniform: UniformInt) -> int:
    """Draw among the primes that are 3 mod 4 with both top bits set; a product of two has twice as many bits."""
    while True:
        candidate = (3 << (bits - 2)) + 4 * uniform(1 << (bits - 4)) + 3
        if gmpy2.is_prime(candidate, PRIME_ROUNDS):
            return candidate


def _random_hs(n: int, uniform: UniformInt) -> int:
    """Return h^n mod n^2 with h = -x^2 mod n and x a uniform unit."""
    x = _random_unit(n, uniform)
    return int(gmpy2.powmod(-x * x % n, n, mpz(n) ** 2))


def _random_unit(n: int, uniform: UniformInt) -> int:
    while gmpy2.gcd(unit := uniform(n), n) != 1:
        pass
    return unit


def _allow_hs(p: int, q: int) -> bool:
    """Return True if the units with a Jacobi symbol of 1 are a cyclic group, of which the numbers -x^2 are half."""
    return p % 4 == q % 4 == 3 and bool(gmpy2.gcd(p - 1, q - 1) == 2)


def _check_primes(p: int, q: int) -> None:
    """Raise DataError, which does not name the numbers."""
    if p == q or not (p > 2 and q > 2 and gmpy2.is_prime(p, PRIME_ROUNDS) and gmpy2.is_prime(q, PRIME_ROUNDS)):
        raise DataError("the factors of a key are not two odd primes")
    if gmpy2.gcd(p * q, (p - 1) * (q - 1)) != 1:
        raise DataError("the primes do not make a Paillier key: n is not prime to (p - 1)(q - 1)")


# --- encoding -------------------------------------------------------------------------------------


def _width(n: int) -> int:
    return (n.bit_length() + 7) // 8


def _encode(form: str, groups: Sequence[tuple[int, ...]]) -> bytes:
    """Write a line with the format, each group after its count (2 octets), each number after its length (4 octets)."""
    parts = [_first_line(form)]
    for group in groups:
        parts.append(len(group).to_bytes(2, "big"))
        for number in group:
            parts += [_width(number).to_bytes(4, "big"), number.to_bytes(_width(number), "big")]
    return b"".join(parts)


def _decode(form: str, data: bytes, n_groups: int) -> list[tuple[int, ...]]:
    """Read what `_encode` wrote; raise DataError for anything else."""
    octets, first_line = _Octets(data), _first_line(form)
    if octets.take(len(first_line)) != first_line:
        raise DataError("a key is of another kind or version")
    groups = [octets.numbers() for _ in range(n_groups)]
    octets.end()
    return groups


def _first_line(form: str) -> bytes:
    return form.encode() + b"\n"


class _Octets:
    """A reader of an encoding, from its start to its end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise DataError("a key's encoding ends too early")
        taken, self._position = self._data[self._position : end], end
        return taken

    def numbers(self) -> tuple[int, ...]:
        return tuple(self._number() for _ in range(int.from_bytes(self.take(2), "big")))

    def end(self) -> None:
        if self._position != len(self._data):
            raise DataError("a key's encoding is followed by something else")

    def _number(self) -> int:
        octets = self.take(int.from_bytes(self.take(4), "big"))
        if octets[:1] == b"\0":
            raise DataError("a number in a key's encoding has leading zeros")
        return int.from_bytes(octets, "big")
