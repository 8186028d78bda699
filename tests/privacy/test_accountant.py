"""The accountant never under-reports, and refuses what it cannot bound."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError, DataError, UnsupportedEvent
from blindfit.algorithms.privacy import privacy_losses
from blindfit.algorithms.privacy.accountant import (
    common_neighbours,
    composed_epsilon,
    composed_multiplier,
    fits,
    spent_by_neighbours,
    spent_epsilon,
)
from blindfit.algorithms.privacy.events import (
    LEAST_MULTIPLIER,
    MOST_MULTIPLIER,
    UNITS,
    WHOLE_ROWS,
    Mechanism,
    ReleaseEvent,
    Sampling,
)
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier, gaussian_epsilon
from tests.each_case import each_case

NEIGHBOURS = "one label changes, N public"
MULTIPLIERS = st.floats(0.3, 1e3)
DELTAS = st.floats(math.log(1e-9), math.log(0.1)).map(math.exp)


def gaussian(noise_multiplier: float) -> ReleaseEvent:
    return ReleaseEvent("gaussian", noise_multiplier, NEIGHBOURS)


def laplace(noise_multiplier: float) -> ReleaseEvent:
    return ReleaseEvent("laplace", noise_multiplier, NEIGHBOURS)


GAUSSIANS = st.lists(MULTIPLIERS.map(gaussian), max_size=8)


def random_composition(rng: random.Random) -> list[ReleaseEvent]:
    mechanisms: list[Mechanism] = ["gaussian"] if rng.random() < 0.5 else ["gaussian", "laplace"]
    return [
        ReleaseEvent(rng.choice(mechanisms), 10 ** rng.uniform(-0.3, 1.7), NEIGHBOURS) for _ in range(rng.randint(1, 8))
    ]


def library_epsilon(events: list[ReleaseEvent], delta: float, *, pessimistic: bool) -> float:
    """Compute dp_accounting's bound, event by event on a coarse grid: above the truth if pessimistic, otherwise below
    it.
    """
    makers = {"gaussian": pld.from_gaussian_mechanism, "laplace": pld.from_laplace_mechanism}
    parts = [
        makers[event.mechanism](
            event.noise_multiplier, pessimistic_estimate=pessimistic, value_discretization_interval=1e-3
        )
        for event in events
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_epsilon_for_delta(delta))


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(8, id="short"),
        pytest.param(1000, id="full", marks=[pytest.mark.soak, pytest.mark.timeout(7200)]),
    ],
)
def test_never_below_and_never_far_above_the_library(count: int) -> None:
    rng = random.Random(1)
    for _ in range(count):
        events, delta = random_composition(rng), 10 ** rng.uniform(-9, -2)
        ours, least = composed_epsilon(events, delta), library_epsilon(events, delta, pessimistic=False)
        assert ours >= least, (events, delta)
        assert spent_epsilon(events, delta) >= least, (events, delta)
        assert ours <= library_epsilon(events, delta, pessimistic=True) * (1 + 1e-3), (events, delta)


def test_the_comparison_would_notice_one_forgotten_release() -> None:
    events = [gaussian(2.0), laplace(3.0), gaussian(5.0)]
    assert composed_epsilon(events[:-1], 1e-6) < library_epsilon(events, 1e-6, pessimistic=False)


@settings(deadline=None)
@given(events=GAUSSIANS, another=MULTIPLIERS, delta=DELTAS)
def test_a_further_release_never_refunds(events: list[ReleaseEvent], another: float, delta: float) -> None:
    assert composed_epsilon([*events, gaussian(another)], delta) >= composed_epsilon(events, delta)


@settings(deadline=None)
@given(events=GAUSSIANS, delta=DELTAS, order=st.randoms())
def test_the_order_does_not_matter(events: list[ReleaseEvent], delta: float, order: random.Random) -> None:
    shuffled = list(events)
    order.shuffle(shuffled)
    assert composed_epsilon(shuffled, delta) == pytest.approx(composed_epsilon(events, delta), rel=1e-9)


@settings(deadline=None)
@given(multiplier=MULTIPLIERS, count=st.integers(1, 100), delta=DELTAS)
def test_equal_gaussians_compose_to_one(multiplier: float, count: int, delta: float) -> None:
    one = gaussian_epsilon(multiplier / math.sqrt(count), delta)
    assert composed_epsilon([gaussian(multiplier)] * count, delta) == pytest.approx(one, rel=1e-9, abs=1e-12)


def test_with_laplace_a_further_release_never_refunds() -> None:
    events = [laplace(2.0), gaussian(4.0), laplace(2.0), laplace(7.0), gaussian(3.0)]
    spent = [composed_epsilon(events[:n], 1e-6) for n in range(len(events) + 1)]
    assert all(before < after for before, after in pairwise(spent))


def test_a_composition_that_is_asked_again_is_not_made_again_and_another_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = [laplace(2.0), gaussian(4.0)]
    others = [([*events, laplace(2.0)], 1e-6), ([laplace(2.0), gaussian(5.0)], 1e-6), (events, 1e-7)]
    spent = composed_epsilon(events, 1e-6)
    assert all(composed_epsilon(*other) != spent for other in others)
    monkeypatch.setattr(privacy_losses, "laplace", lambda *_args: pytest.fail("it is known"))
    assert composed_epsilon(events, 1e-6) == spent
    with pytest.raises(pytest.fail.Exception):
        composed_epsilon(events, 2e-6)


def test_one_laplace_release_spends_its_pure_epsilon_at_most() -> None:
    assert 0.999 < composed_epsilon([laplace(1.0)], 1e-9) <= 1.0
    assert composed_epsilon([laplace(1e9)], 1e-9) <= 1e-9


@pytest.mark.parametrize("events", [[laplace(1e9), gaussian(10.0)], [laplace(1e-2), gaussian(1e-2)]])
def test_scales_far_apart_stay_within_memory(events: list[ReleaseEvent]) -> None:
    for delta in (1e-9, 0.5):
        assert 0 <= composed_epsilon(events, delta) < math.inf


def test_nothing_spends_nothing() -> None:
    assert composed_epsilon([], 1e-5) == 0
    assert composed_multiplier([]) == math.inf


@pytest.mark.parametrize("one", [LEAST_MULTIPLIER, 1.0, MOST_MULTIPLIER])
@pytest.mark.parametrize("two", [LEAST_MULTIPLIER, MOST_MULTIPLIER])
def test_extreme_multipliers_do_not_break_it(one: float, two: float) -> None:
    for events in (
        [gaussian(one), gaussian(two)],
        [laplace(one), gaussian(two)],
        [laplace(one), laplace(two)],
    ):
        assert composed_epsilon(events, 1e-5) >= composed_epsilon(events[:1], 1e-5) * (1 - 1e-3)


# --- neighbours ------------------------------------------------------------------------------------------

LABEL, PERSON = UNITS["row"][1], UNITS["person"][1]
REPLACED, ADDED = WHOLE_ROWS["replace-one"], WHOLE_ROWS["add-or-remove"]


def of(neighbours: str, *multipliers: float) -> list[ReleaseEvent]:
    return [ReleaseEvent("gaussian", multiplier, neighbours) for multiplier in multipliers]


def test_label_dp_and_replaced_rows_compose_to_what_a_changed_label_tells() -> None:
    """For one changed label, a release of either kind is a release that bounds it: exact, as if of one kind."""
    mixed = [*of(LABEL, 2.0, 5.0), *of(REPLACED, 3.0)]
    assert common_neighbours(mixed) == LABEL
    assert composed_epsilon(mixed, 1e-5) == composed_epsilon(of(LABEL, 2.0, 5.0, 3.0), 1e-5)
    sampled = ReleaseEvent("sampled-gaussian", 3.0, REPLACED, Sampling(0.1, 20, 2))
    assert composed_epsilon([*of(LABEL, 2.0), sampled], 1e-5) > composed_epsilon(of(LABEL, 2.0), 1e-5)


def test_replaced_rows_alone_keep_their_stronger_promise() -> None:
    assert common_neighbours(of(REPLACED, 1.0, 2.0)) == REPLACED
    assert common_neighbours([]) == ""


def test_what_is_spent_by_neighbours() -> None:
    """Label DP does not protect features: protection of whole rows is counted separately, and is the smaller part."""
    labels, rows = of(LABEL, 2.0, 5.0), of(REPLACED, 3.0, 4.0)
    spent = spent_by_neighbours([*labels, *rows], 1e-5)
    assert spent == {LABEL: composed_epsilon([*labels, *rows], 1e-5), REPLACED: composed_epsilon(rows, 1e-5)}
    assert spent[REPLACED] < spent[LABEL]
    assert spent_by_neighbours(rows, 1e-5) == {REPLACED: composed_epsilon(rows, 1e-5)}
    assert spent_by_neighbours([], 1e-5) == {}


def test_a_budget_holds_all_releases_together() -> None:
    epsilon = composed_epsilon(of(LABEL, 2.0, 3.0), 1e-5)
    assert fits(of(LABEL, 2.0), of(REPLACED, 3.0)[0], epsilon, 1e-5)
    assert fits(of(REPLACED, 2.0), of(LABEL, 3.0)[0], epsilon, 1e-5)
    assert not fits(of(LABEL, 2.0), of(REPLACED, 3.0)[0], epsilon * 0.999, 1e-5)


@each_case(("one", "other"), [(REPLACED, ADDED), (LABEL, ADDED), (LABEL, PERSON), (REPLACED, PERSON)])
def test_what_bounds_no_common_neighbours_is_told_what_to_do(one: str, other: str) -> None:
    with pytest.raises(UnsupportedEvent, match="populations of their own") as refused:
        composed_epsilon([*of(one, 1.0), *of(other, 1.0)], 1e-5)
    assert one in str(refused.value)
    assert other in str(refused.value)
    assert "\n" not in str(refused.value)


def test_different_neighbours_do_not_compose() -> None:
    other = ReleaseEvent("gaussian", 1.0, "one row is added or removed")
    with pytest.raises(UnsupportedEvent, match="releases for different neighbours do not compose"):
        composed_epsilon([gaussian(1.0), other], 1e-5)
    with pytest.raises(UnsupportedEvent):
        fits([gaussian(1.0)], other, 100, 1e-5)


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_a_wrong_delta_is_refused_even_for_nothing(delta: float) -> None:
    with pytest.raises(ConfigError, match=r"privacy\.delta"):
        composed_epsilon([], delta)


@settings(deadline=None)
@given(epsilon=st.floats(1e-3, 50), delta=st.floats(1e-12, 0.4))
def test_a_budget_admits_exactly_one_release_of_its_size(epsilon: float, delta: float) -> None:
    event = gaussian(analytic_noise_multiplier(epsilon, delta))
    assert fits([], event, epsilon, delta)
    assert not fits([event], event, epsilon, delta)
    assert not fits([], gaussian(event.noise_multiplier * (1 - 1e-5)), epsilon, delta)


def test_a_budget_of_one_admits_what_it_was_split_into() -> None:
    part = gaussian(analytic_noise_multiplier(1.0, 1e-5) * 2)
    assert fits([part] * 3, part, 1.0, 1e-5)
    assert not fits([part] * 4, part, 1.0, 1e-5)


# --- events -------------------------------------------------------------------------------------


@given(
    mechanism=st.sampled_from(["gaussian", "laplace"]),
    multiplier=st.floats(LEAST_MULTIPLIER, MOST_MULTIPLIER),
    neighbours=st.text(min_size=1),
)
def test_an_event_is_its_text(mechanism: Mechanism, multiplier: float, neighbours: str) -> None:
    event = ReleaseEvent(mechanism, multiplier, neighbours)
    assert ReleaseEvent.from_canonical(event.canonical()) == event


@each_case("mechanism", ["staircase", "", "Gaussian"])
def test_what_cannot_be_composed_is_not_an_event(mechanism: Mechanism) -> None:
    with pytest.raises(UnsupportedEvent):
        ReleaseEvent(mechanism, 1.0, NEIGHBOURS)


@each_case("multiplier", [0.0, -1.0, 1e-7, 1e13, math.inf, math.nan])
def test_an_event_without_a_bound_is_refused(multiplier: float) -> None:
    with pytest.raises(UnsupportedEvent):
        gaussian(multiplier)


def test_an_event_says_who_its_neighbours_are() -> None:
    with pytest.raises(UnsupportedEvent):
        ReleaseEvent("gaussian", 1.0, "")


@each_case(
    "text",
    ["", "gaussian", "gaussian/0x1p+0", "gaussian/1.0/x", "gaussian/0x1.0p+0/x", "gaussian/0x1p+9999/x"],
)
def test_another_spelling_is_not_an_event(text: str) -> None:
    with pytest.raises(DataError):
        ReleaseEvent.from_canonical(text)


# --- runs of samples ------------------------------------------------------------------------------------------------


@each_case(
    "epsilon, delta, multiplier, sampling",
    [
        (1.0, 1e-5, 0.8319931265893786, Sampling(0.001, 20_000, 1)),  # without samples, it would cost 15,000
        (3.0332422795721793e-09, 1.560288166929056e-10, 1973676.1111643582, Sampling(0.005129243852672556, 1, 1)),
    ],
)
def test_a_budget_admits_a_run_of_samples_of_its_size(
    epsilon: float, delta: float, multiplier: float, sampling: Sampling
) -> None:
    """A budget also admits a run of many iterations with little noise, and one whose losses are tiny."""
    assert fits([], ReleaseEvent("sampled-gaussian", multiplier, NEIGHBOURS, sampling), epsilon, delta)


def test_samples_cost_what_they_reveal_however_much_all_rows_would() -> None:
    """Without the samples this noise would cost more than 10,000, which the accountant does not refine."""
    event = ReleaseEvent("sampled-gaussian", 0.3, NEIGHBOURS, Sampling(0.001, 2000, 1))
    assert gaussian_epsilon(event.unsampled_multiplier, 1e-5) > 1e4
    assert composed_epsilon([event], 1e-5) < 25
