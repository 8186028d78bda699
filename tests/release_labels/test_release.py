"""A release of labels has a cost, is drawn once, and is refused under some conditions."""

from __future__ import annotations

import random
import stat
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
    LedgerBehind,
    LedgerUnavailable,
    MalformedMessage,
    PolicyRefused,
    RequestConflict,
    TooFewRows,
    UnexpectedStep,
)
from blindfit.algorithms.privacy.accountant import composed_epsilon, spent_epsilon
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
from blindfit.algorithms.privacy.ledger import Budget, Receipt, verify_chain
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.parties.files import signing
from blindfit.parties.measurement.charging import ApprovedJob
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.receipts import acknowledge_losses
from blindfit.parties.systems import policy_class
from tests.measurement.house import make_dataset, one_hot
from tests.release_labels.house import GRID, LABELS, LAPLACE, NAMES, RANGE, WIDE, Counter, make_labels

OpenCounter = Callable[..., Counter]
GAUSSIAN = MechanismSettings("gaussian", GRID, 1.0, delta=1e-6)
RP = MechanismSettings("rp-with-prior", GRID, 1.0)
POLICY = PolicySettings(min_rows=1, max_epsilon=50.0)


def policy_with(mechanisms: list[str], **options: Any) -> PolicySettings:
    values = {"min_rows": 1, "label-dp": {"mechanisms": mechanisms}, **options}
    return policy_class(("label-dp",)).model_validate(values)


def released(counter: Counter) -> list[Path]:
    return sorted((counter.house.directory / "label_releases").glob("release-*"))


# --- one release ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        LAPLACE,
        GAUSSIAN,
        RP,
        MechanismSettings("staircase", GRID, 2.0),
        MechanismSettings("rr-on-bins", GRID, 2.0, rounding=1.0),
        MechanismSettings("rp-banded", GRID, 1.0, half_width=2.0),
    ],
    ids=lambda settings: settings.name,
)
def test_a_release_is_charged_once_for_the_whole_dataset(counter: Counter, settings: MechanismSettings) -> None:
    received = counter.ask(NAMES[:3], settings)
    (entry,) = counter.house.entries
    assert (entry.requester, entry.dataset, entry.kind, entry.unit) == ("shop", "prices", "release", UNITS["row"][0])
    assert (entry.epsilon, entry.delta) == (pytest.approx(settings.epsilon), settings.delta)
    assert entry.event == received.release.event
    assert counter.house.spent() == pytest.approx(settings.epsilon, rel=1e-6)
    assert counter.house.spent() >= settings.epsilon * (1 - 1e-9)
    assert received.mechanism.name == settings.name
    assert received.mechanism.epsilon + received.release.epsilon_prior <= settings.epsilon
    counter.ask(NAMES, settings)
    assert counter.charges == 1


def test_the_labels_are_those_of_the_rows(counter: Counter) -> None:
    settings = replace(LAPLACE, epsilon=30.0)
    labels = GRID.reals(counter.ask(settings=settings).steps)
    # Laplace noise of scale 1/3: beyond the first bound once in 1e9. A correlation of 0.9 needs squares that sum to 76,
    # of 9 expected: one of 8.1, which is the first bound, or many large ones, which are rarer.
    assert np.abs(labels - list(LABELS.values())).max() < 10 * np.log(40 / 1e-9) / 30
    assert np.corrcoef(labels, list(LABELS.values()))[0, 1] > 0.9


def test_labels_outside_the_range_are_clipped_and_only_the_operator_is_told(
    tmp_path: Path, open_counter: OpenCounter
) -> None:
    labels = {name: 1e6 if i % 2 else -1e6 for i, name in enumerate(NAMES)}
    with capture_logs() as logs:
        counter = open_counter(datasets={"prices": make_labels(tmp_path, labels)})
    assert [(entry["rows"], entry["dataset"]) for entry in logs] == [(40, "prices")]
    received = counter.ask(settings=replace(LAPLACE, epsilon=30.0))
    expected = [10.0 if i % 2 else 0.0 for i in range(40)]
    # Laplace noise of scale 1/3: beyond it once in 1e9.
    assert np.abs(GRID.reals(received.steps) - expected).max() < 10 * np.log(40 / 1e-9) / 30


