"""Vectors of ciphertexts as types that carry the guarantee: what may be sent, what was received, what was computed.

Ciphertext           a result of homomorphic operations; fits in no message
FreshCiphertext      re-randomised: says nothing about how it was made; the only class that fits in a message
ReceivedCiphertext   octets of a peer; nothing can be done with them before `open` has checked every one
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
    """A vector of ciphertexts under one key."""

    __slots__ = ("public_key", "residues")

    def __init__(self, public_key: PublicKey, residues: Residues) -> None:
        self.public_key, self.residues = public_key, residues

    def __len__(self) -> int:
        return len(self.residues)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} under {self.public_key!r})"


_MADE_BY_RANDOMIZE = object()


class FreshCiphertext(Ciphertext):
    """Ciphertexts that were just multiplied by encryptions of zero; made by `randomize` alone."""

    __slots__ = ()

    def __init__(self, public_key: PublicKey, residues: Residues, made_by: object) -> None:
        if made_by is not _MADE_BY_RANDOMIZE:
            raise LocalProtocolError("a FreshCiphertext is made by re-randomising, never directly")
        super().__init__(public_key, residues)

    def to_wire(self) -> tuple[int, bytes]:
        """Return the width of one ciphertext in octets, and all of them one after the other, big-endian.

        Raises:
            LocalProtocolError: one is 1 mod n, that is 1 + m n, and its plaintext could be read off.
        """
        n, width = self.public_key.n, self.public_key.ciphertext_bytes
        integers = self.public_key.kernel.integers(self.residues)
        if any(integer % n == 1 for integer in integers):
            raise LocalProtocolError("a ciphertext has no randomiser: it was not sent")
        return width, b"".join(int(integer).to_bytes(width, "big") for integer in integers)

    def open(self, public_key: PublicKey, *, length: int, culprit: str) -> Ciphertext:
        """As ReceivedCiphertext.open, where all roles run in one process."""
        if public_key != self.public_key or length != len(self):
            raise MalformedMessage(culprit=culprit, field="ciphertext", reason="is of another key or length")
        return Ciphertext(self.public_key, self.residues)  # what was received is not sent on as it is


@dataclass(frozen=True, slots=True, repr=False)
class ReceivedCiphertext:
    """What a peer says are ciphertexts, unchecked."""

    width_bytes: int
    data: bytes

    def open(self, public_key: PublicKey, *, length: int, culprit: str) -> Ciphertext:
        """Return the ciphertexts, every one checked to be prime to n and in (0, n^2); one product mod n each.

        Raises:
            MalformedMessage: with one reason for whatever was wrong with a ciphertext.
        """
        return Ciphertext(public_key, check_residues(self, public_key, length, culprit=culprit, field="ciphertext"))


class Received(Protocol):
    """Integers as they came, one after the other, each of so many bytes."""

    @property
    def width_bytes(self) -> int: ...

    @property
    def data(self) -> bytes: ...


def check_residues(received: Received, public_key: PublicKey, length: int, *, culprit: str, field: str) -> Residues:
    """Check that each residue is prime to n and in (0, n^2).

    Raises:
        MalformedMessage: another key or length, or one that is out of range; it does not say which.
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
    """Return the same plaintexts under fresh randomness; two products each, and what the randomisers cost.

    Raises:
        LocalProtocolError: the randomisers are of another key.
    """
    public_key = ciphertext.public_key
    if randomisers.public_key != public_key:
        raise LocalProtocolError("the randomisers are of another key than the ciphertexts")
    kernel = public_key.kernel
    products = kernel.products(ciphertext.residues, randomisers.draw(len(ciphertext)))
    return FreshCiphertext(public_key, kernel.residues(kernel.integers(products)), _MADE_BY_RANDOMIZE)
