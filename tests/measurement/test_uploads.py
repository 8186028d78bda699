"""Uploads without an answer are counted on the disk before their first id is looked up, and limited."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console

from blindfit.algorithms.errors import BlindfitError, CannotAnswer, ConfigError, PolicyRefused
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols.walr import RowsEnd
from blindfit.coordinator.operator import ledger as ledger_view
from blindfit.parties.account import account
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.measurement import uploads
from blindfit.parties.measurement.desk import AggregateDesk
from blindfit.parties.measurement.label_index import JoinState
from blindfit.parties.measurement.seat import MeasurementSeat
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.account import RESET, Disclosure
from blindfit.parties.store.database import Writes
from blindfit.parties.store.uploads import FailedUploads
from blindfit.parties.systems import read_party
from tests.hints.following import Told, says
from tests.hints.following import refused as refused_by
from tests.measurement.house import NAMES, POLICY, House, make_dataset, one_hot
from tests.release_labels.house import Counter, make_labels
from tests.walr.seats import talk

OpenHouse = Callable[..., House]
WIDE = Budget(50.0, 1e-6)
UNKNOWN = one_hot((*NAMES, "nobody"))


def limits(in_24_hours: int = 3) -> PolicySettings:
    return POLICY.model_copy(update={"max_failed_uploads": in_24_hours})


def failed(house: House) -> int:
    return house.service.store.reader().count_uploads()


def wrong_hash(house: House, consumer: str = "shop") -> BlindfitError:
    with pytest.raises(BlindfitError) as caught:
        house.ask(one_hot(), consumer, content_sha256=bytes(32), release="with a wrong hash")
    return caught.value


# --- what counts ------------------------------------------------------------------------------------


def test_an_upload_that_is_answered_does_not_count(house: House) -> None:
    house.ask()
    house.ask()
    assert failed(house) == 0


@pytest.mark.parametrize("public", [True, False])
def test_every_other_end_of_an_upload_counts(open_house: OpenHouse, tmp_path: Path, public: bool) -> None:
    dataset = make_dataset(tmp_path, dict.fromkeys(NAMES, 1), rows_are_public=public)
    house = open_house(datasets={"visits": dataset}, budget=WIDE)
    rows = one_hot()
    (batch,) = rows.batches()
    ends: list[Callable[[], object]] = [
        lambda: house.ask(content_sha256=bytes(32)),
        lambda: house.ask(UNKNOWN),
        lambda: house.ask(one_hot((*NAMES, NAMES[3]), range(13))),
        lambda: talked(house, house.request(rows), batch),  # silence follows
        lambda: talked(house, house.request(rows), batch, batch),
        lambda: talked(house, house.request(rows, n_rows=13), batch, RowsEnd()),
    ]
    for number, end in enumerate(ends, 1):
        with pytest.raises(BlindfitError):
            end()
        assert failed(house) == number
    (told,) = house.service.store.reader().uploads()
    assert told == FailedUploads("shop", "visits", len(ends), told.last)


def talked(house: House, *messages: object) -> None:
    desk = AggregateDesk(house.service, "shop")
    try:
        asyncio.run(talk(desk, *messages))
    finally:
        desk.close()


def test_what_is_refused_before_any_row_does_not_count(house: House) -> None:
    with pytest.raises(BlindfitError):
        house.ask(epsilon=50.1)
    with pytest.raises(BlindfitError):
        talked(house, house.request(one_hot()))  # the rows never come
    assert failed(house) == 0


def test_it_is_on_the_disk_before_an_id_is_looked_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is killed in the middle has counted it."""
    join, seen = JoinState.join, []

    def look(state: JoinState, ids: list[str]) -> Any:
        with sqlite3.connect(house.database) as others:
            seen.append(others.execute("SELECT consumer, dataset FROM uploads").fetchall())
        return join(state, ids)

    monkeypatch.setattr(JoinState, "join", look)
    house.ask()
    assert seen == [[("shop", "visits")]]
    assert failed(house) == 0


def test_an_answer_that_was_charged_leaves_though_the_count_stays(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Writes, "forget_upload", full)
    house.ask()
    assert (len(house.entries), failed(house)) == (1, 1)


