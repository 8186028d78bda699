"""Warn of a weak fit, or of a promise that is smaller than it looks, as a job's pre-flight and report do.

Each fit issues at most one warning of each class. A warning that needs no release comes before the release. So a
program that turns warnings into errors has spent nothing. Warnings depend on private rows, which the owner may see. If
a notebook's output goes to other people, remove the warnings from it first.
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
LEAST_ROWS = 10  # fewer rows may look scaled by chance
LEAST_SIGNAL = 3.0  # signal to noise of all iterations together; below it the model is mostly its start and noise
WEAK_NOISE = 0.05  # standard deviation on each coordinate of the mean of standardised rows
MOST_CLIPPED = 0.05  # share of the rows
LEAST_SIZE, LARGEST_SIZE = 0.01, 4.0  # a scaled column's standard deviation, and the root of its mean square
MOST_NAMED = 5
MOST_NAME_CHARS = 40


class PrivacyLeakWarning(BlindfitWarning):
    """A scaler was fitted to the private rows, so its means or extremes reveal them outside the privacy promise.

    It is issued before anything is spent. Scale by `feature_bounds` that are known without the rows, or by public rows.

    Example:
        >>> standardised = (X - X.mean(axis=0)) / X.std(axis=0)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.PrivacyLeakWarning)
        ...     blindfit.DPLogisticRegression(epsilon=1.0).fit(standardised, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.PrivacyLeakWarning: 3 columns of the private rows ...
    """


class LargeDeltaWarning(BlindfitWarning):
    """Delta is so large that the promise allows a mechanism that reveals a whole row. Choose a delta below 1 / rows.

    It is issued before anything is spent.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.LargeDeltaWarning)
        ...     blindfit.WALRClassifier(epsilon=1.0, delta=0.001).fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.LargeDeltaWarning: delta 0.001 ...
    """


class IterationBudgetWarning(BlindfitWarning):
    """Each iteration spends epsilon, and the whole run spends more. Choose `budget="run"` to give epsilon for the run.

    It is issued before anything is spent.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.IterationBudgetWarning)
        ...     blindfit.DPLogisticRegression(epsilon=1.0, budget="iteration").fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.IterationBudgetWarning: each iteration spends epsilon 1, ...
    """


class NoisyModelWarning(BlindfitWarning):
    """The noise is so large that the model is mostly noise. Use more rows, fewer columns or a larger epsilon.

    It is issued before anything is spent.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.NoisyModelWarning)
        ...     blindfit.WALRClassifier(epsilon=0.01).fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.NoisyModelWarning: at epsilon 0.01 ...
    """


class InfeasibleModelWarning(BlindfitWarning):
    """No labels could give the noisy mean that was released. Use more rows, fewer features or a larger epsilon.

    It is issued after the release, which was charged.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     warnings.simplefilter("error", blindfit.InfeasibleModelWarning)
        ...     blindfit.WALRClassifier(epsilon=0.0001).fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.InfeasibleModelWarning: no labels could give the noisy mean...
    """


class FeatureScaleWarning(BlindfitWarning):
    """Features are too large or too small for the fit. Correct `feature_bounds` or `norm_bound`; the message has more.

    It is issued before anything is spent.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.FeatureScaleWarning)
        ...     blindfit.DPLogisticRegression(epsilon=1.0).fit(1000 * X, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.FeatureScaleWarning: columns do not have a size of about 1 ...
    """


class ConstantColumnWarning(BlindfitWarning):
    """Columns are the same in all rows. Remove them: they add noise and no information.

    It is issued before anything is spent.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.ConstantColumnWarning)
        ...     blindfit.WALRClassifier(epsilon=1.0).fit(np.column_stack([X, np.ones(len(X))]), y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.ConstantColumnWarning: columns are the same in all rows: x3; ...
    """


class NotConvergedWarning(BlindfitWarning, ConvergenceWarning):  # type: ignore[misc]
    """The solver stopped before it found the optimum. Raise `max_iterations` or `l2`.

    It is issued after the release, which was charged. A second fit with other solver settings uses the same release.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.NotConvergedWarning)
        ...     blindfit.WALRClassifier(epsilon=1.0, max_iterations=1).fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.NotConvergedWarning: the solver stopped after 1 iterations: ...
    """


def issue(found: Iterable[BlindfitWarning]) -> None:
    """Issue the warnings so that they name the user's line."""
    for caution in found:
        warn_user(caution)


# --- for every estimator ------------------------------------------------------------------------


def warn_of_large_delta(delta: float, n_rows: int) -> Iterable[BlindfitWarning]:
    if delta * n_rows >= 1:
        yield LargeDeltaWarning(
            f"delta {delta:g} is not below one in the number of rows, 1/{n_rows:,}: the promise allows that a whole "
            "row is revealed; choose a smaller delta"
        )


def _join_names(names: Sequence[str]) -> str:
    listed = ", ".join(cut(printable(name), MOST_NAME_CHARS) for name in names[:MOST_NAMED])
    return f"{listed} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else listed


# --- for gradient descent -----------------------------------------------------------------------


def warn_of_iteration_budget(privacy: RunPrivacy) -> Iterable[BlindfitWarning]:
    if privacy.spending == "iteration" and privacy.n_iterations > 1:
        yield IterationBudgetWarning(
            f"each iteration spends epsilon {privacy.epsilon:g}, and all {privacy.n_iterations} iterations spend "
            f'{privacy.spent():.4g}; choose budget="run" to give epsilon for the whole run'
        )


