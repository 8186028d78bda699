"""Warn of what makes a fit weak, or its promise smaller than it looks, as a job's pre-flight and report do.

Each fit issues a warning of each class once at most. What is known before the release is warned of before it, so that a
program that turns warnings into errors has spent nothing. Warnings look at private rows, as their owner may. Where a
notebook's output goes to others, keep the warnings back with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from blindfit.algorithms.errors import BlindfitWarning
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.linear.solver_settings import FitResult
from blindfit.algorithms.statistics.walr.defaults import Feasibility
from blindfit.algorithms.texts import cut, printable
from blindfit.algorithms.user_warnings import warn_user

CLOSE = 1e-9
LEAST_ROWS = 10  # fewer may look scaled by chance
LEAST_SIGNAL = 3.0  # of all iterations together; below it the model is mostly its start and noise
WEAK_NOISE = 0.05  # standard deviation on each coordinate of the mean of standardised rows
MOST_CLIPPED = 0.05  # part of the rows
LEAST_SIZE, LARGEST_SIZE = 0.01, 4.0  # of a scaled column: standard deviation, root of the mean square
MOST_NAMED = 5
MOST_NAME_CHARS = 40


class PrivacyLeakWarning(BlindfitWarning):
    """Something outside the promise has seen private rows."""


class LargeDeltaWarning(BlindfitWarning):
    """The promise allows that a whole row is revealed."""


class IterationBudgetWarning(BlindfitWarning):
    """Epsilon is that of each iteration, and the whole run spends more."""


class NoisyModelWarning(BlindfitWarning):
    """The noise is so large that the model is mostly noise."""


class InfeasibleModelWarning(BlindfitWarning):
    """No labels could give the noisy mean that was released."""


class FeatureScaleWarning(BlindfitWarning):
    """Features are too large or too small for the fit."""


class ConstantColumnWarning(BlindfitWarning):
    """Columns are the same in all rows."""


class NotConvergedWarning(BlindfitWarning, ConvergenceWarning):  # type: ignore[misc]
    """The solver stopped before it found the optimum."""


def issue(found: Iterable[BlindfitWarning]) -> None:
    """Issue warnings at the user's line."""
    for caution in found:
        warn_user(caution)


# --- of every estimator -------------------------------------------------------------------------


def warn_of_large_delta(delta: float, n_rows: int) -> Iterable[BlindfitWarning]:
    if delta * n_rows >= 1:
        yield LargeDeltaWarning(
            f"delta {delta:g} is not below one in the number of rows, 1/{n_rows:,}: the promise allows that a whole "
            "row is revealed; take a smaller delta"
        )


def _join_names(names: Sequence[str]) -> str:
    listed = ", ".join(cut(printable(name), MOST_NAME_CHARS) for name in names[:MOST_NAMED])
    return f"{listed} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else listed


# --- of gradient descent ------------------------------------------------------------------------


def warn_of_iteration_budget(privacy: RunPrivacy) -> Iterable[BlindfitWarning]:
    if privacy.spending == "iteration" and privacy.n_iterations > 1:
        yield IterationBudgetWarning(
            f"epsilon {privacy.epsilon:g} is that of each iteration: all {privacy.n_iterations} spend "
            f'{privacy.spent():.4g}; take budget="run" to give epsilon for the whole run'
        )


def warn_of_noise(privacy: RunPrivacy, n_rows: float, n_columns: int) -> Iterable[BlindfitWarning]:
    """
    Args:
        n_columns: with the constant.
    """
    if privacy.signal_to_noise(n_rows, n_columns) < LEAST_SIGNAL:
        yield NoisyModelWarning(
            f"at epsilon {privacy.epsilon:g} the noise of all iterations is at least a third of the largest gradient: "
            "the model is little but its start; take more rows, fewer columns or a larger epsilon"
        )


