"""A restored backup refunds no training under label DP: every party that took part has a receipt, and shows it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError, BudgetExhausted, LedgerBehind, MalformedMessage, PolicyRefused
from blindfit.algorithms.privacy.ledger import Receipt, verify_chain
from blindfit.algorithms.protocols import receipts
from blindfit.algorithms.protocols.receipts import ReceiptGiven, ReceiptHeld
from blindfit.coordinator.running.receipts import HeldReceipts
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.database import Store
from blindfit.parties.store.receipts import acknowledge_losses
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import Charged
from blindfit.parties.training.receipts import charge_and_prove, keep_proof
from blindfit.parties.wire import codec
from blindfit.parties.wire.channel import LocalNetwork, Wire
from tests.backups import back_up, restore
from tests.protocols.counts import assert_as_often
from tests.taylor.seats import first_failure
from tests.unconnected import unconnected
from tests.vertical.in_process import seated
from tests.world import World
from tests.world.vertical import bank_and_shops

WIDE, NARROW = 50.0, 1.0
ROLES = {"bank": "active", "shop": "passive", "notary": "key-node"}
OTHERS = ("shop", "notary")


@dataclass
class House(World):
    """A bank that is charged for trainings with a shop and a key node, and a coordinator.

    They exchange all messages about the charge, without the training itself."""

    budget: float = WIDE
    stores: dict[str, Store] = field(default_factory=dict)
    sent: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        about, budget = {"label": "label", "population": "people"}, {"epsilon": self.budget, "delta": 1e-5}
        self.active("bank", dataset="loans", about=about, populations={"people": budget})
        self.coordinator = HeldReceipts(self.root / "user" / "receipts.sqlite")
        self.open()

    def open(self) -> None:
        self.stores = {name: Store(self.path("state", name, "party.sqlite")) for name in ROLES}
        self.bank = unconnected(self.settings("bank"), self.root, self.stores["bank"])

    def close(self) -> None:
        for store in self.stores.values():
            store.close()

    def back_up(self) -> Path:
        return back_up(self.stores["bank"].path, self.root / "backup.sqlite")

    def restore(self, copy: Path) -> None:
        self.close()
        restore(copy, self.stores["bank"].path)
        self.open()

    def forget(self, *names: str) -> None:
        """Remove the receipts of these parties."""
        for name in names:
            if name == "coordinator":
                self.coordinator.path.unlink()
            else:
                self.stores[name]._db.execute("DELETE FROM receipts_held")

    def train(
        self, epsilon: float, name: str = "s1", wire: Wire = lambda _s, _r, _k, data: data, *, present: bool = True
    ) -> Charged:
        """Run all that coordinator and parties do from the proposal to the point where the training would begin."""
        key = self.bank.receipts.public_key
        for held in self.coordinator.of("bank", key) if present else []:
            self.bank.receipts.take(held, by="coordinator")
        network = LocalNetwork(ROLES, receipts.TABLE, wire=wire)
        session = session_of(epsilon, name, network)
        others = {name: SimpleNamespace(store=self.stores[name]) for name in OTHERS}
        parties: dict[str, Any] = {
            "bank": charge_and_prove(self.bank, session("bank"), OTHERS, ("split", "noise"), lambda _: True),
            **{name: keep_proof(other, session(name), "bank") for name, other in others.items()},  # type: ignore[arg-type]
        }

        async def all_of_them() -> list[Any]:
            return await first_failure(*parties.values())

        charged: Charged = asyncio.run(all_of_them())[0]
        self.sent = network.sent
        self.coordinator.keep("bank", key, session("bank").receipt)
        return charged

    def charges(self) -> Counter[str]:
        entries = self.stores["bank"].reader().ledger("people")
        verify_chain(self.stores["bank"].reader().ledger())
        return Counter(entry.event for entry in entries)

    def noticed(self) -> int:
        return len(self.stores["bank"].reader().rollbacks())

    def acknowledge(self) -> int:
        return acknowledge_losses(self.stores["bank"], "restored")


def session_of(epsilon: float, name: str, network: LocalNetwork) -> Any:
    job = TaylorJob(privacy=PrivacySettings(epsilon=epsilon))
    members = {n: Member(n, role, "", "" if role == "key-node" else "loans") for n, role in ROLES.items()}
    made: dict[str, Session[TaylorJob]] = {}

    def of(party: str) -> Session[TaylorJob]:
        if party not in made:
            channel: Any = network.channel(party)
            snapshots = {"bank": "5eed", "shop": name}
            about = (name, "coordinator", members, job.to_parameters(), job, channel, members[party])
            made[party] = Session(*about, SimpleNamespace(id="5eed"), snapshots)  # type: ignore[arg-type]
        return made[party]

    return of


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.close()


# --- rollbacks --------------------------------------------------------------------------------------------


def random_rollback(house: House, seed: int) -> None:
    """Run trainings, back up, train again, and restore the backup; of three parties with receipts one has kept them."""
    rng = random.Random(seed)

    def trainings(what: str) -> None:
        for i in range(rng.randint(1, 3)):
            house.train(rng.choice([0.1, 0.2]), f"{seed}-{what}-{i}")

    trainings("before")
    copy, kept = house.back_up(), house.charges()
    trainings("lost")
    lost = house.charges() - kept
    house.forget(*{*OTHERS, "coordinator"} - {rng.choice([*OTHERS, "coordinator"])})
    house.restore(copy)
    if rng.random() < 0.5:
        train_with_strangers(house, f"{seed}-fork")
    behind = house.charges()
    for _ in range(2):
        with pytest.raises(LedgerBehind):
            house.train(0.1, f"{seed}-next")
        house.close()
        house.open()
    assert (house.charges(), house.noticed()) == (behind, 1)
    assert house.acknowledge() == lost.total()
    assert house.charges() == behind + lost
    house.train(0.1, f"{seed}-next")


def train_with_strangers(house: House, name: str) -> None:
    """Train with a ledger that goes on after it was restored: its new charges replace nothing that was lost."""
    stores = [house.stores[other] for other in OTHERS]
    held = [store.reader().receipt_held("bank", "people") for store in stores]
    coordinator, house.coordinator = house.coordinator, HeldReceipts(house.root / name / "receipts.sqlite")
    house.forget(*OTHERS)
    house.train(0.1, name)
    house.forget(*OTHERS)
    house.coordinator = coordinator
    for store, receipt in zip(stores, held, strict=True):
        if receipt[0]:
            with store.transaction() as transaction:
                transaction.hold_receipt("bank", "people", receipt)


def test_every_rollback_is_noticed_and_charged_again(house: House) -> None:
    for seed in range(15):
        random_rollback(house, seed)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_hundred_rollbacks(house: House) -> None:
    for seed in range(100):
        random_rollback(house, seed)


def test_what_was_lost_counts_against_the_budget(tmp_path: Path) -> None:
    house = House(tmp_path, budget=NARROW)
    copy = house.back_up()
    spent = house.train(0.9).spent_epsilon
    house.restore(copy)
    with pytest.raises(LedgerBehind) as told:
        house.train(0.9, "s2")
    assert "entry 1 of the ledger of people, which this ledger (0 entries)" in str(told.value)
    assert "blindfit ledger PARTY.TOML --acknowledge REASON" in told.value.hint
    assert house.acknowledge() == 1
    with pytest.raises(BudgetExhausted) as refused:
        house.train(0.9, "s2")
    assert refused.value.spent == pytest.approx(spent)
    house.close()


def test_a_training_that_was_paid_before_is_refused_too(house: House) -> None:
    """The training would send noisy gradients again, and the ledger does not know what else it has paid for."""
    house.train(0.1, "first")
    copy = house.back_up()
    house.train(0.1, "lost")
    house.restore(copy)
    with pytest.raises(LedgerBehind):
        house.train(0.1, "first")


def test_before_the_training_and_from_everybody(tmp_path: Path) -> None:
    """The parties themselves run, with their files and roles, up to the point where the training would begin."""
    project = bank_and_shops(tmp_path)
    database, copy = tmp_path / "state/bank/party.sqlite", tmp_path / "backup.sqlite"
    seated(project, "privacy.epsilon=0.5", session="s1")
    back_up(database, copy)
    seated(project, "privacy.epsilon=0.6", session="s2")
    restore(copy, database)
    for holders in (["shop-a"], ["shop-b"], ["notary"]):
        forget_but(project, holders)
        with pytest.raises(LedgerBehind):
            seated(project, "privacy.epsilon=0.7", session="s3")
        restore(copy, database)


def forget_but(project: World, holders: list[str]) -> None:
    for name in ("shop-a", "shop-b", "notary"):
        database = project.root / f"state/{name}/party.sqlite"
        aside = database.with_name("all-receipts.sqlite")
        if not aside.exists():
            back_up(database, aside)
        restore(aside, database)
        if name not in holders:
            store = Store(database)
            store._db.execute("DELETE FROM receipts_held")
            store.close()


# --- what is said -----------------------------------------------------------------------------------------


def test_everybody_gets_one_receipt_once_it_is_charged(house: House) -> None:
    house.train(0.1)
    assert_as_often(receipts.TABLE, ROLES, house.sent, having=[receipts.PAID])
    held = {house.stores[name].reader().receipt_held("bank", "people") for name in OTHERS}
    assert held == set(house.coordinator.of("bank", house.bank.receipts.public_key))
    ((statement, _),) = held
    assert Counter(dict(Receipt.from_statement(statement).charges.counted)) == house.charges()


def test_a_training_that_was_paid_before_gives_the_receipt_again(house: House) -> None:
    house.train(0.1)
    held = house.stores["shop"].reader().receipt_held("bank", "people")
    house.forget("shop")
    house.train(0.1)
    assert house.charges().total() == 1
    assert house.stores["shop"].reader().receipt_held("bank", "people") == held


def tampered(kind: type, **changes: Any) -> Wire:
    def wire(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step != kind.__name__:
            return data
        return codec.encode(replace(codec.decode(data, kind, culprit=sender), **changes))

    return wire


def test_a_receipt_that_the_bank_did_not_sign_is_refused_and_freezes_nothing(house: House, tmp_path: Path) -> None:
    house.train(0.1)
    statement, signature = house.stores["shop"].reader().receipt_held("bank", "people")
    other, own = SigningKey.load_or_create(tmp_path / "other.pem"), house.bank.vault
    own_key = own.signing_key(house.bank.data_dir / "receipt_key.pem")
    later = replace(Receipt.from_statement(statement), position=7).statement()
    another = replace(Receipt.from_statement(statement), server="another").statement()
    wrong = [
        (later, other.sign(later)),
        (later, signature),
        (statement, b""),
        (b"{}", other.sign(b"{}")),
        (another, own_key.sign(another)),
    ]
    for held in wrong:
        with pytest.raises(PolicyRefused) as refused:
            house.train(0.1, "s2", tampered(ReceiptHeld, statement=held[0], signature=held[1]))
        assert refused.value.field == "receipt"
        assert "\n" not in str(refused.value)
    assert (house.noticed(), house.charges().total()) == (0, 1)
    house.train(0.1, "s2")


@pytest.mark.parametrize("change", ["statement", "signature", "key"])
def test_what_the_bank_did_not_sign_is_not_kept(house: House, change: str) -> None:
    """If it were kept, it would be shown at the next training and refused there."""
    with pytest.raises(MalformedMessage) as refused:
        house.train(0.1, wire=tampered(ReceiptGiven, **{change: bytes(64)}))
    assert (refused.value.culprit, refused.value.field) == ("bank", "receipt")
    assert {house.stores[name].reader().receipt_held("bank", "people") for name in OTHERS} == {(b"", b"")}


def test_a_receipt_of_another_population_is_not_kept(house: House) -> None:
    house.train(0.1)
    statement, _ = house.stores["shop"].reader().receipt_held("bank", "people")
    key = house.bank.vault.signing_key(house.bank.data_dir / "receipt_key.pem")
    other = replace(Receipt.from_statement(statement), population="animals").statement()
    with pytest.raises(BlindfitError, match="is about something else"):
        house.train(0.1, wire=tampered(ReceiptGiven, statement=other, signature=key.sign(other)))
