"""Division by 2^bits, with one opening that hides perfectly.

For |x| < 2^59 let x' = x + 2^59, in [0, 2^60), and r uniform in the field. c = x' + r mod p is opened, and is uniform.
The sum wrapped round p if and only if r >= 2^60 and c < 2^60. So the wrap is the dealer's [r >= 2^60] if c < 2^60, and
0 otherwise. Then

    x / 2^bits = (c >> bits) + wrap 2^(61 - bits) - (r >> bits) - (2^59 >> bits)    with an error in (-1, 1], mean 0

because p >> bits is one less than 2^(61 - bits), and the difference of two floors takes part of that. The error 1 is
reached at c = 0 and r = p - 2^bits.

Source: MATH 4.6; Catrina, de Hoogh 2010 hide statistically, and lose the bits that hide.
"""

from __future__ import annotations

import numpy as np

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.dealing import Arrays, Item, Shape
from blindfit.algorithms.sharing.field import BITS, Elements
from blindfit.algorithms.sharing.shares import Holder, Share

MOST_BITS = 59
MOST = 2**MOST_BITS  # the dividend lies between -MOST and MOST
_TOP = np.uint64(1 << MOST_BITS + 1)


def truncation_item(name: str, shape: Shape, bits: int) -> Item:
    return Item(
        f"truncation by {bits}/{name}",
        random={"r": shape},
        derived=part_shapes(shape),
        derive=lambda arrays: parts_of(arrays["r"], bits),
    )


def quotients_item(name: str, shape: Shape, bits: int, coarser_bits: int) -> Item:
    """Return the item of a number that is divided twice, from one opening."""

    def derive(arrays: Arrays) -> Arrays:
        return {**parts_of(arrays["r"], bits), "coarser": arrays["r"] >> np.uint64(coarser_bits)}

    return Item(
        f"truncation by {bits} and {coarser_bits}/{name}",
        random={"r": shape},
        derived={**part_shapes(shape), "coarser": shape},
        derive=derive,
    )


def part_shapes(shape: Shape) -> dict[str, Shape]:
    return {"shifted": shape, "top": shape}


def parts_of(r: Elements, bits: int) -> Arrays:
    """Return the dealt parts of a mask r for a division; an item may deal more of it."""
    return {"shifted": r >> np.uint64(bits), "top": (r >= _TOP).astype(np.uint64)}


def mask(holder: Holder, x: Share, r: Share, below: int = MOST_BITS) -> Share:
    """Return c, ready to be opened: for a truncation, or another computation that starts so; |x| < 2^below."""
    return holder.plus(x + r, f.elements([1 << below]))


def truncate(holder: Holder, dealt: dict[str, Share], opened: Elements, bits: int) -> Share:
    wrap = dealt["top"].times((opened < _TOP).astype(np.uint64))
    public = f.subtract(opened >> np.uint64(bits), f.elements([MOST >> bits]))
    return holder.plus(wrap.times_power_of_two(BITS - bits) - dealt["shifted"], public)


def quotients(
    holder: Holder, dealt: dict[str, Share], opened: Elements, bits: int, coarser_bits: int
) -> tuple[Share, Share]:
    """Return both quotients.

    Args:
        dealt: shares of `quotients_item`.
    """
    coarser = {"top": dealt["top"], "shifted": dealt["coarser"]}
    return truncate(holder, dealt, opened, bits), truncate(holder, coarser, opened, coarser_bits)
