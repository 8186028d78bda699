"""Estimate what noisy descent takes."""

from __future__ import annotations

from blindfit.algorithms.fit_cost import NUMBER_BYTES, FitCost


def descent_cost(iterations: int, n_rows: float, n_columns: int) -> FitCost:
    """Return the cost of noisy descent, whose path is kept for the losses."""
    operations = 4.0 * iterations * n_rows * n_columns
    return FitCost(2.0 * NUMBER_BYTES * iterations * n_columns, operations, "dp_lr.iterations")
