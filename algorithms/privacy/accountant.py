"""What many releases spend together.

Gaussian releases compose exactly: with noise multipliers s_i they are one release of multiplier
(sum 1/s_i^2)^(-1/2). A composition with Laplace noise in it goes through the privacy loss distributions of
dp_accounting, rounded up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from algorithms.errors import UnsupportedEvent
from algorithms.privacy.events import ReleaseEvent
from algorithms.privacy.gaussian import check_delta, gaussian_epsilon

BUDGET_SLACK = 1e-9
"""Relative: a budget of exactly 1 admits one release calibrated to exactly 1, whatever the last bits say."""

_GRID_CELLS = 50_000
_MOST_REFINED = 1e4  # past it the library overflows, and no budget is that large


def composed_epsilon(events: Iterable[ReleaseEvent], delta: float) -> float:
    """The epsilon at this delta of all events together: exact for Gaussians alone, else an upper bound.

    Raises:
        UnsupportedEvent: the events do not share one neighbouring relation.
    """
    check_delta(delta)
    events = list(events)
    _check_one_relation(events)
    gaussians = [event.noise_multiplier for event in events if event.mechanism == "gaussian"]
    laplaces = [event.noise_multiplier for event in events if event.mechanism == "laplace"]
    gaussian = composed_multiplier(gaussians)
    bound = (gaussian_epsilon(gaussian, delta) if gaussians else 0.0) + math.fsum(1 / b for b in laplaces)
    if not laplaces or bound > _MOST_REFINED:
        return bound
    # Both are upper bounds. A few wide Laplace releases add up exactly, where a grid rounds up.
    return min(bound, _loss_distribution_epsilon(gaussian, laplaces, delta))


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


def _check_one_relation(events: Sequence[ReleaseEvent]) -> None:
    relations = sorted({event.neighbours for event in events})
    if len(relations) > 1:
        raise UnsupportedEvent(
            f"releases under different neighbouring relations do not compose: {'; '.join(relations)}"
        )


def _loss_distribution_epsilon(gaussian: float, laplaces: Sequence[float], delta: float) -> float:
    """An upper bound by discretised privacy loss distributions; `gaussian` is infinite if there is none."""
    # Imported here because it takes a second, and most ledgers hold Gaussians only.
    from dp_accounting.pld import privacy_loss_distribution as pld

    # The grid follows the width of the losses, whatever delta is, so that its size stays bounded.
    inverse = 1 / gaussian
    interval = (math.fsum(1 / b for b in laplaces) + inverse * inverse / 2 + inverse) / _GRID_CELLS
    parts = [
        pld.from_laplace_mechanism(b, value_discretization_interval=interval).self_compose(count)
        for b, count in sorted(Counter(laplaces).items())
    ]
    if math.isfinite(gaussian):
        parts.append(pld.from_gaussian_mechanism(gaussian, value_discretization_interval=interval))
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_epsilon_for_delta(delta))
