"""Discrete Laplace noise: P(k) ~ e^(-epsilon |k| / cells).

Source: Dwork, McSherry, Nissim, Smith 2006; on the integers, Ghosh, Roughgarden, Sundararajan 2009. Complexity: that
of block_noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blindfit.algorithms.privacy.label_mechanisms.block_noise import BlockMechanism, BlockNoise, GeometricBlocks


@dataclass(frozen=True)
class Laplace(BlockMechanism):
    name = "laplace"

    @cached_property
    def noise(self) -> BlockNoise:
        return laplace_noise(self.epsilon, self.grid.cells)

    def _own_parameters(self) -> dict[str, Any]:
        return {}


def laplace_noise(epsilon: float, cells: int) -> BlockNoise:
    """Return the noise for integers that differ by at most `cells`."""
    falling = np.exp(-epsilon * np.arange(cells) / cells)
    scale = math.floor(2.0**62 / falling.sum())
    # Rounded up, so that the last cell stays above the next block's first.
    table = np.minimum.accumulate(np.ceil(scale * falling)).astype(np.uint64)
    return BlockNoise(epsilon, GeometricBlocks.of(epsilon), table)
