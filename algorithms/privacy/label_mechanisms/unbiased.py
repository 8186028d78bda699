"""The unbiased randomiser of least expected squared error, by a linear program.

    minimise  sum_ij p_i M_ij (g_j - y_i)^2
    where     sum_j M_ij = 1,   sum_j M_ij g_j = y_i,   e^-epsilon Q_j <= M_ij <= Q_j

There are k inputs y_i and m outputs g_j. The outputs must reach D / (e^epsilon - 1) past both ends of the range D for
the program to have a solution. Here they reach twice that, and at least D/4, which serves large epsilons. A label
between inputs goes to one of its two neighbours, with the odds that keep its mean, unless labels are rounded down.

The solution becomes integers in three steps that no solver's tolerance can undo. Weights are rounded. The small weights
of each column are raised to the largest one / e^epsilon. Then a little of the mechanism that answers only with the two
outermost outputs is mixed in, so much in each row that all totals are equal and all means right. That mechanism has
slack in epsilon because the outputs reach further than they must.

Source: Badanidiyuru, Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan, Zhang 2023 (NeurIPS, arXiv 2312.05659),
Algorithm 1. The program has km + m variables and 2km + 2k constraints, which bounds its use to 15,000 weights (some ten
seconds); drawing is O(n log(km)) time and O(n + km) space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy.label_mechanisms.base import LabelGrid, LabelMechanism, Law, Steps
from blindfit.algorithms.privacy.label_mechanisms.drawing import below, exp_bounds, loss_of_ratio, words
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior
from blindfit.algorithms.privacy.label_mechanisms.unbiased_program import integer_weights, solve
from blindfit.algorithms.randomness import UniformInt

DEFAULT_INPUTS, OUTPUTS_OUTSIDE = 33, 32
MOST_INPUTS, MOST_WEIGHTS = 128, 15_000


@dataclass(frozen=True)
class Unbiased(LabelMechanism):
    """The unbiased randomiser of least expected squared error.

    Args:
        inputs: y on the grid, ascending from 0.
        outputs: g on the grid, ascending.
        weights: M, a row of integers for each input; all rows have one total, below 2^56.
        rounds_down: True if a label between two inputs goes to the lower one.
    """

    name = "unbiased"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    rounds_down: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        fault = self._fault()
        if fault:
            raise DataError(f"unbiased: {fault}")

    def _fault(self) -> str:
        ascending = all(all(a < b for a, b in pairwise(s)) for s in (self.inputs, self.outputs))
        if len(self.inputs) < 2 or self.inputs[0] != 0 or not ascending or len(self.inputs) > MOST_INPUTS:
            return f"inputs and outputs must ascend, and the 2 to {MOST_INPUTS} inputs begin at 0"
        last = self.inputs[-1]
        if last > self.grid.cells or (last < self.grid.cells and not self.rounds_down):
            return "the last input must be the grid's end, or before the end if labels are rounded down"
        if any(abs(g) > 2**52 for g in self.outputs):
            return "an output is too far outside the grid"
        if len(self.weights) != len(self.inputs) or any(len(row) != len(self.outputs) for row in self.weights):
            return "there must be a weight for each input and output"
        totals = {sum(row) for row in self.weights}
        if len(totals) != 1 or not 0 < max(totals) < 2**56 or min(map(min, self.weights)) <= 0:
            return "weights must be positive, and each row's total the same, below 2^56"
        return "" if self._worst_ratio <= exp_bounds(self.epsilon)[0] else "the weights do not keep epsilon"

    @classmethod
    def optimal(
        cls,
        grid: LabelGrid,
        epsilon: float,
        prior: Prior,
        *,
        rounding: float | None,
        output_cells: int | None,
        output_reach: float | None,
    ) -> Unbiased:
        inputs, outputs = places(grid, epsilon, rounding, output_cells, output_reach)
        mass = _mass_of_inputs(prior.of_steps(grid), inputs, rounds_down=rounding is not None)
        program = solve(inputs / grid.cells, outputs / grid.cells, mass, epsilon)
        weights = integer_weights(program, inputs.tolist(), outputs.tolist(), epsilon)
        return cls(grid, epsilon, tuple(inputs.tolist()), tuple(outputs.tolist()), weights, rounding is not None)

    @property
    def _worst_ratio(self) -> Fraction:
        return max(Fraction(max(column), min(column)) for column in zip(*self.weights, strict=True))

    def privacy_loss(self) -> tuple[float, float]:
        return loss_of_ratio(self._worst_ratio), 0.0

    def draw(self, steps: Steps, uniform: UniformInt) -> Steps:
        row, outputs = self._rows(steps, uniform), np.asarray(self.outputs, dtype=np.int64)
        total = sum(self.weights[0])
        drawn = below(total, len(steps), uniform) + row.astype(np.uint64) * np.uint64(total)
        place = np.searchsorted(self._running_sums, drawn, side="right") - row * len(outputs)
        drawn_outputs: Steps = outputs[place]
        return drawn_outputs

    @cached_property
    def _running_sums(self) -> npt.NDArray[np.uint64]:
        """Running sums over all rows, one after another: one search serves every row."""
        return np.cumsum(np.array(self.weights, dtype=np.uint64).ravel(), dtype=np.uint64)

    def _rows(self, steps: Steps, uniform: UniformInt) -> Steps:
        inputs = np.asarray(self.inputs, dtype=np.int64)
        lower = (np.searchsorted(inputs, steps, side="right") - 1).astype(np.int64)
        if self.rounds_down:
            return lower
        lower = np.minimum(lower, len(inputs) - 2)
        share = (steps - inputs[lower]) / (inputs[lower + 1] - inputs[lower])
        return lower + ((words(len(steps), uniform) >> np.uint64(11)) * 2.0**-53 < share).astype(np.int64)

    def law(self, label: float) -> Law:
        step, inputs = self.grid.step_of(label), self.inputs
        lower = int(np.searchsorted(inputs, step, side="right")) - 1
        rows = np.array(self.weights, dtype=object)
        outputs = np.asarray(self.outputs, dtype=np.int64)
        if self.rounds_down:
            return Law.of_weights(outputs, rows[lower])
        lower = min(lower, len(inputs) - 2)
        width = inputs[lower + 1] - inputs[lower]
        common = math.lcm(*(b - a for a, b in pairwise(inputs))) // width
        mixed = rows[lower] * (inputs[lower + 1] - step) + rows[lower + 1] * (step - inputs[lower])
        return Law.of_weights(outputs, mixed * common)

    def _own_parameters(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "weights": [list(row) for row in self.weights],
            "rounds_down": self.rounds_down,
        }


# --- inputs and outputs -------------------------------------------------------------------------


def places(
    grid: LabelGrid, epsilon: float, rounding: float | None, output_cells: int | None, output_reach: float | None
) -> tuple[Steps, Steps]:
    """Return inputs and outputs, the same for every prior.

    Raises:
        ConfigError: there are too many, or they are too near to each other.
    """
    inputs = _inputs(grid, rounding)
    reach = _reach(grid, epsilon, output_reach)
    outputs = _outputs(grid, inputs, reach, output_cells or len(inputs) + OUTPUTS_OUTSIDE)
    if len(inputs) > MOST_INPUTS or len(inputs) * len(outputs) > MOST_WEIGHTS:
        raise ConfigError(
            f"unbiased: {len(inputs)} inputs and {len(outputs)} outputs are more than the linear program can take",
            hint=f"round more coarsely: at most {MOST_INPUTS} inputs, and {MOST_WEIGHTS} weights",
        )
    return inputs, outputs


def _inputs(grid: LabelGrid, rounding: float | None) -> Steps:
    if rounding is None:
        return _whole(np.linspace(0, grid.cells, DEFAULT_INPUTS))
    inputs = np.arange(0, grid.cells + 1, grid.steps_of_width(rounding))
    if len(inputs) < 2:
        raise ConfigError("unbiased: the rounding is as wide as the labels' range", hint="use a smaller one")
    return inputs


def _reach(grid: LabelGrid, epsilon: float, output_reach: float | None) -> int:
    """Return the reach in steps: at least a quarter more than the program needs, as slack for the rounding."""
    needed = grid.cells / math.expm1(epsilon)
    if output_reach is None:
        return math.ceil(max(2 * needed, grid.cells / 4))
    reach = round(min(output_reach / grid.step, 2.0**50))
    if reach < max(1.0, 1.25 * needed):
        raise ConfigError(
            f"unbiased: outputs reach {output_reach:g} past the range, too little at epsilon {epsilon:g}",
            hint=f"at least {1.25 * needed * grid.step:.3g} is needed",
        )
    return reach


def _outputs(grid: LabelGrid, inputs: Steps, reach: int, count: int) -> Steps:
    """Return the inputs if they leave room, else fewer in the range; the rest evenly outside."""
    inside = inputs if len(inputs) <= count - 4 else np.linspace(0, grid.cells, max(2, count // 2))
    outside = max(1, (count - len(inside)) // 2)
    distances = reach * np.arange(1, outside + 1) / outside
    return _whole(np.concatenate((-distances, inside, [grid.cells], grid.cells + distances)))


def _whole(steps: npt.NDArray[Any]) -> Steps:
    return np.asarray(np.unique(np.rint(steps)), dtype=np.int64)


def _mass_of_inputs(mass: npt.NDArray[np.float64], inputs: Steps, *, rounds_down: bool) -> npt.NDArray[np.float64]:
    """Return the mass that goes to each input; a millionth is spread evenly, so that no input's error is free."""
    steps = np.arange(len(mass))
    lower = np.minimum(np.searchsorted(inputs, steps, side="right") - 1, len(inputs) - (1 if rounds_down else 2))
    found = np.zeros(len(inputs))
    share = np.zeros(len(mass)) if rounds_down else (steps - inputs[lower]) / (inputs[lower + 1] - inputs[lower])
    np.add.at(found, lower, mass * (1 - share))
    if not rounds_down:
        np.add.at(found, lower + 1, mass * share)
    return found * (1 - 1e-6) + 1e-6 / len(inputs)
