"""Preprocessing: what a dealer shares among the parties before they need it.

An item is a few arrays that belong together, such as a and b at random and c = a b. The parties expand nearly all of
their shares from seeds that each has in common with the dealer; the rest, what the sum still lacks, goes to the first
party alone. An array is
  random     the sum of what the seeds give; nobody but the dealer knows it, and only the MACs need a correction;
  known      to one party: what that party's seed gives;
  derived    computed by the dealer from all the others.

Every item has a name of its own, which no other has under the same seeds, in any run: a mask that is used twice shows
the difference of what it hid. Names say what an item is for; indices are reserved before they are used (MATH 4.5).

    step  who        does                                                       sends
    1     dealer     draws a seed for each party; mac_key = the sum of shares   Seed to each
    2     dealer     for each item, in order                                    Correction to the first party

Source: Boyle, Couteau, Gilboa, Ishai, Kohl, Scholl 2019 call such dealing "pseudorandom correlation generators" in
their trivial form; the MACs are those of SPDZ.
Learns: the dealer knows every item and the MAC key, and so, with any one party, what that party sees opened; it sees no
opened value itself. No party learns anything.
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
    """What is dealt under one name.

    Attributes:
        name: what it is for, with its index.
        random: shapes of arrays that nobody knows.
        known: by name of the array, the place of the party that knows it, and its shape.
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

    def correction_length(self, *, macs: bool) -> int:
        """Elements that go to the first party."""
        counted = [*self.derived.values(), *(shape for _, shape in self.known.values())]
        values = sum(math.prod(shape) for shape in counted)
        return values + sum(math.prod(shape) for shape in self.shapes.values()) * macs

    def stream(self, name: str, part: str) -> str:
        """The name of a party's stream of values, or of MACs, for one array."""
        return f"{self.name}/{name}/{part}"


@dataclass(frozen=True, repr=False)
class Dealer:
    """
    Attributes:
        seeds: one for each party, in their order.
        macs: whether there are any.
    """

    seeds: Sequence[Seed]
    macs: bool = True

    @cached_property
    def mac_key(self) -> Elements:
        return f.total([mac_key_share(seed) for seed in self.seeds])

    def arrays(self, item: Item) -> Arrays:
        """What is dealt; it leaves the dealer in shares alone."""
        drawn = {name: self._sum(item.stream(name, "value"), shape) for name, shape in item.random.items()}
        drawn |= {
            name: self.seeds[owner].elements(item.stream(name, "known"), shape)
            for name, (owner, shape) in item.known.items()
        }
        derived = item.derive(drawn)
        if {name: array.shape for name, array in derived.items()} != dict(item.derived):
            raise LocalProtocolError(f"{item.name}: other arrays are derived than were announced")
        every = {**drawn, **derived}
        return {name: every[name] for name in item.shapes}

    def correction(self, item: Item, arrays: Arrays | None = None) -> Elements:
        """What the first party is sent: values of all but random arrays, then all MACs.

        Args:
            arrays: `arrays(item)`, where the dealer has them.
        """
        arrays = self.arrays(item) if arrays is None else arrays
        parts = [
            f.subtract(array, self._sum(item.stream(name, "value"), array.shape))
            for name, array in arrays.items()
            if name not in item.random
        ]
        if self.macs:
            parts += [
                f.subtract(f.multiply(array, self.mac_key), self._sum(item.stream(name, "mac"), array.shape))
                for name, array in arrays.items()
            ]
        return np.concatenate([part.ravel() for part in parts]) if parts else np.zeros(0, dtype=np.uint64)

    def _sum(self, stream: str, shape: Shape) -> Elements:
        return f.total([seed.elements(stream, shape) for seed in self.seeds])


@dataclass(frozen=True, repr=False)
class Expander:
    """A party's side of the dealing.

    Attributes:
        place: of this party; 0 is the one that gets corrections.
    """

    seed: Seed
    place: int
    macs: bool = True

    @cached_property
    def holder(self) -> Holder:
        return Holder(self.place == 0, mac_key_share(self.seed) if self.macs else None)

    def shares(self, item: Item, correction: Elements | None = None) -> dict[str, Share]:
        """
        Args:
            correction: of the first party; others have none.

        Raises:
            LocalProtocolError: the correction is not one for this item.
        """
        values = {name: self.seed.elements(item.stream(name, "value"), shape) for name, shape in item.shapes.items()}
        shapes = item.shapes if self.macs else {}
        macs = {name: self.seed.elements(item.stream(name, "mac"), shape) for name, shape in shapes.items()}
        if self.place == 0:
            _correct(item, values, macs, correction)
        return {name: Share(values[name], macs[name] if self.macs else None) for name in item.shapes}

    def known(self, item: Item, name: str) -> Elements:
        """An array that this party alone knows."""
        owner, shape = item.known[name]
        if owner != self.place:
            raise LocalProtocolError(f"{item.name}: another party knows {name}")
        return self.seed.elements(item.stream(name, "known"), shape)


def mac_key_share(seed: Seed) -> Elements:
    return seed.elements(MAC_KEY, (1,))


def _correct(item: Item, values: dict[str, Elements], macs: dict[str, Elements], correction: Elements | None) -> None:
    """Adds the correction's parts, in the order in which `Dealer.correction` wrote them."""
    if correction is None or correction.shape != (item.correction_length(macs=bool(macs)),):
        raise LocalProtocolError(f"{item.name}: the correction has the wrong length")
    names = [name for name in item.shapes if name not in item.random]
    place = 0
    for arrays, name in [*((values, name) for name in names), *((macs, name) for name in macs)]:
        part = correction[place : place + arrays[name].size].reshape(arrays[name].shape)
        arrays[name] = f.add(arrays[name], part)
        place += part.size
