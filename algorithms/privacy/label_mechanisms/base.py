"""The common parts of label mechanisms: a law on a public grid, drawn exactly, and the public facts about it.

A mechanism turns each label into a noisy one by itself. A party that learns the noisy labels of all rows has learnt an
epsilon-DP release of each label. Laws are given by integer weights: the ratio that differential privacy bounds is a
ratio of integers, and no bit of a floating-point number can betray a label (Mironov 2012).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy.gaussian import check_epsilon
from blindfit.algorithms.randomness import UniformInt, system_uniform

Floats = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

LEAST_EPSILON, MOST_EPSILON, MOST_GAUSSIAN_EPSILON = 1e-4, 30.0, 50.0
"""In this range 64 bits (192 for the Gaussian) hold the weights; outside, no label or all of it would be left."""

LEAST_SHARE = LEAST_EPSILON * (1 - 1e-6)
"""The least epsilon, reduced by possible rounding."""

MOST_CELLS = 2**20
DEFAULT_CELLS = 2**16

LARGEST_END, LEAST_WIDTH = 1e100, 1e-100
"""Squares of numbers in this range are floats."""


def check_label_epsilon(epsilon: float, mechanism: str) -> None:
    """Raise ConfigError if a mechanism cannot keep this epsilon.

    Args:
        epsilon: privacy of one row's label.
    """
    check_epsilon(epsilon)
    most = MOST_GAUSSIAN_EPSILON if mechanism == "gaussian" else MOST_EPSILON
    if not LEAST_SHARE <= epsilon <= most:
        larger = f"use {most:g} or less" + ("" if mechanism == "gaussian" else ', or the mechanism "gaussian" up to 50')
        raise ConfigError(
            f"privacy.epsilon of one label must lie in [{LEAST_EPSILON:g}, {most:g}] with {mechanism}, not {epsilon!r}",
            hint=larger if epsilon > most else "use a larger one, or release fewer rows of a person",
        )


# --- the grid -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelGrid:
    """The public range of the labels, cut into equal cells; label y is the integer nearest (y - lo) / step.

    Noisy labels are integers of the same grid, and may lie outside 0..cells.
    """

    lo: float
    hi: float
    cells: int = DEFAULT_CELLS

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lo) and math.isfinite(self.hi - self.lo) and self.lo < self.hi):
            raise ConfigError(f"the labels' range must be finite and not empty, not [{self.lo!r}, {self.hi!r}]")
        if max(-self.lo, self.hi) > LARGEST_END or self.hi - self.lo < LEAST_WIDTH:
            raise ConfigError(
                f"the labels' range must lie within {LARGEST_END:g} of 0 and be at least {LEAST_WIDTH:g} wide, "
                f"not [{self.lo!r}, {self.hi!r}]",
                hint="give the labels another unit",
            )
        if not 1 <= self.cells <= MOST_CELLS:
            raise ConfigError(f"a label grid has 1 to {MOST_CELLS} cells, not {self.cells!r}")
        if self.lo + self.step == self.lo or self.hi - self.step == self.hi:
            raise ConfigError(
                f"[{self.lo!r}, {self.hi!r}] is too narrow for {self.cells} cells",
                hint="subtract a public number near the middle from the labels, or use fewer cells",
            )

    @property
    def width(self) -> float:
        return self.hi - self.lo

    @property
    def step(self) -> float:
        return (self.hi - self.lo) / self.cells

    def steps(self, labels: npt.ArrayLike) -> Steps:
        """Clip labels to the range and round them to the grid."""
        values = _real_vector(labels)
        clipped = np.clip(values, self.lo, self.hi)
        return np.asarray(np.clip(np.rint((clipped - self.lo) / self.step), 0, self.cells), dtype=np.int64)

    def reals(self, steps: npt.ArrayLike) -> Floats:
        return self.lo + np.asarray(steps, dtype=np.float64) * self.step

    def step_of(self, label: float) -> int:
        return int(self.steps([label])[0])

    def steps_of_width(self, width: float) -> int:
        """Return a positive width in whole steps, at least one."""
        return max(1, round(width / self.step))


def _real_vector(labels: npt.ArrayLike) -> Floats:
    try:
        values = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("the labels are not numbers") from None
    if values.ndim != 1:
        raise DataError(f"the labels must be one column, not an array of shape {values.shape}")
    if not np.isfinite(values).all():
        raise DataError(f"the label of row {int(np.argmin(np.isfinite(values))) + 1} is not a finite number")
    return values


# --- the law ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """The distribution of one label's output.

    Args:
        outputs: grid integers, ascending.
        probabilities: the outputs' probabilities.
        weights: Python integers in the same ratios, if the law is drawn from integers; the weights of two labels of one
            mechanism have the same total, so they may be compared with each other.
        total: sum of the weights of all outputs; None if there are infinitely many outputs.
        tail: the probability of all other outputs.
    """

    outputs: Steps
    probabilities: Floats
    weights: npt.NDArray[np.object_] | None = None
    total: int | None = None
    tail: float = 0.0

    @classmethod
    def of_weights(cls, outputs: npt.ArrayLike, weights: npt.NDArray[np.object_]) -> Law:
        """Return a finite law."""
        total = int(weights.sum())
        probabilities = np.array(weights, dtype=np.float64) / total
        return cls(np.asarray(outputs, dtype=np.int64), probabilities, weights, total)


# --- the mechanism ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelMechanism(ABC):
    """A fitted mechanism: everything in it is public, and `parameters` is all of it.

    Args:
        grid: the grid of labels and outputs.
        epsilon: the claim; `privacy_loss` is the loss that the weights really have, never more.
    """

    grid: LabelGrid
    epsilon: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_label_epsilon(self.epsilon, self.name)

    @property
    def delta(self) -> float:
        return 0.0

    def randomise(self, labels: npt.ArrayLike, uniform: UniformInt = system_uniform) -> Floats:
        """Return noisy labels, reals on the grid; each row by itself."""
        return self.grid.reals(self.draw(self.grid.steps(labels), uniform))

    @abstractmethod
    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        """Return noisy labels for labels on the grid (0..cells)."""

    @abstractmethod
    def law(self, label: float) -> Law:
        """Return the law of the output at one label."""

    @abstractmethod
    def privacy_loss(self) -> tuple[float, float]:
        """Return (epsilon, delta) that the drawn law keeps for certain, rounded up; at most the claim."""

    @abstractmethod
    def _own_parameters(self) -> dict[str, Any]:
        """Return the parameters in addition to grid and epsilon."""

    def mean(self, label: float) -> float:
        """Return the mean of the output, as a real."""
        law = self.law(label)
        return self.grid.lo + self.grid.step * float(law.probabilities @ law.outputs)

    def variance(self, label: float) -> float:
        """Return the variance of the output, before any debiasing."""
        law = self.law(label)
        centre = law.probabilities @ law.outputs
        return float(self.grid.step**2 * (law.probabilities @ (law.outputs - centre) ** 2))

    @property
    def can_debias(self) -> bool:
        return True

    def debias(self, outputs: npt.ArrayLike) -> Floats:
        """Map outputs so that their mean is the label (clipped and rounded to the grid as the mechanism does).

        Raises:
            ConfigError: no such map exists, or none is known.
        """
        return _real_vector(outputs)

    def parameters(self) -> dict[str, Any]:
        """Return all parameters as JSON; `from_parameters` makes the same mechanism from them, without any label."""
        grid = self.grid
        common = {"mechanism": self.name, "lo": grid.lo, "hi": grid.hi, "cells": grid.cells, "epsilon": self.epsilon}
        return common | self._own_parameters()


class NotDebiasable(LabelMechanism):
    """A mechanism whose outputs' means do not reveal the label."""

    @property
    def can_debias(self) -> bool:
        return False

    def debias(self, outputs: npt.ArrayLike) -> Floats:
        del outputs
        raise ConfigError(
            f"{self.name} cannot be debiased: its outputs have the same law at different labels",
            hint='use "rp-with-prior", "unbiased" or an additive mechanism where bias matters',
        )
