"""Threshold Paillier, n of n: every party holds a share of the key, and only all of them together decrypt.

Source: Fouque, Poupard, Stern 2000, in its additive n-of-n form.
Model: semi-honest; the dealer (the key node) forgets the key; any coalition short of all learns nothing.

    d = 1 mod n, d = 0 mod lambda;  d = d_1 + .. + d_n mod n lambda, one d_i to each party
    partial decryption: c^d_i mod n^2;  their product is c^d = 1 + m n

A partial decryption costs a full exponentiation (an exponent of twice the key's bits), so pack before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import gmpy2
from gmpy2 import mpz

from blindfit.algorithms.errors import DataError, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertext_checks import check_ciphertexts
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, check_residues
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.packing import PackedVector, split_packs
from blindfit.algorithms.paillier.vectors import EncryptedVector, to_fixed
from blindfit.algorithms.randomness import UniformInt, system_uniform


@dataclass(frozen=True, slots=True)
class KeyShare:
    """One party's share of a private key. Only all shares together decrypt.

    Attributes:
        public_key: the public key.
        index: position of the share, from 0.
        parties: number of shares.
        exponent: secret part of the decryption exponent; the repr hides it.

    Example:
        >>> first, second = paillier.deal(key, parties=2)
        >>> paillier.KeyShare.from_bytes(first.to_bytes(), key.public_key) == first
        True
    """

    public_key: PublicKey
    index: int
    parties: int
    exponent: int = field(repr=False)

    def to_bytes(self) -> bytes:
        """Return the share as octets, in the clear and without the public key."""
        octets = self.public_key.ciphertext_bytes
        return bytes([self.parties, self.index]) + int(self.exponent).to_bytes(octets, "big")

    @classmethod
    def from_bytes(cls, data: bytes, public_key: PublicKey) -> KeyShare:
        """Return the share of these octets.

        Args:
            data: result of `to_bytes`.
            public_key: public key of the share.

        Raises:
            DataError: the octets are not a share under this key.
        """
        if len(data) != 2 + public_key.ciphertext_bytes or data[0] < 2 or data[1] >= data[0]:
            raise DataError("the bytes are not a share of this Paillier key")
        exponent = mpz.from_bytes(data[2:], "big")
        if exponent >= public_key.n * public_key.n:
            raise DataError("the share of the Paillier key is out of range")
        return cls(public_key, data[1], data[0], exponent)


class PartialDecryption:
    """One party's partial decryption of a vector: every ciphertext to the power of its share. `combine` takes all.

    Args:
        public_key: the key.
        residues: the powers, as the key's kernel holds them.

    Example:
        >>> shares = paillier.deal(key, parties=2)
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5], 16), randomisers)
        >>> partial = paillier.partial_decrypt(vector, shares[0])
        >>> width, octets = partial.to_wire()
        >>> len(octets) == width
        True
    """

    __slots__ = ("public_key", "residues")

    def __init__(self, public_key: PublicKey, residues: Residues) -> None:
        self.public_key, self.residues = public_key, residues

    def to_wire(self) -> tuple[int, bytes]:
        """Return the width of one residue in octets, and all residues one after the other, big-endian."""
        width = self.public_key.ciphertext_bytes
        integers = self.public_key.kernel.integers(self.residues)
        return width, b"".join(int(integer).to_bytes(width, "big") for integer in integers)

    def open(self, public_key: PublicKey, *, length: int, culprit: str) -> PartialDecryption:
        """Return the partial decryption after a check of key and length; for roles that run in one process.

        Args:
            public_key: expected key.
            length: expected number of ciphertexts.
            culprit: name of the sender, for errors.

        Raises:
            MalformedMessage: the key or the length differs.
        """
        if public_key != self.public_key or length != len(self.residues):
            raise MalformedMessage(culprit=culprit, field="partial_decryption", reason="is of another key or length")
        return self


@dataclass(frozen=True, slots=True, repr=False)
class ReceivedPartialDecryption:
    """Octets that a peer sent as its partial decryption, unchecked."""

    width_bytes: int
    data: bytes

    def open(self, public_key: PublicKey, *, length: int, culprit: str) -> PartialDecryption:
        """Return the residues, each checked to be prime to n and in (0, n^2).

        Raises:
            MalformedMessage: another key or length, or a residue out of its range.
        """
        residues = check_residues(self, public_key, length, culprit=culprit, field="partial_decryption")
        return PartialDecryption(public_key, residues)


def deal(private_key: PrivateKey, parties: int, uniform: UniformInt = system_uniform) -> tuple[KeyShare, ...]:
    """Return shares of a private key, of which only all together decrypt. All but the last share are uniform.

    Args:
        private_key: the key. The dealer must forget it.
        parties: number of shares, 2 to 255.
        uniform: source of uniform integers; the operating system's generator by default.

    Raises:
        RangeError: the number of shares is below 2 or above 255.

    Example:
        >>> [share.index for share in paillier.deal(key, parties=3)]
        [0, 1, 2]
    """
    if not 2 <= parties <= 255:
        raise RangeError(f"a key is shared among 2 to 255 parties, not {parties}")
    p, q = mpz(private_key.p), mpz(private_key.q)
    n, lam = p * q, gmpy2.lcm(p - 1, q - 1)
    whole = lam * gmpy2.invert(lam, n)
    exponents = [mpz(uniform(int(n * lam))) for _ in range(parties - 1)]
    exponents.append((whole - sum(exponents)) % (n * lam))
    public_key = private_key.public_key
    return tuple(KeyShare(public_key, index, parties, exponent) for index, exponent in enumerate(exponents))


def partial_decrypt(
    vector: EncryptedVector[Ciphertext] | PackedVector[Ciphertext], share: KeyShare
) -> PartialDecryption:
    """Return one party's partial decryption of a vector. Every ciphertext is checked first; Python's lock is released.

    The cost is one full exponentiation a ciphertext. By its time, the vector unit reveals to other programs on this
    machine how many digits the share has; GMP reveals more.

    Args:
        vector: the encrypted numbers. Pack them first (`pack`).
        share: the party's share.

    Raises:
        LocalProtocolError: the vector is under another key.
        RangeError: a ciphertext is invalid.

    Example:
        >>> shares = paillier.deal(key, parties=2)
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), randomisers)
        >>> partials = [paillier.partial_decrypt(vector, share) for share in shares]
        >>> paillier.combine(vector, partials, parties=2).to_reals().tolist()
        [0.5, 1.5]
    """
    if vector.public_key != share.public_key:
        raise LocalProtocolError("the vector is encrypted under another key")
    kernel = share.public_key.kernel
    integers = kernel.integers(vector.ciphertext.residues)
    check_ciphertexts(share.public_key.n, integers)
    return PartialDecryption(share.public_key, kernel.powers(kernel.residues(integers), share.exponent))


def combine(
    vector: EncryptedVector[Ciphertext] | PackedVector[Ciphertext], partials: Sequence[PartialDecryption], parties: int
) -> Fixed:
    """Return the numbers of a vector, from every party's partial decryption; parties - 1 products a ciphertext.

    Args:
        vector: the encrypted numbers.
        partials: partial decryptions of this vector, one from each party.
        parties: number of parties.

    Raises:
        LocalProtocolError: a partial decryption is missing, or is of another key or length.
        RangeError: the partial decryptions do not fit together, because one is of another vector or share; or a number
            is too large.

    Example:
        >>> shares = paillier.deal(key, parties=2)
        >>> vector = paillier.encrypt_packed(paillier.Fixed.from_reals([0.5, 1.5], 16), 40, randomisers)
        >>> partials = [paillier.partial_decrypt(vector, share) for share in shares]
        >>> paillier.combine(vector, partials, parties=2).to_reals().tolist()
        [0.5, 1.5]
    """
    public_key = vector.public_key
    fitting = [p for p in partials if p.public_key == public_key and len(p.residues) == len(vector.ciphertext)]
    if not len(fitting) == len(partials) == parties:
        raise LocalProtocolError(f"{parties} partial decryptions under the vector's key and of its length are needed")
    kernel = public_key.kernel
    total = partials[0].residues
    for partial in partials[1:]:
        total = kernel.products(total, partial.residues)
    plaintexts = [_plaintext(integer, public_key.n) for integer in kernel.integers(total)]
    if isinstance(vector, PackedVector):
        return split_packs(plaintexts, vector)
    return to_fixed(plaintexts, vector.frac_bits, vector.bound)


def _plaintext(integer: int, n: int) -> int:
    """Return the m of 1 + m n, nearest to zero."""
    plaintext, one = divmod(integer, n)
    if one != 1:
        raise RangeError("the partial decryptions do not fit together: one is of another vector or of another key")
    return plaintext if 2 * plaintext < n else plaintext - n