# --- what the limits do -----------------------------------------------------------------------------


def test_a_consumer_may_fail_so_often_in_a_day(open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    monkeypatch.setattr(uploads, "stamp", lambda later=timedelta(): (clock[0] + later).isoformat())
    house = open_house(policy=limits(), budget=WIDE)
    answer = house.octets()
    for hour in range(3):
        assert not isinstance(wrong_hash(house), PolicyRefused)
        clock[0] = datetime(2026, 1, 1, 13 + hour, tzinfo=UTC)
    house.reopen()
    for ask in (wrong_hash, lambda house: refused(house, release="an honest one")):
        error = ask(house)
        assert isinstance(error, PolicyRefused)
        assert error.field == "max_failed_uploads"
        assert house.consumed == ["AggregateOpen"]
    assert house.octets() == answer  # an earlier answer is still given
    assert not isinstance(wrong_hash(house, "bank"), PolicyRefused)
    house.ask(consumer="bank", release="of another consumer")
    clock[0] = datetime(2026, 1, 2, 12, tzinfo=UTC)  # the first one's 24 hours are not yet over
    assert isinstance(wrong_hash(house), PolicyRefused)
    with refused_by("wait for a day, or have {party}'s operator raise policy.max_failed_uploads") as told:
        house.ask(release="an honest one")
    assert Told(says("{} uploads of this party had no answer in 24 hours: no more may")).is_in(told.text)
    clock[0] += timedelta(seconds=1)
    house.ask(release="a day later")
    assert not isinstance(wrong_hash(house), PolicyRefused)
    assert isinstance(wrong_hash(house), PolicyRefused)


def refused(house: House, **changes: Any) -> PolicyRefused:
    with pytest.raises(PolicyRefused) as caught:
        house.ask(**changes)
    return caught.value


def test_uploads_without_an_answer_count_in_the_account_until_it_starts_again(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: an active party fails as often as it may each day, for years, and learns one person each time."""
    clock = [datetime(2026, 1, 1, tzinfo=UTC)]
    monkeypatch.setattr(uploads, "stamp", lambda later=timedelta(): (clock[0] + later).isoformat())
    monkeypatch.setattr(uploads, "MOST_UPLOADS", 4)
    house = open_house(policy=limits(), budget=WIDE)
    for consumer in ("shop", "bank", "shop", "bank"):
        wrong_hash(house, consumer)
        clock[0] += timedelta(days=100)
    for consumer in ("shop", "bank"):
        assert refused(house, consumer=consumer).field == "uploads"
    with refused_by("start the account again (`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)"):
        house.ask()
    start_account_again(house, clock[0])  # the operator's word
    house.reopen()
    for _ in range(2):
        wrong_hash(house)
        clock[0] += timedelta(days=100)
    house.ask()


def test_uploads_without_an_answer_stop_to_count_after_the_period(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_UPLOADS", 2)
    house = open_house(policy=limits(), budget=WIDE)
    for consumer in ("shop", "bank"):
        wrong_hash(house, consumer)
    house.policy = limits().model_copy(update={"account_period_days": 30})
    house.reopen()
    assert refused(house).field == "uploads"
    later = datetime.now(UTC) + timedelta(days=31)
    monkeypatch.setattr(account, "stamp", lambda more=timedelta(): (later + more).isoformat())
    house.ask()


def test_an_active_party_has_its_share_of_uploads_without_an_answer(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_UPLOADS", 4)
    shares = {"account_shares": {"shop": 0.5}}
    house = open_house(policy=limits().model_copy(update=shares), budget=WIDE)
    for consumer in ("shop", "shop", "bank"):  # without a share the bank may have one
        assert not isinstance(wrong_hash(house, consumer), PolicyRefused)
    for consumer in ("shop", "bank"):
        assert refused(house, consumer=consumer).field == "uploads"


def start_account_again(house: House, made: datetime) -> None:
    """Write what `blindfit ledger --reset-account` does, at a time of the test's own."""
    entry = Disclosure("people", RESET, "", "", "the account starts again", "reset 1", 0, made=made.isoformat())
    with house.service.store.transaction() as transaction:
        transaction.add_disclosure(entry)


def test_many_at_once_do_not_pass_the_limit(open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """All were admitted before any of them began."""
    house = open_house(policy=limits(2), budget=WIDE)
    desks = [AggregateDesk(house.service, "shop") for _ in range(4)]
    rows = one_hot()
    for number, desk in enumerate(desks):
        assert desk.admit(house.request(rows, release=str(number))) is None
    begun = []
    for desk in desks:
        try:
            desk.join(NAMES)
            begun.append(desk)
        except PolicyRefused:
            pass
    assert begun == desks[:2]
    for desk in desks:
        desk.close()


def test_a_refusal_for_who_is_in_the_table_is_told_so_often_and_no_more(open_house: OpenHouse) -> None:
    house = open_house(policy=limits(2))
    for _ in range(2):
        with pytest.raises(CannotAnswer):
            house.ask(UNKNOWN)
    with pytest.raises(PolicyRefused):
        house.ask(UNKNOWN)
    assert house.entries == []


def test_labels_that_are_asked_for_again_have_the_same_limits(open_house: OpenHouse, tmp_path: Path) -> None:
    """Repeated labels cost nothing, and an answered upload does not cancel an unanswered one."""
    counter = Counter(open_house(datasets={"prices": make_labels(tmp_path)}, policy=limits(2), budget=WIDE))
    for number in range(2):
        counter.ask()
        with pytest.raises(BlindfitError) as caught:
            counter.ask(request_id=str(number), content_sha256=bytes(32))
        assert not isinstance(caught.value, PolicyRefused)
    with pytest.raises(PolicyRefused):
        counter.ask()
    assert counter.sent == ["LabelsOpen"]
    counter.ask(consumer="bank")
    assert failed(counter.house) == 2


# --- messages for the coordinator and the operator ---------------------------------------------------------


@pytest.mark.parametrize("public", [True, False])
def test_how_many_rows_there_are_is_told_only_where_it_is_public(
    open_house: OpenHouse, tmp_path: Path, public: bool
) -> None:
    house = open_house(datasets={"visits": make_dataset(tmp_path, dict.fromkeys(NAMES, 1), rows_are_public=public)})
    about = SimpleNamespace(datasets=house.service.described)
    seat = MeasurementSeat(SimpleNamespace(once=lambda _: house.service, settings=about))  # type: ignore[arg-type]

    async def at_once(*_: object) -> None:
        pass

    session = SimpleNamespace(
        with_role=lambda _: SimpleNamespace(name="shop"),
        report=lambda *_, **__: None,
        channel=SimpleNamespace(wait_for=at_once),
        once=lambda _: SimpleNamespace(wait=lambda: None),
        job=SimpleNamespace(timeouts=SimpleNamespace(session_s=1.0)),
        me=SimpleNamespace(dataset="visits"),
    )
    summary = asyncio.run(seat.run(session))  # type: ignore[arg-type]
    assert summary.get("dataset_rows") == (len(NAMES) if public else None)
    assert (len(NAMES) in summary.values()) == public


def test_the_operator_sees_whose_uploads_had_no_answer(house: House) -> None:
    wrong_hash(house)
    wrong_hash(house)
    wrong_hash(house, "bank")
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(ledger_view._uploads(house.service.store.reader().uploads()))
    lines = [line.split()[:3] for line in console.export_text().splitlines()]
    assert ["bank", "visits", "1"] in lines
    assert ["shop", "visits", "2"] in lines


# --- settings ---------------------------------------------------------------------------------------


def test_the_limit_is_a_measurement_servers() -> None:
    party = {
        "name": "shop",
        "role": "active",
        "identity": {"certificate": "c", "key": "k", "authority": "a"},
        "peers": {"organiser": {"role": "coordinator"}},
        "policy": {"max_failed_uploads": 3},
    }
    with pytest.raises(
        ConfigError, match=r"policy\.max_failed_uploads is an option of a measurement server, remove it"
    ):
        read_party(party, "shop.toml")
    with pytest.raises(ValidationError):
        PolicySettings(max_failed_uploads=0)


def test_rows_are_not_public_unless_it_is_said() -> None:
    assert not PartyDatasetSettings(url="csv:x.csv", id="id").rows_are_public
