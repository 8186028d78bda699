"""Count what many releases spend together.

There are two questions, and each has its own rule.

1. *What do releases cost that were fixed beforehand?* `composed_epsilon` answers. Fixed beforehand means: no answer
   chose the number of releases or their noise. (Answers may choose the questions.) Examples are the iterations of one
   run, the rows of one person in one label release, and the releases of a plan. The smaller of several valid bounds
   holds: the sum of epsilons with the analytic Gaussian, and the privacy losses of all releases (privacy_losses.py).
2. *What has a budget spent?* `spent_epsilon` and `fits` answer. A party that draws on a budget has read the earlier
   answers, and they may choose how much noise it asks for next. Here the smaller bound is wrong: a party makes small
   releases until the answers look good, and then spends the rest of the other bound at once. This passes delta several
   times (tests/privacy/test_chosen_by_answers.py). Only a sum below a limit fixed beforehand holds for every sequence
   of requests: a privacy filter (Rogers, Roth, Ullman and Vadhan 2016; for Gaussians Smith and Thakurta 2022). The
   ledger of every party and the PrivacyBudget of a notebook are budgets.

The sums of a budget are:

- *One release.* No answer came before it, so rule 1 holds.
- *All releases as Gaussians*: the sum of 1/s^2. Each release counts as the noisiest Gaussian that reveals at least as
  much at every epsilon. For an epsilon-DP release, Phi(-1/(2 s)) = 1/(1 + e^epsilon), because its worst case is a
  function of that Gaussian. For a run of samples `gaussian_at_least` finds s; it leaves out a chance of 2^-36 delta.
- *Only epsilon-DP releases*: the sum of epsilons. Within the budget no loss is larger than epsilon, so these answers
  add nothing to delta.
- *epsilon-DP releases and others*: the sum of epsilons, rounded up to one of 256 numbers, plus the epsilon of the
  others at 2^-35 delta. A party may choose by answers how much to spend on each kind, but has only 256 choices, and
  each choice has its own part of delta. (Without the split, delta is passed 5 to 30 times.)

All parts of delta together are at most 2^-26 of it, about as much as BUDGET_SLACK admits.

Releases for different neighbours compose for the kind of neighbours that all of them bound, if there is one: label DP
and whole rows that are replaced compose to the protection of one changed label. A budget that holds this composition
also holds for the releases that protect more, because they are a part of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from blindfit.algorithms.errors import UnsupportedEvent
from blindfit.algorithms.privacy import privacy_losses
from blindfit.algorithms.privacy.events import IMPLIED, ReleaseEvent
from blindfit.algorithms.privacy.gaussian import check_delta, gaussian_epsilon
from blindfit.algorithms.privacy.privacy_losses import Pair

BUDGET_SLACK = 1e-9
"""Relative: a budget of exactly 1 admits one release calibrated to exactly 1, despite rounding in the last bits."""

_MOST_REFINED = 1e4  # no budget is so large
_LAST_BITS = 1e-12
_SUMS, _LEAST_SUM, _SUMS_TO_DOUBLE = 256, -160, 8  # 2^-20 to 2^12
_SHARE_OF_A_SUM, _SHARE_OF_A_RUN = 2.0**-35, 2.0**-36  # of delta; the second for each of 512 sampled runs


def composed_epsilon(events: Iterable[ReleaseEvent], delta: float) -> float:
    """Return the epsilon at this delta of releases that were fixed beforehand.

    It is exact for Gaussians, and otherwise an upper bound.

    Raises:
        UnsupportedEvent: there are no neighbours that all events bound.
    """
    check_delta(delta)
    events = list(events)
    common_neighbours(events)
    known = math.fsum(event.epsilon for event in events if math.isfinite(event.epsilon))
    unsampled = composed_multiplier([e.unsampled_multiplier for e in events if math.isinf(e.epsilon)])
    bound = known + (gaussian_epsilon(unsampled, delta) if math.isfinite(unsampled) else 0.0)
    is_sum = all(event.mechanism == "gaussian" for event in events) or [e.mechanism for e in events] == ["pure"]
    if is_sum or (bound > _MOST_REFINED and not any(event.sampling for event in events)):
        return bound  # without samples, this bound is near the truth
    return min(bound, _loss_epsilon(tuple(sorted(Counter(events).items(), key=_text)), delta))


def spent_epsilon(events: Iterable[ReleaseEvent], delta: float) -> float:
    """Return the epsilon at this delta that a budget has spent, even if earlier answers chose the later releases.

    Raises:
        UnsupportedEvent: there are no neighbours that all events bound.
    """
    check_delta(delta)
    events = list(events)
    common_neighbours(events)
    alone = composed_epsilon(events, delta) if len(events) < 2 else math.inf
    known = math.fsum(event.epsilon for event in events if math.isfinite(event.epsilon))
    pure = composed_multiplier([_as_gaussian(event, delta) for event in events if math.isfinite(event.epsilon)])
    others = composed_multiplier([_as_gaussian(event, delta) for event in events if math.isinf(event.epsilon)])
    as_gaussians = gaussian_epsilon(composed_multiplier([pure, others]), delta)
    if math.isinf(others):
        return min(alone, as_gaussians, known)
    if math.isinf(pure):
        return min(alone, as_gaussians)
    return min(as_gaussians, _round_up(known) + gaussian_epsilon(others, delta * _SHARE_OF_A_SUM))


def fits(events: Iterable[ReleaseEvent], new_event: ReleaseEvent, budget_epsilon: float, budget_delta: float) -> bool:
    """Return whether the budget still holds after the new event."""
    return spent_epsilon([*events, new_event], budget_delta) <= budget_epsilon * (1 + BUDGET_SLACK)


def composed_multiplier(noise_multipliers: Sequence[float]) -> float:
    """Return the noise multiplier of the one Gaussian release that equals all of these; infinite without releases."""
    if len(noise_multipliers) == 1:
        return noise_multipliers[0]
    # hypot neither overflows nor underflows on the way.
    inverse = math.hypot(*(1 / s for s in noise_multipliers))
    return 1 / inverse if inverse else math.inf


def common_neighbours(events: Iterable[ReleaseEvent]) -> str:
    """Return the neighbours that the composition of all events protects; empty without events.

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


