"""A recommendation follows from its rules, and each sentence has the figures behind it."""

from __future__ import annotations

from typing import Any

import pytest

from blindfit.coordinator.simulate.kept import Failed
from blindfit.coordinator.simulate.recommendation import PROTECTIONS, RULES, recommend
from tests.simulate.studies import done, repeat, results

ROWS, LABELS, COMPUTED = (protection.wish for protection in PROTECTIONS)


def sentence(found: list[str], begin: str) -> str:
    (said,) = [one for one in found if one.startswith(begin)]
    return said


def said(ended: Any, **more: Any) -> list[str]:
    return list(recommend(results(ended, **more)))


def test_of_one_kind_the_fastest_wins() -> None:
    found = said({("taylor", None): [done(0.89, 9.0)], ("falcon", None): [done(0.89, 30.0)]})
    about = sentence(found, COMPUTED)
    assert f"{COMPUTED}: taylor. It has AUC 0.890 in 9 s, 977 KiB sent" in about
    assert "the active party only (AUC 0.700)" in about
    assert "the next, falcon, takes 30 s" in about


def test_the_smallest_epsilon_that_beats_the_active_party_wins() -> None:
    found = said({("walr", e): [done(auc)] for e, auc in ((0.1, 0.6), (0.5, 0.72), (2.0, 0.85))})
    assert f"{LABELS}: walr, epsilon 0.5. It has AUC 0.720" in sentence(found, LABELS)
    assert sentence(found, "walr, epsilon 2 of the same kind has a better quality: AUC 0.850")
    assert sentence(found, "walr, epsilon 0.1 is left out: no better than the active party only")


def test_a_gain_within_the_spread_is_none() -> None:
    """The second repeat loses what the first has won."""
    ends = [done(0.80), done(0.62)]
    found = said({("walr", 1.0): ends}, repeats=[repeat(alone=0.70), repeat(alone=0.70)])
    assert "no setting here is better than the active party only" in sentence(found, LABELS)
    steady = said({("walr", 1.0): [done(0.72), done(0.73)]}, repeats=[repeat(alone=0.70), repeat(alone=0.70)])
    assert f"{LABELS}: walr, epsilon 1." in sentence(steady, LABELS)


def test_the_difference_counts_repeat_by_repeat() -> None:
    """A repeat that is harder for everybody does not count as spread."""
    ends = [done(0.92), done(0.62)]
    found = said({("walr", 1.0): ends}, repeats=[repeat(alone=0.90), repeat(alone=0.60)])
    assert f"{LABELS}: walr, epsilon 1." in sentence(found, LABELS)


def test_a_constant_that_is_better_than_the_active_party_is_the_bar() -> None:
    found = said({("dp-lr", 1.0): [done(0.49)]}, alone=0.4, constant=0.5)
    assert "no setting here is better than the constant (AUC 0.500)" in sentence(found, ROWS)


def test_a_system_without_a_result_is_not_recommended() -> None:
    found = said({("taylor", None): [Failed("no room")], ("falcon", None): [done(0.8)]})
    assert f"{COMPUTED}: falcon." in sentence(found, COMPUTED)
    assert said({("taylor", None): [Failed("no room")]}) == ["No run has a result yet, so nothing is recommended."]


def test_columns_that_add_nothing_are_named() -> None:
    found = said({("taylor", None): [done(0.7)]}, joined=0.7, alone=0.7)
    assert sentence(found, "The columns of the other parties add little: without any privacy the joined fit has AUC")


@pytest.mark.parametrize(("ends", "warns"), [(1, True), (2, False)])
def test_one_repeat_has_no_spread(ends: int, warns: bool) -> None:
    found = said({("taylor", None): [done(0.8)] * ends})
    assert any("--repeat 5" in one for one in found) == warns


def test_every_system_has_one_kind_of_protection() -> None:
    systems = [system for protection in PROTECTIONS for system in protection.systems]
    assert sorted(systems) == ["dp-lr", "falcon", "label-dp", "taylor", "walr"]
    assert len(RULES) == 5


def test_it_says_where_all_columns_must_lie_at_one_party() -> None:
    said = list(recommend(results({("dp-lr", 1.0): [done(0.8)]})))
    assert "(AUC 0.700). It needs one party that has all columns and the label." in said[0]


def test_it_says_that_repeats_are_left_out() -> None:
    said = list(recommend(results({("walr", 1.0): [done(0.8), Failed("a party was lost")]})))
    assert "1 of 2 repeats ended without a result: its figures leave them out." in said[0]
