"""Test whether staircase noise keeps its epsilon: ours, and that of the code published with Liu et al. 2025.

Geng and Viswanath's noise is S [(1 - B)(G + g U) + B (G + g + (1 - g) U)] D with a coin B in {0, 1}. The published code
(repository liuhaixias1/Response_privacy, Randomized.py) has the coin in {1, -1}, so that 1 - B is 0 or 2. For the one
it draws S (G + g + (1 - g) U), for the other S (G - g + (3g - 1) U). Neither comes nearer to 0 than min(g, 1 - 2g) D.
So a noisy label is never near its label, but may be near any other. No epsilon bounds this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from blindfit.algorithms.privacy.label_mechanisms import LabelGrid
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase
from blindfit.algorithms.randomness import keyed_uniform, public_generator

DRAWS = 2_000_000
ELSEWHERE = 0.75
"""Distance of the label to compare with, in ranges."""

CONFIDENCE = 0.99

Floats = NDArray[np.float64]


def audit(epsilons: Sequence[float], draws: int = DRAWS) -> list[dict[str, Any]]:
    """Return the least that each epsilon can be, with 99% confidence."""
    return [
        {
            "epsilon": epsilon,
            "nearest_possible": nearest(epsilon),
            "published_at_least": epsilon_at_least(published_staircase(epsilon, draws), nearest(epsilon)),
            "ours_at_least": epsilon_at_least(_our_staircase(epsilon, draws), nearest(epsilon)),
        }
        for epsilon in epsilons
    ]


def nearest(epsilon: float) -> float:
    """Return the published noise's least size, in ranges."""
    g = _high_part(epsilon)
    return min(g, 1 - 2 * g)


def epsilon_at_least(noise: Floats, distance: float) -> float:
    """Return a lower confidence bound, from outputs within `distance` of a label, if it is the label and if it is not.

    Half of the draws for each, so that the counts are independent; the bound holds for both directions together.
    """
    own, other = np.array_split(noise, 2)
    near = _interval(np.abs(own) < distance), _interval(np.abs(other - ELSEWHERE) < distance)
    ratios = [low / high for (low, _), (_, high) in (near, near[::-1])]
    return max(0.0, math.log(max(1.0, *ratios)))


def _interval(hits: NDArray[np.bool_]) -> tuple[float, float]:
    """Return Clopper-Pearson bounds of the probability; both hold for both labels with CONFIDENCE."""
    count, n, miss = int(hits.sum()), len(hits), (1 - CONFIDENCE) / 4
    lowest = float(beta.ppf(miss, count, n - count + 1)) if count else 0.0
    return lowest, float(beta.ppf(1 - miss, count + 1, n - count)) if count < n else 1.0


def published_staircase(epsilon: float, n: int) -> Floats:
    """Return the published code's noise, in ranges; see the module's description."""
    draw, g, b = public_generator(0, f"label_dp/audit/{epsilon}"), _high_part(epsilon), math.exp(-epsilon)
    sign, blocks, part = draw.choice((-1.0, 1.0), n), draw.geometric(1 - b, n) - 1.0, draw.random(n)
    high = draw.random(n) < g / (g + (1 - g) * b)
    return np.asarray(sign * np.where(high, blocks - g + (3 * g - 1) * part, blocks + g + (1 - g) * part))


def _our_staircase(epsilon: float, n: int) -> Floats:
    grid = LabelGrid(0.0, 1.0, 10_000)
    mechanism = Staircase.optimal(grid, epsilon, "absolute")
    return mechanism.randomise(np.zeros(n), keyed_uniform(b"audit", str(epsilon)))


def _high_part(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon / 2))
