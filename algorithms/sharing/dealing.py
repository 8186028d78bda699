"""Preprocessing: arrays that a dealer shares among the parties before they need them.

An item is a few arrays that belong together, such as a and b at random and c = a b. The parties expand nearly all of
their shares from seeds that each has in common with the dealer. Only the first party gets a correction: the rest that
the sum lacks. There are three kinds of array.
  Random     the sum of the seeds' streams; only the dealer knows it, and only the MACs need a correction.
  Known      to one party: that party's seed gives it.
  Derived    computed by the dealer from all the others.

Every item has its own name, which no other item has under the same seeds, in any run: a mask that is used twice shows
the difference of the numbers that it hid. A name describes the purpose of the item; indices are reserved before they
are used (MATH 4.5).

An item is one stream of each seed: the values of all arrays, random ones first, and then the MACs of all. So the
correction is for the stream's end.

    step  who        does                                                       sends
    1     dealer     draws a seed for each party; mac_key = the sum of shares   Seed to each.
    2     dealer     for each item, in order                                    Correction to the first party.

Source: Boyle, Couteau, Gilboa, Ishai, Kohl, Scholl 2019 call such dealing "pseudorandom correlation generators" in
their trivial form; the MACs are those of SPDZ.
Learns: the dealer knows every item and the MAC key. With any one party's help it also knows the numbers behind that
    party's openings; by itself it sees no opened value. No party learns anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Holder, Share

Shape = tuple[int, ...]
Arrays = Mapping[str, Elements]
MAC_KEY = "mac key share"


@dataclass(frozen=True)
class Item:
    """Arrays that are dealt under one name.

    Attributes:
        name: purpose of the item, with its index.
        random: shapes of arrays that nobody knows.
        known: name of an array -> the place of the party that knows it, and the array's shape.
        derived: shapes of arrays that `derive` computes from the others.
    """

    name: str
    random: Mapping[str, Shape] = field(default_factory=dict)
    known: Mapping[str, tuple[int, Shape]] = field(default_factory=dict)
    derived: Mapping[str, Shape] = field(default_factory=dict)
    derive: Callable[[Arrays], Arrays] = lambda _arrays: {}

    @property
    def shapes(self) -> dict[str, Shape]:
        return {**self.random, **{name: shape for name, (_, shape) in self.known.items()}, **self.derived}

    @property
    def size(self) -> int:
        """Number of elements of all arrays."""
        return _size(self.shapes)

    @property
    def n_random(self) -> int:
        return _size(self.random)

    def correction_length(self, *, macs: bool) -> int:
        """Return the number of elements that go to the first party."""
        return self.size * (1 + macs) - self.n_random

    def stream(self, seed: Seed, *, macs: bool) -> Elements:
        return seed.elements(f"{self.name}/shares", (self.size * (1 + macs),))

    def derive_known_array(self, seed: Seed, name: str) -> Elements:
        """Derive an array that one party knows.

        Args:
            seed: seed of the party that knows it.
        """
        return seed.elements(f"{self.name}/{name}/known", self.known[name][1])


def _size(shapes: Mapping[str, Shape]) -> int:
    return sum(map(math.prod, shapes.values()))


def _cut(elements: Elements, shapes: Mapping[str, Shape]) -> dict[str, Elements]:
    """Cut elements into arrays that stand one after the other."""
    arrays, place = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        arrays[name] = elements[place : place + size].reshape(shape)
        place += size
    return arrays


@dataclass(frozen=True, repr=False)
class Dealer:
    """The dealer of all items.

    Attributes:
        seeds: one for each party, in their order.
        macs: True if shares have MACs.
    """

    seeds: Sequence[Seed]
    macs: bool = True

    @cached_property
    def mac_key(self) -> Elements:
        return f.total([mac_key_share(seed) for seed in self.seeds])

    def deal(self, item: Item) -> tuple[Arrays, Elements]:
        """Return the arrays, which leave the dealer only in shares, and the correction for the first party.

        The correction is for the values of all arrays except random ones, and for all MACs.
        """
        sums = item.stream(self.seeds[0], macs=self.macs)
        for seed in self.seeds[1:]:
            f.add_to(sums, item.stream(seed, macs=self.macs))
        drawn = _cut(sums, item.random) | {
            name: item.derive_known_array(self.seeds[owner], name) for name, (owner, _) in item.known.items()
        }
        derived = item.derive(drawn)
        if {name: array.shape for name, array in derived.items()} != dict(item.derived):
            raise LocalProtocolError(f"{item.name}: other arrays are derived than were announced")
        every = {**drawn, **derived}
        arrays = {name: every[name] for name in item.shapes}
        return arrays, self._correction(item, arrays, sums)

    def _correction(self, item: Item, arrays: Arrays, sums: Elements) -> Elements:
        whole = np.concatenate([array.ravel() for array in arrays.values()])
        values = f.subtract(whole[item.n_random :], sums[item.n_random : item.size])
        if not self.macs:
            return values
        return np.concatenate([values, f.subtract(f.multiply(whole, self.mac_key), sums[item.size :])])


@dataclass(frozen=True, repr=False)
class Expander:
    """A party's side of the dealing.

    Attributes:
        place: place of this party; place 0 gets corrections.
    """

    seed: Seed
    place: int
    macs: bool = True

    @cached_property
    def holder(self) -> Holder:
        return Holder(self.place == 0, mac_key_share(self.seed) if self.macs else None)

    def shares(self, item: Item, correction: Elements | None = None) -> dict[str, Share]:
        """Return this party's shares of an item.

        Args:
            correction: correction of the first party; None for others.

        Raises:
            LocalProtocolError: the correction is not one for this item.
        """
        stream = item.stream(self.seed, macs=self.macs)
        if self.place == 0:
            if correction is None or correction.shape != (item.correction_length(macs=self.macs),):
                raise LocalProtocolError(f"{item.name}: the correction has the wrong length")
            f.add_to(stream[item.n_random :], correction)
        values, macs = _cut(stream, item.shapes), _cut(stream[item.size :], item.shapes if self.macs else {})
        return {name: Share(value, macs.get(name)) for name, value in values.items()}

    def derive_known(self, item: Item, name: str) -> Elements:
        """Derive an array that only this party knows."""
        if item.known[name][0] != self.place:
            raise LocalProtocolError(f"{item.name}: another party knows {name}")
        return item.derive_known_array(self.seed, name)


def mac_key_share(seed: Seed) -> Elements:
    return seed.elements(MAC_KEY, (1,))
