"""A budget holds for any choices by earlier answers, and the smaller of two valid bounds would not.

A requester goes on with small releases until the answers favour one of two neighbouring data sets, and then takes at
once all that the ledger still admits. Each test follows the best such requester backwards from the end, and finds by
how much delta is passed at the budget's epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.privacy.accountant import composed_epsilon, fits, spent_epsilon
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier, gaussian_epsilon

Floats = NDArray[np.float64]
Limit = Callable[[ReleaseEvent | None, int], float]
BUDGET, DELTA = 1.0, 1e-5
EACH, MOST = 0.05, 60  # epsilon and number of the small releases
SMALL = ReleaseEvent.pure(EACH, "one label")


def largest(holds: Callable[[float], bool], most: float) -> float:
    low, high = 0.0, most
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def after_pure(loss: Floats, last: float) -> Floats:
    """Return what a last epsilon-DP release adds to delta at the budget's epsilon, by the loss so far."""
    p, left = 1 / (1 + np.exp(-last)), BUDGET - loss
    return p * np.maximum(0, -np.expm1(left - last)) + (1 - p) * np.maximum(0, -np.expm1(left + last))


# --- one kind: randomised response ----------------------------------------------------------------------------


def losses(count: int) -> tuple[Floats, Floats]:
    """Return the privacy loss of this many small releases, by how many answers favour one data set, and its chances."""
    p, spoke = 1 / (1 + np.exp(-EACH)), np.arange(count + 1)
    chances = np.array([comb(count, k) * p**k * (1 - p) ** (count - k) for k in spoke])
    return (2 * spoke - count) * EACH, chances


def delta_of_best_asker(lasts: list[float]) -> float:
    """
    Args:
        lasts: largest last release that is admitted after 0, 1, 2, ... small ones.
    """
    p, value = 1 / (1 + np.exp(-EACH)), np.zeros(len(lasts) + 1)
    for count in reversed(range(len(lasts))):  # stop here, or go on: the worse of the two
        stop = after_pure(losses(count)[0], lasts[count])
        value = np.maximum(stop, p * value[1 : count + 2] + (1 - p) * value[: count + 1])
    return float(value[0])


def test_the_bound_of_releases_fixed_beforehand_would_be_passed() -> None:
    def exactly(count: int) -> float:
        loss, chances = losses(count)
        return 0.985 * largest(lambda last: bool(chances @ after_pure(loss, last) <= DELTA), 4.0)  # less for the grids

    lasts = [exactly(count) for count in range(MOST)]
    lasts = lasts[: next((count for count, last in enumerate(lasts) if last < EACH), MOST)]
    for count in (15, 22, len(lasts) - 2):
        both = [*[SMALL] * count, ReleaseEvent.pure(lasts[count], "one label")]
        assert composed_epsilon(both, DELTA) <= BUDGET
        assert not fits(both[:-1], both[-1], BUDGET, DELTA)
    assert 2 < delta_of_best_asker(lasts) / DELTA < 4


def test_a_budget_of_responses_is_kept() -> None:
    def admitted(count: int) -> float:
        def holds(last: float) -> bool:
            return last == 0 or fits([SMALL] * count, ReleaseEvent.pure(last, "one label"), BUDGET, DELTA)

        return largest(holds, 2.0)

    counts = range(next(n for n in range(MOST) if spent_epsilon([SMALL] * n, DELTA) > BUDGET * (1 + 1e-9)))
    lasts = [admitted(count) for count in counts]
    assert lasts[0] > 0.999  # nothing is wasted on the first
    assert lasts[15] > 0.2
    assert len(lasts) > 20
    assert delta_of_best_asker(lasts) <= DELTA


# --- two kinds: small Gaussians, and then one epsilon-DP release ------------------------------------------------

STEPS, CELLS, REACH = 40, 4001, 16
WHOLE = analytic_noise_multiplier(BUDGET, DELTA) ** -2  # the sum of 1/s^2 that only Gaussians may reach
SUMS = np.geomspace(WHOLE / 200, WHOLE, STEPS)


def gaussians(total: float) -> ReleaseEvent:
    return ReleaseEvent("gaussian", total**-0.5, "one label")


def delta_of_best_mixer(lasts: list[float]) -> float:
    """
    Args:
        lasts: largest epsilon-DP release that is admitted after Gaussians of each of SUMS.
    """
    grid = np.linspace(-REACH, REACH, CELLS) * WHOLE**0.5  # the loss less its mean, which is half of the sum
    step = grid[1] - grid[0]
    value = after_pure(grid + SUMS[-1] / 2, lasts[-1])
    for before, last in zip(reversed(range(STEPS - 1)), reversed(lasts[:-1]), strict=True):
        value = np.convolve(value, normal((SUMS[before + 1] - SUMS[before]) ** 0.5 / step), mode="same")
        value = np.maximum(value, after_pure(grid + SUMS[before] / 2, last))
    return float(np.convolve(value, normal(SUMS[0] ** 0.5 / step), mode="same")[CELLS // 2])


def normal(deviation: float) -> Floats:
    cells = np.arange(-math.ceil(9 * deviation), math.ceil(9 * deviation) + 1)
    weights = np.exp(-0.5 * (cells / deviation) ** 2)
    return weights / weights.sum()


def test_the_plain_sum_of_both_kinds_would_be_passed() -> None:
    lasts = [max(BUDGET - gaussian_epsilon(total**-0.5, DELTA), 0.0) for total in SUMS]
    assert delta_of_best_mixer(lasts) / DELTA > 5


def test_a_budget_of_both_kinds_is_kept() -> None:
    def admitted(total: float) -> float:
        def holds(last: float) -> bool:
            return last < 1e-9 or fits([gaussians(total)], ReleaseEvent.pure(last, "one label"), BUDGET, DELTA)

        return largest(holds, BUDGET)

    lasts = [admitted(total) for total in SUMS]
    assert lasts[0] > 0.5
    assert delta_of_best_mixer([0.0] * STEPS) > 0.97 * DELTA  # Gaussians by themselves use all of it
    assert delta_of_best_mixer(lasts) < 1.02 * DELTA  # the grid's own error is half a per cent


def test_a_few_pure_releases_cost_their_sum_next_to_gaussians_that_reveal_little() -> None:
    """Counted as Gaussians, the pure releases by themselves would cost several times as much."""
    pure = [ReleaseEvent.pure(epsilon, "one label") for epsilon in (0.25, 0.25, 0.5)]
    little = ReleaseEvent("gaussian", 10_000.0, "one label")
    assert 1.0 < spent_epsilon([*pure, little], DELTA) < 1.01
    assert spent_epsilon(pure, DELTA) <= 1.0
    assert spent_epsilon([pure[0]] * 100 + [little], DELTA) < 20, "many pure releases cost less than their sum"
