"""Secret numbers clipped to a range and rounded down to whole steps, exactly: equal numbers have equal results.

A division (truncation.py) gives either of two neighbours by chance. A party that had the same number rounded again and
again would learn more of it each time. So a comparison corrects the result t in {q, q + 1} of q = floor(x / 2^bits):
q = t - 1 + [x - t 2^bits >= 0].
"""

from __future__ import annotations

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.comparison import not_negative
from blindfit.algorithms.sharing.computing import Party, divide, multiply
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Share, join


async def clip(party: Party, name: str, x: Share, limits: Elements) -> Share:
    """Return min(max(x, -limit), limit), for |x| + limit < 2^59: eight rounds.

    Args:
        limits: limit of each number, (n,).
    """
    n = len(x)
    moved = join([party.holder.plus(x, f.negative(limits)), party.holder.plus(x, limits)])
    above = await not_negative(party, f"{name}/limits", moved)
    too_large, large_enough = above[:n], above[n:]
    inside = await multiply(party, f"{name}/inside", large_enough - too_large, x)
    beyond = party.holder.plus(too_large + large_enough, f.elements([-1]))  # 1 above, -1 below, else 0
    return inside + beyond.times(limits)


async def floor(party: Party, name: str, x: Share, bits: int) -> Share:
    """Return floor(x / 2^bits), for |x| < 2^58: eight rounds, or fewer for few bits."""
    near = await divide(party, name, x, bits)
    rest = x - near.times_power_of_two(bits)  # from -2^bits to 2^bits - 1
    is_it = await not_negative(party, f"{name}/rest", rest, bits + 1)
    return party.holder.plus(near + is_it, f.elements([-1]))
