"""What the accountant does not bound: epsilons that an asker chooses by what earlier answers said.

Its bound is of releases whose parameters were fixed beforehand. Of Gaussians it holds whatever they are chosen by, as
their 1 / s^2 add up. Of others, an asker of randomised response goes on with small epsilons until it stands best, and
then takes as much at once as the ledger still admits.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.privacy.accountant import fits
from blindfit.algorithms.privacy.events import ReleaseEvent

Floats = NDArray[np.float64]
BUDGET, DELTA = 1.0, 1e-5
EACH, MOST = 0.05, 60  # of the small releases


def losses(count: int) -> tuple[Floats, Floats]:
    """Of so many small releases: the privacy loss by how many answers speak for the one data set, and its chances."""
    p, spoke = 1 / (1 + np.exp(-EACH)), np.arange(count + 1)
    chances = np.array([comb(count, k) * p**k * (1 - p) ** (count - k) for k in spoke])
    return (2 * spoke - count) * EACH, chances


def delta_left(loss: Floats, last: float) -> Floats:
    """What a last release of this epsilon adds to delta at the budget's epsilon."""
    p, left = 1 / (1 + np.exp(-last)), BUDGET - loss
    return p * np.maximum(0, 1 - np.exp(left - last)) + (1 - p) * np.maximum(0, 1 - np.exp(left + last))


def last_that_fits(count: int) -> float:
    """The largest with which all together are (BUDGET, DELTA), fixed beforehand; less 1.5 % for the grids."""
    loss, chances = losses(count)
    low, high = 0.0, 4.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if chances @ delta_left(loss, middle) <= DELTA else (low, middle)
    return 0.985 * low


def test_epsilons_chosen_by_answers_pass_delta_a_few_times() -> None:
    lasts = [last_that_fits(count) for count in range(MOST)]
    lasts = lasts[: next((count for count, last in enumerate(lasts) if last < EACH), MOST)]
    small = ReleaseEvent.pure(EACH, "one label")
    for count in (15, 22, len(lasts) - 2):
        assert fits([small] * count, ReleaseEvent.pure(lasts[count], "one label"), BUDGET, DELTA)
    p, value = 1 / (1 + np.exp(-EACH)), np.zeros(len(lasts) + 1)
    for count in reversed(range(len(lasts))):  # stop here, or go on: whatever is worse
        stop = delta_left(losses(count)[0], lasts[count])
        value = np.maximum(stop, p * value[1 : count + 2] + (1 - p) * value[: count + 1])
    assert 2 < value[0] / DELTA < 4
