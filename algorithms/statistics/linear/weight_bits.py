"""How fine a weight need be that is told to somebody: what is finer than its own error tells of rows, not of people."""

from __future__ import annotations

import math


def choose_kept_bits(train_rows: int, model: str = "logistic") -> int:
    """Of told weights: the finest steps of a power of two that are not below a quarter of a weight's statistical error:
    for a standardised column 2 / sqrt(rows) at least, and 1 / sqrt(rows) of a linear model, if its columns explain
    nothing of a standardised label.
    """
    error = (1 if model == "linear" else 2) / math.sqrt(train_rows)
    return max(0, math.floor(math.log2(4 / error)))
