"""A measurement server accepts and refuses requests, charges a release once, and always gives it the same answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import (
    BlindfitError,
    BudgetExhausted,
    CannotAnswer,
    DataError,
    LedgerUnavailable,
    MalformedMessage,
    PolicyRefused,
    RequestConflict,
    TooFewRows,
    UnsupportedEvent,
)
from blindfit.algorithms.privacy import charges
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.ledger import Budget, Receipt, verify_chain
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows
from blindfit.parties.files import signing
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement.charging import ApprovedJob
from blindfit.parties.store.database import Writes
from tests.hints.following import refused_value
from tests.measurement.house import NAMES, ONE, POLICY, House, make_dataset, one_hot
from tests.walr_split.released import without_noise

OpenHouse = Callable[..., House]
WIDE = Budget(20.0, 1e-6)


# --- one release ------------------------------------------------------------------------------------


def test_a_release_is_charged_and_says_how(house: House) -> None:
    answer = house.ask()
    (entry,) = house.entries
    assert (entry.requester, entry.dataset, entry.population) == ("shop", "visits", "people")
    assert (entry.epsilon, entry.delta, entry.kind) == (1.0, 1e-6, "release")
    assert entry.event == answer.event
    assert (answer.unit, answer.rows_kept, answer.rows_scaled) == ("the label of one row", 12, 0)
    assert answer.sensitivity == ONE
    assert house.spent() == pytest.approx(1.0)


def test_the_sums_are_those_of_the_labels(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    assert house.ask().sums.tolist() == [ONE * (i % 2) for i in range(12)]


@pytest.mark.parametrize("public", [False, True])
def test_rows_taken_as_label_0_are_counted_for_the_operator_and_in_the_answer_where_rows_are_public(
    tmp_path: Path, public: bool
) -> None:
    known = dict.fromkeys(NAMES[:9], 1)
    house = House(tmp_path, {"visits": make_dataset(tmp_path, known, unknown_rows="zero", rows_are_public=public)})
    with capture_logs() as logs:
        answer = house.ask()
    assert answer.rows_unknown == (3 if public else 0)
    assert answer.rows_kept == 12
    (warned,) = [line for line in logs if line["log_level"] == "warning"]
    assert warned["event"].startswith("3 of 12 rows of shop counted as label 0, because visits does not have their ids")
    assert house.octets() == measurement_codec.answer_to_pb(answer).SerializeToString()  # the stored answer repeats it
    house.close()


def test_an_answer_carries_a_receipt_of_its_charge(house: House) -> None:
    answer = house.ask()
    assert signing.verify(house.service.key.public_bytes, answer.receipt, answer.receipt_signature)
    receipt = Receipt.from_statement(answer.receipt)
    assert (receipt.server, receipt.population, receipt.position) == ("labels", "people", 1)
    assert receipt.entry_hash == house.entries[0].hash
    assert receipt.charges == Charges(((answer.event, 1),))


def test_the_same_request_gets_the_same_answer_without_rows_or_charge(house: House) -> None:
    first = house.octets()
    assert "WeightRows" in house.consumed
    for _ in range(2):
        house.reopen()
        assert house.octets() == first
        assert house.consumed == ["AggregateOpen"]
    assert len(house.entries) == 1


def test_the_same_request_that_is_answered_at_this_moment(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process answers it and spends all, between the searches for a stored answer and for a budget."""
    other = House(tmp_path, house.datasets)
    answers: list[bytes] = []
    monkeypatch.setattr(house.service, "check_policy", lambda *_: answers.append(other.octets()))
    assert house.octets() == answers[0]
    assert len(house.entries) == 1
    other.close()


