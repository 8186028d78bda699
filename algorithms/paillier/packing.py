"""Several numbers in one ciphertext: sum_t v_t 2^(slot t), with |v_t| < 2^(slot - 1).

Slots are signed: the sum is read from its lowest slot upwards, and each slot's number is the remainder nearest to zero.
So packing is linear, and packed vectors add like others as long as every slot's bound holds; that is checked before an
operation, as for any vector. Pack before every decryption: one decryption then serves all slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from blindfit.algorithms.errors import LocalProtocolError, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import (
    Ciphertext,
    FreshCiphertext,
    Randomisers,
    ReceivedCiphertext,
    randomize,
)
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.vectors import C_co, EncryptedVector, bound_of, to_fixed


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of numbers in ciphertexts: public, and the same at every party.

    Attributes:
        length: number of numbers.
        slot_bits: bits of one number, its sign included.
        slots: number of numbers in one ciphertext.

    Example:
        >>> layout = paillier.Layout.of(key.public_key, length=100, slot_bits=32)
        >>> layout.split(layout.join(list(range(-50, 50)))) == list(range(-50, 50))
        True
    """

    length: int
    slot_bits: int
    slots: int

    @classmethod
    def of(cls, public_key: PublicKey, length: int, slot_bits: int) -> Layout:
        """Return the layout with as many slots as fit below half the modulus.

        Args:
            public_key: the key.
            length: number of numbers.
            slot_bits: bits of one number, its sign included, at least 2.

        Raises:
            RangeError: not even one slot fits, or a slot is too small for a sign and a bit.
        """
        slots = (public_key.bits - 2) // max(1, slot_bits)
        if slot_bits < 2 or slots < 1:
            raise RangeError(
                f"slots of {slot_bits} bits do not fit under a {public_key.bits}-bit key",
                hint=f"use slots of at least 2 bits, and of at most {public_key.bits - 2}",
            )
        return cls(length, slot_bits, slots)

    @property
    def ciphertexts(self) -> int:
        """Number of ciphertexts."""
        return -(-self.length // self.slots)

    def check_bound(self, bound: int) -> None:
        """Check that numbers of this magnitude stay in their slots.

        Args:
            bound: largest magnitude, in steps.

        Raises:
            RangeError: a number could spill into the next slot.
        """
        if bound >= 1 << (self.slot_bits - 1):
            raise RangeError(f"a number could need {int(bound).bit_length() + 1} bits; a slot has {self.slot_bits}")

    def join(self, values: Sequence[int]) -> list[int]:
        """Return the numbers as one plaintext for each ciphertext.

        Args:
            values: `length` integers.
        """
        return [
            sum(int(value) << (self.slot_bits * t) for t, value in enumerate(values[start : start + self.slots]))
            for start in range(0, self.length, self.slots)
        ]

    def split(self, plaintexts: Sequence[int]) -> list[int]:
        """Return the numbers of these plaintexts, the inverse of `join`.

        Args:
            plaintexts: one integer for each ciphertext.

        Raises:
            RangeError: a remainder is left after the last slot, because a number was too large.
        """
        half, mask = 1 << (self.slot_bits - 1), (1 << self.slot_bits) - 1
        values: list[int] = []
        for plaintext in plaintexts:
            rest = int(plaintext)
            for _ in range(min(self.slots, self.length - len(values))):
                value = ((rest + half) & mask) - half
                rest = (rest - value) >> self.slot_bits
                values.append(value)
            if rest:
                raise RangeError("a decrypted pack holds more than its slots")
        return values


@dataclass(frozen=True, slots=True, eq=False)
class PackedVector(Generic[C_co]):
    """Encrypted numbers value / 2^frac_bits with magnitudes of value up to bound, several in each ciphertext.

    `pack` and `encrypt_packed` make one. Vectors of one key, layout and scale can be added with +.

    Args:
        ciphertext: the ciphertexts.
        layout: positions of the numbers in them.
        frac_bits: fraction bits of all numbers.
        bound: largest magnitude, in steps of 2^-frac_bits.

    Raises:
        RangeError: a number of this magnitude could spill into the next slot.

    Example:
        >>> vector = paillier.encrypt_packed(paillier.Fixed.from_reals([0.5, -1.5, 2.0], 16), 40, randomisers)
        >>> len(vector), len(vector.ciphertext)
        (3, 1)
        >>> paillier.decrypt_packed(vector + vector, key).to_reals().tolist()
        [1.0, -3.0, 4.0]
    """

    ciphertext: C_co
    layout: Layout
    frac_bits: int
    bound: int

    def __post_init__(self) -> None:
        self.layout.check_bound(self.bound)

    @property
    def public_key(self) -> PublicKey:
        """Key of the ciphertexts."""
        return self.ciphertext.public_key

    def __len__(self) -> int:
        return self.layout.length

    @staticmethod
    def receive(
        received: FreshCiphertext | ReceivedCiphertext,
        public_key: PublicKey,
        layout: Layout,
        *,
        frac_bits: int,
        bound: int,
        culprit: str,
    ) -> PackedVector[Ciphertext]:
        """Return a peer's ciphertexts, each checked.

        Layout, scale and bound come from the protocol, never from the peer.

        Args:
            received: the ciphertexts.
            public_key: expected key.
            layout: expected layout.
            frac_bits: fraction bits of all numbers.
            bound: largest magnitude, in steps of 2^-frac_bits.
            culprit: name of the peer, for errors.

        Raises:
            MalformedMessage: the key or the length differs, or a ciphertext is out of its range.
        """
        opened = received.open(public_key, length=layout.ciphertexts, culprit=culprit)
        return PackedVector(opened, layout, frac_bits, bound)

    def rerandomize(self, randomisers: Randomisers) -> PackedVector[FreshCiphertext]:
        """Return the same numbers under fresh randomness; two products a ciphertext, and the cost of the randomisers.

        Args:
            randomisers: source of encryptions of zero under the same key.

        Raises:
            LocalProtocolError: the randomisers are of another key.
        """
        return PackedVector(randomize(self.ciphertext, randomisers), self.layout, self.frac_bits, self.bound)

    def __add__(self, other: PackedVector[Ciphertext] | Fixed) -> PackedVector[Ciphertext]:
        """Add; one product a ciphertext if both vectors are encrypted, no product if one is plain."""
        bound = self._bound_of_sum(other)
        kernel, residues = self.public_key.kernel, self.ciphertext.residues
        if isinstance(other, Fixed):
            residues = kernel.plus(residues, self.layout.join(other.values.tolist()))
        else:
            residues = kernel.products(residues, other.ciphertext.residues)
        return PackedVector(Ciphertext(self.public_key, residues), self.layout, self.frac_bits, bound)

    def _bound_of_sum(self, other: PackedVector[Ciphertext] | Fixed) -> int:
        shape = other.shape if isinstance(other, Fixed) else (len(other),)
        if other.frac_bits != self.frac_bits or shape != (len(self),):
            raise RangeError("packed numbers of different scales or lengths cannot be added")
        if isinstance(other, PackedVector):
            if other.public_key != self.public_key:
                raise LocalProtocolError("the two vectors are encrypted under different keys")
            if other.layout != self.layout:
                raise RangeError("vectors of different layouts cannot be added")
        bound = self.bound + other.bound
        self.layout.check_bound(bound)
        return bound


def pack(vector: EncryptedVector[Ciphertext], slot_bits: int) -> PackedVector[Ciphertext]:
    """Return the numbers with several in each ciphertext, the first in the lowest slot. Pack before you decrypt.

    A number costs slot_bits + 2 products, and 1/8 more with GMP.

    Args:
        vector: the encrypted numbers.
        slot_bits: bits of one number, its sign included, at least 2.

    Raises:
        RangeError: the vector's bound does not fit in a slot.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, -1.5, 2.0], 16), randomisers)
        >>> packed = paillier.pack(vector, slot_bits=40)
        >>> paillier.decrypt_packed(packed, key).to_reals().tolist()
        [0.5, -1.5, 2.0]
    """
    layout = Layout.of(vector.public_key, len(vector), slot_bits)
    layout.check_bound(vector.bound)
    kernel = vector.public_key.kernel
    padding = layout.ciphertexts * layout.slots - len(vector) if layout.ciphertexts > 1 else 0
    residues = Residues.concatenate([vector.residues, kernel.ones_plus([0] * padding)])
    depth = min(layout.slots, len(residues))
    if depth == 0:
        return PackedVector(vector.ciphertext, layout, vector.frac_bits, vector.bound)
    total = kernel.multiply_shifted(residues, depth, slot_bits)
    return PackedVector(Ciphertext(vector.public_key, total), layout, vector.frac_bits, vector.bound)


def encrypt_packed(
    values: Fixed, slot_bits: int, randomisers: Randomisers, *, bound: int | None = None
) -> PackedVector[FreshCiphertext]:
    """Return the numbers encrypted with several in each ciphertext; `slots` times cheaper than `encrypt`.

    Args:
        values: numbers of shape (n,).
        slot_bits: bits of one number, its sign included, at least 2.
        randomisers: source of encryptions of zero; it has the key.
        bound: largest magnitude, in steps, from public facts; by default that of the numbers themselves.

    Raises:
        RangeError: a number passes the bound, or the bound passes its slot.

    Example:
        >>> vector = paillier.encrypt_packed(paillier.Fixed.from_reals([0.5, -1.5], 16), 40, randomisers)
        >>> paillier.decrypt_packed(vector, key).to_reals().tolist()
        [0.5, -1.5]
    """
    public_key = randomisers.public_key
    bound = bound_of(values, bound)
    layout = Layout.of(public_key, len(values), slot_bits)
    layout.check_bound(bound)
    plain = Ciphertext(public_key, public_key.kernel.ones_plus(layout.join(values.values.tolist())))
    return PackedVector(randomize(plain, randomisers), layout, values.frac_bits, bound)


def decrypt_packed(vector: PackedVector[Ciphertext], private_key: PrivateKey, *, threads: int = 1) -> Fixed:
    """Return the numbers of a packed vector; one decryption a ciphertext, each ciphertext checked first.

    Args:
        vector: the encrypted numbers.
        private_key: private key of the vector's key.
        threads: number of threads that share the powers.

    Raises:
        LocalProtocolError: the vector is under another key.
        RangeError: a ciphertext is invalid, or a number passes the vector's bound.

    Example:
        >>> vector = paillier.encrypt_packed(paillier.Fixed.from_reals([0.5, -1.5], 16), 40, randomisers)
        >>> paillier.decrypt_packed(vector, key).to_reals().tolist()
        [0.5, -1.5]
    """
    if vector.public_key != private_key.public_key:
        raise LocalProtocolError("the vector is encrypted under another key")
    return split_packs(private_key.decrypt_residues(vector.ciphertext.residues, threads=threads), vector)


def split_packs(plaintexts: Sequence[int], vector: PackedVector[Ciphertext]) -> Fixed:
    """Return the numbers in the slots of decrypted packs; each must be within the vector's bound."""
    return to_fixed(vector.layout.split(plaintexts), vector.frac_bits, vector.bound)
