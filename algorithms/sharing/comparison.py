"""[x >= 0] of secret x, |x| < 2^b, as shares of 0 and 1, for any b up to 59.

c = x' + r is opened with x' = x + 2^b and r uniform in the field (truncation.py); whether x >= 0 is bit b of x'. Below
it, modulo 2^b, x' = c - s with s = (r mod 2^b) + wrap, as p = -1. The dealer deals the bits of s for both wraps, and c
says which one holds: x' is below 2^60. With c0 = c mod 2^b and the borrow u = [c0 < s], all modulo p,

    [x >= 0] = 2^-b (c - c0 - r + s - 2^b u)                      2^-b = 2^(61 - b)

The borrow is found in a tree: of two neighbouring groups of bits, [c < s] = [c < s]_high + [c = s]_high [c < s]_low.
The dealt numbers grow with b, and the rounds, 1 and log2(b + 1), with its logarithm: pass a small b for a small x.

Source: Damgard, Fitzi, Kiltz, Nielsen, Toft 2006; the dealt pair of bits is ours.
"""

from __future__ import annotations

import numpy as np

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.computing import Party, multiply
from blindfit.algorithms.sharing.dealing import Arrays, Item, Shape
from blindfit.algorithms.sharing.field import BITS, Elements
from blindfit.algorithms.sharing.shares import Holder, Share, join
from blindfit.algorithms.sharing.truncation import MOST_BITS, mask

_TOP = np.uint64(1 << MOST_BITS + 1)
_ONE = np.uint64(1)


def comparison_item(name: str, shape: Shape, below: int) -> Item:
    """Deal r, and the bits of s, highest first, (below + 1, *shape): for a c that wrapped and one that did not."""

    def derive(arrays: Arrays) -> Arrays:
        low, top = _low(arrays["r"], below), (arrays["r"] >= _TOP).astype(np.uint64)
        return {"wrapped": _bits(low + top, below + 1), "plain": _bits(low, below + 1)}  # s may be 2^below

    bits = (below + 1, *shape)
    return Item(f"comparison/{name}", random={"r": shape}, derived={"wrapped": bits, "plain": bits}, derive=derive)


def _low(values: Elements, bits: int) -> Elements:
    return values & np.uint64((1 << bits) - 1)


def _bits(values: Elements, count: int) -> Elements:
    return np.stack([(values >> np.uint64(place)) & _ONE for place in reversed(range(count))])


async def not_negative(party: Party, name: str, x: Share, below: int = MOST_BITS) -> Share:
    """Return [x >= 0]: seven rounds, or fewer for small numbers.

    Args:
        below: b, at most 59, with |x| < 2^b.
    """
    dealt = await party.take_dealt(comparison_item(name, x.shape, below))
    (c,) = await party.open_(mask(party.holder, x, dealt["r"], below))
    small = (c < _TOP).astype(np.uint64)
    bits = dealt["plain"] + (dealt["wrapped"] - dealt["plain"]).times(small)
    c0 = _low(c, below)
    borrow = await _below(party, name, c0, bits)
    place_values = np.array([1 << place for place in reversed(range(below + 1))], dtype=np.uint64)
    s = bits.times(place_values.reshape(-1, *(1 for _ in x.shape))).sum_over_first()
    rest = party.holder.plus(s - dealt["r"] - borrow.times_power_of_two(below), f.subtract(c, c0))
    return rest.times_power_of_two(BITS - below)


async def _below(party: Party, name: str, public: Elements, bits: Share) -> Share:
    """Return [public < s], s by its bits."""
    mine = _bits(public, len(bits))
    less = bits.times(f.subtract(np.ones_like(mine), mine))
    equal = _equal(party.holder, mine, bits)
    level = 0
    while len(less) > 1:
        pairs = len(less) // 2
        high, low = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        both = await multiply(party, f"{name}/{level}", join([equal[high], equal[high]]), join([less[low], equal[low]]))
        rest = slice(2 * pairs, None)
        less = join([less[high] + both[:pairs], less[rest]])
        equal = join([both[pairs:], equal[rest]])
        level += 1
    return less[0]


def _equal(holder: Holder, mine: Elements, bits: Share) -> Share:
    """Return 1 - (mine xor bit) = mine bit + (1 - mine)(1 - bit)."""
    twice = f.subtract(f.add(mine, mine), np.ones_like(mine))  # 1 where mine is 1, else -1
    return holder.plus(bits.times(twice), f.subtract(np.ones_like(mine), mine))
