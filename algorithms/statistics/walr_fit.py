"""From a released mu to weights: l2 from the noise, the feasibility warning, the solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from blindfit.algorithms.statistics import solvers, walr_defaults
from blindfit.algorithms.statistics.logistic import Floats, Rows
from blindfit.algorithms.statistics.solvers import FitResult, SolverSettings
from blindfit.algorithms.statistics.walr_defaults import Bounds, Feasibility

MuTreatment = Literal["as-released", "clip", "project"]
EXACT_FEASIBILITY_CELLS = 10_000_000  # beyond, the exact check would cost as much as the fit


@dataclass(frozen=True)
class WalrFit:
    result: FitResult
    l2: float
    feasibility: Feasibility  # of mu as it was released


def fit_released(
    rows: Rows,
    mu: Floats,
    *,
    noise_std: float,
    norm_bound: float,
    epsilon: float,
    settings: SolverSettings,
    l2: float | Literal["auto"] = "auto",
    treatment: MuTreatment = "clip",
    init: Floats | None = None,
    generator: np.random.Generator | None = None,
    on_progress: Callable[[int, float], None] | None = None,
    bounds: Bounds | None = None,
) -> WalrFit:
    """Fits exactly the rows that were summed.

    Args:
        mu: the noisy sum over the number of rows that counted.
        noise_std: of each coordinate of mu.
        settings: of the solver; its l2 is replaced.
        treatment: of a mu that noise may have carried out of the feasible set, see `walr_defaults`.
        init: pre-trained weights of these rows, the intercept last where there is one: l2 shrinks towards them, and
            leaves an unpenalised intercept to the data.
        bounds: of the rows' columns (`walr_defaults.column_bounds`), where they are known: no label has a part in them.
    """
    bounds = bounds or walr_defaults.column_bounds(rows)
    exact = rows.n_rows * rows.n_features <= EXACT_FEASIBILITY_CELLS
    feasibility = walr_defaults.feasibility(rows, mu, max_iterations=100 if exact else 0, bounds=bounds)
    mu = treated(rows, mu, treatment, bounds)
    if l2 == "auto":
        l2 = walr_defaults.default_l2(noise_std, norm_bound, rows.n_features, epsilon)
    result = solvers.fit(rows, mu, replace(settings, l2=l2), anchor=init, generator=generator, on_progress=on_progress)
    return WalrFit(result, l2, feasibility)


def treated(rows: Rows, mu: Floats, treatment: MuTreatment, bounds: Bounds | None = None) -> Floats:
    """A mu that noise may have carried out of the feasible set, brought back as `walr_defaults` says."""
    if treatment == "project":
        mu = walr_defaults.project_mu(rows, mu)
    if treatment != "as-released":  # a projection ends at the boundary, where an unpenalised intercept is infinite
        mu = walr_defaults.clip_mu(rows, mu, bounds)
    return mu
