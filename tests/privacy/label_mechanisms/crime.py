"""The labels of Communities and Crime (UCI, Redmond and Baveja 2002): ViolentCrimesPerPop has two decimals, so 101
counts are all of it."""

from __future__ import annotations

import numpy as np

from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, Prior, prior_from_counts

# fmt: off
COUNTS = [
    10, 38, 74, 104, 92, 80, 86, 63, 63, 69, 64, 56, 63, 42, 48, 49, 41, 34, 37, 36, 39, 33, 38, 27, 29, 26, 24, 21, 25,
    23, 20, 18, 17, 18, 21, 14, 22, 17, 12, 15, 12, 16, 8, 7, 6, 16, 6, 7, 11, 8, 12, 11, 10, 17, 13, 8, 5, 6, 4, 12, 9,
    6, 7, 8, 3, 8, 6, 8, 5, 9, 6, 3, 3, 3, 3, 5, 4, 1, 2, 2, 3, 5, 4, 4, 2, 3, 5, 4, 2, 1, 3, 2, 0, 2, 1, 2, 1, 2, 0, 0,
    44,
]
# fmt: on

GRID = LabelGrid(0.0, 1.0)
LABELS = np.repeat(np.arange(101) / 100, COUNTS)


def prior() -> Prior:
    """Return the prior of the labels themselves, as if it were public."""
    return prior_from_counts(np.concatenate(([0.0], np.arange(100) / 100 + 0.005, [1.0])), COUNTS)
