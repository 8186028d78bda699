"""Vectors of ciphertexts as types that carry the guarantee: one class to send, one received, one computed.

Ciphertext           a result of homomorphic operations; no message accepts it
FreshCiphertext      re-randomised: it reveals nothing about how it was made; messages accept only this class
ReceivedCiphertext   octets of a peer; only `open` reads them, and it checks every ciphertext
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gmpy2 import mpz

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.paillier.ciphertext_checks import check_ciphertexts
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.keys import PublicKey


class Randomisers(Protocol):
    """A source of encryptions of zero, each drawn once."""

    public_key: PublicKey

    def draw(self, count: int) -> Residues: ...


class Ciphertext:
    """A vector of ciphertexts under one key, the result of homomorphic operations. No message accepts it.

    Args:
        public_key: the key.
        residues: the ciphertexts, as the key's kernel holds them.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), randomisers)
        >>> type((vector + vector).ciphertext).__name__, len(vector.ciphertext)
        ('Ciphertext', 2)
    """

    __slots__ = ("public_key", "residues")

    def __init__(self, public_key: PublicKey, residues: Residues) -> None:
        self.public_key, self.residues = public_key, residues

    def __len__(self) -> int:
        return len(self.residues)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} under {self.public_key!r})"


_MADE_BY_RANDOMIZE = object()


class FreshCiphertext(Ciphertext):
    """Ciphertexts that were just re-randomised, so that they reveal nothing about their origin. Messages accept them.

    `encrypt`, `encrypt_packed` and the method `rerandomize` of a vector make them.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), randomisers)
        >>> width, octets = vector.ciphertext.to_wire()
        >>> len(octets) == 2 * width
        True
    """

    __slots__ = ()

    def __init__(self, public_key: PublicKey, residues: Residues, made_by: object) -> None:
        if made_by is not _MADE_BY_RANDOMIZE:
            raise LocalProtocolError("a FreshCiphertext is made by re-randomising, never directly")
        super().__init__(public_key, residues)

    def to_wire(self) -> tuple[int, bytes]:
        """Return the width of one ciphertext in octets, and all of them one after the other, big-endian.

        Raises:
            LocalProtocolError: a ciphertext is 1 mod n, so it is 1 + m n and anyone could read its plaintext.
        """
        n, width = self.public_key.n, self.public_key.ciphertext_bytes
        integers = self.public_key.kernel.integers(self.residues)
        if any(integer % n == 1 for integer in integers):
            raise LocalProtocolError("a ciphertext has no randomiser: it was not sent")
        return width, b"".join(int(integer).to_bytes(width, "big") for integer in integers)

    def open(self, public_key: PublicKey, *, length: int, culprit: str) -> Ciphertext:
        """Return the ciphertexts, as ReceivedCiphertext.open does; for roles that run in one process.

        Args:
            public_key: expected key.
            length: expected number of ciphertexts.
            culprit: name of the sender, for errors.

        Raises:
            MalformedMessage: the key or the length differs.
        """
        if public_key != self.public_key or length != len(self):
            raise MalformedMessage(culprit=culprit, field="ciphertext", reason="is of another key or length")
        return Ciphertext(self.public_key, self.residues)  # a received ciphertext is not sent on as it is


@dataclass(frozen=True, slots=True, repr=False)
class ReceivedCiphertext:
    """Octets that a peer sent as ciphertexts, unchecked. Only `open` reads them, and it checks every ciphertext.

    Args:
        width_bytes: width of one ciphertext in octets.
        data: all ciphertexts, one after the other, big-endian.

    Example:
        >>> vector = paillier.encrypt(paillier.Fixed.from_reals([0.5, 1.5], 16), randomisers)
        >>> received = paillier.ReceivedCiphertext(*vector.ciphertext.to_wire())
        >>> opened = received.open(key.public_key, length=2, culprit="shop")
        >>> paillier.decrypt(paillier.EncryptedVector(opened, 16, vector.bound), key).to_reals().tolist()
        [0.5, 1.5]
    """

    width_bytes: int
    data: bytes

    def open(self, public_key: PublicKey, *, length: int, culprit: str) -> Ciphertext:
        """Return the ciphertexts, every one checked to be prime to n and in (0, n^2); one product mod n each.

        Args:
            public_key: expected key.
            length: expected number of ciphertexts.
            culprit: name of the sender, for errors.

        Raises:
            MalformedMessage: the key or the length differs, or a ciphertext is bad; the reason is the same for every
                bad ciphertext.
        """
        return Ciphertext(public_key, check_residues(self, public_key, length, culprit=culprit, field="ciphertext"))


class Received(Protocol):
    """Integers as they came, one after the other, each `width_bytes` long."""

    @property
    def width_bytes(self) -> int: ...

    @property
    def data(self) -> bytes: ...


def check_residues(received: Received, public_key: PublicKey, length: int, *, culprit: str, field: str) -> Residues:
    """Check that each residue is prime to n and in (0, n^2).

    Raises:
        MalformedMessage: another key or length, or a residue that is out of range; the error does not name it.
    """
    width, data = received.width_bytes, received.data
    if width != public_key.ciphertext_bytes or len(data) != length * width:
        raise MalformedMessage(culprit=culprit, field=field, reason="is of another key or length")
    integers = [mpz.from_bytes(data[i : i + width], "big") for i in range(0, len(data), width)]
    try:
        check_ciphertexts(public_key.n, integers)
    except RangeError as bad:
        raise MalformedMessage(culprit=culprit, field=field, reason=bad.message) from None
    return public_key.kernel.residues(integers)


def randomize(ciphertext: Ciphertext, randomisers: Randomisers) -> FreshCiphertext:
    """Return the same plaintexts under fresh randomness; two products each, and the cost of the randomisers.

    Raises:
        LocalProtocolError: the randomisers are of another key.
    """
    public_key = ciphertext.public_key
    if randomisers.public_key != public_key:
        raise LocalProtocolError("the randomisers are of another key than the ciphertexts")
    kernel = public_key.kernel
    products = kernel.products(ciphertext.residues, randomisers.draw(len(ciphertext)))
    return FreshCiphertext(public_key, kernel.residues(kernel.integers(products)), _MADE_BY_RANDOMIZE)
