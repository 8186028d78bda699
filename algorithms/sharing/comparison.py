"""[x >= 0] of secret x, |x| < 2^59, as shares of 0 and 1.

c = x' + r is opened with x' = x + 2^59 (truncation.py); whether x >= 0 is bit 59 of x'. Below it, modulo 2^59,
x' = c - s with s = (r mod 2^59) + wrap, as p = -1. The dealer deals the bits of s for both wraps, and c says which one
holds. With c0 = c mod 2^59 and the borrow u = [c0 < s], all modulo p, where 2^-59 = 4,

    [x >= 0] = 4 (c - c0 - r + s - 2^59 u)

The borrow is found in a tree: of two neighbouring groups of bits, [c < s] = [c < s]_high + [c = s]_high [c < s]_low.

Rounds: 1 and 6. Source: Damgard, Fitzi, Kiltz, Nielsen, Toft 2006; the dealt pair of bits is ours.
"""

from __future__ import annotations

import numpy as np

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.computing import Party, multiply
from blindfit.algorithms.sharing.dealing import Arrays, Item, Shape
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Holder, Share, joined
from blindfit.algorithms.sharing.truncation import MOST_BITS, masked

S_BITS = MOST_BITS + 1  # of s, which may be 2^59
_LOW = np.uint64((1 << MOST_BITS) - 1)
_TOP = np.uint64(1 << MOST_BITS + 1)
_ONE = np.uint64(1)


def comparison_item(name: str, shape: Shape) -> Item:
    """r, and the bits of s, highest first, of shape (60, *shape): where c wrapped and where it did not."""

    def derive(arrays: Arrays) -> Arrays:
        low, top = arrays["r"] & _LOW, (arrays["r"] >= _TOP).astype(np.uint64)
        return {"wrapped": _bits(low + top), "plain": _bits(low)}

    bits = (S_BITS, *shape)
    return Item(f"comparison/{name}", random={"r": shape}, derived={"wrapped": bits, "plain": bits}, derive=derive)


def _bits(values: Elements) -> Elements:
    return np.stack([(values >> np.uint64(place)) & _ONE for place in reversed(range(S_BITS))])


async def not_negative(party: Party, name: str, x: Share) -> Share:
    """[x >= 0]: seven rounds."""
    dealt = await party.dealt(comparison_item(name, x.shape))
    (c,) = await party.opened(masked(party.holder, x, dealt["r"]))
    small = (c < _TOP).astype(np.uint64)
    bits = dealt["plain"] + (dealt["wrapped"] - dealt["plain"]).times(small)
    borrow = await _below(party, name, c & _LOW, bits)
    place_values = np.array([1 << place for place in reversed(range(S_BITS))], dtype=np.uint64)
    s = bits.times(place_values.reshape(-1, *(1 for _ in x.shape))).sum_over_first()
    public = f.subtract(c, c & _LOW)
    return party.holder.plus(s - dealt["r"] - borrow.times_power_of_two(MOST_BITS), public).times_power_of_two(2)


async def _below(party: Party, name: str, public: Elements, bits: Share) -> Share:
    """[public < s], s by its bits."""
    mine = _bits(public)
    less = bits.times(f.subtract(np.ones_like(mine), mine))
    equal = _equal(party.holder, mine, bits)
    level = 0
    while len(less) > 1:
        pairs = len(less) // 2
        high, low = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        both = await multiply(
            party, f"{name}/{level}", joined([equal[high], equal[high]]), joined([less[low], equal[low]])
        )
        rest = slice(2 * pairs, None)
        less = joined([less[high] + both[:pairs], less[rest]])
        equal = joined([both[pairs:], equal[rest]])
        level += 1
    return less[0]


def _equal(holder: Holder, mine: Elements, bits: Share) -> Share:
    """1 - (mine xor bit) = mine bit + (1 - mine)(1 - bit)."""
    twice = f.subtract(f.add(mine, mine), np.ones_like(mine))  # 1 where mine is 1, else -1
    return holder.plus(bits.times(twice), f.subtract(np.ones_like(mine), mine))
