"""A prior from the labels themselves, for a part of epsilon.

Noise on each label keeps label DP without a trusted curator. A histogram has noise on its counts: a change of one label
moves two counts by one, so that noise is far smaller, where a party may count the labels.

Source: Liu et al. 2025, "RPWithPrior", Algorithm 3 (noise on labels); Ghazi et al. 2023, Section 3 (on counts).
Time O(n), space O(n + cells of the histogram).
"""

from __future__ import annotations

import math

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.label_mechanisms.base import Floats, LabelGrid, Steps
from blindfit.algorithms.privacy.label_mechanisms.block_noise import BlockMechanism
from blindfit.algorithms.privacy.label_mechanisms.laplace import Laplace, laplace_noise
from blindfit.algorithms.privacy.label_mechanisms.prior import (
    MOST_PRIOR_CELLS,
    Prior,
    histogram_of_steps,
    uniform_prior,
)
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase
from blindfit.algorithms.randomness import UniformInt

PRIOR_MECHANISMS = ("laplace", "staircase", "histogram")


def estimate_prior(
    mechanism: str, grid: LabelGrid, epsilon: float, steps: Steps, cell_width: float | None, uniform: UniformInt
) -> Prior:
    """Return an epsilon-DP histogram; cell_width None is the noisy labels' deviation, for "histogram" a 64th."""
    if mechanism == "histogram":
        return _noisy_counts(grid, epsilon, steps, cell_width or grid.width / 64, uniform)
    noisy = np.clip(_additive(mechanism, grid, epsilon).draw(steps, uniform), 0, grid.cells)
    return _noisy_labels(grid, noisy, cell_width)


def _additive(mechanism: str, grid: LabelGrid, epsilon: float) -> BlockMechanism:
    if mechanism == "laplace":
        return Laplace(grid, epsilon)
    return Staircase.optimal(grid, epsilon, "squared")


def _noisy_labels(grid: LabelGrid, noisy: Steps, cell_width: float | None) -> Prior:
    """Put cells to both sides of the mean; from here on, the result depends only on released values."""
    if not len(noisy):
        return uniform_prior(grid)
    reals = grid.reals(noisy)
    width = float(np.std(reals)) if cell_width is None else cell_width
    if width < grid.step:  # the labels are constant, as a single label is
        return uniform_prior(grid)
    centre = float(np.mean(reals))
    check_cell_width(grid, width)
    first, last = (math.floor((end - centre) / width) for end in (grid.lo, grid.hi))
    inner = centre + width * np.arange(first, last + 1)
    keep = (inner > grid.lo + grid.step / 2) & (inner < grid.hi - grid.step / 2)
    return histogram_of_steps(grid, np.concatenate(([grid.lo], inner[keep], [grid.hi])), noisy)


def _noisy_counts(grid: LabelGrid, epsilon: float, steps: Steps, cell_width: float, uniform: UniformInt) -> Prior:
    check_cell_width(grid, cell_width)
    edges = _even_edges(grid, cell_width)
    counts = np.histogram(grid.reals(steps), bins=edges)[0]
    noisy = counts + laplace_noise(epsilon / 2, 1).draw(len(counts), uniform)
    if not (noisy > 0).any():
        return uniform_prior(grid)
    return Prior(edges, np.maximum(noisy, 0).astype(np.float64))


def _even_edges(grid: LabelGrid, width: float) -> Floats:
    """Return even edges; the last cell may be narrower, down to a hundredth of the others."""
    inner = grid.lo + width * np.arange(1, math.ceil(grid.width / width))
    return np.concatenate(([grid.lo], inner[inner < grid.hi - width / 100], [grid.hi]))


def check_cell_width(grid: LabelGrid, width: float) -> None:
    if not (math.isfinite(width) and width > 0):
        raise ConfigError(f"the width of the prior's cells must be a finite number above 0, not {width!r}")
    if grid.width / width > MOST_PRIOR_CELLS - 2 or width < grid.step:
        raise ConfigError(
            f"a prior has up to {MOST_PRIOR_CELLS} cells, not narrower than the labels' grid; {width:g} is too narrow",
            hint=f"use {max(grid.step, grid.width / 1000):.3g} or more",
        )
