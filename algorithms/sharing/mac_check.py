"""The batched check of all openings: an opened value that a party changed does not fit its MAC.

    a = sum_j x_j a_j,  m_i = sum_j x_j mac_ij - mac_key_i a,  and sum_i m_i = 0

with coefficients x_j that nobody knew when the a_j were opened. A change passes with probability 2 / p < 2^-59, for any
number of values that are checked at once.

Before any opening without a mask, and before any result is kept, the parties
  1. compare digests of all openings (with three parties or more, one may have sent two others different values);
  2. draw the coefficients' seed by commitment and revelation;
  3. commit to their m_i, open them, and end the session unless they add up to zero. No part of it resumes.

Source: Damgard, Keller, Larraia, Pastro, Scholl, Smart 2013, Fig. 10.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Holder, Share


class Digest:
    """Digest of arrays, in their order."""

    def __init__(self) -> None:
        self._hashed = hashlib.sha256(b"blindfit opened v1")

    def add(self, values: Elements) -> None:
        self._hashed.update(values.size.to_bytes(8, "big") + np.ascontiguousarray(values).tobytes())

    def digest(self) -> bytes:
        return self._hashed.digest()


@dataclass(repr=False)
class Opened:
    """Openings that one party has seen since the last check, in the order in which all open."""

    arrays: list[tuple[Elements, Elements]] = field(default_factory=list)
    heard: Digest = field(default_factory=Digest)

    def hear(self, values: Elements) -> None:
        """Add values without MACs that one party sent to all others: all must have received the same."""
        self.heard.add(values)

    def add(self, value: Elements, share: Share) -> None:
        """Add an opened value.

        Args:
            value: the sum of all parties' shares.
            share: this party's share.
        """
        if share.mac is None or share.mac.shape != value.shape:
            raise LocalProtocolError("a checked share must have MACs")
        self.heard.add(value)
        self.arrays.append((value.ravel(), share.mac.ravel()))

    def __len__(self) -> int:
        return sum(value.size for value, _ in self.arrays)

    def digest(self) -> bytes:
        """Return the digest of all values opened and received so far.

        It is the same at all parties, unless a party sent two of them different values.
        """
        return self.heard.digest()

    def residue(self, coefficients: Seed, holder: Holder) -> Elements:
        """Return this party's m_i, of shape (1,).

        Args:
            coefficients: coefficients that all know now, and nobody knew before.
        """
        if holder.mac_key_share is None:
            raise LocalProtocolError("a party that checks needs a share of the MAC key")
        values = macs = f.elements([0])
        for number, (value, mac) in enumerate(self.arrays):
            row = coefficients.elements(f"coefficients/{number}", value.shape)[None, :]
            values, macs = f.add(values, f.times(row, value)), f.add(macs, f.times(row, mac))
        return f.subtract(macs, f.multiply(holder.mac_key_share, values))

    def forget(self) -> None:
        self.arrays.clear()


def adds_up(residues: Sequence[Elements]) -> bool:
    """Return True if all parties' m_i add up to zero."""
    return not np.any(f.total(residues))
