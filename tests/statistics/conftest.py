"""A small logistic problem that every test of the statistics shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from blindfit.algorithms.statistics.linear.logistic import as_rows, sigmoid, weighted_aggregate

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Rows with the constant feature last, their labels and the noiseless aggregate."""

    rows: Floats
    labels: Floats
    mu: Floats

    @property
    def n_rows(self) -> int:
        return len(self.rows)


@pytest.fixture(scope="session")
def problem() -> Problem:
    generator = np.random.default_rng(11)
    rows = np.hstack([generator.normal(size=(3000, 6)) * [1, 1, 0.5, 2, 1, 1], np.ones((3000, 1))])
    labels = (generator.random(3000) < sigmoid(rows @ [0.5, -1, 0.3, 0.2, 0, 0.7, -1])).astype(float)
    return Problem(rows, labels, weighted_aggregate(as_rows(rows), labels))