def warn_of_fitted_scaler(features: Floats) -> Iterable[BlindfitWarning]:
    """Of columns that a scaler was fitted to on these very rows: no others have a mean of 0 and a deviation of 1, or
    begin at 0 and end at 1 with values between, to the last digits.
    """
    if len(features) < LEAST_ROWS:
        return
    varies = features.max(axis=0) > features.min(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers so large that no scaler has seen them
        standardised = (np.abs(features.mean(axis=0)) < CLOSE) & (np.abs(features.std(axis=0) - 1) < CLOSE)
    ends = (features.min(axis=0) == 0) & (np.abs(features.max(axis=0) - 1) < CLOSE)
    stretched = ends & ~np.isin(features, (0.0, features.max())).all(axis=0)
    if (found := varies & standardised).any():
        yield _leak(int(found.sum()), "have mean 0 and deviation 1")
    elif stretched.any() and ends[varies].all():
        yield _leak(int(stretched.sum()), "reach exactly from 0 to 1")


def _leak(columns: int, how: str) -> BlindfitWarning:
    return PrivacyLeakWarning(
        f"{columns} columns of the private rows {how}: a scaler was fitted to these rows, and what it learnt of them "
        "(means, deviations, extremes) is no part of the promise; scale by feature_bounds that are known without the "
        "rows, or by public rows"
    )


def warn_of_sizes(scaled: Floats, names: Sequence[str], *, scale: str) -> Iterable[BlindfitWarning]:
    """
    Args:
        scaled: without the constant.
        scale: what they were scaled by: "bounds", "public rows" or "none".
    """
    advice = {
        "none": "declare feature_bounds that are known without the rows, or scale by public rows (init)",
        "bounds": "correct their feature_bounds",
        "public rows": "take public rows that are like the private ones, or declare feature_bounds",
    }
    largest, deviation = _size(scaled), scaled.std(axis=0)
    small = (deviation < LEAST_SIZE) & (np.ptp(scaled, axis=0) > 0)
    if (found := (largest > LARGEST_SIZE) | small).any():
        wrong = _join_names([name for name, is_wrong in zip(names, found, strict=True) if is_wrong])
        yield FeatureScaleWarning(
            f"columns are not of size about 1 where descent takes them: {wrong}; a large one takes up the whole of a "
            f"clipped gradient, and a small one has no part in it; {advice[scale]}"
        )
    if (constant := np.ptp(scaled, axis=0) == 0).any() and len(scaled) > 1:
        yield _constant([name for name, is_constant in zip(names, constant, strict=True) if is_constant])


def _size(scaled: Floats) -> NDArray[np.float64]:
    root: NDArray[np.float64] = np.sqrt(np.mean(np.square(scaled), axis=0))
    return root


def _constant(names: Sequence[str]) -> BlindfitWarning:
    return ConstantColumnWarning(
        f"columns are the same in all rows: {_join_names(names)}; leave them out, they add nothing but noise"
    )


# --- of one noisy mean ----------------------------------------------------------------------------


def warn_of_constant_columns(standardiser: Standardiser) -> Iterable[BlindfitWarning]:
    if dropped := [name for j, name in enumerate(standardiser.columns) if j not in standardiser.kept]:
        yield _constant(dropped)


def warn_of_clipped_rows(norms: Floats, norm_bound: float) -> Iterable[BlindfitWarning]:
    if (share := float((norms > norm_bound).mean())) > MOST_CLIPPED:
        yield FeatureScaleWarning(
            f"{share:.0%} of the rows are longer than norm_bound {norm_bound:.3g} and are clipped: a larger norm_bound "
            'clips fewer and adds more noise; "auto" clips 1%'
        )


def warn_of_noisy_mean(epsilon: float, noise_std: float) -> Iterable[BlindfitWarning]:
    if noise_std > WEAK_NOISE:
        yield NoisyModelWarning(
            f"at epsilon {epsilon:g} the noise has a standard deviation of {noise_std:.2g} on each coordinate of the "
            "mean: expect a weak model; take more rows or a larger epsilon"
        )


def warn_of_infeasible(found: Feasibility, l2: float) -> Iterable[BlindfitWarning]:
    if found.feasible is False:
        reason = f" ({found.reason})" if found.reason else ""
        yield InfeasibleModelWarning(
            f"no labels could give the noisy mean{reason}: the noise is large for these rows, and l2 = {l2:.2g} shapes "
            "the model; take more rows, fewer features or a larger epsilon"
        )


def warn_of_no_convergence(result: FitResult) -> Iterable[BlindfitWarning]:
    if not result.converged:
        yield NotConvergedWarning(
            f"the solver stopped after {result.iterations} iterations: {result.reason}; raise max_iterations or l2"
        )
