"""Vectors of encrypted fixed-point numbers, with which protocols compute.

A vector has one public scale (2^-frac_bits) and one bound on the magnitude of its plaintexts, which follows from the
operations that made it. An operation whose result could pass half the modulus is refused in advance, so no number ever
wraps round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import (
    Ciphertext,
    FreshCiphertext,
    Randomisers,
    ReceivedCiphertext,
    randomize,
)
from blindfit.algorithms.paillier.kernel import Kernel, Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey

C_co = TypeVar("C_co", bound=Ciphertext, covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class EncryptedVector(Generic[C_co]):
    """Encrypted numbers value / 2^frac_bits, with magnitudes of value up to bound. `encrypt` makes one.

    An EncryptedVector[FreshCiphertext] was re-randomised, and messages accept its `ciphertext`. Every operation returns
    an EncryptedVector[Ciphertext], which messages accept only after `rerandomize`. Vectors of one key and scale can be
    added and subtracted with + and -, also with plain numbers (`Fixed`).

    Args:
        ciphertext: the ciphertexts.
        frac_bits: fraction bits of all numbers.
        bound: largest magnitude, in steps of 2^-frac_bits.

    Raises:
        RangeError: a number of this magnitude could wrap round under the key.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, -1.25, 3.0], 16), randomisers)
        >>> doubled = vector.scale(paillier.Fixed.from_integers(2))
        >>> paillier.decrypt(doubled - vector, key).to_reals().tolist()
        [0.5, -1.25, 3.0]
    """

    ciphertext: C_co
    frac_bits: int
    bound: int

    def __post_init__(self) -> None:
        check_fits(self.bound, self.public_key)

    @property
    def public_key(self) -> PublicKey:
        """Key of the ciphertexts."""
        return self.ciphertext.public_key

    @property
    def residues(self) -> Residues:
        """The ciphertexts, as the key's kernel holds them."""
        return self.ciphertext.residues

    def __len__(self) -> int:
        return len(self.ciphertext)

    # --- from a peer, and to one --------------------------------------------------------------------

    @staticmethod
    def receive(
        received: FreshCiphertext | ReceivedCiphertext,
        public_key: PublicKey,
        *,
        length: int,
        frac_bits: int,
        bound: int,
        culprit: str,
    ) -> EncryptedVector[Ciphertext]:
        """Return a peer's ciphertexts, each checked. Scale and bound come from the protocol, never from the peer.

        Args:
            received: the ciphertexts.
            public_key: expected key.
            length: expected number of ciphertexts.
            frac_bits: fraction bits of all numbers.
            bound: largest magnitude, in steps of 2^-frac_bits.
            culprit: name of the peer, for errors.

        Raises:
            MalformedMessage: the key or the length differs, or a ciphertext is out of its range.
        """
        return EncryptedVector(received.open(public_key, length=length, culprit=culprit), frac_bits, bound)

    def rerandomize(self, randomisers: Randomisers) -> EncryptedVector[FreshCiphertext]:
        """Return the same numbers under fresh randomness; two products each, and the cost of the randomisers.

        Args:
            randomisers: source of encryptions of zero under the same key.

        Raises:
            LocalProtocolError: the randomisers are of another key.
        """
        return EncryptedVector(randomize(self.ciphertext, randomisers), self.frac_bits, self.bound)

    # --- arithmetic -----------------------------------------------------------------------------------

    def __add__(self, other: EncryptedVector[Ciphertext] | Fixed) -> EncryptedVector[Ciphertext]:
        """Add; one product each for ciphertexts, no product for plain numbers."""
        bound = self._bound_of_sum(other)
        if isinstance(other, Fixed):
            residues = self._kernel.plus(self.residues, [int(value) for value in other.values])
        else:
            residues = self._kernel.products(self.residues, other.residues)
        return self._result(residues, self.frac_bits, bound)

    def __sub__(self, other: EncryptedVector[Ciphertext] | Fixed) -> EncryptedVector[Ciphertext]:
        """Subtract; four products each if both are encrypted (an inverse is three)."""
        self._bound_of_sum(other)  # before the inverses
        return self + (-other)

    def __neg__(self) -> EncryptedVector[Ciphertext]:
        """Negate; three products each."""
        return self._result(self._kernel.inverses(self.residues), self.frac_bits, self.bound)

    def scale(self, factors: Fixed) -> EncryptedVector[Ciphertext]:
        """Return each number times its factor. Fraction bits are added.

        Each number costs a power, about 9/8 of the factor's bits in products. A factor below 0 takes 3 more products.

        Args:
            factors: a factor for each number, shape (n,), or one factor for all, shape ().

        Raises:
            RangeError: the shapes do not fit, or a result could wrap round under the key.
        """
        bound = self.bound * factors.bound
        check_fits(bound, self.public_key)
        exponents = np.broadcast_to(factors.values, (len(self),)) if factors.shape == () else factors.values
        if exponents.shape != (len(self),):
            raise RangeError(f"{len(self)} encrypted numbers cannot be scaled by factors of shape {factors.shape}")
        residues = self._kernel.powers_each(self.residues, [int(e) for e in exponents])
        return self._result(residues, self.frac_bits + factors.frac_bits, bound)

    def __getitem__(self, which: slice) -> EncryptedVector[Ciphertext]:
        return self._result(self.residues[which], self.frac_bits, self.bound)

    def take(self, indices: list[int]) -> EncryptedVector[Ciphertext]:
        """Return the numbers at these positions, in this order.

        Args:
            indices: positions, from 0; a position may come several times.
        """
        return self._result(self.residues.take(indices), self.frac_bits, self.bound)

    def within(self, bound: int) -> EncryptedVector[C_co]:
        """Return the same vector with another bound, which the caller knows from elsewhere. It is not checked here.

        Args:
            bound: largest magnitude, in steps of 2^-frac_bits.
        """
        return EncryptedVector(self.ciphertext, self.frac_bits, bound)

    @property
    def _kernel(self) -> Kernel:
        return self.public_key.kernel

    def _bound_of_sum(self, other: EncryptedVector[Ciphertext] | Fixed) -> int:
        """Return the bound of a sum or difference, after a check of scales, shapes and keys."""
        if self.frac_bits != other.frac_bits:
            raise RangeError(f"numbers of {self.frac_bits} and of {other.frac_bits} fraction bits cannot be added")
        if isinstance(other, Fixed):
            if other.shape != (len(self),):
                raise RangeError(f"{len(self)} encrypted numbers and plain ones of shape {other.shape} cannot be added")
        elif other.public_key != self.public_key:
            raise LocalProtocolError("the two vectors are encrypted under different keys")
        elif len(other) != len(self):
            raise RangeError(f"vectors of {len(self)} and of {len(other)} numbers cannot be added")
        bound = self.bound + other.bound
        check_fits(bound, self.public_key)
        return bound

    def _result(self, residues: Residues, frac_bits: int, bound: int) -> EncryptedVector[Ciphertext]:
        return EncryptedVector(Ciphertext(self.public_key, residues), frac_bits, bound)


