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

    Args:
        lo: lowest label, in units of the label.
        hi: highest label, in units of the label.
        cells: number of cells, 1 to 1,048,576. More cells round less and cost more memory.

    Raises:
        ConfigError: the range or the number of cells is not valid.

    Example:
        >>> grid = blindfit.LabelGrid(0.0, 100.0, cells=200)
        >>> grid.step, grid.steps([12.3, 250.0]).tolist(), grid.reals([25]).tolist()
        (0.5, [25, 200], [12.5])
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
        """Length of the range, in units of the label."""
        return self.hi - self.lo

    @property
    def step(self) -> float:
        """Length of a cell, in units of the label."""
        return (self.hi - self.lo) / self.cells

    def steps(self, labels: npt.ArrayLike) -> Steps:
        """Return the labels as integers of the grid, clipped to the range: int64 array of shape (rows,).

        Args:
            labels: finite numbers, shape (rows,).

        Raises:
            DataError: a label is not a finite number, or the labels are not one column.
        """
        values = _real_vector(labels)
        clipped = np.clip(values, self.lo, self.hi)
        return np.asarray(np.clip(np.rint((clipped - self.lo) / self.step), 0, self.cells), dtype=np.int64)

    def reals(self, steps: npt.ArrayLike) -> Floats:
        """Return integers of the grid in units of the label: float64 array.

        Args:
            steps: integers of the grid.
        """
        return self.lo + np.asarray(steps, dtype=np.float64) * self.step

    def step_of(self, label: float) -> int:
        """Return one label as an integer of the grid.

        Args:
            label: a finite number.

        Raises:
            DataError: the label is not finite.
        """
        return int(self.steps([label])[0])

    def steps_of_width(self, width: float) -> int:
        """Return a width in whole steps, at least one.

        Args:
            width: a number above 0, in units of the label.
        """
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
        outputs: int64 array of grid integers, ascending.
        probabilities: float64 array with the probability of each output.
        weights: Python integers in the same ratios, if the law is drawn from integers. The weights of two labels of one
            mechanism have the same total, so they can be compared with each other.
        total: sum of the weights of all outputs; None if there are infinitely many outputs.
        tail: probability of all other outputs.

    Example:
        >>> settings = label_mechanisms.MechanismSettings("laplace", label_mechanisms.LabelGrid(0.0, 10.0), epsilon=1.0)
        >>> law = label_mechanisms.fit(settings, [3.0, 4.0]).mechanism.law(3.0)
        >>> round(float(law.probabilities.sum()) + law.tail, 6)
        1.0
    """

    outputs: Steps
    probabilities: Floats
    weights: npt.NDArray[np.object_] | None = None
    total: int | None = None
    tail: float = 0.0

    @classmethod
    def of_weights(cls, outputs: npt.ArrayLike, weights: npt.NDArray[np.object_]) -> Law:
        """Return the finite law of these weights.

        Args:
            outputs: grid integers, ascending.
            weights: positive Python integers, one for each output.
        """
        total = int(weights.sum())
        probabilities = np.array(weights, dtype=np.float64) / total
        return cls(np.asarray(outputs, dtype=np.int64), probabilities, weights, total)


# --- the mechanism ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelMechanism(ABC):
    """A fitted mechanism. Everything in it is public, and `parameters` is all of it. `fit` makes one.

    Args:
        grid: grid of labels and outputs.
        epsilon: claimed epsilon of one row's label. `privacy_loss` returns the loss that the weights really have, which
            is never larger.

    Example:
        >>> settings = label_mechanisms.MechanismSettings("laplace", label_mechanisms.LabelGrid(0.0, 10.0), epsilon=1.0)
        >>> mechanism = label_mechanisms.fit(settings, [3.0, 4.0]).mechanism
        >>> mechanism.randomise([3.0, 4.0]).shape, mechanism.privacy_loss() <= (1.0, 0.0)
        ((2,), True)
        >>> label_mechanisms.from_parameters(mechanism.parameters()) == mechanism
        True
    """

    grid: LabelGrid
    epsilon: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_label_epsilon(self.epsilon, self.name)

    @property
    def delta(self) -> float:
        """Claimed delta of one row's label; 0 except for the gaussian mechanism."""
        return 0.0

    def randomise(self, labels: npt.ArrayLike, uniform: UniformInt = system_uniform) -> Floats:
        """Return noisy labels on the grid, each row by itself: float64 array of shape (rows,).

        Args:
            labels: finite numbers, shape (rows,). They are clipped to the range and rounded to the grid.
            uniform: source of uniform integers; the operating system's generator by default.

        Raises:
            DataError: a label is not a finite number.
        """
        return self.grid.reals(self.draw(self.grid.steps(labels), uniform))

    @abstractmethod
    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        """Return noisy labels as grid integers: int64 array of shape (rows,).

        Args:
            steps: labels as grid integers, 0 to cells.
            uniform: source of uniform integers.
        """

    @abstractmethod
    def law(self, label: float) -> Law:
        """Return the law of one label's output.

        Args:
            label: a finite number.
        """

    @abstractmethod
    def privacy_loss(self) -> tuple[float, float]:
        """Return the epsilon and the delta that the drawn law certainly keeps, rounded up; at most the claim."""

    @abstractmethod
    def _own_parameters(self) -> dict[str, Any]:
        """Return the parameters in addition to grid and epsilon."""

    def mean(self, label: float) -> float:
        """Return the mean of one label's output, in units of the label.

        Args:
            label: a finite number.
        """
        law = self.law(label)
        return self.grid.lo + self.grid.step * float(law.probabilities @ law.outputs)

    def variance(self, label: float) -> float:
        """Return the variance of one label's output before debiasing, in squared units of the label.

        Args:
            label: a finite number.
        """
        law = self.law(label)
        centre = law.probabilities @ law.outputs
        return float(self.grid.step**2 * (law.probabilities @ (law.outputs - centre) ** 2))

    @property
    def can_debias(self) -> bool:
        """True if `debias` works for this mechanism."""
        return True

    def debias(self, outputs: npt.ArrayLike) -> Floats:
        """Return outputs mapped so that their mean is the label, clipped and rounded as the mechanism does.

        Args:
            outputs: noisy labels, shape (rows,).

        Raises:
            ConfigError: no such map exists, or none is known.
        """
        return _real_vector(outputs)

    def parameters(self) -> dict[str, Any]:
        """Return all parameters, ready for JSON. `from_parameters` makes the same mechanism without any label."""
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
