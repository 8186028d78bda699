"""A request that is wrong in public is refused for that before any row is sent, for any rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError, BudgetExhausted, CannotAnswer, PolicyRefused, TooFewRows
from blindfit.parties.measurement.label_index import LabelIndex
from tests.each_case import each_case
from tests.measurement.house import NAMES, POLICY, House, one_hot

OpenHouse = Callable[..., House]
STRANGERS = one_hot(("nobody", *NAMES[1:]))  # the server does not know this id, and must not look it up


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[LabelIndex]:
    """Indexes that were asked for rows."""
    asked: list[LabelIndex] = []
    new_request = LabelIndex.new_request

    def note(index: LabelIndex, *given: Any) -> Any:
        asked.append(index)
        return new_request(index, *given)

    monkeypatch.setattr(LabelIndex, "new_request", note)
    return asked


@each_case(
    ("changes", "policy", "refusal"),
    [
        ({"dataset": "archive"}, {}, (PolicyRefused, "this party has no dataset of this name")),
        ({"snapshot": "0" * 32}, {}, (PolicyRefused, "this is not the newest snapshot of the dataset")),
        ({"in_shares": 1}, {}, (PolicyRefused, "its labels are not shares")),
        ({"max_rows_per_person": 2}, {}, (PolicyRefused, r"privacy\.max_rows_per_person")),
        ({"epsilon": 1.5}, {"max_epsilon": 1.0}, (PolicyRefused, r"privacy\.epsilon")),
        ({"delta": 1e-5}, {"max_delta": 1e-6}, (PolicyRefused, r"privacy\.delta")),
        ({}, {"min_rows": 13}, (TooFewRows, "12")),
        ({"epsilon": 2.0}, {}, (BudgetExhausted, "budget")),
        ({}, {"max_failed_uploads": 0}, (PolicyRefused, "had no answer in 24 hours")),
    ],
)
def test_a_public_reason_comes_before_any_row(
    open_house: OpenHouse,
    looked_up: list[LabelIndex],
    changes: dict[str, Any],
    policy: dict[str, Any],
    refusal: tuple[type[BlindfitError], str],
) -> None:
    house = open_house(policy=POLICY.model_copy(update=policy))
    chosen = {name: changes[name] for name in ("epsilon", "delta") if name in changes}
    request = replace(house.request(STRANGERS, **chosen), **{n: v for n, v in changes.items() if n not in chosen})
    with pytest.raises(refusal[0], match=refusal[1]):
        house.send(STRANGERS, request)
    assert house.consumed == ["AggregateOpen"]
    assert looked_up == []
    assert house.entries == []


def test_the_same_rows_are_refused_in_a_request_that_is_right_in_public(
    open_house: OpenHouse, looked_up: list[LabelIndex]
) -> None:
    house = open_house()
    with pytest.raises(CannotAnswer):
        house.send(STRANGERS, house.request(STRANGERS))
    assert len(looked_up) == 1
    assert house.entries == []
