"""A party that charges a budget does not use a ledger with a changed or missing entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from blindfit.algorithms.errors import DataError, LedgerUnavailable
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.ledger import Budget, Charge
from blindfit.parties.node import PartyNode
from blindfit.parties.settings import PartySettings
from blindfit.parties.store import charging
from blindfit.parties.store.database import Store
from tests.backups import back_up
from tests.certificates import demo_authority
from tests.hints.following import refused
from tests.wire.meter import settings_of

EVENT = ReleaseEvent.pure(0.5, UNITS["row"][1])
BUDGET = Budget(2.0, 1e-5)


@pytest.fixture
def settings(tmp_path: Path) -> PartySettings:
    return settings_of(demo_authority(tmp_path), tmp_path)


@pytest.fixture
def store(tmp_path: Path, settings: PartySettings) -> Iterator[Store]:
    """A store with three charges."""
    store = Store.of(settings, tmp_path)
    for asked in "abc":
        with store.transaction() as transaction:
            charging.enter(transaction, charge_of(asked))
    yield store
    store.close()


def charge_of(asked: str) -> Charge:
    return Charge("people", EVENT, "labels", "snapshot", "shop", asked, epsilon=0.5)


def lose(store: Store, position: int) -> None:
    with store.transaction() as transaction:
        transaction._all("DELETE FROM ledger WHERE position = ?", position)


def cheapen(store: Store, position: int) -> None:
    with store.transaction() as transaction:
        entry = transaction.entry_at(position)
        assert entry is not None
        transaction._all("DELETE FROM ledger WHERE position = ?", position)
        transaction.add_entry(replace(entry, event=ReleaseEvent.pure(0.001, UNITS["row"][1]).canonical()))


def start(settings: PartySettings, base_dir: Path, role: str) -> None:
    node = PartyNode(settings.model_copy(update={"role": role}), base_dir)
    node.party.close()
    node.party.store.close()


@pytest.mark.parametrize("role", ["active", "passive", "measurement"])
@pytest.mark.parametrize("damage", [lose, cheapen])
def test_no_party_starts_with_it(tmp_path: Path, settings: PartySettings, store: Store, role: str, damage) -> None:
    start(settings, tmp_path, role)
    damage(store, 2)
    with pytest.raises(DataError, match=r"party\.sqlite: ledger entry 2 is wrong: .*: a budget would be spent twice"):
        start(settings, tmp_path, role)


@pytest.mark.parametrize("position", [1, 2])
def test_an_entry_that_goes_missing_meanwhile_ends_all_charges(store: Store, position: int) -> None:
    charging.check(store.reader(), charge_of("d"), BUDGET)
    whole = Store(back_up(store.path, store.path.with_name("backup.sqlite")))
    lose(store, position)
    with store.transaction() as transaction:
        charging.enter(transaction, charge_of("d"))
        with pytest.raises(LedgerUnavailable, match="entries of the ledger are missing"):
            charging.check(transaction, charge_of("e"), BUDGET)
    with refused("restore a backup of party.sqlite that has them all: `blindfit ledger PARTY.TOML` shows its entries"):
        charging.check_rollbacks(store.reader(), "people")
    charging.check_rollbacks(whole.reader(), "people")
    whole.close()
