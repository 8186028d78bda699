"""The privacy unit, through the whole service: the largest change by one label or one person, and its least cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import BudgetExhausted, PolicyRefused
from blindfit.algorithms.privacy.gaussian import gaussian_delta
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols.walr import ConsumerRows
from blindfit.parties.measurement.label_index import JoinState
from blindfit.parties.settings import PolicySettings
from tests.measurement.house import NAMES, ONE, House, make_dataset, one_hot
from tests.privacy.noise_checks import empirical_epsilon, faults_of_normal
from tests.walr_split.released import without_noise

OpenHouse = Callable[..., House]
WIDE = Budget(50.0, 1e-6)


# --- a person's rows --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    owners=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    declared=st.integers(1, 4),
    asked=st.integers(1, 4),
    order=st.randoms(),
)
def test_rows_of_a_person_beyond_m_never_count(
    tmp_path_factory: pytest.TempPathFactory, owners: list[int], declared: int, asked: int, order: object
) -> None:
    directory = tmp_path_factory.mktemp("persons")
    names = list(NAMES[: len(owners)])
    person_of = dict(zip(names, (f"person-{o}" for o in owners), strict=True))
    dataset = make_dataset(
        directory, dict.fromkeys(names, 1), list(person_of.values()), max_rows_per_person=max(declared, asked)
    )
    order.shuffle(names)  # type: ignore[attr-defined]
    rows = one_hot(names)
    house = House(directory, {"visits": dataset}, WIDE)
    with pytest.MonkeyPatch.context() as patch:
        without_noise(patch)
        request = house.request(rows, max_rows_per_person=asked)
        answer, kept = house.send(rows, request)
        again, kept_again = house.send(rows, request)
    house.close()
    counted = [name for name, cell in zip(names, answer.sums.tolist(), strict=True) if cell == ONE]
    per_person = Counter(person_of[name] for name in counted)
    assert per_person == {person: min(n, asked) for person, n in Counter(person_of.values()).items()}
    assert answer.sensitivity == asked * ONE
    assert [name for name, k in zip(names, kept, strict=True) if k] == counted
    assert kept_again.tolist() == kept.tolist()
    assert again.sums.tolist() == answer.sums.tolist()


def test_the_first_rows_in_the_consumers_order_count(
    open_house: OpenHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only ids and persons decide which rows count: a label must not decide it."""
    without_noise(monkeypatch)
    for label in (0, 1):
        labels = {name: (i % 2) ^ label for i, name in enumerate(NAMES)}
        dataset = make_dataset(tmp_path / str(label), labels, [f"person-{i // 3}" for i in range(12)])
        house = open_house(datasets={"visits": dataset}, budget=WIDE)
        rows = one_hot(NAMES[::-1])
        _, kept = house.send(rows, house.request(rows, release=str(label)))
        assert kept.tolist() == [True, False, False] * 4


def test_kept_rows_stay_those_of_the_answer_when_the_table_changes(open_house: OpenHouse, tmp_path: Path) -> None:
    """The stored answer goes with the stored bits, not with what the new table would keep."""
    labels = dict.fromkeys(NAMES, 1)
    old = make_dataset(tmp_path, labels, ["ann"] * 6 + ["bob"] * 6)
    house = open_house(datasets={"visits": old}, budget=WIDE)
    request = house.request(one_hot())
    first, kept = house.send(one_hot(), request)
    house.close()
    new = make_dataset(tmp_path, dict.fromkeys(NAMES[6:], 1), [f"person-{i}" for i in range(6)])
    house = open_house(datasets={"visits": new}, budget=WIDE)
    again, kept_again = house.send(one_hot(), request)
    assert house.consumed == ["AggregateOpen"]
    assert kept.tolist() == kept_again.tolist() == [True, *[False] * 5, True, *[False] * 5]
    assert again.sums.tolist() == first.sums.tolist()