def spent_by_neighbours(events: Iterable[ReleaseEvent], delta: float) -> dict[str, float]:
    """Return the epsilon that a budget has spent for each kind of neighbours.

    The first kind is the one that all events bound, and all events count for it. For another kind only its own count.

    Raises:
        UnsupportedEvent: there are no neighbours that all events bound.
    """
    events = list(events)
    common = common_neighbours(events)
    by_neighbours = {common: spent_epsilon(events, delta)} if events else {}
    for neighbours in sorted({event.neighbours for event in events} - {common}):
        own = [event for event in events if event.neighbours == neighbours]
        by_neighbours[neighbours] = spent_epsilon(own, delta)
    return by_neighbours


def _text(counted: tuple[ReleaseEvent, int]) -> str:
    return counted[0].canonical()


def _part(event: ReleaseEvent) -> tuple[Pair, int]:
    if event.sampling:
        sampling = event.sampling
        one = privacy_losses.sampled_gaussian(event.noise_multiplier, sampling.batch_fraction, sampling.sensitivity)
        return one, sampling.n_releases
    laws = {"gaussian": privacy_losses.gaussian, "laplace": privacy_losses.laplace}
    if law := laws.get(event.mechanism):
        return law(event.noise_multiplier), 1
    return privacy_losses.pure(event.epsilon), 1


@lru_cache(maxsize=64)  # a party reads several times what its ledger has spent
def _loss_epsilon(counted: tuple[tuple[ReleaseEvent, int], ...], delta: float) -> float:
    parts = [(_part(event), count) for event, count in counted]
    return privacy_losses.composed_epsilon([(pair, n * count) for (pair, n), count in parts], delta)


def _as_gaussian(event: ReleaseEvent, delta: float) -> float:
    """Return the noise multiplier of the Gaussian release that a budget counts in place of this one."""
    if event.mechanism == "gaussian":
        return event.noise_multiplier
    return _gaussian_of_sampled(event, delta) if event.sampling else _gaussian_of_pure(event.epsilon)


def _gaussian_of_pure(epsilon: float) -> float:
    """Return s with 2 Phi(1/(2 s)) - 1 = tanh(epsilon / 2)."""
    from scipy.special import erfinv, ndtri_exp

    if epsilon < 1:
        inverse = 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    else:
        inverse = -2 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    return (1 - _LAST_BITS) / inverse


@lru_cache(maxsize=1024)
def _gaussian_of_sampled(event: ReleaseEvent, delta: float) -> float:
    return privacy_losses.gaussian_at_least([_part(event)], math.log(delta) + math.log(_SHARE_OF_A_RUN))


def _round_up(epsilon: float) -> float:
    """Return the next of 256 numbers, or infinity above the largest."""
    steps = max(math.ceil(_SUMS_TO_DOUBLE * math.log2(epsilon)), _LEAST_SUM)
    return 2.0 ** (steps / _SUMS_TO_DOUBLE) * (1 + _LAST_BITS) if steps < _LEAST_SUM + _SUMS else math.inf
