"""Exact sampling from the discrete Gaussian: P(k) proportional to exp(-k^2 / (2 sigma^2)) on the integers.

Source: Canonne, Kamath, Steinke 2020 (arXiv 2004.00010), Algorithms 1 to 3. It compares only integers, so the law is
exact, and no floating-point bit of the noise can betray the number that it was added to (Mironov 2012).

The running time depends on the values drawn. Over a network, jitter drowns that. Do not sample on a core that you share
with an adversary.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.randomness import UniformInt


def sample(sigma_squared: Fraction, uniform: UniformInt) -> int:
    """Return one draw (Algorithm 3)."""
    if sigma_squared <= 0:
        raise RangeError(f"the variance of the noise must be above 0, not {sigma_squared}")
    p, q = sigma_squared.numerator, sigma_squared.denominator
    t = isqrt(p // q) + 1
    denominator = 2 * p * q * t * t
    while True:
        y = discrete_laplace(t, uniform)
        # kept with probability exp(-(|y| - sigma^2/t)^2 / (2 sigma^2)), here as a fraction of integers
        if _bernoulli_exp((abs(y) * t * q - p) ** 2, denominator, uniform):
            return y


def sample_vector(n: int, sigma_squared: Fraction, uniform: UniformInt) -> list[int]:
    """Return n independent draws."""
    return [sample(sigma_squared, uniform) for _ in range(n)]


def discrete_laplace(t: int, uniform: UniformInt) -> int:
    """Return one draw (Algorithm 2) with P(k) proportional to exp(-|k| / t)."""
    while True:
        u = uniform(t)
        if not _bernoulli_exp_of_fraction(u, t, uniform):
            continue
        v = 0
        while _bernoulli_exp_of_fraction(1, 1, uniform):
            v += 1
        magnitude, negative = u + t * v, uniform(2) == 1
        if negative and magnitude == 0:
            continue  # else zero would be drawn twice as often
        return -magnitude if negative else magnitude


def _bernoulli_exp(numerator: int, denominator: int, uniform: UniformInt) -> bool:
    """Return True with probability exp(-numerator / denominator), any fraction >= 0 (Algorithm 1, second half)."""
    while numerator > denominator:
        if not _bernoulli_exp_of_fraction(1, 1, uniform):
            return False
        numerator -= denominator
    return _bernoulli_exp_of_fraction(numerator, denominator, uniform)


def _bernoulli_exp_of_fraction(numerator: int, denominator: int, uniform: UniformInt) -> bool:
    """Return True with probability exp(-numerator / denominator), a fraction in [0, 1] (Algorithm 1, first half)."""
    k = 1
    while uniform(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