def warn_of_noise(privacy: RunPrivacy, n_rows: float, n_columns: int) -> Iterable[BlindfitWarning]:
    """Yield a warning if the noise of all iterations is large compared with their gradients.

    Args:
        n_columns: number of columns, the constant included.
    """
    if privacy.signal_to_noise(n_rows, n_columns) < LEAST_SIGNAL:
        yield NoisyModelWarning(
            f"at epsilon {privacy.epsilon:g} the noise of all iterations is at least a third of the largest gradient: "
            "the model is hardly more than its start; use more rows, fewer columns or a larger epsilon"
        )


def warn_of_fitted_scaler(features: Floats) -> Iterable[BlindfitWarning]:
    """Yield a warning if a scaler was fitted to these very rows.

    Only such columns have mean 0 and deviation 1 to the last digits, or begin at 0 and end at 1 with values between.
    """
    if len(features) < LEAST_ROWS:
        return
    varies = features.max(axis=0) > features.min(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers that overflow have been through no scaler
        standardised = (np.abs(features.mean(axis=0)) < CLOSE) & (np.abs(features.std(axis=0) - 1) < CLOSE)
    ends = (features.min(axis=0) == 0) & (np.abs(features.max(axis=0) - 1) < CLOSE)
    stretched = ends & ~np.isin(features, (0.0, features.max())).all(axis=0)
    if (found := varies & standardised).any():
        yield _leak(int(found.sum()), "have mean 0 and deviation 1")
    elif stretched.any() and ends[varies].all():
        yield _leak(int(stretched.sum()), "reach exactly from 0 to 1")


def _leak(columns: int, how: str) -> BlindfitWarning:
    return PrivacyLeakWarning(
        f"{columns} columns of the private rows {how}, so a scaler was fitted to these rows; the promise does not "
        "cover its means, deviations and extremes; scale by feature_bounds known beforehand, or by public rows"
    )


def warn_of_sizes(scaled: Floats, names: Sequence[str], *, scale: str) -> Iterable[BlindfitWarning]:
    """Yield warnings about columns that are too large, too small or constant.

    Args:
        scaled: scaled features, without the constant.
        scale: source of the scale: "bounds", "public rows" or "none".
    """
    advice = {
        "none": "declare feature_bounds that are known without the rows, or scale by public rows (init)",
        "bounds": "correct their feature_bounds",
        "public rows": "use public rows that are like the private ones, or declare feature_bounds",
    }
    largest, deviation = _size(scaled), scaled.std(axis=0)
    small = (deviation < LEAST_SIZE) & (np.ptp(scaled, axis=0) > 0)
    if (found := (largest > LARGEST_SIZE) | small).any():
        wrong = _join_names([name for name, is_wrong in zip(names, found, strict=True) if is_wrong])
        yield FeatureScaleWarning(
            f"columns do not have a size of about 1 in the descent: {wrong}; a large column fills the clipped "
            f"gradient, and a small one has no effect on it; {advice[scale]}"
        )
    if (constant := np.ptp(scaled, axis=0) == 0).any() and len(scaled) > 1:
        yield _constant([name for name, is_constant in zip(names, constant, strict=True) if is_constant])


def _size(scaled: Floats) -> NDArray[np.float64]:
    root: NDArray[np.float64] = np.sqrt(np.mean(np.square(scaled), axis=0))
    return root


def _constant(names: Sequence[str]) -> BlindfitWarning:
    return ConstantColumnWarning(
        f"columns are the same in all rows: {_join_names(names)}; remove them, they add only noise"
    )


# --- for one noisy mean ---------------------------------------------------------------------------


def warn_of_constant_columns(standardiser: Standardiser) -> Iterable[BlindfitWarning]:
    if dropped := [name for j, name in enumerate(standardiser.columns) if j not in standardiser.kept]:
        yield _constant(dropped)


def warn_of_clipped_rows(norms: Floats, norm_bound: float) -> Iterable[BlindfitWarning]:
    if (share := float((norms > norm_bound).mean())) > MOST_CLIPPED:
        yield FeatureScaleWarning(
            f"{share:.0%} of the rows are longer than norm_bound {norm_bound:.3g} and are clipped: a larger norm_bound "
            'clips fewer rows and adds more noise; "auto" clips 1%'
        )


def warn_of_noisy_mean(epsilon: float, noise_std: float) -> Iterable[BlindfitWarning]:
    if noise_std > WEAK_NOISE:
        yield NoisyModelWarning(
            f"at epsilon {epsilon:g} the noise has a standard deviation of {noise_std:.2g} on each coordinate of the "
            "mean: expect a weak model; use more rows or a larger epsilon"
        )


def warn_of_infeasible(found: Feasibility, l2: float) -> Iterable[BlindfitWarning]:
    if found.feasible is False:
        reason = f" ({found.reason})" if found.reason else ""
        yield InfeasibleModelWarning(
            f"no labels could give the noisy mean{reason}: the noise is large for these rows, and l2 = {l2:.2g} shapes "
            "the model; use more rows, fewer features or a larger epsilon"
        )


def warn_of_no_convergence(result: FitResult) -> Iterable[BlindfitWarning]:
    if not result.converged:
        yield NotConvergedWarning(
            f"the solver stopped after {result.iterations} iterations: {result.reason}; raise max_iterations or l2"
        )
