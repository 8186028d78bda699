"""An active party keeps only receipts that the server signed, and of these the one that proves most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.privacy.ledger import Budget, Receipt
from blindfit.algorithms.protocols.walr import NoisySum
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.store.database import Store
from blindfit.parties.store.receipts import check_given, hold_receipt
from tests.measurement.house import House

OpenHouse = Callable[..., House]
WIDE = Budget(50.0, 1e-6)
HELD = ("labels", "people")


@pytest.fixture
def consumer(tmp_path: Path) -> Iterator[Store]:
    """The active party's own database."""
    store = Store(tmp_path / "shop" / "party.sqlite")
    yield store
    store.close()


def hold(store: Store, house: House, statement: bytes, signature: bytes) -> None:
    described = house.service.describe(house.datasets["visits"])
    hold_receipt(store, "labels", described.receipt_key, described.population, (statement, signature))


def receipt_of(answer: NoisySum) -> tuple[bytes, bytes]:
    return answer.receipt, answer.receipt_signature


def test_the_receipt_that_proves_most_is_held(open_house: OpenHouse, consumer: Store) -> None:
    house = open_house(budget=WIDE)
    first, second = (receipt_of(house.ask(release=str(i))) for i in range(2))
    for receipt, held in ((first, first), (second, second), (first, second)):
        hold(consumer, house, *receipt)
        assert consumer.reader().receipt_held(*HELD) == held


def test_a_receipt_that_the_server_did_not_sign_is_not_held(
    open_house: OpenHouse, consumer: Store, tmp_path: Path
) -> None:
    """If it were held, the active party would show it in the next request, be refused, and could ask no more."""
    house = open_house(budget=WIDE)
    good, signature = receipt_of(house.ask())
    later = replace(Receipt.from_statement(good), position=7).statement()
    other = SigningKey.load_or_create(tmp_path / "other.pem")
    for statement, signed in (
        (good, b""),
        (good, bytes(64)),
        (good, other.sign(good)),
        (later, signature),
        (later, other.sign(later)),
    ):
        with pytest.raises(MalformedMessage) as refused:
            hold(consumer, house, statement, signed)
        assert (refused.value.culprit, refused.value.field) == ("labels", "receipt")
        assert consumer.reader().receipt_held(*HELD) == (b"", b"")
    hold(consumer, house, good, signature)
    assert consumer.reader().receipt_held(*HELD) == (good, signature)


@pytest.mark.parametrize("change", [{"server": "another"}, {"population": "others"}])
def test_a_receipt_about_something_else_is_not_held(
    open_house: OpenHouse, consumer: Store, change: dict[str, str]
) -> None:
    house = open_house(budget=WIDE)
    statement = replace(Receipt.from_statement(house.ask().receipt), **change).statement()
    with pytest.raises(MalformedMessage, match="something else"):
        hold(consumer, house, statement, house.service.key.sign(statement))
    assert consumer.reader()._all("SELECT * FROM receipts_held") == []


@pytest.mark.parametrize("statement", [b"", b"{}", b"[3]", b"\xff"])
def test_what_a_server_signs_and_is_no_receipt_is_the_servers_fault(statement: bytes, tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "key.pem")
    with pytest.raises(MalformedMessage, match="is not a receipt, though signed as one") as refused:
        check_given((statement, key.sign(statement)), "labels", key.public_bytes)
    assert refused.value.culprit == "labels"
