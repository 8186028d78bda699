"""Whole computations on shares, as one party does them: each is a few lines with its dealt items and openings.

`Party` is all that they see of the others: a dealer's items, and the openings of all together. Every opened value here
is masked; an opening without a mask is a release, and is not in this module.
"""

from __future__ import annotations

from typing import Protocol

from blindfit.algorithms.sharing import products, truncation
from blindfit.algorithms.sharing.dealing import Item
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Holder, Share


class Party(Protocol):
    """One party of a computation; all parties do the same, with the same names, in the same order."""

    @property
    def holder(self) -> Holder: ...

    async def take_dealt(self, item: Item) -> dict[str, Share]:
        """Return this party's shares of an item, which is used here and never again."""
        ...

    async def open_(self, *shares: Share) -> list[Elements]:
        """Return the sums of all parties' shares: one round for any number of shares."""
        ...


async def multiply(party: Party, name: str, x: Share, y: Share) -> Share:
    """Return x y, elementwise: one round."""
    dealt = await party.take_dealt(products.product_item(name, x.shape))
    d, e = await party.open_(*products.mask_factors(x, y, dealt))
    return products.product(party.holder, dealt, d, e)


async def divide(party: Party, name: str, x: Share, bits: int) -> Share:
    """Return x / 2^bits for |x| < 2^59, with an error below 1: one round."""
    dealt = await party.take_dealt(truncation.truncation_item(name, x.shape, bits))
    (opened,) = await party.open_(truncation.mask(party.holder, x, dealt["r"]))
    return truncation.truncate(party.holder, dealt, opened, bits)
