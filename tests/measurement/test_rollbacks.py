"""A restored backup refunds no budget: clients hold receipts, and the server believes them."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from blindfit.algorithms.errors import LedgerBehind, LedgerUnavailable, PolicyRefused
from blindfit.algorithms.privacy import charges as charges_of_receipts
from blindfit.algorithms.privacy.ledger import Budget, Receipt, verify_chain
from blindfit.algorithms.protocols.walr import NoisySum
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.measurement.charging import LabelDataset
from blindfit.parties.store.receipts import acknowledge_losses
from tests.hints.following import refused
from tests.measurement.house import NAMES, House, make_dataset, one_hot

OpenHouse = Callable[..., House]
WIDE = Budget(50.0, 1e-6)
SIDE_FILES = ("-wal", "-shm")


def back_up(house: House) -> Path:
    house.close()
    copy = house.directory / f"backup-{len(list(house.directory.glob('backup-*')))}"
    shutil.copy(house.database, copy)
    house.open()
    return copy


def restore(house: House, copy: Path) -> None:
    house.close()
    for suffix in SIDE_FILES:
        house.database.with_name(house.database.name + suffix).unlink(missing_ok=True)
    shutil.copy(copy, house.database)
    house.open()


def charges(house: House, population: str = "people") -> Counter[str]:
    return Counter(entry.event for entry in house.entries if entry.population == population)


def acknowledge(house: House) -> int:
    recovered = acknowledge_losses(house.service.store, "restored")
    verify_chain(house.entries)
    return recovered


def two_populations(directory: Path) -> dict[str, LabelDataset]:
    """Return one dataset and one active party for each population."""
    labels = dict.fromkeys(NAMES, 1)
    return {
        "visits": make_dataset(directory, labels, active_parties=["shop"]),
        "patients": make_dataset(directory, labels, name="patients", population="patients", active_parties=["bank"]),
    }


def check_refuses_everybody(house: House) -> None:
    for consumer in ("shop", "bank"):
        with pytest.raises(LedgerBehind):
            house.ask(release="anything", consumer=consumer, epsilon=0.01)
    house.reopen()
    with pytest.raises(LedgerBehind):
        house.ask(release="anything", epsilon=0.01)


# --- rollbacks --------------------------------------------------------------------------------------


LOST_AND_SHOWN = [(lost, shown) for lost in range(1, 5) for shown in range(lost)]


def random_rollback(house: House, seed: int, lost: int, shown: int) -> None:
    """Back up, make this many releases, restore the backup; then a client shows one of the lost receipts."""
    rng = random.Random(seed)
    backup, kept = back_up(house), len(house.entries)
    receipts: list[NoisySum] = []
    for i in range(lost):
        consumer, epsilon = rng.choice(["shop", "bank"]), rng.choice([0.1, 0.2])
        receipts.append(house.ask(consumer=consumer, epsilon=epsilon, release=f"{seed}-{i}"))
    before = charges(house)
    restore(house, backup)
    with pytest.raises(LedgerBehind) as noticed:
        house.ask(release="next", receipt=receipts[shown], epsilon=0.1)
    assert (noticed.value.ledger_position, noticed.value.receipt_position) == (kept, kept + shown + 1)
    assert house.consumed == ["AggregateOpen"]
    check_refuses_everybody(house)
    assert acknowledge(house) == shown + 1
    if shown == len(receipts) - 1:
        assert charges(house) == before
    house.ask(release=f"{seed}-next", receipt=receipts[shown], epsilon=0.1)  # the same old receipt is good again
    for later in receipts[shown + 1 :]:
        with pytest.raises(LedgerBehind):
            house.ask(release="next", receipt=later, epsilon=0.1)
        assert acknowledge(house) == 1
    assert charges(house) >= before
    house.ask(release=f"{seed}-last", receipt=receipts[-1], epsilon=0.1)


def test_every_rollback_is_noticed_and_charged_again(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    for seed, (lost, shown) in enumerate(LOST_AND_SHOWN):
        random_rollback(house, seed, lost, shown)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_hundred_rollbacks(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    for seed, (lost, shown) in enumerate(LOST_AND_SHOWN * 10):
        random_rollback(house, seed, lost, shown)


def test_a_receipt_from_before_the_backup_is_good(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    receipt = house.ask()
    backup = back_up(house)
    house.ask(release="lost")
    restore(house, backup)
    house.ask(release="next", receipt=receipt)


def test_an_answer_that_was_lost_costs_again(open_house: OpenHouse) -> None:
    """The answer left before, so the second draw is a second release; only then is the ledger right."""
    house = open_house(budget=WIDE)
    backup = back_up(house)
    lost = house.ask(epsilon=0.5)
    restore(house, backup)
    with pytest.raises(LedgerBehind):
        house.ask(epsilon=0.5, receipt=lost)
    acknowledge(house)
    again = house.ask(epsilon=0.5, receipt=lost)
    assert again.sums.tolist() != lost.sums.tolist()
    assert charges(house) == Counter({lost.event: 2})
    assert house.ask(epsilon=0.5, receipt=lost).sums.tolist() == again.sums.tolist()


def test_what_was_lost_counts_against_the_budget(open_house: OpenHouse) -> None:
    house = open_house(budget=Budget(1.0, 1e-6))
    backup = back_up(house)
    lost = house.ask()
    spent = house.spent()
    restore(house, backup)
    assert house.spent() == 0
    with pytest.raises(LedgerBehind):
        house.ask(release="next", receipt=lost)
    acknowledge(house)
    assert house.spent() == spent
    assert [entry.kind for entry in house.entries] == ["recovered"]


def test_what_the_newest_receipt_recovered_no_earlier_one_notices_again(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    house.ask(release="kept")
    backup = back_up(house)
    lost = [house.ask(release=f"lost-{i}", epsilon=0.1 * (1 + i)) for i in range(4)]
    restore(house, backup)
    with pytest.raises(LedgerBehind):
        house.ask(release="next", receipt=lost[3])
    assert acknowledge(house) == 4
    spent = house.spent()
    for receipt in lost:
        house.ask(release="kept", receipt=receipt)
        assert house.service.store.reader().rollbacks() == []
    assert house.spent() == spent


def test_a_receipt_of_another_population_is_noticed_though(open_house: OpenHouse, tmp_path: Path) -> None:
    """The newest receipt has the other's entry as a landmark, and recovers only charges of its own population."""
    house = open_house(datasets=two_populations(tmp_path), budget=WIDE)
    backup = back_up(house)
    patients = {"dataset": "patients", "consumer": "bank"}
    other, newest = house.ask(**patients), house.ask(release="newest")
    spent = house.spent("patients")
    restore(house, backup)
    with pytest.raises(LedgerBehind):
        house.ask(release="next", receipt=newest)
    assert acknowledge(house) == 1
    with pytest.raises(LedgerBehind):
        house.ask(**patients, release="next", receipt=other)
    assert acknowledge(house) == 1
    assert (house.spent("patients"), len(charges(house))) == (spent, 1)


