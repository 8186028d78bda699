"""Discrete Gaussian noise with the standard deviation of the analytic Gaussian mechanism.

The analytic bound (Balle and Wang 2018, Theorem 8) is about the continuous law. With f the density, x the point where
the loss is epsilon and g = (f - e^epsilon f(. + cells))+, which is log-concave where it is not 0, the sum of g over the
integers is at most its integral plus its maximum, and that is at most f at x if x > 0, f(0) else. This maximum is part
of delta here, as is what tables of integer weights miss of the law (`_table_delta`).

A wide law is drawn as `spacing` * a + b with discrete Gaussians a and b from two short tables: with tau the standard
deviation of `spacing` * a given the sum, the sum's law differs from a discrete Gaussian's by a factor within
1 +- 2.1 e^(-2 pi^2 (tau / spacing)^2) (Poisson summation), below 1e-60 at tau > 3.8 spacing.

Time O(n log(table)) for n labels, with tables of O(sqrt(cells / epsilon)) entries; space O(n + table).
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier, check_delta, gaussian_delta
from blindfit.algorithms.privacy.label_mechanisms.base import LabelMechanism, Law, Steps
from blindfit.algorithms.privacy.label_mechanisms.drawing import from_cumulative, symmetric
from blindfit.algorithms.randomness import UniformInt

_ONE_TABLE = 2**8  # standard deviations up to which one table does
_SPREAD = 4  # of b, in spacings


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
        """The least that keeps epsilon and delta, on the integers and by the tables."""
        fails = analytic_noise_multiplier(self.epsilon, self.claimed_delta) * self.grid.cells
        holds = fails
        while self._delta_at(holds) > self.claimed_delta:
            if _table_delta(holds, self.epsilon) > self.claimed_delta / 2:
                raise ConfigError(
                    f"gaussian: delta {self.claimed_delta:g} at epsilon {self.epsilon:g} is finer than its tables",
                    hint="use a larger delta, a smaller epsilon or another mechanism",
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
        return gaussian_delta(s, self.epsilon) + highest + _table_delta(std_steps, self.epsilon)

    def privacy_loss(self) -> tuple[float, float]:
        return self.epsilon, self._delta_at(self.noise_std_steps)

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        return steps + self._tables.draw(len(steps), uniform)

    @cached_property
    def _tables(self) -> GaussianTables:
        return GaussianTables.of(self.noise_std_steps)

    def law(self, label: float) -> Law:
        """A window of nine standard deviations, at most 2^17 outputs."""
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


def _table_delta(std_steps: float, epsilon: float) -> float:
    """What the tables add to delta: laws within `missed` of the right ones cost (1 + e^epsilon) times as much.

    Each of at most two tables has at most 9 standard deviations of entries, each rounded by less than 1 of a total
    above 2^61, and as much again lies beyond its end.
    """
    longest = std_steps if std_steps <= _ONE_TABLE else 2 * math.sqrt(_SPREAD * std_steps)
    missed = 2 * 2 * (9 * longest + 2) / 2**61
    return (1 + math.exp(epsilon)) * missed


# --- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GaussianTables:
    """`spacing` times a draw of the coarse table, if there is one, plus one of the fine table."""

    spacing: int
    coarse: npt.NDArray[np.uint64] | None
    fine: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, std: float) -> GaussianTables:
        if std <= _ONE_TABLE:
            return cls(1, None, half_gaussian(std))
        # The two tables are about as long as each other.
        spacing = math.ceil(math.sqrt(std / _SPREAD))
        coarse_std = math.sqrt(std**2 - (_SPREAD * spacing) ** 2) / spacing
        return cls(spacing, half_gaussian(coarse_std), half_gaussian(float(_SPREAD * spacing)))

    def draw(self, n: int, uniform: UniformInt) -> Steps:
        fine = _symmetric(self.fine, n, uniform)
        return fine if self.coarse is None else self.spacing * _symmetric(self.coarse, n, uniform) + fine


def half_gaussian(std: float) -> npt.NDArray[np.uint64]:
    """Running sums of integer weights ~ e^(-k^2 / (2 std^2)), k = 0, 1, ..

    By w_{k+1} = w_k r_k, r_{k+1} = r_k r_0^2 in fixed point of 256 bits, of which rounding loses k^2 units at k.
    """
    bits = 256
    with decimal.localcontext() as context:
        context.prec = 90
        root = (-1 / (2 * decimal.Decimal(std) ** 2)).exp()
        ratio, falls = int(root * 2**bits), int(root * root * 2**bits)
    scale = math.floor(2**62 / (std * math.sqrt(math.pi / 2) + 1))
    weights, weight = [], 1 << bits
    while (entry := scale * weight >> bits) > 0:
        weights.append(entry)
        weight, ratio = weight * ratio >> bits, ratio * falls >> bits
    return np.cumsum(np.array(weights, dtype=np.uint64), dtype=np.uint64)


def _symmetric(cumulative: npt.NDArray[np.uint64], n: int, uniform: UniformInt) -> Steps:
    return symmetric(lambda count: from_cumulative(cumulative, count, uniform), n, uniform)
