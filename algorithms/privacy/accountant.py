"""What many releases spend together.

Releases for different neighbours compose for those that all of them bound, if there are any: label DP and whole rows
that are replaced compose to what one changed label can tell. A budget that holds this composition holds also for the
releases that protect more, by themselves: they are a part of it.

Gaussian releases compose exactly: with noise multipliers s_i they are one release of multiplier
(sum 1/s_i^2)^(-1/2). A composition with others in it goes through the privacy loss distributions of dp_accounting,
rounded up; of a release of which only epsilon is known, that of randomised response, the worst that is epsilon-DP
(Kairouz, Oh, Viswanath 2015); of Gaussian releases of Poisson samples, theirs (Koskela, Jalko and Honkela 2020).

Where Gaussians alone are composed, each may be chosen by what the ones before it said. Compositions with others are of
releases that were fixed beforehand: tests/privacy/test_chosen_by_answers.py has how far delta goes past it otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from blindfit.algorithms.errors import UnsupportedEvent
from blindfit.algorithms.privacy.events import IMPLIED, ReleaseEvent
from blindfit.algorithms.privacy.gaussian import check_delta, gaussian_epsilon

BUDGET_SLACK = 1e-9
"""Relative: a budget of exactly 1 admits one release calibrated to exactly 1, whatever the last bits say."""

_GRID_CELLS = 50_000
_SAMPLED_CELLS = 2000  # for each epsilon: a sample's losses are far less than those of the whole
_TRANSFORM_LOSES = 1e-13  # at most, of delta, by the library's Fourier transforms: 4e-15 seen in 200 releases
_MOST_REFINED = 1e4  # past it the library overflows, and no budget is that large


def composed_epsilon(events: Iterable[ReleaseEvent], delta: float) -> float:
    """The epsilon at this delta of all events together: exact for Gaussians alone, else an upper bound.

    Raises:
        UnsupportedEvent: there are no neighbours that all events bound.
    """
    check_delta(delta)
    events = list(events)
    common_neighbours(events)
    gaussians = [event.noise_multiplier for event in events if event.mechanism == "gaussian"]
    others = [event for event in events if event.mechanism != "gaussian"]
    gaussian = composed_multiplier(gaussians)
    unsampled = composed_multiplier([e.unsampled_multiplier for e in events if math.isinf(e.epsilon)])
    known = math.fsum(e.epsilon for e in others if math.isfinite(e.epsilon))
    bound = (gaussian_epsilon(unsampled, delta) if math.isfinite(unsampled) else 0.0) + known
    one_pure = not gaussians and [event.mechanism for event in others] == ["pure"]
    if not others or one_pure or bound > _MOST_REFINED or delta <= 2 * _TRANSFORM_LOSES:
        return bound
    # Both are upper bounds. A few releases of small epsilon add up exactly, where a grid rounds up.
    return min(bound, _loss_distribution_epsilon(gaussian, others, delta))


def fits(events: Iterable[ReleaseEvent], new_event: ReleaseEvent, budget_epsilon: float, budget_delta: float) -> bool:
    """Whether the budget still holds after the new event."""
    return composed_epsilon([*events, new_event], budget_delta) <= budget_epsilon * (1 + BUDGET_SLACK)


def composed_multiplier(noise_multipliers: Sequence[float]) -> float:
    """The noise multiplier of the one Gaussian release that equals all of these; infinite for none."""
    if len(noise_multipliers) == 1:
        return noise_multipliers[0]
    # hypot neither overflows nor underflows on the way.
    inverse = math.hypot(*(1 / s for s in noise_multipliers))
    return 1 / inverse if inverse else math.inf


def common_neighbours(events: Iterable[ReleaseEvent]) -> str:
    """What the composition of all events protects; empty for none.

    Raises:
        UnsupportedEvent: there are no neighbours that all events bound.
    """
    said = {event.neighbours for event in events}
    bounded = said if len(said) < 2 else {IMPLIED.get(neighbours, neighbours) for neighbours in said}
    if len(bounded) > 1:
        raise UnsupportedEvent(
            f"releases for different neighbours do not compose: {'; '.join(sorted(said))}: charge them to populations "
            'of their own ([populations]), or ask dp-lr with neighbours = "replace-one", which composes with label DP '
            "of rows"
        )
    return bounded.pop() if bounded else ""


def composed_by_neighbours(events: Iterable[ReleaseEvent], delta: float) -> dict[str, float]:
    """The epsilon for each kind of neighbours: of all events for those that all bound, of its own for each other.

    Raises:
        UnsupportedEvent: there are no neighbours that all events bound.
    """
    events = list(events)
    common = common_neighbours(events)
    by_neighbours = {common: composed_epsilon(events, delta)} if events else {}
    for neighbours in sorted({event.neighbours for event in events} - {common}):
        own = [event for event in events if event.neighbours == neighbours]
        by_neighbours[neighbours] = composed_epsilon(own, delta)
    return by_neighbours


def _loss_distribution_epsilon(gaussian: float, others: Sequence[ReleaseEvent], delta: float) -> float:
    """An upper bound by discretised privacy loss distributions; `gaussian` is infinite if there is none."""
    # The grid follows the width of the losses, whatever delta is, so that its size stays bounded.
    sampled = [event.unsampled_multiplier for event in others if event.sampling]
    inverse = 1 / composed_multiplier([gaussian, *sampled])
    known = math.fsum(event.epsilon for event in others if not event.sampling)
    interval = (known + inverse * inverse / 2 + inverse) / _GRID_CELLS
    found = _epsilon_on_grid(gaussian, tuple(others), delta, interval)
    if sampled and interval > found / _SAMPLED_CELLS:
        found = min(found, _epsilon_on_grid(gaussian, tuple(others), delta, found / _SAMPLED_CELLS))
    return found


@lru_cache(maxsize=64)  # who asks what a ledger has spent asks again, and a composition takes up to a second
def _epsilon_on_grid(gaussian: float, others: tuple[ReleaseEvent, ...], delta: float, interval: float) -> float:
    # Imported here because it takes a second, and most ledgers hold Gaussians only.
    import dp_accounting as library
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    relations = {
        1: library.NeighboringRelation.ADD_OR_REMOVE_ONE,
        2: library.NeighboringRelation.REPLACE_ONE,
    }

    def distribution(event: ReleaseEvent) -> Any:
        if event.sampling:
            # The library's deviation is over the norm of one row's contribution, under both relations.
            return pld.from_gaussian_mechanism(
                event.noise_multiplier * event.sampling.sensitivity,
                value_discretization_interval=interval,
                sampling_prob=event.sampling.batch_fraction,
                neighboring_relation=relations[event.sampling.sensitivity],
            ).self_compose(event.sampling.n_releases)
        if event.mechanism == "laplace":
            return pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=interval)
        worst = common.DifferentialPrivacyParameters(event.epsilon, 0.0)
        return pld.from_privacy_parameters(worst, value_discretization_interval=interval)

    counts = sorted(Counter(others).items(), key=lambda counted: counted[0].canonical())
    parts = [distribution(event).self_compose(count) for event, count in counts]
    if math.isfinite(gaussian):
        parts.append(pld.from_gaussian_mechanism(gaussian, value_discretization_interval=interval))
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_epsilon_for_delta(delta - _TRANSFORM_LOSES))
