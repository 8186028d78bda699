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
LEAST_SCORE_BITS, MOST_SCORE_BITS = 4, 16  # that another party may ask its part of a score to have
SCORE_BITS = 11  # of each score: a probability is then right to half a hundredth or better
MODEL_BITS = 13  # that a row reveals for each model that it allows: a score, and its share in fits and figures
COLUMNS_OF_A_MODEL = 4  # of the table, for each model that scores a row where its party declares no number


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

    @property
    def score_bits(self) -> float:
        """That the scores of one row, by all models together, may have."""
        return self.bits / 2

    @property
    def models(self) -> int:
        """Return how many models may score a row; 0 where any score could be solved for."""
        return 0 if self.weakness() else min(self.max_models, int(self.score_bits / MODEL_BITS))

    def weakness(self) -> str:
        """Why any score could be solved for them, in words; empty where it could not."""
        if self.columns < LEAST_COLUMNS:
            return f"it has {self.columns} columns that vary, fewer than {LEAST_COLUMNS}"
        if not self.continuous:
            return f"none of its {self.columns} columns has more than {NARROW_VALUES} values"
        if self.score_bits < MODEL_BITS:
            return f"its rows have {self.bits:.1f} bits each, fewer than {2 * MODEL_BITS}"
        return ""


def default_models(table_columns: int) -> int:
    """Return how many models may score a row where its party declares no number. It follows from public sizes."""
    return max(1, table_columns // COLUMNS_OF_A_MODEL)


def rounding_for(part: VerticalModelPart, bits: int = SCORE_BITS) -> int:
    """Return the least `score_rounding` that leaves a part's scores at most so many bits."""
    rounding = 0
    while score_bits(part.largest_steps, rounding) > bits:
        rounding += 1
    return rounding


def score_bits(largest_steps: int, rounding: int) -> float:
    """log2 of how many scores there can be between -largest and largest, as they are rounded."""
    half = (1 << rounding) >> 1
    return math.log2(2 * ((largest_steps + half) >> rounding) + 1)
