"""Knowledge of the labels before they are released: a histogram over their public range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.label_mechanisms.base import Floats, LabelGrid, Steps

MOST_PRIOR_CELLS = 2**14
"""The time to choose an interval grows with the square of this number."""


@dataclass(frozen=True, eq=False)
class Prior:
    """A step function: `masses[i]` is spread evenly between `edges[i]` and `edges[i + 1]`; the masses sum to 1.

    Args:
        edges: float64 array of shape (cells + 1,), ascending, in units of the label.
        masses: float64 array of shape (cells,), not negative. They are divided by their sum.

    Raises:
        DataError: edges or masses are not valid.

    Example:
        >>> prior = label_mechanisms.Prior([0.0, 10.0, 100.0], [3.0, 1.0])
        >>> prior.masses.tolist(), prior.quantile(0.75)
        ([0.75, 0.25], 10.0)
    """

    edges: Floats
    masses: Floats

    def __post_init__(self) -> None:
        edges, masses = (np.asarray(values, dtype=np.float64) for values in (self.edges, self.masses))
        if edges.ndim != 1 or masses.ndim != 1 or len(edges) != len(masses) + 1 or not len(masses):
            raise DataError("a prior has one edge more than it has cells, and at least one cell")
        if len(masses) > MOST_PRIOR_CELLS:
            raise DataError(f"a prior has at most {MOST_PRIOR_CELLS} cells, not {len(masses)}")
        if not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise DataError("a prior's edges must be finite and ascend")
        if not (np.isfinite(masses).all() and (masses >= 0).all() and masses.sum() > 0):
            raise DataError("a prior's masses must be finite and not negative, and not all of them 0")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "masses", masses / masses.sum())

    @property
    def cumulative(self) -> Floats:
        """Mass below each edge: float64 array of shape (cells + 1,)."""
        return np.concatenate(([0.0], np.minimum(np.cumsum(self.masses), 1.0)))

    def mass_below(self, labels: npt.ArrayLike) -> Floats:
        """Return the mass below each label: float64 array.

        Args:
            labels: finite numbers.
        """
        return np.asarray(
            np.interp(np.asarray(labels, dtype=np.float64), self.edges, self.cumulative), dtype=np.float64
        )

    def quantile(self, share: float) -> float:
        """Return the least label that has this share of the mass at or below it.

        Args:
            share: a number from 0 to 1.
        """
        cumulative = self.cumulative
        right = int(np.searchsorted(cumulative, share * cumulative[-1], side="left"))
        if right == 0:
            return float(self.edges[0])
        part = (share * cumulative[-1] - cumulative[right - 1]) / (cumulative[right] - cumulative[right - 1])
        return float(self.edges[right - 1] + part * (self.edges[right] - self.edges[right - 1]))

    def of_steps(self, grid: LabelGrid) -> Floats:
        """Return the mass of each grid integer 0 to cells, as labels are clipped and rounded: shape (cells + 1,).

        Args:
            grid: the grid.
        """
        between = grid.reals(np.arange(grid.cells) + 0.5)
        return np.diff(np.concatenate(([0.0], self.mass_below(between), [1.0])))


def uniform_prior(grid: LabelGrid) -> Prior:
    """Return the prior that is uniform over the range of the grid.

    Args:
        grid: the grid.

    Example:
        >>> label_mechanisms.uniform_prior(label_mechanisms.LabelGrid(0.0, 10.0)).quantile(0.5)
        5.0
    """
    return Prior(np.array([grid.lo, grid.hi]), np.ones(1))


def prior_from_counts(edges: npt.ArrayLike, counts: npt.ArrayLike) -> Prior:
    """Return the prior of a public histogram, or of one that was made privately.

    Args:
        edges: edges of the cells, ascending, shape (cells + 1,), in units of the label.
        counts: counts of the cells, not negative, shape (cells,). They need not be integers.

    Raises:
        DataError: edges or counts are not valid.

    Example:
        >>> label_mechanisms.prior_from_counts([0.0, 10.0, 100.0], [300, 100]).masses.tolist()
        [0.75, 0.25]
    """
    return Prior(np.asarray(edges, dtype=np.float64), np.asarray(counts, dtype=np.float64))


def histogram_of_steps(grid: LabelGrid, edges: Floats, steps: Steps) -> Prior:
    """Return the histogram of labels on the grid, those outside clipped to its ends."""
    counts, _ = np.histogram(np.clip(grid.reals(steps), grid.lo, grid.hi), bins=edges)
    return Prior(edges, counts.astype(np.float64))
