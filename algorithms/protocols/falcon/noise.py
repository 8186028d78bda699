"""Differential privacy of a training in shares: noise that every data party puts into each step's gradient.

A step's gradient is a sum over its rows of residual times row. A residual is bounded for every score
(sharing/residual_bound.py), and each party clips its part of a row. So one row's part of the sum has a norm of at most
E R, with R^2 the sum of the parties' R_j^2, and a replaced row changes the sum by 2 E R at most. All this holds for the
integers in shares. A row is in one batch, the same in every epoch, so T epochs are T Gaussian releases about it.

Every data party adds noise of the whole deviation. A coalition that knows the noise of all other parties, or left out
its own, still lacks the noise of one party. The gradient is never opened, and the weights that are opened in the end
are computed only from the noisy gradients.

Source: MATH 6, last paragraph; Abadi et al. 2016, without sampling, which public batches do not amplify.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.randomness import UniformInt
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.dealing import Shape
from blindfit.algorithms.sharing.descent import Step
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.residual_bound import residual_bound
from blindfit.algorithms.sharing.shares import Share

REPLACED = 2  # a row goes, and another comes
DEVIATIONS = 64  # of all parties' noise together that fit in the field
LARGEST_RESIDUAL = 1.125  # assumed for the field's size, before the grid of the residuals is known


class PutsIn(Protocol):
    async def put_in(self, name: str, owner: int, shape: Shape, mine: Elements | None, /) -> Share: ...


@dataclass(frozen=True)
class Noise:
    """The public facts about the noise.

    Attributes:
        multiplier: deviation of each party's noise in a step, over the change of the gradient by one replaced row.
        row_bounds: the largest norm of each party's part of a row, in steps of the features' grid.
    """

    multiplier: float
    row_bounds: tuple[int, ...]

    @property
    def row_bound_squared(self) -> int:
        return sum(bound * bound for bound in self.row_bounds)

    def mechanism(self, step: Step) -> GaussianMechanism:
        """Return the mechanism of one party and one step, at the gradient's grid.

        Raises:
            RangeError: on a grid so coarse, the noise would be distinguishable from continuous noise.
        """
        largest = REPLACED * residual_bound(step.waves, step.scales.waves, step.factor)
        return GaussianMechanism(self.multiplier, largest * largest * self.row_bound_squared)

    def room(self, feature_bits: int) -> float:
        """Return the largest noise of all parties in a step's gradient, in units of a feature times a residual."""
        row = math.sqrt(self.row_bound_squared) * 2.0**-feature_bits
        deviation = self.multiplier * REPLACED * LARGEST_RESIDUAL * row
        return DEVIATIONS * deviation * math.sqrt(len(self.row_bounds))

    def mean_gradient_std(self, step: Step) -> float:
        """Return the deviation of all parties' noise on each coordinate of the mean gradient of a batch."""
        grid = 2.0 ** -(step.scales.feature_bits + step.scales.residual_bits)
        of_one = math.sqrt(self.mechanism(step).sigma_squared) * grid / step.rate
        return of_one * math.sqrt(len(self.row_bounds))

    def draw(self, steps: list[Step], uniform: UniformInt) -> Elements:
        """Draw the noise of one party for these steps, (steps, columns)."""
        numbers = [self.mechanism(step).release([0] * step.columns, uniform) for step in steps]
        return np.array([[number % f.P for number in row] for row in numbers], dtype=np.uint64)

    async def put_in(self, seat: PutsIn, steps: list[Step], mine: Elements | None) -> Share:
        """Return a share of all parties' noise, (steps, columns). No party knows the sum or can choose its noise last.

        Args:
            mine: the noise that this party drew (`draw`); None at the dealer.
        """
        shape = len(steps), steps[0].columns
        total, *rest = [await seat.put_in("noise", owner, shape, mine) for owner in range(len(self.row_bounds))]
        for part in rest:
            total = total + part
        return total
