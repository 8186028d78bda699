"""The bits of a weight that is sent: digits finer than its own error describe single rows, not people in general."""

from __future__ import annotations

import math


def choose_kept_bits(train_rows: int, model: str = "logistic") -> int:
    """Return the bits of sent weights: the finest power of two that is at least a quarter of their statistical error.

    For a standardised column the error is at least 2 / sqrt(rows). For a linear model it is 1 / sqrt(rows), if the
    columns explain nothing of a standardised label.
    """
    error = (1 if model == "linear" else 2) / math.sqrt(train_rows)
    return max(0, math.floor(math.log2(4 / error)))
