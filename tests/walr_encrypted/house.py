"""A world whose server sums encrypted rows."""

from __future__ import annotations

from pathlib import Path

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.parties.files.vault import ROW_KEY
from blindfit.parties.store.database import Store
from tests.world.split_labels import Split

ALLOWED = {"unsafe": ["unchecked-rows"]}


def house_in(root: Path, key: PrivateKey) -> Split:
    """Return a world in which the shop already has its key: making one takes a second."""
    house = Split(root)
    house.write_party("whole", **ALLOWED)
    shop = root / "state" / "shop"
    shop.mkdir(parents=True, mode=0o700)
    Store(shop / "party.sqlite").close()  # a database without the party's keys is one that was lost
    (shop / ROW_KEY).write_bytes(key.to_bytes())
    (shop / ROW_KEY).chmod(0o600)
    return house
