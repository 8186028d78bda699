"""Leaks of scores about the features behind a party's part of them, and the rounding that they need.

A score is one equation in a row's features. A person who knows the features of a few people solves for the weights.
With as many models' scores of a row as there are columns, this person then solves for the row's features. A column of
few values needs no second equation: exact scores of one model reveal eight binary columns of every row. So a row is
scored by few models, and the scores of all of them together have at most half of the bits of the row's own values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS, VerticalModelPart

MOST_DISTINCT = 2**FEATURE_BITS  # more values make a column no richer on the grid of the features
NARROW_VALUES = 16  # a column of at most so many values is discrete
LEAST_COLUMNS = 4
LEAST_SCORE_BITS, MOST_SCORE_BITS = 4, 16  # of a part of a score, at another party's request
SCORE_BITS = 11  # of each score: a probability is then right to 0.005 or better
MODEL_BITS = 13  # that a row reveals for each model that it allows: a score, and its share in fits and figures
COLUMNS_OF_A_MODEL = 4  # of the table, for each model that scores a row if its party declares no number


@dataclass(frozen=True, slots=True)
class RowContent:
    """The information in the rows of some columns.

    Args:
        columns: number of columns that vary.
        continuous: number of them with more than 16 values.
        bits: bits of a row: log2 of the values of each column, 12 at most.
    """

    columns: int
    continuous: int
    bits: float

    @classmethod
    def of(cls, distinct: Sequence[int]) -> RowContent:
        """Measure the columns.

        Args:
            distinct: number of values of each column, counted up to `MOST_DISTINCT`.
        """
        varying = [min(count, MOST_DISTINCT) for count in distinct if count > 1]
        continuous = sum(count > NARROW_VALUES for count in varying)
        return cls(len(varying), continuous, sum(map(math.log2, varying)))

    @property
    def max_models(self) -> int:
        """Most models that may score one row, for every number that its party allows."""
        return max(self.columns - 1, 0) // 2

    @property
    def score_bits(self) -> float:
        """Bits that the scores of one row, by all models together, may have."""
        return self.bits / 2

    @property
    def models(self) -> int:
        """Number of models that may score a row; 0 if every score could be solved for features."""
        return 0 if self.weakness() else min(self.max_models, int(self.score_bits / MODEL_BITS))

    def weakness(self) -> str:
        """Return why every score could be solved for features; empty if it could not."""
        if self.columns < LEAST_COLUMNS:
            return f"it has {self.columns} columns that vary, fewer than {LEAST_COLUMNS}"
        if not self.continuous:
            return f"none of its {self.columns} columns has more than {NARROW_VALUES} values"
        if self.score_bits < MODEL_BITS:
            return f"its rows have {self.bits:.1f} bits each, fewer than {2 * MODEL_BITS}"
        return ""


def default_models(table_columns: int) -> int:
    """Return the number of models that may score a row if its party declares none; it follows from public sizes."""
    return max(1, table_columns // COLUMNS_OF_A_MODEL)


def rounding_for(part: VerticalModelPart, bits: int = SCORE_BITS) -> int:
    """Return the least `score_rounding` that leaves a part's scores at most so many bits."""
    rounding = 0
    while score_bits(part.largest_steps, rounding) > bits:
        rounding += 1
    return rounding


def score_bits(largest_steps: int, rounding: int) -> float:
    """Return log2 of the number of possible rounded scores between -largest and largest."""
    half = (1 << rounding) >> 1
    return math.log2(2 * ((largest_steps + half) >> rounding) + 1)
