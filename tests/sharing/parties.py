"""A dealer and parties in one process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.dealing import Dealer, Expander, Item
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Share


def dealt_to(n_parties: int, *, macs: bool = True, seed: int = 1) -> tuple[Dealer, list[Expander]]:
    seeds = [Seed(bytes([seed, place]) * 16) for place in range(n_parties)]
    return Dealer(seeds, macs), [Expander(one, place, macs) for place, one in enumerate(seeds)]


def dealt(dealer: Dealer, parties: Sequence[Expander], item: Item) -> list[dict[str, Share]]:
    correction = dealer.deal(item)[1]
    return [party.shares(item, None if party.place else correction) for party in parties]


def reconstructed(shares: Sequence[Share], dealer: Dealer) -> Elements:
    """Return the secret, after a check of its MACs."""
    value = field.total([share.value for share in shares])
    macs = [share.mac for share in shares if share.mac is not None]
    assert len(macs) == (len(shares) if dealer.macs else 0)
    if macs:
        assert np.array_equal(field.total(macs), field.multiply(value, dealer.mac_key))
    return value


def opened(shares: Sequence[Share]) -> Elements:
    """Return what all parties learn when each has sent its value."""
    return field.total([share.value for share in shares])


def shared(integers: field.Integers, dealer: Dealer, parties: Sequence[Expander], name: str = "input") -> list[Share]:
    """Return shares of secret inputs."""
    item = Item(name, derived={"x": integers.shape}, derive=lambda _arrays: {"x": field.elements(integers)})
    return [shares["x"] for shares in dealt(dealer, parties, item)]
