"""Each alignment that reveals members of a party's people is an entry, and there are at most 16 entries of a kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError, LedgerUnavailable, PolicyRefused
from blindfit.algorithms.protocols import align
from blindfit.coordinator.operator import account as shown
from blindfit.parties.account.account import MOST_MEMBERSHIP
from blindfit.parties.store.account import Disclosure
from blindfit.parties.vertical import alignment
from blindfit.parties.vertical.linkages import BY_IDS, COMMON_ROWS, FOUND
from blindfit.parties.vertical.scored_rows import FIT
from tests.hints.following import refused
from tests.vertical.in_process import seated
from tests.world import World
from tests.world.holders import HOLDERS, Holders
from tests.world.vertical import DATA_PARTIES, bank_and_shops

ROWS = 120


def entries(world: World, name: str, *events: str) -> list[Disclosure]:
    with world.store(name) as store:
        return [entry for entry in store.reader().disclosures(subject="membership") if entry.event in events]


def fill(world: World, name: str, event: str) -> None:
    """Add entries of one kind up to a party's limit, each of another question."""
    entry = entries(world, name, event)[0]
    with world.store(name) as store, store.transaction() as transaction:
        for number in range(MOST_MEMBERSHIP - len(entries(world, name, event))):
            transaction.add_disclosure(replace(entry, question=f"another {number}"))


@pytest.fixture
def few_in_common(tmp_path: Path) -> World:
    """A bank that shares only 40 clients with the shops, while the job requires 50."""
    world = bank_and_shops(tmp_path, rows=ROWS)
    ids = world.table("bank")["id"].copy()
    ids[40:] = [f"nobody {number}" for number in range(ROWS - 40)]
    world.columns("bank", id=ids)
    return world


def test_the_17th_alignment_that_finds_too_few_rows_is_refused(few_in_common: World) -> None:
    world = few_in_common
    for session in ("one", "again"):
        with pytest.raises(DataError, match="fewer than 50 rows in common"):
            seated(world, session=session)
    for name in DATA_PARTIES:
        for entry in entries(world, name, BY_IDS, FOUND):
            assert (entry.event, entry.learner) == (BY_IDS, ",".join(sorted(set(DATA_PARTIES) - {name})))
        assert len(entries(world, name, BY_IDS, FOUND)) == 2
    fill(world, "shop-a", BY_IDS)
    world.publish("bank")
    with refused(
        "{} alignments of the people of {} with {} {}, or have its operator start the account again (`blindfit ledger "
        "PARTY.TOML --reset-account DATASET --reason TEXT`)"
    ) as told:
        seated(world, session="another")
    assert "shop-a refuses the job: align: 16 alignments of the people of rows with" in told.text
    assert "unsuccessful alignments with bank" in world.blindfit("ledger", "shop-a.toml").stdout
    reset = world.blindfit("ledger", "shop-a.toml", "--reset-account", "rows", "--reason", "ids are corrected")
    assert reset.returncode == 0, reset.stderr
    with pytest.raises(DataError):
        seated(world, session="after-the-reset")


@pytest.mark.parametrize("was_found", [False, True])
def test_a_party_that_puts_other_ids_under_one_snapshot_finds_out_about_16_of_them(
    was_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The party sends 49 ids that it knows to be common, and one that it asks about: 50 are common, or too few."""
    world, run = bank_and_shops(tmp_path, rows=ROWS), align.run_data_party
    if was_found:
        seated(world, session="honest")
    table = {name: set(world.table(name)["id"]) for name in DATA_PARTIES}
    known = sorted(set.intersection(*table.values()))[:49]

    async def asks(ids: list[str], me: str, *more: Any, **options: Any) -> Any:
        return await run([*known, "somebody"] if me == "shop-a" else ids, me, *more, **options)

    monkeypatch.setattr(align, "run_data_party", asks)
    for number in range(MOST_MEMBERSHIP):
        with pytest.raises(DataError, match="fewer than 50 rows in common"):
            seated(world, session=f"asked-{number}")
    with pytest.raises(PolicyRefused, match="refuses the job: align: 16 alignments of the people of rows with"):
        seated(world, session="asked-once-more")


def test_an_alignment_that_finds_enough_rows_has_no_limit(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=ROWS)
    seated(world, session="one")
    assert not entries(world, "shop-a", BY_IDS)
    fill(world, "shop-a", FOUND)
    world.publish("bank")
    seated(world, session="two")
    with world.store("shop-a") as store:
        found = list(shown.render(world.settings("shop-a"), store))
    assert "unsuccessful" not in str([getattr(table, "columns", "") for table in found])


def test_nothing_of_an_alignment_leaves_a_party_that_could_not_count_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, sent = bank_and_shops(tmp_path, rows=ROWS), list[str]()

    def full(*_: object) -> None:
        raise LedgerUnavailable("the disk is full")

    async def began(*_: object, **__: object) -> None:
        sent.append("a set")

    monkeypatch.setattr(alignment, "begin_alignment", full)
    monkeypatch.setattr(align, "run_data_party", began)
    with pytest.raises(LedgerUnavailable):
        seated(world)
    assert not sent


# --- walr: every passive party learns how many rows all have ----------------------------------------------------


def test_the_17th_number_of_common_rows_is_refused_and_no_row_is_sent(tmp_path: Path) -> None:
    world = Holders(tmp_path)
    world.run()
    world.run()  # the same fit is sent again
    for name in HOLDERS:
        (entry,) = entries(world, name, COMMON_ROWS)
        assert entry.learner == ",".join(sorted(set(HOLDERS) - {name}))
    fill(world, "chain", COMMON_ROWS)
    spent = world.spent()
    world.publish("bank")
    with pytest.raises(PolicyRefused, match="chain refuses the job: align: 16 alignments"):
        world.run()
    assert len(entries(world, "chain", COMMON_ROWS)) == MOST_MEMBERSHIP
    assert world.spent() == spent


def test_rows_that_are_sent_again_are_another_number_in_the_same_snapshots(tmp_path: Path) -> None:
    """Nobody can check that they are the same rows, unless the server has a fit of them."""
    world = Holders(tmp_path)
    for number, epsilon in enumerate((1.0, 0.5, 0.5)):
        world.run(f"privacy.epsilon={epsilon}")
        assert [len(entries(world, name, COMMON_ROWS)) for name in ("bank", "chain")] == [min(2, number + 1)] * 2


def test_an_active_party_that_has_learnt_16_numbers_asks_for_no_other(tmp_path: Path) -> None:
    world = Holders(tmp_path)
    world.run()
    fill(world, "shop", COMMON_ROWS)
    spent = world.spent()
    world.publish("bank")
    with pytest.raises(PolicyRefused, match="shop refuses the job: align: 16 alignments"):
        world.run()
    assert world.spent() == spent


def test_every_holder_counts_what_the_weights_of_a_fit_reveal_of_its_rows(tmp_path: Path) -> None:
    """The weights of the other parties depend on its part of each row's score. A repeated answer is free."""
    world = Holders(tmp_path)
    names = {"shop", "bank", "chain"}
    for _ in range(2):
        world.run()
        for name in names:
            with world.store(name) as store:
                (entry,) = store.reader().disclosures(subject="scores")
            assert (entry.event, set(entry.learner.split(","))) == (FIT, names - {name})
            assert 0.2 < entry.bits < 1  # a weight's, by a leverage of 1/20
