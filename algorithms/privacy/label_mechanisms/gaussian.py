"""Discrete Gaussian noise with the standard deviation of the analytic Gaussian mechanism.

The analytic bound (Balle and Wang 2018, Theorem 8) is about the continuous law. Let f be the density, x the point where
the loss is epsilon, and g = (f - e^epsilon f(. + cells))+, which is log-concave where it is not 0. The sum of g over
the integers is at most its integral plus its maximum, and the maximum is at most f at x if x > 0, otherwise f(0). This
maximum is part of delta here, and so is the part of the law that tables of integer weights miss (`gaussian_tables`).

Time O(n log(cells / epsilon)) for n labels, with tables of at most 20,000 entries; space O(n + table).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.gaussian import (
    LEAST_STD_STEPS,
    analytic_noise_multiplier,
    check_delta,
    gaussian_delta,
)
from blindfit.algorithms.privacy.label_mechanisms.base import MOST_CELLS, LabelGrid, LabelMechanism, Law, Steps
from blindfit.algorithms.privacy.label_mechanisms.gaussian_tables import GaussianTables, min_delta, table_delta
from blindfit.algorithms.randomness import UniformInt


def fine_enough(grid: LabelGrid, epsilon: float, delta: float) -> LabelGrid:
    """Return the grid with its cells halved until the noise is 2^16 steps wide, so that it composes as if continuous.

    Args:
        grid: the grid.
        epsilon: epsilon of one row's label.
        delta: delta of one row's label.

    Raises:
        ConfigError: epsilon or delta is out of range, or no grid of labels is fine enough.

    Example:
        >>> grid = label_mechanisms.LabelGrid(0.0, 10.0, cells=16_384)
        >>> label_mechanisms.fine_enough(grid, epsilon=4.0, delta=1e-6).cells
        65536
    """
    multiplier = analytic_noise_multiplier(epsilon, delta)
    cells = grid.cells
    while multiplier * cells < LEAST_STD_STEPS:
        cells *= 2
    if cells > MOST_CELLS:
        raise ConfigError(
            f"gaussian: at epsilon {epsilon:g} and delta {delta:g} the noise is too narrow for a grid of "
            f"{MOST_CELLS} cells",
            hint="use a smaller epsilon or a smaller delta",
        )
    return replace(grid, cells=cells)


@dataclass(frozen=True)
class Gaussian(LabelMechanism):
    name = "gaussian"
    claimed_delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_delta(self.claimed_delta)
        self.noise_std_steps  # noqa: B018 - a claim that cannot be kept is refused here

    @property
    def delta(self) -> float:
        return self.claimed_delta

    @cached_property
    def noise_std_steps(self) -> float:
        """The least standard deviation that keeps epsilon and delta, on the integers and by the tables."""
        fails = analytic_noise_multiplier(self.epsilon, self.claimed_delta) * self.grid.cells
        holds = fails
        while self._delta_at(holds) > self.claimed_delta:
            if table_delta(holds, self.epsilon) > self.claimed_delta / 2:
                raise ConfigError(
                    f"gaussian: delta {self.claimed_delta:g} at epsilon {self.epsilon:g} is finer than its tables",
                    hint=f"use a delta of {min_delta(self.epsilon):g} or more",
                )
            fails, holds = holds, holds * 1.1
        while holds - fails > 1e-9 * holds:
            middle = (fails + holds) / 2
            fails, holds = (fails, middle) if self._delta_at(middle) <= self.claimed_delta else (middle, holds)
        return holds

    def _delta_at(self, std_steps: float) -> float:
        s = std_steps * (1 - 1e-12) / self.grid.cells  # floating point may draw a little less
        at_loss = max(0.0, self.epsilon * s - 0.5 / s)
        highest = math.exp(-0.5 * at_loss**2) / (std_steps * math.sqrt(2 * math.pi))
        return gaussian_delta(s, self.epsilon) + highest + table_delta(std_steps, self.epsilon)

    def privacy_loss(self) -> tuple[float, float]:
        return self.epsilon, self._delta_at(self.noise_std_steps)

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        return steps + self._tables.draw(len(steps), uniform)

    @cached_property
    def _tables(self) -> GaussianTables:
        return GaussianTables.of(self.noise_std_steps)

    def law(self, label: float) -> Law:
        """Return a window of nine standard deviations, at most 2^17 outputs."""
        std = self.noise_std_steps
        reach = min(math.ceil(9 * std), 2**16)
        k = np.arange(-reach, reach + 1)
        # The sum over all integers is std sqrt(2 pi) to 1e-8 from one step on, and claims of less are refused by delta.
        probabilities = np.exp(-0.5 * (k / std) ** 2) / (std * math.sqrt(2 * math.pi))
        outputs = self.grid.step_of(label) + k.astype(np.int64)
        return Law(outputs, probabilities, tail=max(0.0, 1 - float(probabilities.sum())))

    def mean(self, label: float) -> float:
        return float(self.grid.reals(self.grid.step_of(label)))

    def variance(self, label: float) -> float:
        del label  # the noise is the same everywhere
        return (self.noise_std_steps * self.grid.step) ** 2

    def _own_parameters(self) -> dict[str, Any]:
        return {"delta": self.claimed_delta}
