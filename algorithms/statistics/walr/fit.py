"""From a released mu to weights: l2 from the noise, the feasibility warning, the solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from blindfit.algorithms.statistics.linear import solvers
from blindfit.algorithms.statistics.linear.logistic import Floats, Rows
from blindfit.algorithms.statistics.linear.solver_settings import FitResult, SolverSettings
from blindfit.algorithms.statistics.walr import defaults
from blindfit.algorithms.statistics.walr.defaults import Bounds, Feasibility

Treatment = Literal["as-released", "clip", "project"]
MuTreatment = Literal["auto", "as-released", "clip", "project"]
FEW_CELLS = 10_000_000  # with more cells, an exact check or a projection would cost one to three times the fit


@dataclass(frozen=True)
class WalrFit:
    result: FitResult
    l2: float
    treatment: Treatment
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
    treatment: MuTreatment = "auto",
    init: Floats | None = None,
    generator: np.random.Generator | None = None,
    on_progress: Callable[[int, float], None] | None = None,
    bounds: Bounds | None = None,
) -> WalrFit:
    """Fit exactly the rows that were summed.

    Args:
        mu: the noisy sum over the number of rows that counted.
        noise_std: standard deviation of each coordinate of mu.
        settings: settings of the solver; its l2 is replaced.
        treatment: treatment of a mu that noise may have carried out of the feasible set, see `treatment_of`.
        init: pre-trained weights of these rows, the intercept last if there is one: l2 shrinks towards them, and does
            not touch an unpenalised intercept.
        bounds: `defaults.column_bounds` of the rows, if they are known: labels have no part in them.
    """
    bounds = bounds or defaults.column_bounds(rows)
    exact = rows.n_rows * rows.n_features <= FEW_CELLS
    feasibility = defaults.feasibility(rows, mu, max_iterations=100 if exact else 0, bounds=bounds)
    chosen = treatment_of(treatment, rows.n_rows * rows.n_features)
    mu = treat(rows, mu, chosen, bounds)
    if l2 == "auto":
        l2 = defaults.default_l2(noise_std, norm_bound, rows.n_features, epsilon)
    result = solvers.fit(rows, mu, replace(settings, l2=l2), anchor=init, generator=generator, on_progress=on_progress)
    return WalrFit(result, l2, chosen, feasibility)


def treatment_of(treatment: MuTreatment, cells: int) -> Treatment:
    """Return the meaning of "auto" for so many rows times columns: "project" for few, else "clip".

    With few rows, noise that carries mu out of the feasible set is large. A projection then keeps more of mu's
    information than the nearest box does, and costs next to nothing. With many rows mu stays inside, and the treatment
    does not matter.
    """
    if treatment != "auto":
        return treatment
    return "project" if cells <= FEW_CELLS else "clip"


def treat(rows: Rows, mu: Floats, treatment: Treatment, bounds: Bounds | None = None) -> Floats:
    """Bring back a mu that noise may have carried out of the feasible set, as `defaults` does."""
    if treatment == "project":
        mu = defaults.project_mu(rows, mu)
    if treatment != "as-released":  # a projection ends at the boundary, where an unpenalised intercept is infinite
        mu = defaults.clip_mu(rows, mu, bounds)
    return mu
