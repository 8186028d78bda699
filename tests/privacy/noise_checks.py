"""Statistical verdicts on samples, each with a false alarm at most once in a million."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

import numpy as np
from scipy import stats

from blindfit.algorithms.randomness import UniformInt

FALSE_ALARM = 1e-6

Draw = Callable[[int], "np.ndarray"]


def seeded(seed: int) -> UniformInt:
    """Draw with Python's generator; below 2^50 a float is enough, and `randrange` would take a third of
    a draw's time.
    """
    dice = random.Random(seed)
    return lambda m: int(dice.random() * m) if m < 1 << 50 else dice.randrange(m)


def faults_of_normal(samples: np.ndarray, noise_std: float) -> list[str]:
    """Return the faults found against N(0, noise_std^2): some of mean, variance, tails, shape, or nothing.

    Each of the four has a fortieth of FALSE_ALARM, so that a test may ask ten times. The laws are those of finite
    samples: a plain z-score of the fourth moment passes its limit ten times as often as it should.
    """
    n, scaled = len(samples), np.asarray(samples, dtype=np.float64) / noise_std
    squares = np.sum(scaled**2)
    p_values = {
        "mean": 2 * stats.norm.sf(abs(scaled.mean()) * math.sqrt(n)),
        "variance": 2 * min(stats.chi2.cdf(squares, n), stats.chi2.sf(squares, n)),
        "tails": stats.kurtosistest(scaled).pvalue,
        "shape": stats.kstest(scaled, "norm").pvalue,
    }
    return [name for name, p_value in p_values.items() if p_value < FALSE_ALARM / 40]


def rejected_by_majority(draw: Draw, noise_std: float, n: int, votes: int) -> bool:
    rejections = sum(bool(faults_of_normal(draw(n), noise_std)) for _ in range(votes))
    return rejections > votes // 2


def chi_square_p_value(samples: list[int], pmf: Callable[[int], float]) -> float:
    """Test how well integers agree with a law; cells with an expected count below five are pooled."""
    n, reach = len(samples), 0
    while n * pmf(reach + 1) >= 5:
        reach += 1
    cells = range(-reach, reach + 1)
    counts = Counter(samples)
    observed = [counts[k] for k in cells]
    expected = [n * pmf(k) for k in cells]
    pooled = n - sum(expected)
    return float(
        stats.chisquare([*observed, n - sum(observed)], [*expected, pooled]).pvalue
        if pooled > 1
        else stats.chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue
    )


def empirical_epsilon(hits: int, neighbour_hits: int, n: int, delta: float) -> float:
    """Return a lower bound on epsilon at this delta from one event's counts in n releases of each neighbour."""
    likely = stats.beta.ppf(FALSE_ALARM, hits, n - hits + 1) if hits else 0.0
    unlikely = stats.beta.isf(FALSE_ALARM, neighbour_hits + 1, n - neighbour_hits)
    return math.log((likely - delta) / unlikely) if likely > delta else 0.0
