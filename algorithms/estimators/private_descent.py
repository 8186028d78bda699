"""A fit by noisy descent to scaled rows: the common part of the estimator and of a job.

No function here fails because of the content of a row or the number of rows, not even with 0 rows. Otherwise the person
who chooses the options would learn about rows from a failure, without a charge. The checks concern only options, which
are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.estimators.remembered import draw_once
from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy, parts_of, poisson_sample
from blindfit.algorithms.randomness import system_uniform
from blindfit.algorithms.statistics.dp_lr import descent as dp_gradient
from blindfit.algorithms.statistics.dp_lr.descent import CLIP_STEPS, Descent, DescentSettings
from blindfit.algorithms.statistics.linear.logistic import Floats


@dataclass(frozen=True)
class DescentOptions:
    """Options of a private descent.

    Args:
        learning_rate: a number, or "auto".
        expected_rows: divisor of sums over all rows. It is public; the number of rows may not be.
        loss_share: share of the budget that pays for the loss of each iteration.
    """

    privacy: RunPrivacy
    clip_norm: float
    learning_rate: float | str
    shrinkage: float
    loss_share: float
    expected_rows: float


@dataclass(frozen=True)
class PrivateFit:
    """The result of a private descent.

    Args:
        noise_multiplier: noise multiplier of each iteration's gradient.
    """

    descent: Descent
    noise_multiplier: float
    learning_rate: float


def fit_privately(
    columns: Floats, labels: NDArray[np.bool_], start: Floats, options: DescentOptions, release: str | int
) -> PrivateFit:
    """Fit a logistic model by noisy gradient descent.

    Args:
        columns: (n, k) features with n >= 0, each at most scaling.LARGEST in size; the constant feature is the last.
        start: (k,) weights at which the descent starts, and towards which shrinkage pulls.
        release: name of the draw. Another name is another draw; the same name for the same rows returns the first draw.

    Raises:
        ConfigError: an option is out of its range, or its noise is too narrow for the grid.
        BudgetExhausted: an open `PrivacyBudget` has too little left.
    """
    privacy, multiplier, release_loss = options.privacy, options.privacy.noise_multiplier(), None
    if options.loss_share:
        multiplier, loss_multiplier = parts_of(multiplier, options.loss_share)
        release_loss = _release(loss_multiplier, privacy)
    settings = _settings(options, multiplier, columns.shape[1])
    n_rows, fraction = len(columns), privacy.batch_fraction
    descend = partial(
        dp_gradient.descend,
        columns,
        labels,
        settings,
        start=start,
        anchor=start,
        sample=partial(poisson_sample, n_rows, fraction, system_uniform) if fraction < 1 else None,
        release_gradient=_release(multiplier, privacy),
        release_loss=release_loss,
    )
    asked = (columns, labels, start, settings, privacy, options.loss_share, release)
    return PrivateFit(draw_once(descend, privacy.event(), *asked), multiplier, settings.learning_rate)


def _settings(options: DescentOptions, multiplier: float, n_columns: int) -> DescentSettings:
    privacy, clip_norm = options.privacy, options.clip_norm
    dp_gradient.check_positive("expected_rows", options.expected_rows)
    expected_rows = options.expected_rows * privacy.batch_fraction
    rate = options.learning_rate
    if isinstance(rate, str):
        if rate != "auto":
            raise ConfigError(f'learning_rate must be a number or "auto", not {rate!r}')
        noise_std = multiplier * privacy.sensitivity * clip_norm / expected_rows
        rate = dp_gradient.default_learning_rate(noise_std, n_columns, privacy.n_iterations, clip_norm)
    return DescentSettings(clip_norm, rate, privacy.n_iterations, expected_rows, options.shrinkage)


def _release(multiplier: float, privacy: RunPrivacy) -> dp_gradient.Release:
    try:
        mechanism = GaussianMechanism(multiplier, (privacy.sensitivity * CLIP_STEPS) ** 2)
    except RangeError:
        raise ConfigError(
            f"the noise of each iteration, {multiplier:.2g} times the sensitivity, is too narrow for its grid",
            hint="choose a smaller epsilon, more iterations or a smaller loss_share",
        ) from None
    return partial(mechanism.release, uniform=system_uniform)