@pytest.mark.parametrize("kept", [0, 2, 5])
def test_more_different_charges_than_a_receipt_counts_are_recovered_too(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(charges_of_receipts, "MOST_DIFFERENT", 3)
    house = open_house(budget=WIDE)
    for i in range(kept):
        house.ask(epsilon=0.1 + i / 100, release=str(i))
    backup = back_up(house)
    receipts = [house.ask(epsilon=0.2 + i / 100, release=str(i)) for i in range(8)]
    spent = house.spent()
    restore(house, backup)
    for shown in (2, 5, 7):
        with pytest.raises(LedgerBehind):
            house.ask(release="next", receipt=receipts[shown])
        acknowledge(house)
        house.reopen()
        assert house.spent() <= spent * (1 + 1e-9)
    assert house.spent() >= spent * (1 - 1e-12)
    assert "recovered-sum" in [entry.kind for entry in house.entries]
    house.ask(release="next", receipt=receipts[7], epsilon=0.01)


# --- forks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("continued", [1, 2, 3, 5])
def test_a_fork_is_noticed_and_its_own_releases_stand_for_nothing(open_house: OpenHouse, continued: int) -> None:
    """The backup was restored, then continued with equal releases to others: fewer, as many, or more than were lost."""
    house = open_house(budget=WIDE)
    house.ask(release="common")
    backup = back_up(house)
    lost = [house.ask(release=f"lost-{i}") for i in range(3)]
    restore(house, backup)
    for i in range(continued):
        house.ask(release=f"other-{i}", consumer="bank")
    with pytest.raises(LedgerBehind):
        house.ask(release="next", receipt=lost[-1])
    assert acknowledge(house) == 3
    assert charges(house) == Counter({lost[0].event: 1 + 3 + continued})
    house.ask(release="next", receipt=lost[-1])


def test_a_fork_before_the_last_start_stands_for_nothing(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    backup = back_up(house)
    lost = [house.ask(release=f"lost-{i}") for i in range(3)]
    restore(house, backup)
    house.ask(release="other", consumer="bank")
    house.reopen()
    with pytest.raises(LedgerBehind):
        house.ask(release="next", receipt=lost[-1])
    acknowledge(house)
    assert charges(house) == Counter({lost[0].event: 4})


def test_releases_after_the_acknowledgement_stand_for_nothing_either(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    backup = back_up(house)
    lost = [house.ask(release=f"lost-{i}") for i in range(2)]
    restore(house, backup)
    with pytest.raises(LedgerBehind):
        house.ask(release="next", receipt=lost[0])
    assert acknowledge(house) == 1
    house.ask(release="next")
    with pytest.raises(LedgerBehind):
        house.ask(release="after", receipt=lost[1])
    assert acknowledge(house) == 1
    assert charges(house) == Counter({lost[0].event: 3})


def test_rollbacks_of_rollbacks(open_house: OpenHouse) -> None:
    """Restoring an older backup again forgets the acknowledgement too, and the old receipt is noticed again."""
    house = open_house(budget=WIDE)
    backup = back_up(house)
    lost = house.ask(release="lost")
    for _ in range(2):
        restore(house, backup)
        with pytest.raises(LedgerBehind):
            house.ask(release="next", receipt=lost)
        assert acknowledge(house) == 1
        house.ask(release="next", receipt=lost)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("lost", [1, 3])
def test_two_lost_ledgers_of_one_backup_are_charged_each(open_house: OpenHouse, at_once: bool, lost: int) -> None:
    """This holds even if their releases are equal."""
    house = open_house(budget=WIDE)
    house.ask(release="common")
    backup = back_up(house)
    newest: dict[str, NoisySum] = {}
    for consumer in ("shop", "bank"):
        for i in range(lost):
            newest[consumer] = house.ask(release=f"{consumer}-{i}", consumer=consumer)
        restore(house, backup)
    for consumer, receipt in newest.items():
        with pytest.raises(LedgerBehind):
            house.ask(release="next", receipt=receipt, consumer=consumer)
        if not at_once:
            assert acknowledge(house) == lost
    if at_once:
        assert acknowledge(house) == 2 * lost
    assert charges(house) == Counter({newest["shop"].event: 1 + 2 * lost})
    for receipt in newest.values():
        house.ask(release="common", receipt=receipt)


def test_a_rollback_names_only_the_askers_population(open_house: OpenHouse, tmp_path: Path) -> None:
    house = open_house(datasets=two_populations(tmp_path), budget=WIDE)
    backup = back_up(house)
    lost = house.ask(dataset="patients", consumer="bank")
    restore(house, backup)
    with pytest.raises(LedgerBehind, match="patients"):
        house.ask(dataset="patients", consumer="bank", release="next", receipt=lost)
    with pytest.raises(LedgerBehind) as told:
        house.ask()
    assert told.value.population == "people"
    assert "patients" not in str(told.value)


# --- a ledger that is gone ----------------------------------------------------------------------------


def test_a_deleted_database_is_noticed(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    lost = [house.ask(release=str(i)) for i in range(3)]
    house.close()
    for suffix in ("", *SIDE_FILES):
        house.database.with_name(house.database.name + suffix).unlink(missing_ok=True)
    house.open()
    with pytest.raises(LedgerBehind) as noticed:
        house.ask(receipt=lost[-1])
    assert noticed.value.ledger_position == 0
    check_refuses_everybody(house)
    assert acknowledge(house) == 3
    assert charges(house) == Counter({lost[0].event: 3})


def test_a_deleted_key_is_noticed(open_house: OpenHouse) -> None:
    """The whole folder is gone: no receipt can be checked any more, and none is believed."""
    house = open_house(budget=WIDE)
    lost = house.ask()
    house.close()
    key = house.directory / "receipt_key.pem"
    backup = key.rename(house.directory / "backup.pem")
    house.open()
    with refused("its operator must restore the former receipt_key.pem from a backup") as told:
        house.ask(receipt=lost, release="next")
    assert "labels refuses the job: receipt" in told.text
    house.close()
    backup.replace(key)
    house.open()
    house.ask(receipt=lost, release="next")


def test_a_rollback_that_cannot_be_written_down_is_refused_all_the_same(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    backup = back_up(house)
    lost = house.ask()
    restore(house, backup)
    house.service.store._db.execute("PRAGMA query_only = ON")
    with pytest.raises(LedgerUnavailable):
        house.ask(receipt=lost)
    house.service.store._db.execute("PRAGMA query_only = OFF")
    with pytest.raises(LedgerBehind):
        house.ask(receipt=lost)


# --- receipts that are none ---------------------------------------------------------------------------


def forged(answer: NoisySum, key: SigningKey, **changes: object) -> NoisySum:
    statement = replace(Receipt.from_statement(answer.receipt), **changes).statement()
    return replace(answer, receipt=statement, receipt_signature=key.sign(statement))


def test_a_foreign_or_forged_receipt_is_refused_and_freezes_nothing(open_house: OpenHouse, tmp_path: Path) -> None:
    house = open_house(budget=WIDE)
    answer = house.ask()
    own, other = house.service.key, SigningKey.load_or_create(tmp_path / "other.pem")
    wrong = [
        forged(answer, other, position=7),
        replace(answer, receipt_signature=bytes(64)),
        replace(answer, receipt_signature=b""),
        replace(answer, receipt=answer.receipt[:-1]),
        replace(answer, receipt=b"{}", receipt_signature=other.sign(b"{}")),
        forged(answer, own, server="another"),  # its operator copied the key
    ]
    for receipt in wrong:
        with pytest.raises(PolicyRefused) as refused:
            house.ask(release="next", receipt=receipt)
        assert refused.value.field == "receipt"
    assert house.service.store.reader().rollbacks() == []
    house.ask(release="next", receipt=answer)


def test_acknowledging_nothing_changes_nothing(house: House) -> None:
    house.ask(one_hot())
    assert acknowledge(house) == 0
    assert len(house.entries) == 1
