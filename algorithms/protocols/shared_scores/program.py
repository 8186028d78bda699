"""A prediction in shares: the program of every seat; the dealer's seat has no data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.protocols.falcon.kept_shares import take_up
from blindfit.algorithms.protocols.falcon.seats import Seat
from blindfit.algorithms.protocols.shared_scores.parameters import ScoringParameters
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import rounding, scoring
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.kept import KeptShares
from blindfit.algorithms.sharing.products import SecretMatrix
from blindfit.algorithms.sharing.shares import Share, join

BLOCK_PARTS = 4096  # rounded at once: the comparisons of each take some 17 kB of dealt randomness
ACTIVE = 0  # the active party's place


@dataclass(frozen=True, repr=False)
class HeldRows:
    """The data of one data party.

    Attributes:
        features: (rows, own columns), integers at FEATURE_BITS; the active party's intercept as its last column.
        kept: the party's shares of all weights.
    """

    features: npt.NDArray[np.int64]
    kept: KeptShares


async def run_program(
    seat: Seat,
    p: ScoringParameters,
    held: HeldRows | None,
    report: Callable[[int], None] = lambda _rows: None,
    before_scores: Callable[[], None] = lambda: None,
) -> npt.NDArray[np.int64] | None:
    """Do steps 3 to 6; return the scores in steps of 2^-scale at the active party, None elsewhere.

    Args:
        held: data of a data party; None at the dealer.
        report: function of the number of rows that are scored.
        before_scores: function that is called before the scores are revealed; it may raise.
    """
    kept = None if held is None else held.kept
    weights = await take_up(seat, len(p.columns), sum(p.columns), kept, macs=p.macs)
    scores, block_rows = [], max(1, BLOCK_PARTS // max(1, len(p.rounded)))
    for start in range(0, p.rows, block_rows):
        rows = slice(start, min(start + block_rows, p.rows))
        mine = None if held is None else f.elements(held.features[rows])
        block = await seat.put_in_matrix(p.columns, rows.stop - start, mine)
        scores.append(await _score(seat, p, block, weights))
        report(rows.stop)
    before_scores()
    revealed = await seat.reveal_to_owners("scores", [(ACTIVE, join(scores))])
    return f.integers(revealed[0]) if revealed else None


async def _score(seat: Seat, p: ScoringParameters, block: SecretMatrix, weights: Share) -> Share:
    parts = []
    for place in range(len(p.columns)):
        own = p.column_slice(place)
        parts.append(await scoring.scores(seat, f"part of {place}", block.columns(own), weights[own]))
    if p.rounded:
        for place, part in zip(p.rounded, await _round(seat, p, parts), strict=True):
            parts[place] = part
    total, *others = parts
    for part in others:
        total = total + part
    return total


async def _round(seat: Seat, p: ScoringParameters, parts: list[Share]) -> list[Share]:
    """Return the parts, clipped and rounded down to the middle of each step.

    All parts are rounded at once: the finest are shifted up, to lose as many bits as the coarsest. Each part is
    rounded, not the sum: others choose the rest of the sum, and by shifting it a party could find where the steps of a
    part lie.
    """
    most, n = max(p.rounded.values()), len(parts[0])
    shifts = {place: most - dropped for place, dropped in p.rounded.items()}
    moved = join([parts[place].times_power_of_two(shift) for place, shift in shifts.items()])
    limits: Elements = np.concatenate([f.elements([p.limit << shift]).repeat(n) for shift in shifts.values()])
    steps = await rounding.floor(seat, "parts", await rounding.clip(seat, "parts", moved, limits), most)
    return [
        _in_the_middle(seat, steps[number * n : (number + 1) * n], dropped)
        for number, dropped in enumerate(p.rounded.values())
    ]


def _in_the_middle(seat: Seat, steps: Share, dropped: int) -> Share:
    return seat.holder.plus(steps.times_power_of_two(dropped), f.elements([(1 << dropped) >> 1]))
