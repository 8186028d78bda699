"""Rows that are too long."""

from __future__ import annotations

from itertools import count

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.short_rows import Plan


def root(square: int) -> int | None:
    """Return a square root modulo p, which is 3 mod 4."""
    found = pow(square % f.P, (f.P + 1) // 4, f.P)
    return found if found * found % f.P == square % f.P else None


def huge_row(plan: Plan) -> list[int]:
    """Return two huge numbers whose squares are R^2 modulo p: a sum of squares and one comparison would accept them."""
    for first in count(f.P // 3):
        second = root(plan.norm_bound**2 - first * first)
        if second is not None:
            return [first, second, *[0] * (plan.width - 2)]
    raise AssertionError