def test_a_receipt_proves_the_charge(counter: Counter) -> None:
    release = counter.ask().release
    assert signing.verify(counter.house.service.key.public_bytes, release.receipt, release.receipt_signature)
    receipt = Receipt.from_statement(release.receipt)
    assert (receipt.position, receipt.entry_hash) == (1, counter.house.entries[0].hash)
    assert receipt.charges == Charges(((release.event, 1),))


# --- the same for ever ------------------------------------------------------------------------------


def test_whatever_is_asked_however_often_a_row_has_one_noisy_label(counter: Counter) -> None:
    known = dict(zip(NAMES, counter.steps(), strict=True))
    rng = random.Random(0)
    for number in range(12):
        ids = rng.sample(NAMES, rng.randint(1, len(NAMES)))
        if number % 3 == 2:
            counter.restart()
        steps = counter.steps(ids, consumer=rng.choice(["shop", "bank"]), request_id=f"other-{number}")
        assert dict(zip(ids, steps, strict=True)) == {name: known[name] for name in ids}
    assert counter.charges == 1
    assert len(released(counter)) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("staircase", {"optimal_for": "squared"}),
        ("rp-with-prior", {"half_width": "auto", "prior_mechanism": "laplace"}),
    ],
)
def test_a_default_that_is_said_asks_for_the_same_release(counter: Counter, name: str, said: dict[str, Any]) -> None:
    short = MechanismSettings(name, GRID, 1.0)
    first = counter.ask(settings=short)
    again = counter.ask(settings=replace(short, **said))
    assert again.steps.tolist() == first.steps.tolist()
    assert counter.charges == 1


def test_the_same_request_is_answered_byte_for_byte(counter: Counter) -> None:
    answers = [counter.ask() for _ in range(3)]
    assert len({answer.release for answer in answers}) == 1
    assert len({answer.steps.tobytes() for answer in answers}) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"release": "second"},
        {"settings": replace(LAPLACE, epsilon=2.0)},
        {"settings": replace(LAPLACE, grid=LabelGrid(*RANGE, cells=1000))},
        {"settings": MechanismSettings("staircase", GRID, 1.0)},
    ],
)
def test_what_makes_another_release(counter: Counter, changes: dict[str, Any]) -> None:
    first = counter.steps()
    assert counter.steps(**changes) != first
    assert counter.charges == 2
    assert counter.steps() == first
    assert counter.steps(**changes) != first
    assert counter.charges == 2
    verify_chain(counter.house.entries)


def test_a_corrected_label_is_a_new_version_with_its_own_charge(tmp_path: Path, open_counter: OpenCounter) -> None:
    counter = open_counter()
    first, old = counter.steps(), counter.request()
    counter.house.datasets["prices"] = make_labels(tmp_path, LABELS | {"row-0": 9.0})
    counter.restart()
    assert counter.send(NAMES, old).steps.tolist() == first  # the remembered answer stays
    with pytest.raises(PolicyRefused, match="snapshot"):
        counter.send(NAMES[:5], replace(counter.request(NAMES[:5]), snapshot=old.snapshot))
    assert counter.steps() != first
    assert counter.charges == 2


def test_a_known_request_id_with_other_rows_is_a_conflict(counter: Counter) -> None:
    request = counter.request()
    counter.send(NAMES, request)
    with pytest.raises(RequestConflict):
        counter.ask(NAMES[:5], request_id=request.request_id)
    with pytest.raises(RequestConflict):
        counter.ask(settings=replace(LAPLACE, epsilon=0.5), request_id=request.request_id)


# --- the budget -------------------------------------------------------------------------------------


def test_two_mechanisms_compose_in_the_ledger(counter: Counter) -> None:
    counter.ask(settings=LAPLACE)
    counter.ask(settings=GAUSSIAN)
    events = [ReleaseEvent.from_canonical(entry.event) for entry in counter.house.entries]
    assert [event.mechanism for event in events] == ["pure", "gaussian"]
    assert counter.house.spent() == spent_epsilon(events, WIDE.delta)
    assert composed_epsilon(events, WIDE.delta) < counter.house.spent() < 3.0


