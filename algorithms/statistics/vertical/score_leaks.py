"""What scores give away of the features behind a party's part of them, and how coarse they must be.

A score is one equation in a row's features. Who knows the features of a few people solves for the weights, and then, of
everybody whose scores of as many models he has as there are columns, for the features. A column of few values needs no
second equation: exact scores of one model tell eight binary columns of every row. So a row is scored by few models, and
the scores of all of them together have at most half of the bits that the row's own values have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS, VerticalModelPart

MOST_DISTINCT = 2**FEATURE_BITS  # a column of more values is no richer on the grid of the features
NARROW_VALUES = 16  # a column of no more is a discrete one
LEAST_COLUMNS = 4
MOST_SCORE_BITS = 16  # more would tell of a row and better no prediction
GOOD_SCORE_BITS = 12  # a probability is then right to a thousandth or so
LEAST_SCORE_BITS = 4  # less would be no score


@dataclass(frozen=True, slots=True)
class RowContent:
    """What the rows of some columns hold.

    Args:
        columns: those that vary.
        continuous: how many of them have more than 16 values.
        bits: of a row: log2 of the values of each column, 12 at most.
    """

    columns: int
    continuous: int
    bits: float

    @classmethod
    def of(cls, distinct: Sequence[int]) -> RowContent:
        """Args:
        distinct: how many values each column has; counted up to `MOST_DISTINCT`.
        """
        varying = [min(count, MOST_DISTINCT) for count in distinct if count > 1]
        continuous = sum(count > NARROW_VALUES for count in varying)
        return cls(len(varying), continuous, sum(map(math.log2, varying)))

    @property
    def max_models(self) -> int:
        """Of one row, whatever its party allows."""
        return max(self.columns - 1, 0) // 2

    def models_of_a_row(self, allowed: int | None) -> int:
        """Return how many models may score one row.

        Args:
            allowed: what the row's party allows; None: as many as leave `GOOD_SCORE_BITS` for each score.
        """
        chosen = int(self.score_bits / GOOD_SCORE_BITS) if allowed is None else allowed
        return max(1, min(chosen, self.max_models))

    @property
    def score_bits(self) -> float:
        """That the scores of one row, by all models together, may have."""
        return self.bits / 2

    def weakness(self) -> str:
        """Why any score could be solved for them, in words; empty where it could not."""
        if self.columns < LEAST_COLUMNS:
            return f"it has {self.columns} columns that vary, fewer than {LEAST_COLUMNS}"
        if not self.continuous:
            return f"none of its {self.columns} columns has more than {NARROW_VALUES} values"
        if self.score_bits < LEAST_SCORE_BITS:
            return f"its rows have {self.bits:.1f} bits each, fewer than {2 * LEAST_SCORE_BITS}"
        return ""


def bits_of_a_score(content: RowContent, models: int) -> int:
    """Return how many bits a score of each of so many models may have; fewer than `LEAST_SCORE_BITS` are no score."""
    return min(MOST_SCORE_BITS, int(content.score_bits / models))


def too_few_bits(content: RowContent, models: int) -> str:
    """Return why so many models cannot score a row, in words; empty where they can."""
    bits = bits_of_a_score(content, models)
    if bits >= LEAST_SCORE_BITS:
        return ""
    left = f"{bits} {'bit' if bits == 1 else 'bits'} of a score"
    return f"policy.models_per_row = {models} leaves {left}, and a score has at least {LEAST_SCORE_BITS}"


def rounding_for(part: VerticalModelPart, bits: int) -> int:
    """The least `score_rounding` that leaves a part's scores at most so many bits."""
    rounding = 0
    while score_bits(part.largest_steps, rounding) > bits:
        rounding += 1
    return rounding


def score_bits(largest_steps: int, rounding: int) -> float:
    """log2 of how many scores there can be between -largest and largest, as they are rounded."""
    half = (1 << rounding) >> 1
    return math.log2(2 * ((largest_steps + half) >> rounding) + 1)
