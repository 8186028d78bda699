"""WALR's defaults, and the facts about a released mu that are known before a fit.

Without l2 a minimiser exists iff mu = X^T q / N for some q strictly between 0 and 1 on every row: q is then the model's
probabilities. Noise can carry mu out of that set, and then the weights run to infinity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.statistics.linear.logistic import (
    Floats,
    Rows,
    WalrObjective,
    as_rows,
    column_means,
    signed_sums,
    sum_rows,
)
from blindfit.algorithms.statistics.linear.solver_settings import FitResult, SolverSettings
from blindfit.algorithms.statistics.linear.solvers import backtrack, fit, solve_positive

L2_INSIDE, STEPS_INSIDE = 1e-6, 12  # for `project_mu`; the steps suffice for scores of deviation 5

# --- defaults -------------------------------------------------------------------------------------


def default_l2(noise_std: float, norm_bound: float, n_features: int, epsilon: float) -> float:
    """Return l2 = c noise_std norm_bound / sqrt(n_features), with c = 3/4 at epsilon 1, thrice that at 0.1, 1/3 at 10.

    For standard normal features norm_bound / sqrt(n_features) is about 4/3, and l2 = noise_std at epsilon 1. The best c
    is flat: half or twice as much costs little at epsilon 1, and below 0.5 too little costs more than too much.
    noise_std has the unit of x, and l2 that of x squared. The factor norm_bound / sqrt(n_features), the largest typical
    feature, makes up the difference, so rescaling the features scales the weights and changes no score.

    Args:
        noise_std: standard deviation of each coordinate of mu, that is of the *mean* over the rows.
        norm_bound: bound to which rows were clipped.
        n_features: number of columns, with the constant one.
    """
    for name, number in (("noise_std", noise_std), ("norm_bound", norm_bound), ("epsilon", epsilon)):
        # Without noise there is nothing to guard against: l2 = 0 is the maximum likelihood.
        if not (number > 0 or (name == "noise_std" and number == 0)) or not np.isfinite(number):
            raise ConfigError(f"{name} must be finite and above 0, not {number}")
    if n_features < 1:
        raise ConfigError(f"n_features must be at least 1, not {n_features}")
    factor = 0.75 * 3.0 ** -np.clip(np.log10(epsilon), -1, 1)
    return float(factor * noise_std * norm_bound / np.sqrt(n_features))


def default_norm_bound(row_norms: ArrayLike, quantile: float = 0.99) -> float:
    """Return the 99% quantile of row norms: a hundredth of the rows is shortened, and noise does not fit the longest.

    The norms are those of standardised rows with the constant feature.
    """
    norms = np.asarray(row_norms, dtype=np.float64)
    if norms.ndim != 1 or not len(norms):
        raise DataError(f"row norms must be a list of numbers, not of shape {norms.shape}")
    if not (np.isfinite(norms).all() and (norms >= 0).all()):
        raise DataError(f"row {int(np.argmin(np.isfinite(norms) & (norms >= 0)))}: its norm is not a finite number")
    bound = float(np.quantile(norms, quantile))
    if bound == 0:
        raise DataError(
            f"{quantile:.0%} of the rows are zero: there is nothing to clip to", hint="append the constant feature"
        )
    return bound


# --- does mu have a model? ------------------------------------------------------------------------


@dataclass(frozen=True)
class Feasibility:
    """An answer whether the objective without l2 has a minimum; None if neither could be proved."""

    feasible: bool | None
    reason: str


def column_bounds(rows: Rows) -> tuple[Floats, Floats]:
    """Return the least and largest X^T q / N of each column over q in [0, 1]^N."""
    lowest, highest = sum_rows(rows, signed_sums)
    return lowest / rows.n_rows, highest / rows.n_rows


Bounds = tuple[Floats, Floats]  # of `column_bounds`


def feasibility(
    rows: Rows | ArrayLike, mu: ArrayLike, *, max_iterations: int = 100, bounds: Bounds | None = None
) -> Feasibility:
    """Decide whether mu lies in the relative interior of { X^T q / N : q in [0, 1]^N }, proved either way.

    First each coordinate's own range is checked, in one pass. Then Newton's method runs without l2, and its iterates
    give both answers:

    - L(w) <= 0 proves infeasible: mean max(x.w, 0) < mean softplus(x.w) <= w.mu, so w separates mu from the set.
    - A Newton step d with |x_i . d| < 1 on all rows proves feasible. q_i = p_i - p_i (1 - p_i) x_i.d lies in (0, 1).
      And X^T q / N = X^T p / N - H d = mu, because H d is the gradient X^T p / N - mu.

    Args:
        max_iterations: number of Newton steps; 0 checks only the ranges, and the answer is then false or None.
        bounds: `column_bounds` of the rows, if they are known.
    """
    known = as_rows(rows)
    objective = WalrObjective(known, np.asarray(mu, dtype=np.float64), l2=0.0, unpenalised=None)
    lowest, highest = bounds or column_bounds(known)
    outside = ~((lowest < objective.mu) & (objective.mu < highest)) & ((lowest != highest) | (objective.mu != lowest))
    if outside.any():
        column = int(np.argmax(outside))
        return Feasibility(
            False,
            f"column {column}: mu is {objective.mu[column]:.6g}, and no labels can give a number outside "
            f"({lowest[column]:.6g}, {highest[column]:.6g})",
        )
    weights = np.zeros_like(objective.mu)
    value, gradient = objective.value_and_gradient(weights)
    for _ in range(max_iterations):
        hessian = objective.hessian(weights)
        step = solve_positive(hessian, gradient)
        if _proves_feasible(objective, hessian, gradient, step):
            return Feasibility(True, "there are probabilities strictly between 0 and 1 that give this mu")
        moved = backtrack(objective.value_and_gradient, weights, value, gradient, step)
        if moved is None:
            break
        weights, value, gradient = moved
        if value <= 0:
            return Feasibility(
                False, "a direction of the features separates mu from every aggregate that labels can give"
            )
    return Feasibility(None, "each coordinate is in its range; nothing was proved about all of them together")


def _proves_feasible(objective: WalrObjective, hessian: Floats, gradient: Floats, step: Floats) -> bool:
    # Collinear columns make H singular; the argument needs H d = gradient all the same.
    exact = np.abs(hessian @ step - gradient).max() <= 1e-11 * np.abs(objective.mu).max()
    return bool(exact) and all(np.abs(block @ step).max() < 1 for block in objective.rows.blocks())


# --- bringing mu back -----------------------------------------------------------------------------


def clip_mu(rows: Rows | ArrayLike, mu: ArrayLike, bounds: Bounds | None = None) -> Floats:
    """Return each coordinate of mu moved inside its own range, by half a row's share where it was outside.

    After it the unpenalised intercept has a finite optimum. All coordinates together may still be infeasible.
    """
    known = as_rows(rows)
    released = WalrObjective(known, np.asarray(mu, dtype=np.float64), 0.0, None).mu
    lowest, highest = bounds or column_bounds(known)
    margin = (highest - lowest) / (2 * known.n_rows)
    clipped: Floats = np.clip(released, lowest + margin, highest - margin)
    return clipped


def project_mu(rows: Rows | ArrayLike, mu: ArrayLike, *, margin: float = 0.0, tolerance: float = 1e-4) -> Floats:
    """Return the nearest X^T q / N with every q in [margin, 1 - margin].

    A mu from outside lands on the boundary, and there is still no minimum there without l2: for that take a margin
    above 0.

    The l2 path leads to the projection. At the optimum w of the objective with l2, v = X^T p / N = mu - l2 w, and as l2
    falls v tends to the nearest point. The value L bounds the distance. No point of the set is nearer to mu than
    D = (l2/2 |w|^2 - L) / |w|, because w.mu - max_q w.X^T q / N >= w.mu - mean softplus(x.w). For the projection v*
    onto a convex set, |v - v*|^2 <= |v - mu|^2 - |v* - mu|^2 <= |v - mu|^2 - D^2.

    Args:
        margin: distance of every q from 0 and 1: at least 0, below 1/2, and below the rate of positive labels.
        tolerance: largest distance from the nearest point, over the norm of mu, or of half a row's share if that is
            longer: noise may leave next to nothing of mu.

    Raises:
        RangeError: the tolerance is finer than arithmetic allows.
    """
    if not 0 <= margin < 0.5:
        raise ConfigError(f"margin must be at least 0 and below 1/2, not {margin}")
    if not 0 < tolerance < 1:
        raise ConfigError(f"tolerance must lie between 0 and 1, not {tolerance}")
    known = as_rows(rows)
    released = WalrObjective(known, np.asarray(mu, dtype=np.float64), 0.0, None).mu
    # q = margin + (1 - 2 margin) q' with q' in [0, 1] moves and shrinks the set; so mu is moved and stretched.
    centre, share = margin * column_means(known), 1 - 2 * margin
    target = (released - centre) / share
    lowest, highest = column_bounds(known)
    half_a_row = np.linalg.norm(highest - lowest) / (2 * known.n_rows)
    allowed = tolerance * float(max(np.linalg.norm(released), half_a_row)) / share

    def solve(l2: float, start: Floats, max_steps: int) -> FitResult:
        settings = SolverSettings(l2=l2, solver="newton", unpenalised=None, warm_start_rows=0, max_iterations=max_steps)
        return fit(known, target, settings, start=start)

    # A mu from inside needs no path: its weights stay small however small l2 is, and a few steps find them.
    found, l2 = solve(L2_INSIDE, np.zeros_like(target), STEPS_INSIDE), L2_INSIDE
    if _distance_from_projection(found, l2) <= allowed:
        return centre + share * (target - l2 * found.weights)
    weights, l2 = np.zeros_like(target), 1.0
    while l2 > 1e-14:
        found = solve(l2, weights, 50)
        weights = found.weights
        if _distance_from_projection(found, l2) <= allowed:
            return centre + share * (target - l2 * weights)
        l2 /= 10
    raise RangeError(
        f"the projection of mu is not reached to {tolerance:g}",
        hint="raise the tolerance, or use clip_mu in place of project_mu",
    )


def _distance_from_projection(found: FitResult, l2: float) -> float:
    """Return an upper bound, see `project_mu`; the gradient's norm is the distance of v = mu - l2 w from X^T p / N."""
    size = float(np.linalg.norm(found.weights))
    if size == 0:
        return found.gradient_norm
    least = max(0.0, (l2 / 2 * size**2 - found.objective_history[-1]) / size)
    return float(np.sqrt(max(0.0, (l2 * size) ** 2 - least**2))) + found.gradient_norm
