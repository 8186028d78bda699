"""Labels from weights that were opened after one epoch: a block of weights is a gradient then.

A passive party knows its own columns X, and that training began at zero: its weights are rate / n times X^T (y - 1/2).
So it tries every y, and keeps each one that gives its weights within their rounding.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def candidates(columns: Floats, weights: Floats, rate: float, step: float) -> list[NDArray[np.int64]]:
    """Return all label vectors that agree with the opened weights.

    Args:
        columns: the attacker's own columns as trained on, (rows, k).
        step: largest rounding error of a weight.
    """
    rows = len(columns)
    every = np.array(list(itertools.product((0, 1), repeat=rows)), dtype=np.int64)
    expected = rate / rows * (every - 0.5) @ columns
    return list(every[(np.abs(expected - weights) <= step).all(axis=1)])
