"""Weights of classes, so that both classes have the same total weight: n / (2 n_class) for each row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CLASS_WEIGHT_BITS = 8  # after the point
LARGEST_CLASS_WEIGHT = 64


def balance(train: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], bool]:
    """Return the weights of a row without the label and of one with it, in steps of 2^-8, and whether one was clipped.

    Each weight is at most LARGEST_CLASS_WEIGHT.

    Args:
        train: classes of the training rows.
    """
    share = float(train.mean()) if len(train) else 0.5
    least = 0.5 / LARGEST_CLASS_WEIGHT
    weights = 0.5 / np.maximum([1 - share, share], least)
    return np.rint(weights * 2**CLASS_WEIGHT_BITS).astype(np.int64), not least <= share <= 1 - least
