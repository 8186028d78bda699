"""A test whether secret numbers lie in the range in which results are right: one bit for all together.

A number is divided to coarse units h with an error below 1 (truncation.py); with m units below the bound,

    h (h^2 - 1) (h^2 - 4) ... (h^2 - m^2) = 0    if and only if |h| <= m

A random combination of these products, times a dealt random number, is opened. It is 0 if all lie in range, and
otherwise uniform, so only the bit is revealed. A number past the bound is always noticed; a number in the last unit
before the bound sometimes.

Source: ours; the random combination is that of the MAC check (mac_check.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.computing import Party, multiply
from blindfit.algorithms.sharing.dealing import Item
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Share, join
from blindfit.algorithms.sharing.waves import Waves

UNITS_A_PERIOD = 16


def unit_bits(waves: Waves) -> int:
    """Return log2 of the coarse unit of scores."""
    return round(math.log2(waves.period / UNITS_A_PERIOD))


def units_below(waves: Waves) -> int:
    """Return m: a score of more units, rounded down or up, may lie past the waves' bound."""
    return math.floor(math.ldexp(waves.bound, -unit_bits(waves))) - 1


async def out_of_range(party: Party, name: str, coarse: Share, units: int, coefficients: Seed) -> Share:
    """Return a share, (1,), of 0 if every |h| <= units, else of a uniform number (0 with chance 2^-60); to be opened.

    Args:
        coarse: h, (n,).
        coefficients: coefficients that nobody chose.

    Rounds: 2 + log2(units + 1), rounded up; 1 for no units.
    """
    factors = [coarse]
    if units:
        square = await multiply(party, f"{name}/square", coarse, coarse)
        factors += [party.holder.plus(square, f.elements([-(unit**2)])) for unit in range(1, units + 1)]
    product = await product_of(party, name, factors)
    weights = coefficients.elements(name, product.shape)
    total = product.times(weights).total()
    hidden = (await party.take_dealt(Item(f"hiding/{name}", random={"u": (1,)})))["u"]
    return await multiply(party, f"{name}/hidden", total, hidden)


async def product_of(party: Party, name: str, factors: Sequence[Share]) -> Share:
    """Return the elementwise product of vectors of one length, in a tree."""
    level = 0
    while len(factors) > 1:
        pairs = len(factors) // 2
        left, right = join(factors[: 2 * pairs : 2]), join(factors[1 : 2 * pairs : 2])
        both = await multiply(party, f"{name}/{level}", left, right)
        rows = len(factors[0])
        factors = [both[at * rows : (at + 1) * rows] for at in range(pairs)] + list(factors[2 * pairs :])
        level += 1
    return factors[0]