def test_another_name_is_another_draw_and_another_charge(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    answers = [house.ask(release=name) for name in ("a", "b")]
    assert answers[0].sums.tolist() != answers[1].sums.tolist()
    assert len(house.entries) == 2
    verify_chain(house.entries)


CONFLICTS: dict[str, Any] = {
    "epsilon": 0.5,
    "delta": 1e-7,
    "frac_bits": 17,
    "norm_bound": ONE + 1,
    "mechanism": "classic",
    "n_columns": 13,
    "dataset": "clicks",
}


@pytest.mark.parametrize("field", CONFLICTS)
def test_a_known_id_with_other_content_is_a_conflict(open_house: OpenHouse, tmp_path: Path, field: str) -> None:
    """This is not only about other rows: the answer of one dataset must never be given for another."""
    labels = dict.fromkeys(NAMES, 1)
    datasets = {name: make_dataset(tmp_path, labels, name=name) for name in ("visits", "clicks")}
    house = open_house(datasets=datasets, budget=WIDE)
    request = house.request(one_hot())
    house.send(one_hot(), request)
    changes = {field: CONFLICTS[field]} | ({"epsilon": 0.5} if field == "mechanism" else {})
    with pytest.raises(RequestConflict):
        house.send(one_hot(), replace(request, **changes))
    assert len(house.entries) == 1


def test_other_rows_under_a_known_id_are_a_conflict(house: House) -> None:
    request = house.request(one_hot())
    house.send(one_hot(), request)
    fewer = one_hot(NAMES[:5])
    with pytest.raises(RequestConflict):
        house.send(fewer, replace(house.request(fewer), request_id=request.request_id))


def test_the_request_id_of_another_consumer_is_ones_own(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    request = house.request(one_hot())
    first, _ = house.send(one_hot(), request, "shop")
    other, _ = house.send(one_hot(), request, "bank")
    assert other.sums.tolist() != first.sums.tolist()
    assert [entry.requester for entry in house.entries] == ["shop", "bank"]
    assert house.send(one_hot(), request, "shop")[0].sums.tolist() == first.sums.tolist()


# --- refused before any row -------------------------------------------------------------------------


def refused(house: House, error: type[BlindfitError], consumer: str = "shop", **changes: Any) -> Any:
    """Return the error; nothing was charged and, as it came before any row, nothing was read."""
    before = len(house.entries)
    with pytest.raises(error) as caught:
        house.ask(consumer=consumer, **changes)
    assert "WeightRows" not in house.consumed
    assert len(house.entries) == before
    return caught.value


def test_the_budget_is_refused_before_any_row(open_house: OpenHouse) -> None:
    house = open_house(budget=Budget(1.2, 1e-6))
    house.ask()
    error = refused(house, BudgetExhausted, release="again")
    assert (error.population, error.budget) == ("people", 1.2)
    assert error.spent == pytest.approx(1.0)
    assert error.requested == pytest.approx(1.0)
    house.ask(release="smaller", epsilon=0.5)


def test_min_rows(open_house: OpenHouse) -> None:
    house = open_house(policy=POLICY.model_copy(update={"min_rows": 12}))
    error = refused(house, TooFewRows, rows=one_hot(NAMES[:11]))
    assert (error.rows, error.least) == (11, 12)
    house.ask()


def test_least_rows_are_rows_that_count(open_house: OpenHouse, tmp_path: Path) -> None:
    """Twelve rows of one person are one row, and finding that out is not charged."""
    dataset = make_dataset(tmp_path, dict.fromkeys(NAMES, 1), persons=["ann"] * 12)
    house = open_house(datasets={"visits": dataset}, policy=POLICY.model_copy(update={"min_rows": 2}))
    with pytest.raises(CannotAnswer):
        house.ask()
    assert house.entries == []


def test_max_epsilon(open_house: OpenHouse) -> None:
    house = open_house(policy=POLICY.model_copy(update={"max_epsilon": 0.5}))
    assert refused(house, PolicyRefused).field == "privacy.epsilon"
    house.ask(epsilon=0.5)


def test_max_delta(open_house: OpenHouse) -> None:
    house = open_house(policy=POLICY.model_copy(update={"max_delta": 1e-7}))
    assert refused(house, PolicyRefused, delta=1.1e-7).field == "privacy.delta"
    house.ask(delta=1e-7)


def test_an_unknown_dataset_and_somebody_elses_are_refused_alike(open_house: OpenHouse, tmp_path: Path) -> None:
    labels = dict.fromkeys(NAMES, 1)
    datasets = {
        "visits": make_dataset(tmp_path, labels),
        "secret": make_dataset(tmp_path, labels, name="secret", active_parties=["bank"]),
    }
    house = open_house(datasets=datasets)
    existing = refused(house, PolicyRefused, dataset="secret")
    request = replace(house.request(one_hot(), "secret"), dataset="nowhere")
    with pytest.raises(PolicyRefused) as missing:
        house.send(one_hot(), request)
    assert str(existing) == str(missing.value)
    assert (existing.field, existing.reason) == (missing.value.field, missing.value.reason)


def test_a_consumer_that_is_struck_off_gets_no_stored_answer(open_house: OpenHouse, tmp_path: Path) -> None:
    labels = {name: i % 2 for i, name in enumerate(NAMES)}
    house = open_house()
    house.ask()
    house.close()
    other = open_house(datasets={"visits": make_dataset(tmp_path, labels, active_parties=["bank"])})
    refused(other, PolicyRefused)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_rows_per_person_stay_within_what_is_declared(open_house: OpenHouse, tmp_path: Path, most: int) -> None:
    persons = [f"person-{i // 3}" for i in range(12)] if most else None
    labels = dict.fromkeys(NAMES, 1)
    dataset = make_dataset(tmp_path, labels, persons, max_rows_per_person=max(most, 1))
    house = open_house(datasets={"visits": dataset}, budget=WIDE)
    for wrong in {0, most + 1, 2**16} - ({0} if most == 0 else set()):
        error = refused(house, PolicyRefused, max_rows_per_person=wrong)
        assert error.field == "privacy.max_rows_per_person"
        if most:
            refused_value("set it to 1 or more, at most {}", str(error))
        else:
            refused_value("remove it, as the unit is a row", str(error))
    house.ask(max_rows_per_person=most)


def test_a_fault_in_the_rows_charges_nothing(house: House) -> None:
    twice = ConsumerRows((*NAMES, NAMES[3]), one_hot((*NAMES, "x")).weights)
    with pytest.raises(DataError, match="row 13"):
        house.ask(twice)
    with pytest.raises(CannotAnswer):
        house.ask(one_hot((*NAMES, "nobody")))
    with pytest.raises(MalformedMessage):
        house.ask(one_hot(), content_sha256=bytes(32))
    assert house.entries == []
    house.ask()


# --- the operator says yes to each job ---------------------------------------------------------------

ASK = POLICY.model_copy(update={"approve": "ask"})


def test_a_request_needs_an_approved_job(open_house: OpenHouse) -> None:
    jobs = {("monday", "shop"): ApprovedJob("visits", 0.5, 1e-6), ("tuesday", "shop"): ApprovedJob("clicks", 1.0, 1e-6)}
    house = open_house(policy=ASK, budget=WIDE, approved_job=lambda *key: jobs.get(key))
    assert refused(house, PolicyRefused).field == "session"
    assert refused(house, PolicyRefused, session="never").field == "session"
    assert refused(house, PolicyRefused, consumer="bank", session="monday", epsilon=0.5).field == "session"
    assert refused(house, PolicyRefused, session="monday").field == "privacy"
    assert refused(house, PolicyRefused, session="monday", epsilon=0.5, delta=1e-5).field == "privacy"
    assert refused(house, PolicyRefused, session="tuesday", epsilon=0.5).field == "privacy"
    first = house.octets(session="monday", epsilon=0.5)
    assert house.octets(session="wednesday", epsilon=0.5) == first  # answered, so it costs nobody anything


def test_one_approved_job_is_one_answer(open_house: OpenHouse) -> None:
    """Otherwise an active party would spend the whole budget on one approval."""
    house = open_house(policy=ASK, budget=WIDE, approved_job=lambda *_: ApprovedJob("visits", 1.0, 1e-6))
    house.ask(session="monday")
    assert refused(house, PolicyRefused, session="monday", release="another").field == "session"
    house.ask(session="tuesday", release="another")
    house.ask(session="monday", release="the bank's own", consumer="bank")


# --- what a budget cannot bound ------------------------------------------------------------------------


def test_releases_of_another_unit_do_not_share_a_budget(open_house: OpenHouse, tmp_path: Path) -> None:
    labels = dict.fromkeys(NAMES, 1)
    open_house(budget=WIDE).ask()
    dataset = make_dataset(tmp_path, labels, persons=list(NAMES))
    house = open_house(datasets={"visits": dataset}, budget=WIDE)
    refused(house, UnsupportedEvent)


def test_a_consumer_of_many_different_epsilons_shuts_nobody_out(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receipt lists every charge, an active party chooses the charges, and each later request contains
    the receipt.
    """
    monkeypatch.setattr(charges, "MOST_DIFFERENT", 4)
    house = open_house(budget=WIDE)
    answers = [house.ask(epsilon=0.01 + i / 1e6, release=str(i)) for i in range(40)]
    sizes = [len(answer.receipt) for answer in answers]
    assert sizes[-1] - sizes[35] < 100  # landmarks, whose number is limited too
    again = house.ask(consumer="bank", epsilon=0.5, receipt=answers[-1])
    known = Receipt.from_statement(again.receipt).charges
    assert sum(count for _, count in known.counted) == 4
    assert [law for law, _, _ in known.sums] == ["gaussian"]


def test_a_charge_that_was_taken_back_is_in_no_book(open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house = open_house(budget=WIDE)
    house.ask(epsilon=0.1)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Writes, "add_answer", full)
        with pytest.raises(LedgerUnavailable):
            house.ask(epsilon=0.2)
    answer = house.ask(epsilon=0.3)
    charged = sorted((entry.event, 1) for entry in house.entries)
    assert Receipt.from_statement(answer.receipt).charges == Charges(tuple(charged))
    assert house.service.describe_budget("people").releases == len(house.entries) == 2


# --- describing ------------------------------------------------------------------------------------------


def test_the_description_says_nothing_of_labels(open_house: OpenHouse, tmp_path: Path) -> None:
    described = []
    for label in (0, 1):
        dataset = make_dataset(tmp_path / str(label), dict.fromkeys(NAMES, label))
        house = open_house(datasets={"visits": dataset})
        description = house.service.describe(dataset)
        description.snapshot = ""  # a party's own are random
        described.append(description.SerializeToString())
    assert described[0] == described[1]


def test_what_is_spent_is_told(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    assert house.service.describe_budget("people").releases == 0
    for release in "abc":
        house.ask(release=release)
    budget = house.service.describe_budget("people")
    assert (budget.population, budget.epsilon, budget.releases) == ("people", 20.0, 3)
    assert 1 < budget.spent_epsilon < 3


def test_sums_and_noise_are_integers_on_the_grid(house: House) -> None:
    answer = house.ask()
    assert answer.sums.dtype == np.int64
    assert np.abs(answer.sums).max() < 8 * answer.noise_std  # twelve normal ones: 1e-13
    assert walr.step_6_mean(answer, house.request(one_hot()))[1] == answer.noise_std / ONE / 12
