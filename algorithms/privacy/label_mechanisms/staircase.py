"""Staircase noise: steps as long as the labels' range, each part high and part low; less noise than Laplace.

Within |k| in [q P, (q+1) P) the weight is beta^q up to the high part's end and beta^(q+1) after it, beta = e^-epsilon
and P = cells. The length of the high part that makes the absolute error least is P / (1 + e^(epsilon/2)); for the
squared error we take the best of all integers.

Source: Geng, Viswanath 2014 (IEEE Trans. Inf. Theory 62(2)), on the integers. Complexity: that of block_noise; the
best length is found in O(P).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.label_mechanisms.base import LabelGrid
from blindfit.algorithms.privacy.label_mechanisms.block_noise import BlockMechanism, BlockNoise, GeometricBlocks

OptimalFor = Literal["squared", "absolute"]


@dataclass(frozen=True)
class Staircase(BlockMechanism):
    """Staircase noise on labels.

    Args:
        high_steps: number of cells of a step that are high, 1..cells.
    """

    name = "staircase"
    high_steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.high_steps <= self.grid.cells:
            raise DataError(f"staircase: high_steps must lie in 1..{self.grid.cells}, not {self.high_steps}")

    @classmethod
    def optimal(cls, grid: LabelGrid, epsilon: float, optimal_for: OptimalFor) -> Staircase:
        if optimal_for == "squared":
            return cls(grid, epsilon, 1 + int(np.argmin(squared_errors(epsilon, grid.cells))))
        high = round(grid.cells / (1 + math.exp(epsilon / 2)))
        return cls(grid, epsilon, min(max(high, 1), grid.cells))

    @cached_property
    def noise(self) -> BlockNoise:
        return staircase_noise(self.epsilon, self.grid.cells, self.high_steps)

    def _own_parameters(self) -> dict[str, Any]:
        return {"high_steps": self.high_steps}


def staircase_noise(epsilon: float, cells: int, high_steps: int) -> BlockNoise:
    blocks = GeometricBlocks.of(epsilon)
    min_ratio = min(blocks.ratios)
    high = math.floor(2**62 / (high_steps + (cells - high_steps) / min_ratio))
    low = math.ceil(high / min_ratio)  # not below the next step's high part
    table = np.where(np.arange(cells) < high_steps, high, low).astype(np.uint64)
    return BlockNoise(epsilon, blocks, table)


def squared_errors(epsilon: float, cells: int) -> np.ndarray:
    """Return the noise's variance, in steps squared, at every length 1..cells of the high part."""
    beta, r = math.exp(-epsilon), np.arange(cells, dtype=np.float64)
    high = np.arange(1, cells + 1, dtype=np.float64)
    total = high + beta * (cells - high)
    first, second = (_high_and_low(np.cumsum(r**power), beta) / total for power in (1, 2))
    q, q_squared = beta / (1 - beta), beta * (1 + beta) / (1 - beta) ** 2
    square = cells**2 * q_squared + 2 * cells * q * first + second
    return np.asarray(square / (1 - (1 - beta) / total / 2))


def _high_and_low(sums: np.ndarray, beta: float) -> np.ndarray:
    return np.asarray(sums + beta * (sums[-1] - sums))
