"""A restored backup refunds no dp-lr training: its coordinator holds a receipt, and shows it with the next job."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from blindfit.algorithms.errors import (
    BudgetExhausted,
    CannotTakePart,
    ConfigError,
    LedgerBehind,
    MalformedMessage,
    PolicyRefused,
)
from blindfit.algorithms.privacy.ledger import Receipt, verify_chain
from blindfit.coordinator.operator import ledger as ledger_view
from blindfit.coordinator.running.receipts import HeldReceipts, of_this_user
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.sessions.admission import MOST_RECEIPTS
from blindfit.parties.store.database import Store
from blindfit.parties.store.receipts import acknowledge_losses
from tests.backups import back_up, restore
from tests.dp_lr.conftest import Clinic
from tests.hints.following import refused
from tests.world import World

WIDE = {"patients": {"epsilon": 40.0, "delta": 1e-5}}
SHORT = {"public_dataset": "archive", "iterations": 2}


@pytest.fixture
def held(tmp_path: Path) -> HeldReceipts:
    return HeldReceipts(tmp_path / "user" / "receipts.sqlite")


def train(clinic: Clinic, held: HeldReceipts, epsilon: float, **privacy: Any) -> None:
    """Train as coordinator and party do it: receipts come with the proposal, and are kept from the events."""
    party = clinic.unconnected
    for receipt in held.of("clinic", party.receipts.public_key):
        party.receipts.take(receipt, by="coordinator")
    clinic.train(privacy={"epsilon": epsilon, **privacy}, dp_lr=SHORT)
    held.keep("clinic", party.receipts.public_key, clinic.last.receipt)


def charges(clinic: Clinic) -> Counter[str]:
    entries = clinic.kept.reader().ledger()
    verify_chain(entries)
    return Counter(entry.event for entry in entries)


def bring_back(clinic: Clinic, copy: Path) -> None:
    clinic.kept.close()
    restore(copy, clinic.kept.path)
    clinic.kept = Store(clinic.kept.path)


def random_rollback(clinic: Clinic, held: HeldReceipts, rng: random.Random) -> None:
    def trainings() -> None:
        for _ in range(rng.randint(1, 2)):
            train(clinic, held, rng.choice([0.05, 0.1]), release=f"{rng.random()}")

    trainings()
    copy, kept = back_up(clinic.kept.path, clinic.root / "backup.sqlite"), charges(clinic)
    trainings()
    lost = charges(clinic) - kept
    bring_back(clinic, copy)
    with pytest.raises(LedgerBehind):
        train(clinic, held, 0.1)
    bring_back(clinic, back_up(clinic.kept.path, clinic.root / "behind.sqlite"))  # nothing but the disk knows it
    with pytest.raises(LedgerBehind):
        clinic.train(privacy={"epsilon": 0.1}, dp_lr=SHORT)
    assert charges(clinic) == kept
    assert acknowledge_losses(clinic.kept, "restored") == lost.total()
    assert charges(clinic) == kept + lost


def test_every_rollback_is_noticed_and_charged_again(clinic: Clinic, held: HeldReceipts) -> None:
    clinic.set("populations", WIDE)
    for seed in range(12):
        random_rollback(clinic, held, random.Random(seed))


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_hundred_rollbacks(clinic: Clinic, held: HeldReceipts) -> None:
    clinic.set("populations", WIDE)
    for seed in range(100):
        random_rollback(clinic, held, random.Random(seed))


def test_what_was_lost_counts_against_the_budget(clinic: Clinic, held: HeldReceipts) -> None:
    copy = back_up(clinic.kept.path, clinic.root / "backup.sqlite")
    train(clinic, held, 3.9)
    bring_back(clinic, copy)
    with pytest.raises(LedgerBehind):
        train(clinic, held, 3.0)
    acknowledge_losses(clinic.kept, "restored")
    with pytest.raises(BudgetExhausted):
        train(clinic, held, 3.0)


def test_what_was_answered_before_is_proved_again_and_charged_once(clinic: Clinic, held: HeldReceipts) -> None:
    train(clinic, held, 0.1)
    first = clinic.last.receipt
    train(clinic, held, 0.1)
    assert (clinic.last.receipt, charges(clinic).total()) == (first, 1)


# --- through a coordinator, over TLS ----------------------------------------------------------------------


def test_a_job_after_a_restored_backup(clinic: Clinic) -> None:
    nodes, console = World(clinic.root), Console(quiet=True)
    database = clinic.kept.path
    clinic.kept.close()
    run = ("dp_lr.iterations=2", "privacy.epsilon=0.5")
    nodes.publish("clinic", "archive")
    nodes.run(*run)
    copy = back_up(database, clinic.root / "backup.sqlite")
    nodes.run(*run, "privacy.epsilon=0.6")
    restore(copy, database)
    for _ in range(2):
        with refused("its operator must run `blindfit ledger PARTY.TOML --acknowledge REASON`, which charges") as told:
            nodes.run(*run, "privacy.epsilon=0.7")
        assert "proves entry 2 of the ledger of patients" in told.text
    ledger_view.acknowledge(clinic.settings("clinic"), clinic.root, "restored").show(console)
    nodes.run(*run, "privacy.epsilon=0.7")
    clinic.kept = Store(database)
    assert [entry.kind for entry in clinic.kept.reader().ledger()] == ["release", "recovered", "release"]


def test_a_job_that_fails_after_its_charge_leaves_its_receipt(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise ConfigError("the disk is full")

    monkeypatch.setattr("blindfit.parties.dp_lr.trainer.Trainer._write", full)
    clinic.kept.close()
    World(clinic.root).publish("clinic", "archive")
    with pytest.raises(CannotTakePart):
        World(clinic.root).run("dp_lr.iterations=2", "privacy.epsilon=0.5")
    clinic.kept = Store(clinic.kept.path)
    key = clinic.unconnected.receipts.public_key
    ((statement, _),) = of_this_user().of("clinic", key)
    assert Receipt.from_statement(statement).entry_hash == clinic.kept.reader().ledger()[0].hash


def test_a_proposal_with_a_receipt_that_the_party_did_not_sign(clinic: Clinic, held: HeldReceipts) -> None:
    """The party refuses it in a line, for any content of a coordinator's file, and does not suspect its ledger."""
    train(clinic, held, 0.1)
    party = clinic.unconnected
    ((statement, signature),) = held.of("clinic", party.receipts.public_key)
    other = SigningKey.load_or_create(clinic.root / "other.pem")
    later = replace(Receipt.from_statement(statement), position=9).statement()
    for wrong in ((later, other.sign(later)), (later, signature), (statement, bytes(64)), (statement, b"")):
        with pytest.raises(PolicyRefused, match="is not signed by this party's receipt key") as refused:
            party.receipts.take(wrong, by="coordinator")
        assert refused.value.field == "receipt"
    assert clinic.kept.reader().rollbacks() == []


