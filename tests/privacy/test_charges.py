"""A receipt's sum of all charges is bounded for any history, exact for a few charges, and never too small."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy import charges
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.charges import Charges, CountedCharge, events_of
from blindfit.algorithms.privacy.events import LEAST_MULTIPLIER, MOST_MULTIPLIER, ReleaseEvent, Sampling

WORDS = "one label changes"
MULTIPLIERS = st.floats(0.5, 1e4) | st.floats(LEAST_MULTIPLIER, MOST_MULTIPLIER)
PLAIN = st.builds(ReleaseEvent, st.sampled_from(["gaussian", "laplace", "pure"]), MULTIPLIERS, st.just(WORDS))
SAMPLED = st.builds(
    lambda multiplier, n: ReleaseEvent("sampled-gaussian", multiplier, WORDS, Sampling(0.1, n, 1)),
    st.floats(1, 100),
    st.integers(1, 50),
)
HISTORIES = st.lists(PLAIN | SAMPLED, max_size=12)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charges, "MOST_DIFFERENT", 3)


def charged(events: list[ReleaseEvent]) -> list[CountedCharge]:
    return [CountedCharge(event.canonical()) for event in events]


def inverse_variance(events: list[ReleaseEvent]) -> Fraction:
    gaussians = [event for event in events if "gaussian" in event.mechanism]
    return sum(
        ((e.sampling.n_releases if e.sampling else 1) / Fraction(e.noise_multiplier) ** 2 for e in gaussians),
        Fraction(),
    )


def epsilon(events: list[ReleaseEvent]) -> Fraction:
    return sum((Fraction(e.epsilon) for e in events if e.mechanism in ("laplace", "pure")), Fraction())


def paid(left: list[tuple[CountedCharge, int]]) -> list[tuple[CountedCharge, ReleaseEvent]]:
    return [(charge, ReleaseEvent.from_canonical(charge.event)) for charge, count in left for _ in range(count)]


@settings(max_examples=200, deadline=None)
@given(HISTORIES, st.integers(0, 12))
def test_what_is_left_is_never_less_than_was_lost_and_hardly_more(history: list[ReleaseEvent], kept: int) -> None:
    beginning, lost = history[:kept], history[kept:]
    left = list(Charges.of(charged(history)).without(charged(beginning), []))
    events = [event for _, event in paid(left)]
    for cost in (inverse_variance, epsilon):
        # A term may be one unit too large, and a float one last bit.
        assert cost(lost) <= cost(events) <= cost(lost) * (1 + Fraction(1, 2**50)) + Fraction(20, 2**100)


A_LAST_BIT = [  # a sum in two parts, each of them rounded
    *[ReleaseEvent("sampled-gaussian", 1.0, WORDS, Sampling(0.1, 1, 1))] * 2,
    *[ReleaseEvent("gaussian", multiplier, WORDS) for multiplier in (1.0, 2.0, 7246366685.0, 16429554.0)],
]


@settings(max_examples=100, deadline=None)
@given(HISTORIES, st.integers(0, 12), st.integers(0, 12))
@example(A_LAST_BIT, 0, 5)
def test_what_was_recovered_is_not_recovered_again(history: list[ReleaseEvent], kept: int, shown: int) -> None:
    """First an older receipt is used, then the newest; then any."""
    beginning = charged(history[:kept])
    older, newest = Charges.of(charged(history[: max(kept, shown)])), Charges.of(charged(history))
    recovered: list[CountedCharge] = []
    for receipt in (older, newest):
        recovered += [charge for charge, _ in paid(list(receipt.without(beginning, recovered)))]
    left = [event for _, event in paid(list(newest.without(beginning, recovered)))]
    assert left == []
    assert list(older.without(beginning, recovered)) == []
    events = [ReleaseEvent.from_canonical(charge.event) for charge in recovered]
    for cost in (inverse_variance, epsilon):
        assert cost(events) >= cost(history[kept:])


def test_sums_compose_to_no_less() -> None:
    history = [ReleaseEvent("gaussian", 20.0 + i / 100, WORDS) for i in range(20)]
    history += [ReleaseEvent.pure(0.01 + i / 1e5, WORDS) for i in range(20)]
    events = [event for _, event in paid(list(Charges.of(charged(history)).without([], [])))]
    assert composed_epsilon(events, 1e-6) >= composed_epsilon(history, 1e-6)
    gaussian = [[e for e in some if e.mechanism == "gaussian"] for some in (events, history)]
    assert composed_epsilon(gaussian[0], 1e-6) == pytest.approx(composed_epsilon(gaussian[1], 1e-6), rel=1e-9)


def test_a_few_different_ones_are_counted_as_they_are() -> None:
    history = [ReleaseEvent("gaussian", s, WORDS) for s in (1.0, 2.0, 1.0, 3.0, 1.0)]
    assert Charges.of(charged(history)).sums == ()
    assert dict(Charges.of(charged(history)).counted) == {
        ReleaseEvent("gaussian", s, WORDS).canonical(): n for s, n in ((1.0, 3), (2.0, 1), (3.0, 1))
    }


def test_any_history_fits() -> None:
    history = [ReleaseEvent("gaussian", 1.0 + i / 7, WORDS) for i in range(1000)]
    history += [ReleaseEvent("laplace", 1.0 + i / 7, WORDS) for i in range(1000)]
    of_all = Charges.of(charged(history))
    assert len(of_all.counted) == 3
    assert [(law, words) for law, words, _ in of_all.sums] == [("gaussian", WORDS), ("pure", WORDS)]
    assert len(repr(of_all)) < 1000


@given(HISTORIES, HISTORIES)
def test_later_charges_cover_earlier_ones(one: list[ReleaseEvent], more: list[ReleaseEvent]) -> None:
    before, after = Charges.of(charged(one)), Charges.of(charged([*one, *more]))
    assert after.covers(before)
    assert before.covers(after) == (not more)


@given(HISTORIES, HISTORIES, st.integers(0, 12))
def test_what_was_recovered_covers_what_was_lost(
    history: list[ReleaseEvent], others: list[ReleaseEvent], kept: int
) -> None:
    """This holds although other charges came between, and took the places of counted ones."""
    held = Charges.of(charged(history))
    recovered = [charge for charge, _ in paid(list(held.without(charged(history[:kept]), [])))]
    assert Charges.of([*charged(history[:kept]), *charged(others), *recovered]).covers(held)


@pytest.mark.parametrize(("law", "most"), [("gaussian", 2**144), ("pure", 2**124)])
def test_no_sum_is_too_great_or_too_small_to_charge(law: str, most: int) -> None:
    for units in (*range(1, 60), *range(2**100, 2**100 + 20), 3**62, most - 1, most):
        events = list(events_of(law, WORDS, units))
        whole = [charges._units(law, event.noise_multiplier, rounded=math.floor) for event in events]
        assert sum(whole) >= units
        assert len(events) < 100


def test_a_sum_that_is_none() -> None:
    for sums in ((("laplace", WORDS, 7),), (("pure", WORDS, 0),)):
        with pytest.raises(DataError):
            Charges((), sums)
