"""The project of tests/falcon with differential privacy: every data party has a budget."""

from __future__ import annotations

from pathlib import Path

from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.parties.store.database import Store
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops_in_shares

PRIVATE = (
    "privacy.epsilon=1",
    "split.test_fraction=0",
    "falcon.validation_fraction=0",
    'falcon.feature_bounds=["*:-4:4"]',
    "falcon.l2=0",
    # No charge depends on these; tests/falcon/test_noise.py has MACs and several batches under noise.
    "falcon.batch_rows=1000",
    'falcon.security="semi-honest"',
)


def make(root: Path, *, budget: float = 3.0, epochs: int = 2) -> World:
    made = bank_and_shops_in_shares(root, epochs=epochs)
    made.set("policy.max_epsilon", 8.0)
    made.set("datasets.rows.population", "people", *DATA_PARTIES)
    made.set("populations.people", {"epsilon": budget, "delta": 1e-5}, *DATA_PARTIES)
    return made


def charged(root: Path) -> dict[str, list[LedgerEntry]]:
    """Return the entries of each data party's ledger."""
    found = {}
    for name in DATA_PARTIES:
        path = root / f"state/{name}/party.sqlite"
        found[name] = Store(path).reader().ledger() if path.exists() else []
    return found


def charges(root: Path) -> dict[str, int]:
    return {name: len(entries) for name, entries in charged(root).items()}
