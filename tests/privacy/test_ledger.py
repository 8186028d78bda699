"""The ledger keeps what was charged, and notices a changed or forgotten entry."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import BudgetExhausted, ConfigError, DataError, LedgerBehind, UnsupportedEvent
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.privacy.ledger import (
    NEAR_LANDMARKS,
    NO_PREVIOUS_HASH,
    Budget,
    Charge,
    Kind,
    LedgerEntry,
    Receipt,
    append,
    charge_of,
    check_budget,
    check_receipt,
    common_position,
    entry_hash,
    from_json_line,
    kind_of_recovery,
    missing_charges,
    receipt_for,
    spent,
    to_json_line,
    verify_chain,
)
from tests.each_case import each_case

NEIGHBOURS = "one label changes, N public"
HALF = ReleaseEvent("gaussian", analytic_noise_multiplier(0.5, 1e-6), NEIGHBOURS)
ONE = ReleaseEvent("gaussian", analytic_noise_multiplier(1.0, 1e-6), NEIGHBOURS)


def charge(
    previous: LedgerEntry | None,
    population: str = "users",
    event: ReleaseEvent = HALF,
    kind: Kind = "release",
    content_sha256: str = "ab" * 32,
) -> LedgerEntry:
    number = previous.position if previous else 0
    asked = Charge(
        population=population,
        event=event,
        dataset=f"{population}-clicks",
        snapshot="2024-01",
        requester="shop",
        request_id=f"request-{number}",
        content_sha256=content_sha256,
        epsilon=0.5,
        delta=1e-6,
        unit="a label of one row",
    )
    return append(previous, asked, time="2024-01-01T00:00:00+00:00", answer_sha256="cd" * 32, kind=kind)


def ledger(populations: list[str]) -> list[LedgerEntry]:
    entries: list[LedgerEntry] = []
    for number, population in enumerate(populations):
        event = (HALF, ONE)[number % 2]
        entries.append(charge(entries[-1] if entries else None, population, event))
    return entries


def receipt_at(entries: list[LedgerEntry], position: int) -> Receipt:
    entry = entries[position - 1]
    charges = Charges.of(charge_of(e) for e in entries[:position] if e.population == entry.population)
    return receipt_for("server", entry, charges, {e.position: e for e in entries}.get)


def check(receipt: Receipt, entries: list[LedgerEntry]) -> None:
    at = {entry.position: entry for entry in entries}
    check_receipt(receipt, at.get, last_position=len(entries))


POPULATIONS = st.lists(st.sampled_from(["users", "shops"]), min_size=1, max_size=8)
ENTRIES = ledger(["users", "shops", "users", "users", "shops"])


# --- the chain ----------------------------------------------------------------------------------


def test_positions_count_from_one_over_all_populations() -> None:
    assert [entry.position for entry in ENTRIES] == [1, 2, 3, 4, 5]
    assert ENTRIES[0].previous_hash == NO_PREVIOUS_HASH
    verify_chain(ENTRIES)
    verify_chain([])


def other(value: object) -> object:
    return f"{value}x" if isinstance(value, str) else value * 2  # type: ignore[operator]


@each_case("position", range(1, 6))
@each_case("field", [field.name for field in fields(LedgerEntry)])
def test_a_changed_field_is_noticed_at_its_position(field: str, position: int) -> None:
    entry = ENTRIES[position - 1]
    changed = replace(entry, **{field: other(getattr(entry, field))})
    with pytest.raises(DataError, match=f"entry {position} "):
        verify_chain([*ENTRIES[: position - 1], changed, *ENTRIES[position:]])


@each_case("position", range(1, 5))
def test_an_entry_written_anew_breaks_the_next_one(position: int) -> None:
    entry = replace(ENTRIES[position - 1], epsilon=0.1)
    entry = replace(entry, hash=entry_hash(entry))
    with pytest.raises(DataError, match=f"entry {position + 1} "):
        verify_chain([*ENTRIES[: position - 1], entry, *ENTRIES[position:]])


@each_case("position", range(1, 5))
def test_a_removed_or_swapped_entry_is_noticed(position: int) -> None:
    before, entry, after, rest = (
        ENTRIES[: position - 1],
        *ENTRIES[position - 1 : position + 1],
        ENTRIES[position + 1 :],
    )
    for wrong in (
        [*before, after, *rest],
        [*before, after, entry, *rest],
        [*before, entry, entry, after, *rest],
    ):
        with pytest.raises(DataError, match=f"entry ({position}|{position + 1}) "):
            verify_chain(wrong)


@given(st.text(), st.text(), st.text(), st.text())
def test_no_two_contents_share_a_hash(dataset: str, version: str, other_dataset: str, other_version: str) -> None:
    one = replace(ENTRIES[0], dataset=dataset, snapshot=version)
    two = replace(ENTRIES[0], dataset=other_dataset, snapshot=other_version)
    assert (entry_hash(one) == entry_hash(two)) == (one == two)


def test_moving_a_letter_between_fields_changes_the_hash() -> None:
    one = replace(ENTRIES[0], dataset="ab", snapshot="c")
    assert entry_hash(one) != entry_hash(replace(one, dataset="a", snapshot="bc"))


def test_the_encoding_is_fixed() -> None:
    """A ledger outlives the version that wrote it: a change needs a new domain string and a migration."""
    assert entry_hash(replace(ENTRIES[0], event="gaussian/0x1p+2/x")) == FIXED_HASH


FIXED_HASH = "3e6955d25018cce57084c3382df4f994dd4b9495ec7655ad03398e0b97bcefc3"


# --- the budget ---------------------------------------------------------------------------------


def test_spent_composes_the_entries() -> None:
    of_users = [entry for entry in ENTRIES if entry.population == "users"]
    assert spent(of_users, 1e-6) == composed_epsilon([HALF, HALF, ONE], 1e-6)
    assert spent([], 1e-6) == 0


def test_a_budget_of_one_admits_one_release_of_one() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    check_budget([], ONE, budget, "users")
    with pytest.raises(BudgetExhausted) as refused:
        check_budget([ONE], HALF, budget, "users")
    assert refused.value.population == "users"
    assert refused.value.budget == 1.0
    assert refused.value.spent == pytest.approx(1.0)
    assert refused.value.requested == pytest.approx(0.5)


def test_two_datasets_of_one_population_share_its_budget() -> None:
    first = charge(None)
    second = replace(charge(first), dataset="users-purchases")
    events = [ReleaseEvent.from_canonical(entry.event) for entry in (first, second)]
    with pytest.raises(BudgetExhausted):
        check_budget(events, ONE, Budget(1.0, 1e-6), "users")


@settings(deadline=None)
@given(st.lists(st.sampled_from([HALF, ONE]), max_size=12), st.floats(0.5, 5))
def test_whatever_is_admitted_stays_within_the_budget(requests: list[ReleaseEvent], epsilon: float) -> None:
    admitted: list[ReleaseEvent] = []
    for event in requests:
        try:
            check_budget(admitted, event, Budget(epsilon, 1e-6), "users")
        except BudgetExhausted:
            continue
        admitted.append(event)
    assert composed_epsilon(admitted, 1e-6) <= epsilon * (1 + 1e-9)


def test_a_release_with_other_neighbours_is_refused() -> None:
    with pytest.raises(UnsupportedEvent):
        check_budget([ONE], replace(HALF, neighbours="one row changes"), Budget(100.0, 1e-6), "users")


def test_a_budget_is_checked() -> None:
    with pytest.raises(ConfigError, match="epsilon"):
        Budget(0.0, 1e-6)
    with pytest.raises(ConfigError, match="delta"):
        Budget(1.0, 0.0)


# --- the auditor's export -----------------------------------------------------------------------


@given(
    text=st.text(st.characters()),
    number=st.floats(allow_nan=False, allow_infinity=False),
    position=st.integers(1, 2**62),
    kind=st.sampled_from(get_args(Kind)),
)
def test_a_line_is_its_entry(text: str, number: float, position: int, kind: str) -> None:
    entry = replace(ENTRIES[0], position=position, dataset=text, epsilon=number, kind=kind)  # type: ignore[arg-type]
    line = to_json_line(entry)
    assert "\n" not in line
    assert from_json_line(line + "\n", 1) == from_json_line(line, 1) == entry


def test_an_exported_ledger_verifies() -> None:
    exported = [to_json_line(entry) for entry in ENTRIES]
    verify_chain(from_json_line(line, number) for number, line in enumerate(exported, start=1))


LINE = to_json_line(ENTRIES[0])


@each_case(
    "line",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        LINE[:-1],
        LINE[:-1] + ',"more":1}',
        LINE.replace('"position":1', '"position":1,"position":1'),
        LINE.replace('"position":1', '"position":true'),
        LINE.replace('"position":1', '"position":1.0'),
        LINE.replace('"position":1', f'"position":{"1" * 5000}'),
        LINE.replace('"epsilon":0.5', '"epsilon":5e-1'),
        LINE.replace('"epsilon":0.5', '"epsilon":1'),
        LINE.replace('"epsilon":0.5', '"epsilon":NaN'),
        LINE.replace('"epsilon":0.5', '"epsilon":1e999'),
        LINE.replace('"kind":"release"', '"kind":"refund"'),
        LINE.replace('"unit":"a label of one row"', '"unit":null'),
        LINE.replace(",", ", "),
    ],
)
def test_a_wrong_line_is_named(line: str) -> None:
    assert line != LINE
    with pytest.raises(DataError, match="line 17 "):
        from_json_line(line, 17)


@given(st.sampled_from([field.name for field in fields(LedgerEntry)]), st.data())
def test_any_value_of_another_type_is_refused(field: str, data: st.DataObject) -> None:
    content = json.loads(LINE)
    wrong = st.one_of(st.none(), st.booleans(), st.lists(st.integers()), st.dictionaries(st.text(), st.text()))
    content[field] = data.draw(wrong)
    with pytest.raises(DataError, match="line 3 "):
        from_json_line(json.dumps(content, separators=(",", ":")), 3)


# --- receipts -----------------------------------------------------------------------------------


def test_a_receipt_counts_its_population_up_to_its_position() -> None:
    receipt = receipt_at(ENTRIES, 4)
    assert receipt.population == "users"
    assert dict(receipt.charges.counted) == {HALF.canonical(): 2, ONE.canonical(): 1}
    assert receipt.charges.counted == tuple(sorted(receipt.charges.counted))
    assert receipt.charges.sums == ()


@given(POPULATIONS)
def test_an_honest_ledger_honours_every_receipt(populations: list[str]) -> None:
    entries = ledger(populations)
    for position in range(1, len(entries) + 1):
        receipt = receipt_at(entries, position)
        check(receipt, entries)
        assert list(missing_charges(receipt, entries, position, [])) == []


@given(POPULATIONS)
def test_every_rollback_is_noticed(populations: list[str]) -> None:
    entries = ledger(populations)
    receipt = receipt_at(entries, len(entries))
    for kept in range(len(entries)):
        with pytest.raises(LedgerBehind) as noticed:
            check(receipt, entries[:kept])
        assert noticed.value.ledger_position == kept
        assert noticed.value.receipt_position == len(entries)
        assert noticed.value.population == receipt.population


@given(populations=POPULATIONS, kept=st.integers(0, 7))
def test_a_ledger_that_went_on_after_a_rollback_is_noticed(populations: list[str], kept: int) -> None:
    entries = ledger(populations)
    receipt = receipt_at(entries, len(entries))
    continued = entries[: min(kept, len(entries) - 1)]
    while len(continued) < len(entries) + 2:
        continued.append(charge(continued[-1] if continued else None, "elsewhere"))
    verify_chain(continued)
    with pytest.raises(LedgerBehind):
        check(receipt, continued)


@given(populations=POPULATIONS, kept=st.integers(0, 7))
def test_a_receipt_recovers_what_was_lost(populations: list[str], kept: int) -> None:
    entries = ledger(populations)
    receipt = receipt_at(entries, len(entries))
    recovered = entries[: min(kept, len(entries) - 1)]
    common = len(recovered)
    for lost, count in missing_charges(receipt, recovered, common, []):
        for _ in range(count):
            previous, event = recovered[-1] if recovered else None, ReleaseEvent.from_canonical(lost.event)
            recovered.append(charge(previous, receipt.population, event, kind_of_recovery(lost), receipt.entry_hash))
    assert list(missing_charges(receipt, recovered, common, [receipt])) == []
    of_population = [[e for e in book if e.population == receipt.population] for book in (entries, recovered)]
    assert spent(of_population[1], 1e-6) == pytest.approx(spent(of_population[0], 1e-6), rel=1e-9)


def test_charges_of_another_population_do_not_stand_in() -> None:
    receipt = receipt_at(ENTRIES, 4)
    elsewhere = [replace(entry, population="shops") for entry in ENTRIES]
    missing = {charge.event: count for charge, count in missing_charges(receipt, elsewhere, 4, [])}
    assert missing == dict(receipt.charges.counted)


LONG = ledger(["users"] * 300)


def sorted_items(counted: dict[Any, int]) -> tuple[tuple[Any, int], ...]:
    return tuple(sorted(counted.items()))


RECEIPTS = st.builds(
    Receipt,
    st.text(max_size=3),
    st.text(max_size=3),
    st.integers(1, 20),
    st.text("01", max_size=3),
    st.builds(
        Charges,
        st.dictionaries(st.text("ab1", max_size=2), st.integers(1, 12), max_size=3).map(sorted_items),
        st.dictionaries(
            st.tuples(st.sampled_from(["gaussian", "pure"]), st.text("ab1", max_size=2)), st.integers(1, 12), max_size=3
        ).map(lambda sums: tuple((*name, units) for name, units in sorted_items(sums))),
    ),
    st.lists(st.tuples(st.integers(1, 12), st.text("ab1", max_size=2)), max_size=3).map(tuple),
)


@given(RECEIPTS, RECEIPTS)
def test_different_receipts_are_signed_differently(one: Receipt, two: Receipt) -> None:
    assert (one.statement() == two.statement()) == (one == two)


def test_a_receipt_signs_every_field() -> None:
    receipt = receipt_at(ENTRIES, 5)
    counted = receipt.charges.counted
    changes: list[Receipt] = [
        replace(receipt, server="another"),
        replace(receipt, population="users"),
        replace(receipt, position=4),
        replace(receipt, entry_hash="0" * 64),
        replace(receipt, charges=Charges(counted[:-1])),
        replace(receipt, charges=Charges(tuple((event, count + 1) for event, count in counted))),
        replace(receipt, charges=Charges(counted, (("gaussian", "words", 7),))),
        replace(receipt, charges=Charges(counted, (("gaussian", "words", 8),))),
        replace(receipt, landmarks=receipt.landmarks[1:]),
    ]
    assert len({r.statement() for r in [receipt, *changes]}) == 10


def statement(**changes: object) -> bytes:
    content = json.loads(receipt_at(ENTRIES, 5).statement()) | changes
    return json.dumps({name: value for name, value in content.items() if value != "-"}, separators=(",", ":")).encode()


def test_a_receipt_is_read_as_it_was_written() -> None:
    receipt = receipt_at(ENTRIES, 5)
    assert Receipt.from_statement(statement()) == Receipt.from_statement(receipt.statement()) == receipt


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"3",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        statement() + b" ",
        statement(position=5.0),
        statement(position="5"),
        statement(position=True),
        statement(position=0),
        statement(position=-5),
        statement(charges="-"),
        statement(charges=[["gaussian"]]),
        statement(charges=[["gaussian", "many"]]),
        statement(charges=[["gaussian", float("inf")]]),
        statement(sums=[3]),
        statement(landmarks=None),
        statement(server="-"),
        statement(more=1),
    ],
    ids=range(20),
)
def test_what_is_no_receipt_is_refused(octets: bytes) -> None:
    """A valid signature does not help: a server can sign anything."""
    with pytest.raises(DataError, match=r"^not a receipt$"):
        Receipt.from_statement(octets)


@each_case("position", [1, 2, NEAR_LANDMARKS, NEAR_LANDMARKS + 1, 300])
def test_landmarks_are_earlier_entries(position: int) -> None:
    landmarks = receipt_at(LONG, position).landmarks
    distances = [position - at for at, _ in landmarks]
    assert distances[:NEAR_LANDMARKS] == list(range(1, min(position, NEAR_LANDMARKS + 1)))
    assert distances[NEAR_LANDMARKS:] == [distance for distance in (64, 128, 256) if distance < position]
    assert [digest for _, digest in landmarks] == [LONG[position - d - 1].hash for d in distances]


@given(st.integers(0, 299), st.integers(1, 300))
def test_landmarks_say_where_two_ledgers_parted(parted: int, position: int) -> None:
    """The place is exact within the last 32 entries; before them it is at most half of the way too early, never too
    late.
    """
    position = max(position, parted + 1)
    lost = LONG[:position]
    kept = [*LONG[:parted], charge(LONG[parted - 1] if parted else None, "another", ONE)]
    found = common_position(receipt_at(lost, position), {e.position: e for e in kept}.get)
    assert found <= parted
    if position - parted <= NEAR_LANDMARKS:
        assert found == parted
    else:
        assert position - found <= 2 * (position - parted)


def test_a_receipt_stays_small() -> None:
    assert len(receipt_at(LONG, 300).statement()) < 4096