def test_many_pieces_of_kept_bits(open_house: OpenHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blindfit.algorithms.protocols.walr.KEPT_PIECE_BYTES", 3)
    names = [f"row-{i}" for i in range(101)]
    dataset = make_dataset(tmp_path, dict.fromkeys(names, 1), [f"person-{i % 40}" for i in range(101)])
    house = open_house(datasets={"visits": dataset}, budget=WIDE)
    rows = one_hot(names, [0] * 101)
    for _ in range(2):
        _, kept = house.send(rows, house.request(rows))
        assert kept.tolist() == [i < 40 for i in range(101)]


# --- one budget for the same people -------------------------------------------------------------------


def test_two_datasets_of_one_population_draw_on_one_budget(open_house: OpenHouse, tmp_path: Path) -> None:
    labels = dict.fromkeys(NAMES, 1)
    datasets = {
        "visits": make_dataset(tmp_path, labels),
        "clicks": make_dataset(tmp_path, labels, name="clicks"),
        "others": make_dataset(tmp_path, labels, name="others", population="others"),
    }
    house = open_house(datasets=datasets, budget=Budget(1.0, 1e-6))
    house.ask(dataset="visits")
    with pytest.raises(BudgetExhausted) as refused:
        house.ask(dataset="clicks", consumer="bank", epsilon=0.1)
    assert refused.value.population == "people"
    house.ask(dataset="others")
    assert house.spent("people") == pytest.approx(1)
    assert house.spent("others") == pytest.approx(1)


# --- a label that comes late --------------------------------------------------------------------------


def test_a_changed_label_is_a_new_version_with_its_own_charge(open_house: OpenHouse, tmp_path: Path) -> None:
    labels = dict.fromkeys(NAMES, 0)
    house = open_house(datasets={"visits": make_dataset(tmp_path, labels)}, budget=Budget(1.0, 1e-6))
    old = house.request(one_hot())
    first, _ = house.send(one_hot(), old)
    house.close()
    house = open_house(datasets={"visits": make_dataset(tmp_path, labels | {NAMES[3]: 1})}, budget=Budget(1.2, 1e-6))
    again, _ = house.send(one_hot(), old)
    assert again.sums.tolist() == first.sums.tolist()
    assert len(house.entries) == 1
    with pytest.raises(PolicyRefused) as refused:  # a new question about the old version
        house.ask(release="new", snapshot=old.snapshot)
    assert refused.value.field == "snapshot"
    with pytest.raises(BudgetExhausted):
        house.ask()
    house.ask(epsilon=0.2)
    assert [entry.snapshot for entry in house.entries] == [
        old.snapshot,
        house.datasets["visits"].snapshot,
    ]
    assert house.spent() > 1


# --- neighbours -----------------------------------------------------------------------------------------

CELLS = 512
EPSILON = 1.0
DELTA = gaussian_delta(1.0, EPSILON)  # for a noise as wide as the sensitivity, where an attack sees most


def released(tmp_path: Path, label: int, persons: bool = False, releases: int = 10) -> np.ndarray:
    """Return sums in units of the sensitivity.

    Only row j (and with `persons`, a second row of the same person) adds to cell j. So the cells are as many
    independent releases of one label, or of one person. Every row is too long."""
    names = [f"row-{i}" for i in range(CELLS * (2 if persons else 1))]
    owners = [f"person-{i % CELLS}" for i in range(len(names))] if persons else None
    directory = tmp_path / f"{label}-{persons}"
    dataset = make_dataset(directory, dict.fromkeys(names, label), owners)
    policy = PolicySettings(min_rows=1, max_epsilon=50, max_delta=0.4)
    house = House(directory, {"visits": dataset}, Budget(1000.0, 0.4), policy)
    rows = ConsumerRows(tuple(names), np.zeros((len(names), CELLS), np.int32))
    rows.weights[np.arange(len(names)), np.arange(len(names)) % CELLS] = ONE if persons else 2 * ONE
    try:
        answers = [house.ask(rows, epsilon=EPSILON, delta=DELTA, release=str(i)) for i in range(releases)]
    finally:
        house.close()
    return np.concatenate([answer.sums for answer in answers]) / ONE


def epsilon_seen(neighbours: tuple[np.ndarray, np.ndarray]) -> float:
    without, with_label = neighbours
    threshold = EPSILON + 0.5  # the privacy loss of a unit noise passes epsilon here
    hits, others = int((with_label > threshold).sum()), int((without > threshold).sum())
    return empirical_epsilon(hits, others, len(without), DELTA)


@pytest.mark.parametrize("persons", [False, True])
def test_neighbours_look_alike(tmp_path: Path, persons: bool) -> None:
    without, with_label = released(tmp_path, 0, persons), released(tmp_path, 1, persons)
    # Two verdicts of 1e-7 each. For the third the truth is EPSILON, and both bounds would have to be wrong: 2e-6 at
    # most; together they are 6.6 standard errors away.
    assert faults_of_normal(without, 1.0) == []
    assert faults_of_normal(with_label - 1, 1.0) == []
    assert epsilon_seen((without, with_label)) <= EPSILON


def test_without_the_check_of_norms_they_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "enforce_norm_bound", lambda rows, bound: (rows, 0))
    # 69% of hits, and 37% would do: 30 standard errors.
    assert epsilon_seen((released(tmp_path, 0, releases=6), released(tmp_path, 1, releases=6))) > EPSILON


def test_without_the_cap_of_persons_they_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JoinState, "_within_cap", lambda _self, person: np.ones(len(person), np.bool_))
    assert epsilon_seen((released(tmp_path, 0, True, releases=6), released(tmp_path, 1, True, releases=6))) > EPSILON