def encrypt(values: Fixed, randomisers: Randomisers, *, bound: int | None = None) -> EncryptedVector[FreshCiphertext]:
    """Return the numbers encrypted; two products each, and the cost of the randomisers.

    Args:
        values: numbers of shape (n,).
        randomisers: source of encryptions of zero; it has the key.
        bound: largest magnitude, in steps, from public facts; by default that of the numbers themselves, which stays
            here.

    Raises:
        RangeError: a number passes the bound, or the bound passes half the modulus.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, -1.25], frac_bits=16), randomisers)
        >>> len(vector), vector.frac_bits
        (2, 16)
    """
    public_key = randomisers.public_key
    bound = bound_of(values, bound)
    check_fits(bound, public_key)
    plain = Ciphertext(public_key, public_key.kernel.ones_plus(int(value) for value in values.values))
    return EncryptedVector(randomize(plain, randomisers), values.frac_bits, bound)


def bound_of(values: Fixed, bound: int | None) -> int:
    """Return the bound of a vector before encryption: the public bound, or else that of the numbers themselves.

    Raises:
        RangeError: this is not a vector, or a number passes the bound.
    """
    if len(values.shape) != 1:
        raise RangeError(f"a vector is encrypted, not numbers of shape {values.shape}")
    if bound is not None and values.bound > bound:
        raise RangeError("a number is larger than the bound of its vector")
    return values.bound if bound is None else bound


def concatenate(parts: list[EncryptedVector[Ciphertext]]) -> EncryptedVector[Ciphertext]:
    """Return one vector of several, at no cost.

    Args:
        parts: vectors of one key and one scale, at least one.

    Raises:
        RangeError: the list is empty, or the scales differ.
        LocalProtocolError: the keys differ.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), randomisers)
        >>> len(paillier.concatenate([vector, vector]))
        4
    """
    if not parts:
        raise RangeError("no vectors to join")
    first = parts[0]
    for part in parts:
        if part.frac_bits != first.frac_bits:
            raise RangeError("vectors of several scales cannot be joined")
        if part.public_key != first.public_key:
            raise LocalProtocolError("vectors under different keys cannot be joined")
    residues = Residues.concatenate([part.residues for part in parts])
    bound = max(part.bound for part in parts)
    return EncryptedVector(Ciphertext(first.public_key, residues), first.frac_bits, bound)


def decrypt(vector: EncryptedVector[Ciphertext], private_key: PrivateKey, *, threads: int = 1) -> Fixed:
    """Return the numbers of a vector. Each ciphertext is checked and blinded first.

    Args:
        vector: the encrypted numbers.
        private_key: private key of the vector's key.
        threads: number of threads that share the powers.

    Raises:
        LocalProtocolError: the vector is under another key.
        RangeError: a ciphertext is invalid, or a number passes the vector's bound, which a peer did not obey.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, -1.25], frac_bits=16), randomisers)
        >>> paillier.decrypt(vector, key).to_reals().tolist()
        [0.5, -1.25]
    """
    if vector.public_key != private_key.public_key:
        raise LocalProtocolError("the vector is encrypted under another key")
    return to_fixed(private_key.decrypt_residues(vector.residues, threads=threads), vector.frac_bits, vector.bound)


def to_fixed(plaintexts: list[int], frac_bits: int, bound: int) -> Fixed:
    """Convert decrypted integers to fixed point.

    Raises:
        RangeError: one passes the bound.
    """
    if any(not -bound <= plaintext <= bound for plaintext in plaintexts):
        raise RangeError("a decrypted number is larger than the protocol allows")
    return Fixed.from_integers(np.array([int(p) for p in plaintexts], dtype=object), frac_bits)


def check_fits(bound: int, public_key: PublicKey) -> None:
    """Raise RangeError if numbers of this magnitude could wrap round under the key."""
    if 2 * bound >= public_key.n:
        raise RangeError(
            f"a result could need {int(bound).bit_length() + 1} bits; a {public_key.bits}-bit key holds "
            f"{public_key.bits - 1}",
            hint="use fewer fraction bits, smaller numbers or a larger key",
        )
