"""The largest of secret numbers; nobody learns which one it is.

In groups of eight each number is compared with each, all at once. The number that no other exceeds (of equal ones the
first) is taken by a sum of products with its 0s and 1s. A comparison takes far more rounds than a product. A tree of
pairs needs nine of them for 512 numbers, one after another; groups need three.

    of a group    [i is it] = prod over j > i of [x_i >= x_j], times prod over j < i of 1 - [x_j >= x_i]
                  largest   = sum_i [i is it] x_i
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.comparison import not_negative
from blindfit.algorithms.sharing.computing import Party, multiply
from blindfit.algorithms.sharing.shares import Share, join

GROUP = 8


async def largest(party: Party, name: str, x: Share, below: int) -> Share:
    """Return the largest of (n,) numbers, (1,); for each division of n by eight, a comparison's rounds and four.

    Args:
        below: bits of a bound: any two numbers differ by less than 2^below.
    """
    level = 0
    while len(x) > 1:
        size = min(GROUP, len(x))
        grouped = len(x) // size * size
        found = await _of_groups(party, f"{name}/{level}", x[:grouped].reshape(size, -1), below)
        x = join([found, x[grouped:]])
        level += 1
    return x


async def _of_groups(party: Party, name: str, x: Share, below: int) -> Share:
    """Return the largest of each column of (size, groups), of shape (groups,)."""
    first, second = np.triu_indices(len(x), 1)
    ahead = await not_negative(party, f"{name}/pairs", x[first] - x[second], below)
    behind = party.holder.plus(-ahead, f.elements([1]))
    is_it = join([ahead, behind])[_factors(len(x))]  # (size - 1, size, groups), to be multiplied along the first axis
    level = 0
    while len(is_it) > 1:
        half = len(is_it) // 2
        both = await multiply(party, f"{name}/is it, {level}", is_it[:half], is_it[half : 2 * half])
        is_it = join([both, is_it[2 * half :]])
        level += 1
    return (await multiply(party, f"{name}/taken", is_it[0], x)).sum_over_first()


def _factors(size: int) -> npt.NDArray[np.int64]:
    """Return the places of each number's factors in all [x_i >= x_j], i < j, and their opposites; (size - 1, size)."""
    first, second = np.triu_indices(size, 1)
    place = np.zeros((size, size), dtype=np.int64)
    place[first, second] = np.arange(len(first))
    place[second, first] = len(first) + np.arange(len(first))
    return place[~np.eye(size, dtype=bool)].reshape(size, size - 1).T
