"""The proximal step of an l1 penalty, in shares: what is no farther from 0 than the threshold becomes 0 exactly.

S(w) = [w >= t] (w - t) + [-w >= t] (w + t)
"""

from __future__ import annotations

from blindfit.algorithms.sharing.comparison import not_negative
from blindfit.algorithms.sharing.computing import Party, multiply
from blindfit.algorithms.sharing.field import Elements, negative
from blindfit.algorithms.sharing.shares import Share, join

ROUNDS = 8  # of a comparison, and of a product


async def soft_threshold(party: Party, name: str, w: Share, threshold: Elements) -> Share:
    """
    Args:
        threshold: t of each w, 0 or more, (k,), at w's scale; where it is 0 w stays as it is.
    """
    k, below = len(w), negative(threshold)
    less, more = party.holder.plus(w, below), party.holder.plus(w, threshold)
    beyond = await not_negative(party, f"{name}/beyond", join([less, -more]))
    kept = await multiply(party, f"{name}/kept", beyond, join([less, more]))
    return kept[:k] + kept[k:]