# --- what a coordinator's user keeps -----------------------------------------------------------------------


def receipt_of(key: SigningKey, position: int, population: str = "patients", server: str = "clinic") -> Any:
    charged = Receipt.from_statement(
        b'{"server":"clinic","population":"patients","position":1,"entry_hash":"' + b"0" * 64 + b'",'
        b'"charges":[["gaussian/0x1.0000000000000p+0/one row",1]],"sums":[],"landmarks":[]}'
    )
    more = replace(charged.charges, counted=((charged.charges.counted[0][0], position),))
    made = replace(charged, server=server, population=population, position=position, charges=more)
    return made.statement(), key.sign(made.statement())


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.load_or_create(tmp_path / "key.pem")


def test_the_receipt_that_proves_most_is_kept_for_each_key_and_population(
    held: HeldReceipts, key: SigningKey, tmp_path: Path
) -> None:
    """Two projects on one machine have parties of the same name."""
    other = SigningKey.load_or_create(tmp_path / "other.pem")
    for position in (2, 3, 1):
        held.keep("clinic", key.public_bytes, receipt_of(key, position))
    held.keep("clinic", key.public_bytes, receipt_of(key, 1, "animals"))
    held.keep("clinic", other.public_bytes, receipt_of(other, 7))
    assert held.of("clinic", key.public_bytes) == [receipt_of(key, 3), receipt_of(key, 1, "animals")]
    assert held.of("hospital", key.public_bytes) == []
    assert held.path.stat().st_mode & 0o077 == 0


def test_no_more_are_shown_than_a_proposal_may_have(held: HeldReceipts, key: SigningKey) -> None:
    for number in range(1, MOST_RECEIPTS + 2):
        held.keep("clinic", key.public_bytes, receipt_of(key, number, f"population {number}"))
    shown = [Receipt.from_statement(statement).position for statement, _ in held.of("clinic", key.public_bytes)]
    assert shown == list(range(MOST_RECEIPTS + 1, 1, -1))


def test_what_the_party_did_not_sign_is_not_kept(held: HeldReceipts, key: SigningKey) -> None:
    statement, _ = receipt_of(key, 1)
    for wrong in ((statement, bytes(64)), (b"", b""), receipt_of(key, 1, server="hospital")):
        with pytest.raises(MalformedMessage):
            held.keep("clinic", key.public_bytes, wrong)
    assert held.of("clinic", key.public_bytes) == []


def test_a_place_that_cannot_be_written_is_told_before_the_job(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"receipts\.sqlite cannot be used") as refused:
        HeldReceipts(tmp_path / "file" / "receipts.sqlite").of("clinic", key.public_bytes)
    assert "XDG_STATE_HOME" in refused.value.hint


async def test_a_report_says_nothing_of_the_jobs_that_were_refused_before(clinic: Clinic) -> None:
    clinic.kept.close()
    world = World(clinic.root)
    world.publish("clinic", "archive")
    async with world.up(world.load("dp_lr.iterations=2")) as nodes:
        with pytest.raises(BudgetExhausted, match="the budget of patients would be passed"):
            await world.session(world.load("privacy.epsilon=4.5"), nodes).run()
        session = world.session(world.load("dp_lr.iterations=2"), nodes)
        await session.run()
    assert "warnings" not in world.written("clinic", session, "report.json")
