"""Squared errors of a linear model, in shares.

errors      z - y, brought to bits at which the sum of their squares stays in the field's middle: one round.
squares     sum (z - y)^2, twice the loss of the training: one more round.
"""

from __future__ import annotations

import math

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import truncation
from blindfit.algorithms.sharing.comparison import not_negative
from blindfit.algorithms.sharing.computing import Party, divide, multiply
from blindfit.algorithms.sharing.shares import Share, join

MOST_ERROR_BITS = 17


def error_bits(rows: int, bound: float) -> int:
    """Return the bits of errors up to `bound`: the sum of so many squares, each with its rounding, is below 2^59.

    The sum has twice as many bits.
    """
    of_squares = 2 * math.ceil(math.log2(bound)) + math.ceil(math.log2(max(rows, 2)))
    return min(MOST_ERROR_BITS, (truncation.MOST_BITS - 1 - of_squares) // 2)


async def squared_errors(
    party: Party, name: str, z: Share, y: Share, score_bits: int, label_bits: int, kept_bits: int
) -> Share:
    """Return the sum of the squared errors at 2 kept_bits, (1,): two rounds.

    Args:
        z, y: numbers at score_bits and label_bits; score_bits is the larger.
        kept_bits: `error_bits` of all rows that are added up.
    """
    apart = z - y.times_power_of_two(score_bits - label_bits)
    errors = await divide(party, f"{name}/errors", apart, score_bits - kept_bits)
    return (await multiply(party, f"{name}/squares", errors, errors)).total()


async def clip(party: Party, name: str, z: Share, limit: int) -> Share:
    """Clip z to [-limit, limit]: eight rounds."""
    n = len(z)
    moved = join([party.holder.plus(z, f.elements([bound])) for bound in (limit, -limit)])
    above = await not_negative(party, f"{name}/limits", moved)
    large_enough, too_large = above[:n], above[n:]
    inside = await multiply(party, f"{name}/inside", large_enough - too_large, z)
    beyond = party.holder.plus(large_enough + too_large, f.elements([-1]))  # 1 above the limit, -1 below minus it
    return inside + beyond.times(f.elements([limit]))
