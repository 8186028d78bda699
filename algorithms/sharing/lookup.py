"""A small secret number as a one-hot vector, with one opening: so rows are counted in bins.

For q in [0, size), c = q + r is opened under a uniform r. Modulo the size, a power of two, q = c - r unless the sum
wrapped round p. For so small a q this has a chance of size 2^-61, below 2^-52, and would count one row in a
neighbouring bin. So the one-hot vector of q is the dealt one of -r, rotated by c.

Source: Ishai, Kushilevitz, Meldgaard, Orlandi, Paskin-Cherniavsky 2013, "one-time truth tables".
"""

from __future__ import annotations

import numpy as np

from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.dealing import Arrays, Item
from blindfit.algorithms.sharing.shares import Share


def one_hot_item(name: str, rows: int, size: int) -> Item:
    def derive(arrays: Arrays) -> Arrays:
        turned = (arrays["r"] & np.uint64(size - 1)).astype(np.int64)
        return {"hot": (np.arange(size) == (-turned % size)[:, None]).astype(np.uint64)}

    return Item(f"one of {size}/{name}", random={"r": (rows,)}, derived={"hot": (rows, size)}, derive=derive)


async def count(party: Party, name: str, q: Share, size: int) -> Share:
    """Count each number of 0 .. size - 1 in q, (rows,); return (size,) counts. One round.

    Args:
        size: a power of two; every q is below it.
    """
    dealt = await party.take_dealt(one_hot_item(name, len(q), size))
    (c,) = await party.open_(q + dealt["r"])
    turned = (c & np.uint64(size - 1)).astype(np.int64)
    return dealt["hot"].at_columns((np.arange(size)[None, :] - turned[:, None]) % size).sum_over_first()
