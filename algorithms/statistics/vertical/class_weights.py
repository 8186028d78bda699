"""Weights of classes, so that both have the same weight in all: n / (2 n_class) of each row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CLASS_WEIGHT_BITS = 8  # after the point
LARGEST_CLASS_WEIGHT = 64


def balance(train: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], bool]:
    """Of a row without the label and of one with it, in steps of 2^-8 and at most LARGEST_CLASS_WEIGHT; and whether one
    was clipped.

    Args:
        train: the classes of the training rows, which are counted.
    """
    share = float(train.mean()) if len(train) else 0.5
    least = 0.5 / LARGEST_CLASS_WEIGHT
    weights = 0.5 / np.maximum([1 - share, share], least)
    return np.rint(weights * 2**CLASS_WEIGHT_BITS).astype(np.int64), not least <= share <= 1 - least
