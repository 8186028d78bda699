"""A computation by all its parties, in one process: they put their openings on one table, in rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.dealing import Dealer, Expander, Item
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Holder, Share
from tests.sharing.parties import dealt


@dataclass
class TableOfAll:
    """
    Attributes:
        rounds: openings so far, with the opened numbers of each.
        names: names of all items that were dealt.
        items: replacements by name for items of a party, which cannot derive what a dealer can.
    """

    dealer: Dealer
    expanders: Sequence[Expander]
    rounds: list[list[Elements]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    items: Mapping[str, Item] = field(default_factory=dict)
    _put: list[Sequence[Share]] = field(default_factory=list)
    _turn: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, shares: Sequence[Share]) -> list[Elements]:
        self._put.append(shares)
        turn = self._turn
        if len(self._put) == len(self.expanders):
            self.rounds.append([f.total([share.value for share in each]) for each in zip(*self._put, strict=True)])
            self._put, self._turn = [], asyncio.Event()
            turn.set()
        place = len(self.rounds) - turn.is_set()
        await turn.wait()
        return self.rounds[place]


@dataclass
class Seated:
    table: TableOfAll
    place: int

    @property
    def holder(self) -> Holder:
        return self.table.expanders[self.place].holder

    async def take_dealt(self, item: Item) -> dict[str, Share]:
        if self.place == 0:
            assert item.name not in self.table.names, f"{item.name} is dealt twice"
            self.table.names.append(item.name)
        item = self.table.items.get(item.name, item)
        return dealt(self.table.dealer, self.table.expanders, item)[self.place]

    async def open_(self, *shares: Share) -> list[Elements]:
        return await self.table.open(shares)


def compute(
    dealer: Dealer,
    expanders: Sequence[Expander],
    of: Callable[[Party, int], Awaitable[Share]],
    items: Mapping[str, Item] | None = None,
) -> tuple[list[Share], TableOfAll]:
    """Return what each party ends with; `of` gets the party and its place."""

    async def all_parties() -> tuple[list[Share], TableOfAll]:
        table = TableOfAll(dealer, expanders, items=items or {})
        seats = [Seated(table, place) for place in range(len(expanders))]
        return list(await asyncio.gather(*(of(seat, seat.place) for seat in seats))), table

    return asyncio.run(all_parties())