def test_labels_and_aggregates_of_one_population_draw_on_one_budget(tmp_path: Path, open_counter: OpenCounter) -> None:
    visits = make_dataset(tmp_path, {f"row-{i}": i % 2 for i in range(12)})
    counter = open_counter(datasets={"visits": visits, "prices": make_labels(tmp_path)}, budget=Budget(2.2, 1e-6))
    counter.house.ask(epsilon=0.7)
    counter.ask(settings=replace(LAPLACE, epsilon=0.7))
    with pytest.raises(BudgetExhausted):
        counter.ask(settings=replace(LAPLACE, epsilon=0.7), release="second")
    with pytest.raises(BudgetExhausted):
        counter.house.ask(epsilon=0.7, release="second")


def test_what_was_released_is_told_again_when_nothing_is_left(open_counter: OpenCounter) -> None:
    counter = open_counter(budget=Budget(1.0, 1e-6))
    first = counter.steps()
    with pytest.raises(BudgetExhausted):
        counter.ask(release="second")
    assert counter.sent == ["LabelsOpen"]
    assert counter.steps(NAMES[7:9]) == first[7:9]
    assert len(released(counter)) == 1


# --- the unit is a person ---------------------------------------------------------------------------


PERSONS = [f"person-{i // 8}" for i in range(40)]


def of_persons(directory: Path, open_counter: OpenCounter, **settings: Any) -> Counter:
    dataset = make_labels(directory, persons=PERSONS, max_rows_per_person=3)
    return open_counter(datasets={"prices": dataset}, **settings)


