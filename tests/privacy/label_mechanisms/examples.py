"""One mechanism of each name on a small grid, for tests of common properties."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np

from blindfit.algorithms.privacy.label_mechanisms import (
    LabelGrid,
    LabelMechanism,
    MechanismSettings,
    fit,
    prior_from_counts,
)

SMALL = LabelGrid(-1.0, 3.0, cells=24)
BUMP = prior_from_counts([-1.0, 0.0, 0.5, 1.0, 3.0], [1, 5, 3, 2])
OPTIONS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "gaussian": {"delta": 1e-3},
    "staircase": {},
    "rr-on-bins": {"prior": BUMP},
    "unbiased": {"prior": BUMP, "rounding": None},
    "rp-with-prior": {"prior": BUMP},
    "rp-banded": {"prior": BUMP, "half_width": 0.35},
}
PURE = [name for name in OPTIONS if name != "gaussian"]
DEBIASABLE = ["laplace", "gaussian", "staircase", "unbiased", "rp-with-prior"]
EPSILONS = [0.01, 0.3, 1.0, 3.0, 20.0]


def uniform(seed: int) -> Any:
    """Return a seeded source that takes integers of any size."""
    return random.Random(seed).randrange


@cache
def example(name: str, epsilon: float, grid: LabelGrid = SMALL) -> LabelMechanism:
    return fit(MechanismSettings(name, grid, epsilon, **OPTIONS[name]), [grid.lo], uniform(0)).mechanism


def all_labels(grid: LabelGrid = SMALL) -> np.ndarray:
    return grid.reals(np.arange(grid.cells + 1))
