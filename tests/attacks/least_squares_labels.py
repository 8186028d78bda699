"""Labels from gradients by least squares: the mean of y given all that its party saw, if all laws were normal.

    -2 (g - own part) = X^T y - 2 X^T n - X^T z_others / 2 - 2 noise

The prior of y has the mean and variance that follow from the party's own score. Others' scores count as noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.statistics.quality.metrics import auc
from tests.attacks.views import SMALL_BATCHES, Rows, Seen, Setting, Training, View, planted, simulate

Floats = NDArray[np.float64]
OTHERS_VARIANCES = (0.01, 0.1, 1.0)  # variances of their scores: the attacker tries them all
FIRST_EPOCHS = 3
ROWS, COLUMNS = 2000, 10
STRONG, WEAK, NONE = (2.0, 2.0), (1.0, 1.0), (0.0, 0.0)  # signal of each party's columns
RESHUFFLED: dict[str, Any] = {"kept_batches": False, "batch_rows": 100, "epochs": 10}


@dataclass(frozen=True)
class Equations:
    """columns^T y = values + errors, on the rows of one batch.

    Attributes:
        errors: covariance (k, k).
    """

    batch: Rows
    columns: Floats
    values: Floats
    errors: Floats


def guesses(seen: Seen, setting: Setting) -> Iterator[Floats]:
    """(n,) guesses at the labels, one for each choice that the attacker has; a test takes the best of them.

    The first epochs of kept batches may reveal more than all epochs: later the others' scores contain the labels.
    """
    for epochs in sorted({1, FIRST_EPOCHS, setting.epochs}) if setting.kept_batches else [setting.epochs]:
        for use_own_score in (False, True):
            for variance in OTHERS_VARIANCES if setting.kept_batches else OTHERS_VARIANCES[1:2]:
                views = [view for view in seen.views if view.epoch < epochs]
                prior = _prior(seen) if use_own_score else np.zeros(len(seen.features))
                if setting.kept_batches:
                    yield _by_batch(_of_kept(seen, setting, views, variance), prior)
                else:  # the jitter is the same in all equations of a row, so it counts as part of the unknown
                    equations = [_of(seen, setting, [view], variance, jitter=0.0) for view in views]
                    yield _at_once(equations, prior, 1 - prior**2 + 4 * setting.label_jitter**2)


def over_trainings(trainings: Sequence[Seen], setting: Setting) -> Floats:
    """(n,) guesses from several trainings on the same labels; each training has its own batches and jitter."""
    equations = []
    for seen in trainings:
        views = [view for view in seen.views if view.epoch < FIRST_EPOCHS]
        equations += _of_kept(seen, setting, views, OTHERS_VARIANCES[1])
    prior = _prior(trainings[-1])
    return _at_once(equations, prior, 1 - prior**2)


def _prior(seen: Seen) -> Floats:
    """Return the mean of y, given the party's own score."""
    return np.tanh(seen.scores(np.arange(len(seen.features))) / 2)


def _of(seen: Seen, setting: Setting, views: Sequence[View], variance: float, *, jitter: float) -> Equations:
    """Return the equations of one batch in some epochs: only the mean over the epochs matters."""
    batch, columns = views[0].batch, seen.reals(views[0].batch)
    values = -2 * np.mean([seen.others(view) for view in views], axis=0)
    errors = 4 * (jitter**2 + variance / 16 + 1e-6) * columns.T @ columns
    noise = setting.gradient_noise**2 / len(views) + seen.kept_noise_std**2
    return Equations(batch, columns, values, errors + 4 * noise * np.eye(seen.columns))


def _of_kept(seen: Seen, setting: Setting, views: Sequence[View], variance: float) -> list[Equations]:
    numbers = sorted({view.number for view in views})
    batches = [[view for view in views if view.number == number] for number in numbers]
    return [_of(seen, setting, steps, variance, jitter=setting.label_jitter) for steps in batches]


def _by_batch(equations: Sequence[Equations], prior: Floats) -> Floats:
    """Guess batch by batch, where no row is in two batches."""
    guess = prior.copy()
    for one in equations:
        spread = (1 - prior[one.batch] ** 2)[:, None] * one.columns
        gain = spread @ np.linalg.pinv(one.columns.T @ spread + one.errors)
        guess[one.batch] += gain @ (one.values - one.columns.T @ prior[one.batch])
    return guess


def _at_once(equations: Sequence[Equations], prior: Floats, variances: Floats) -> Floats:
    k = len(equations[0].values)
    matrix, values = np.zeros((k * len(equations), len(prior))), np.zeros(k * len(equations))
    for place, one in enumerate(equations):
        whiten = np.linalg.inv(np.linalg.cholesky(one.errors))
        rows = slice(place * k, (place + 1) * k)
        matrix[rows, one.batch] = whiten @ one.columns.T
        values[rows] = whiten @ one.values
    spread = variances * matrix
    return np.asarray(
        prior + spread.T @ np.linalg.solve(spread @ matrix.T + np.eye(len(values)), values - matrix @ prior)
    )


# --- 2,000 rows, ten columns at each of two parties -----------------------------------------------------------


def train(setting: Setting, signal: tuple[float, float], seed: int = 0, *, rows: int = ROWS) -> Training:
    return simulate(planted(np.random.default_rng(seed), rows, (COLUMNS, COLUMNS), signal=signal), setting)


@dataclass(frozen=True)
class Best:
    """Quality of the passive party's best guess, chosen by the true labels."""

    auc: float
    share: float  # share of labels that are right


def attack(training: Training, setting: Setting) -> Best:
    found = list(guesses(training.seen[1], setting))
    right = [np.mean((guess > 0) == (training.y > 0)) for guess in found]
    return Best(max(auc(training.y > 0, guess) for guess in found), float(max(right)))


def own_auc(training: Training) -> float:
    return training.seen[1].own_auc(np.arange(len(training.y)), training.y)


def retrained(count: int, seed: int = 0, *, looked_at: Sequence[int] | None = None) -> list[Training]:
    """Return trainings on the same rows, each with its own batches.

    Args:
        looked_at: numbers of the trainings that run in full; by default all. The others run only the first epochs,
            which are enough for `over_trainings`.
    """
    few = replace(SMALL_BATCHES, epochs=FIRST_EPOCHS)
    settings = [SMALL_BATCHES if looked_at is None or number in looked_at else few for number in range(count)]
    return [train(replace(setting, seed=number), STRONG, seed) for number, setting in enumerate(settings)]


def auc_over(trainings: Sequence[Training]) -> float:
    guess = over_trainings([training.seen[1] for training in trainings], SMALL_BATCHES)
    return auc(trainings[0].y > 0, guess)
