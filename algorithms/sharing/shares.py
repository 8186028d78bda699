"""Additive shares of arrays over F_p, with or without the MACs of SPDZ.

The parties' values add up to the secret array, and their MACs to mac_key times it. Nobody knows mac_key; every party
has a summand of it. Each party computes linear functions by itself. Without MACs ("semi-honest") a party is believed to
send what it should.

Source: Damgard, Keller, Larraia, Pastro, Scholl, Smart 2013, "Practical covertly secure MPC for dishonest majority".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.field import Elements

Index = int | slice | npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Share:
    """One party's summand of a secret array.

    Attributes:
        value: uint64 elements, of the array's shape.
        mac: MAC elements, of the array's shape; None without MACs.
    """

    value: Elements
    mac: Elements | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def __len__(self) -> int:
        return len(self.value)

    def __add__(self, other: Share) -> Share:
        return self._with(other, field.add)

    def __sub__(self, other: Share) -> Share:
        return self._with(other, field.subtract)

    def __neg__(self) -> Share:
        return self._each(field.negative)

    def __getitem__(self, index: Index) -> Share:
        return self._each(lambda part: part[index])

    def columns(self, which: slice) -> Share:
        """Return columns of a matrix."""
        return self._each(lambda part: field.contiguous(part[:, which]))

    def times(self, public: Elements) -> Share:
        """Multiply elementwise by public numbers, after numpy's broadcasting."""
        return self._each(lambda part: field.multiply(part, public))

    def times_power_of_two(self, bits: int) -> Share:
        return self._each(lambda part: field.times_power_of_two(part, bits))

    def times_vector(self, public: Elements) -> Share:
        """Return this matrix @ a public vector."""
        return self._each(lambda part: field.times(part, public))

    def transposed_times_vector(self, public: Elements) -> Share:
        return self._each(lambda part: field.transposed_times(part, public))

    def under(self, public: Elements) -> Share:
        """Return a public matrix @ this vector."""
        return self._each(lambda part: field.times(public, part))

    def under_transposed(self, public: Elements) -> Share:
        """Return the transpose of a public matrix @ this vector."""
        return self._each(lambda part: field.transposed_times(public, part))

    def total(self) -> Share:
        """Return the sum of all elements, of shape (1,)."""
        return self._each(lambda part: field.sum_over_first(part.reshape(-1, 1)))

    def cumulate(self) -> Share:
        """Return the running sums of a vector."""
        return self._each(field.cumulate)

    def repeat(self, times: int) -> Share:
        return self._each(lambda part: np.repeat(part, times))

    def sum_over_first(self) -> Share:
        """Sum along the first axis."""
        return self._each(field.sum_over_first)

    def transposed(self) -> Share:
        """Transpose a matrix."""
        return self._each(lambda part: field.contiguous(part.T))

    def at_columns(self, places: npt.NDArray[np.int64]) -> Share:
        """Take, in each row, the elements at these columns, which may differ from row to row."""
        return self._each(lambda part: np.take_along_axis(part, places, axis=1))

    def reshape(self, *shape: int) -> Share:
        return self._each(lambda part: part.reshape(shape))

    def _each(self, change: field.Change) -> Share:
        return Share(change(self.value), None if self.mac is None else change(self.mac))

    def _with(self, other: Share, combine: field.Combine) -> Share:
        mac = None if self.mac is None or other.mac is None else combine(self.mac, other.mac)
        return Share(combine(self.value, other.value), mac)


def join(shares: Sequence[Share]) -> Share:
    """Join shares one after the other, along the first axis."""
    macs = [share.mac for share in shares if share.mac is not None]
    whole = np.concatenate([share.value for share in shares])
    return Share(whole, np.concatenate(macs) if len(macs) == len(shares) else None)


@dataclass(frozen=True, repr=False)
class Holder:
    """A party's means to turn public numbers into shares.

    Attributes:
        first: True at the one party that adds public numbers to its value.
        mac_key_share: share of the MAC key, (1,); None without MACs.
    """

    first: bool
    mac_key_share: Elements | None

    def public(self, values: Elements) -> Share:
        value = values if self.first else np.zeros_like(values)
        mac = None if self.mac_key_share is None else field.multiply(values, self.mac_key_share)
        return Share(value, mac)

    def plus(self, share: Share, public: Elements) -> Share:
        return share + self.public(np.broadcast_to(public, share.shape))