@pytest.mark.parametrize("settings", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_a_person_is_charged_for_all_her_rows(
    tmp_path: Path, open_counter: OpenCounter, settings: MechanismSettings
) -> None:
    counter = of_persons(tmp_path, open_counter)
    received = counter.ask(settings=settings)
    (entry,) = counter.house.entries
    one = release_labels.step_2_event(
        replace(counter.request(settings=settings), max_rows_per_person=1), neighbours="n"
    )
    assert entry.epsilon == pytest.approx(composed_epsilon([one] * 3, settings.delta or 1e-300), rel=1e-9)
    assert (entry.unit, received.release.epsilon) == (UNITS["person"][0], entry.epsilon)
    assert entry.epsilon > settings.epsilon * 1.5


def test_no_more_rows_of_a_person_are_ever_released(tmp_path: Path, open_counter: OpenCounter) -> None:
    """An active party that asks for some rows today and for others tomorrow gets no more either."""
    counter = of_persons(tmp_path, open_counter)
    kept = ~counter.ask().withheld
    assert [int(kept[i : i + 8].sum()) for i in range(0, 40, 8)] == [3] * 5
    # By chance 3 of 8 rows of each person are kept: at least one of any six.
    for ids in (NAMES[::-1], [*NAMES[:6], *NAMES[6::3]], NAMES[2:9]):
        received = counter.ask(ids)
        assert [name for name, gone in zip(ids, received.withheld, strict=True) if not gone] == [
            name for name in ids if kept[NAMES.index(name)]
        ]
        assert not received.steps[received.withheld].any()
    assert counter.charges == 1


def test_a_prior_is_made_of_the_rows_that_may_be_released(
    tmp_path: Path, open_counter: OpenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[int] = []
    true_fit = release_labels.fit
    monkeypatch.setattr(
        release_labels,
        "fit",
        lambda s, labels, uniform, make: fitted.append(len(labels)) or true_fit(s, labels, uniform, make),
    )
    of_persons(tmp_path, open_counter).ask(settings=RP)
    assert fitted == [15]


def test_too_few_rows_that_count_cost_nothing(tmp_path: Path, open_counter: OpenCounter) -> None:
    counter = of_persons(tmp_path, open_counter, policy=PolicySettings(min_rows=16, max_epsilon=50.0))
    with pytest.raises(CannotAnswer):
        counter.ask()
    assert counter.charges == 0
    assert released(counter) == []


def test_more_rows_of_a_person_than_the_dataset_allows(tmp_path: Path, open_counter: OpenCounter) -> None:
    counter = of_persons(tmp_path, open_counter)
    for rows in (0, 4):
        with pytest.raises(PolicyRefused, match="max_rows_per_person"):
            counter.ask(max_rows_per_person=rows)
    assert (~counter.ask(max_rows_per_person=1).withheld).sum() == 5


# --- refused before anything is charged ---------------------------------------------------------------


def refused(counter: Counter, error: type[BlindfitError], match: str | None = None, **arguments: Any) -> None:
    with pytest.raises(error, match=match):
        counter.ask(**arguments)
    assert counter.charges == 0
    assert released(counter) == []


@pytest.mark.parametrize("public", [True, False])
def test_ids_that_are_unknown_or_stand_twice(tmp_path: Path, open_counter: OpenCounter, public: bool) -> None:
    counter = open_counter(datasets={"prices": make_labels(tmp_path, rows_are_public=public)})
    kind, message = (
        (DataError, "row 41 of the request has an id that the table") if public else (CannotAnswer, "cannot answer")
    )
    refused(counter, kind, message, ids=[*NAMES, "nobody"])
    refused(counter, DataError, "row 41 of the request has an id that the request", ids=[*NAMES, NAMES[0]])
    known = counter.steps()
    with pytest.raises(kind):
        counter.ask([*NAMES, "nobody"])
    assert counter.steps() == known


def test_who_may_not_ask(counter: Counter) -> None:
    refused(counter, PolicyRefused, "no dataset of this name", consumer="stranger")


def test_too_few_rows(open_counter: OpenCounter) -> None:
    counter = open_counter(policy=PolicySettings(min_rows=10, max_epsilon=50.0))
    refused(counter, TooFewRows, ids=NAMES[:9])
    assert counter.sent == ["LabelsOpen"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"settings": replace(LAPLACE, epsilon=1.01)}, "max_epsilon"),
        ({"settings": replace(LAPLACE, grid=LabelGrid(0.0, 9.0))}, "label range"),
        ({"settings": MechanismSettings("staircase", GRID, 0.5)}, "not one of the policy's mechanisms"),
        ({"max_rows_per_person": 1}, "max_rows_per_person"),
        ({"snapshot": "0"}, "snapshot"),
        ({"receipt": b"x"}, "receipt"),
    ],
)
def test_what_the_policy_forbids(open_counter: OpenCounter, changes: dict[str, Any], match: str) -> None:
    counter = open_counter(policy=policy_with(["laplace", "gaussian"], max_epsilon=1.0))
    settings, wire = changes.pop("settings", LAPLACE), dict(changes)
    request = counter.request(settings=settings)
    with pytest.raises(PolicyRefused, match=match):
        counter.send(NAMES, replace(request, **wire))
    assert counter.charges == 0


def test_each_kind_of_labels_has_its_own_release(tmp_path: Path, open_counter: OpenCounter) -> None:
    visits = make_dataset(tmp_path, dict.fromkeys(NAMES, 1))
    counter = open_counter(datasets={"visits": visits, "prices": make_labels(tmp_path)})
    refused(counter, PolicyRefused, "ask for an aggregate", dataset="visits")
    with pytest.raises(PolicyRefused, match="ask for a release of labels"):
        counter.house.ask(one_hot(NAMES), dataset="prices")
    assert counter.charges == 0


def test_where_the_operator_approves_each_job(open_counter: OpenCounter) -> None:
    job = ApprovedJob("prices", 1.0, 1e-6)
    counter = open_counter(
        policy=PolicySettings(min_rows=1, max_epsilon=50.0, approve="ask"),
        approved_job=lambda session, consumer: job if (session, consumer) == ("job-1", "shop") else None,
    )
    refused(counter, PolicyRefused, "no approved job")
    refused(counter, PolicyRefused, "more than", session="job-1", settings=replace(LAPLACE, epsilon=1.1))
    first = counter.steps(session="job-1")
    with pytest.raises(PolicyRefused, match="had its answer"):
        counter.ask(session="job-1", release="second")
    assert counter.steps(NAMES[:2], session="job-1") == first[:2]
    assert counter.steps() == first  # the very request that was answered
    with pytest.raises(PolicyRefused, match="no approved job"):
        counter.ask(NAMES[:2])
    with pytest.raises(PolicyRefused, match="no approved job"):
        counter.ask(NAMES[:2], consumer="bank", session="job-1")


# --- what is kept -----------------------------------------------------------------------------------


def test_remembered_labels_are_the_operators_alone(counter: Counter) -> None:
    counter.ask()
    (directory,) = released(counter)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for name in ("label", "header.json"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_damaged_labels_are_never_drawn_anew(counter: Counter, how: str) -> None:
    counter.ask()
    path = released(counter)[0] / "label"
    octets = bytearray(path.read_bytes())
    octets[5] ^= 1
    path.unlink()
    if how != "gone":
        path.write_bytes(octets if how == "changed" else octets[:-8])
    counter.restart()
    for ids in (NAMES, NAMES[:3]):
        with pytest.raises(LedgerUnavailable, match="are stored in"):
            counter.ask(ids)
    counter.ask(release="second")
    assert counter.charges == 2


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(counter: Counter) -> None:
    first = counter.steps()
    (kept,) = released(counter)
    (kept.parent / "release-killed").mkdir()
    (kept.parent / "release-killed" / "label").write_bytes(b"drawn, never told")
    counter.restart()
    assert released(counter) == [kept]
    assert counter.steps() == first


def test_a_prior_of_which_nothing_can_be_made_is_charged_too(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a party could ask again until the estimate, which is made from labels, is another one."""

    def fails(*_: object) -> None:
        raise DataError("of no use")

    with monkeypatch.context() as patched:
        patched.setattr(release_labels, "fit", fails)
        with pytest.raises(PolicyRefused, match="the estimate was charged"):
            counter.ask(settings=RP)
        with pytest.raises(PolicyRefused, match="of no use"):
            counter.ask(settings=LAPLACE)  # no label had a part in it
    assert counter.charges == 1
    counter.restart()
    with pytest.raises(PolicyRefused, match="the estimate was charged"):
        counter.ask(settings=RP)
    assert counter.charges == 1
    assert released(counter) == []


def test_a_restored_backup_refunds_nothing(tmp_path: Path, open_counter: OpenCounter) -> None:
    counter = open_counter()
    counter.ask()
    counter.house.close()
    backup = {path.name: path.read_bytes() for path in tmp_path.glob("party.sqlite*")}
    counter.house.open()
    counter = Counter(counter.house)
    lost = counter.ask(release="second")
    counter.house.close()
    for path in tmp_path.glob("party.sqlite*"):
        path.unlink()
    for name, content in backup.items():
        (tmp_path / name).write_bytes(content)
    counter.house.open()
    counter = Counter(counter.house)
    with pytest.raises(LedgerBehind):
        counter.ask(release="second", receipt=lost)
    assert acknowledge_losses(counter.house.service.store, "restored") == 1
    counter.ask(release="second", receipt=lost)
    assert [entry.kind for entry in counter.house.entries] == ["release", "recovered", "release"]


def test_describe_tells_range_and_mechanisms(open_counter: OpenCounter) -> None:
    counter = open_counter(policy=policy_with(["laplace"]))
    description = counter.house.service.describe(counter.house.datasets["prices"])
    assert (description.label_kind, description.label_lo, description.label_hi) == ("number", *RANGE)
    assert list(description.mechanisms) == ["laplace"]


def test_malformed_requests(counter: Counter) -> None:
    for changes in (
        {"request_id": ""},
        {"n_rows": 0},
        {"release": ""},
        {"release": "x" * 65},
        {"release": "a\nb"},
        {"content_sha256": b""},
        {"protocol_version": "0"},
        {"settings": replace(GAUSSIAN, grid=LabelGrid(*RANGE, cells=100))},
    ):
        with pytest.raises(MalformedMessage):
            counter.send(NAMES, replace(counter.request(), **changes))
    for changes, error in (
        ({"n_rows": 39}, MalformedMessage),
        ({"n_rows": 41}, UnexpectedStep),
        ({"content_sha256": bytes(32)}, MalformedMessage),
    ):
        with pytest.raises(error):
            counter.send(NAMES, replace(counter.request(), **changes))
    assert counter.charges == 0
