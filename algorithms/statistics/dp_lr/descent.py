"""Descent on noisy sums of clipped gradients of the logistic loss; the function that adds noise is an argument.

    g_i = (sigmoid(x_i . w) - y_i) x_i, the constant feature included, shortened to norm C
    w <- prox(w - rate * (noisy sum of g_i) / (expected number of rows))

Each g_i becomes integers in units of C 2^-24, rounded toward zero. So |g_i| <= 2^24 holds for the integers that are
summed and not only for the reals before them. A row's integers depend only on that row and the weights: scores are
added up column by column, because the last bits of a matrix product depend on the rows around.

No content of a row makes a descent fail: a failure would reveal something about the row, before anything was released.
So the scaler of the columns cuts them to LARGEST, weights are cut here, and with a clip norm within CLIP_NORMS nothing
overflows.

Sources: Song, Chaudhuri and Sarwate 2013; Abadi et al. 2016 (arXiv 1607.00133). Hoseinpour, Hoseinpour and
Aghagolzadeh, "Accuracy Improvement in Differentially Private Logistic Regression: A Pre-training Approach" (2023).
Departures from the latter: it clips the *mean* gradient, which bounds its change by 2C and not by 2C/n. It defines
sensitivity by the L1 norm, and Gaussian noise needs the L2 norm. It uses ln(2/delta) next to ln(1.25/delta), and
neither formula holds for epsilon >= 1; here the analytic multiplier takes their place. In its experiment the intercept
is frozen and one scalar of noise serves all coordinates; here each coordinate has its own noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.fixed_point import IntegerRows, quantise_rows
from blindfit.algorithms.statistics.linear.logistic import BLOCK_ENTRIES, Floats, sigmoid, softplus
from blindfit.algorithms.statistics.linear.scaling import clip_numbers
from blindfit.algorithms.statistics.quality import metrics

GRID_BITS = 24
CLIP_STEPS = 1 << GRID_BITS
"""The clip norm of a gradient, and the largest distance of a loss from the middle of its range, in grid steps."""

CLIP_NORMS = (1e-9, 1e9)  # the least and the largest
LOSS_BOUND = 4.0  # a row's loss is cut to [0, LOSS_BOUND]; with zero weights it is log 2
NOISE_REACH = 1.0  # how far only noise may carry the weights, by the default learning rate

Release = Callable[[Sequence[int]], list[int]]
"""A function that adds noise to sums in grid steps."""


@dataclass(frozen=True)
class DescentSettings:
    """Settings of a descent.

    Args:
        clip_norm: C, largest norm of each row's gradient, within CLIP_NORMS.
        expected_rows: divisor of a noisy sum: public, and not the size of a sample.
        shrinkage: strength of the penalty shrinkage/2 |w - anchor|^2 on all weights.
    """

    clip_norm: float
    learning_rate: float
    n_iterations: int
    expected_rows: float
    shrinkage: float = 0.0

    def __post_init__(self) -> None:
        check_clip_norm(self.clip_norm)
        check_positive("learning_rate", self.learning_rate)
        check_positive("expected_rows", self.expected_rows)
        if not 0 <= self.shrinkage < math.inf:
            raise ConfigError(f"shrinkage must be finite and at least 0, not {self.shrinkage!r}")


@dataclass(frozen=True)
class Descent:
    """Result of a descent.

    Args:
        path: (n_iterations + 1, n_columns), the weights before each iteration and after the last.
        losses: the released mean loss at the start of each iteration; empty if no loss was requested.
    """

    path: Floats
    losses: tuple[float, ...]

    @property
    def weights(self) -> Floats:
        last: Floats = self.path[-1]
        return last


def descend(
    columns: Floats,
    labels: NDArray[np.bool_],
    settings: DescentSettings,
    *,
    start: Floats,
    anchor: Floats,
    sample: Callable[[], NDArray[np.bool_]] | None,
    release_gradient: Release,
    release_loss: Release | None = None,
) -> Descent:
    """Run a descent.

    Args:
        columns: (n, k), also with n = 0; no number beyond LARGEST; the constant feature last.
        anchor: weights to which `settings.shrinkage` pulls.
        sample: function that returns the rows of the next iteration; None: all rows in every iteration.
        release_loss: release of the sum of losses less LOSS_BOUND / 2, in steps of LOSS_BOUND 2^-25.
    """
    weights, losses = clip_numbers(start), []
    path = [weights]
    for _ in range(settings.n_iterations):
        chosen = slice(None) if sample is None else sample()
        rows, happened = columns[chosen], labels[chosen]
        if release_loss is not None:
            (noisy_loss,) = release_loss([loss_sum(rows, happened, weights)])
            losses.append(LOSS_BOUND / 2 * (1 + noisy_loss / CLIP_STEPS / settings.expected_rows))
        sums = release_gradient(gradient_sums(rows, happened, weights, settings.clip_norm))
        gradient = np.array(sums, dtype=np.float64) * (settings.clip_norm / CLIP_STEPS / settings.expected_rows)
        weights = _step(weights, gradient, anchor, settings)
        path.append(weights)
    return Descent(np.array(path), tuple(losses))


def _step(weights: Floats, gradient: Floats, anchor: Floats, settings: DescentSettings) -> Floats:
    # The penalty's step is implicit: even a strong one never jumps past the anchor.
    pull = settings.learning_rate * settings.shrinkage
    with np.errstate(over="ignore", invalid="ignore"):
        return clip_numbers((weights - settings.learning_rate * gradient + pull * anchor) / (1 + pull))


def gradient_sums(columns: Floats, labels: NDArray[np.bool_], weights: Floats, clip_norm: float) -> list[int]:
    """Return the sum over all rows of `clip_gradients`."""
    total = np.zeros(columns.shape[1], np.int64)
    for rows, happened in _blocks(columns, labels):
        total += clip_gradients(rows, happened, weights, clip_norm).sum(axis=0, dtype=np.int64)
    return [int(entry) for entry in total]


def clip_gradients(columns: Floats, labels: NDArray[np.bool_], weights: Floats, clip_norm: float) -> IntegerRows:
    """Return each row's gradient in steps of clip_norm 2^-24; no row of integers is longer than CLIP_STEPS."""
    residuals = sigmoid(_scores(columns, weights)) - labels
    return quantise_rows(columns * (residuals / clip_norm)[:, None], CLIP_STEPS, GRID_BITS)


def loss_sum(columns: Floats, labels: NDArray[np.bool_], weights: Floats) -> int:
    """Sum loss - LOSS_BOUND / 2, each loss cut to [0, LOSS_BOUND], in steps of LOSS_BOUND 2^-25.

    Because the losses are centred, a row that is added, removed or replaced changes the sum by at most CLIP_STEPS.
    """
    total = 0
    for rows, happened in _blocks(columns, labels):
        scores = _scores(rows, weights)
        losses = np.clip(softplus(np.where(happened, -scores, scores)), 0, LOSS_BOUND)
        total += int(np.trunc((losses * (2 / LOSS_BOUND) - 1) * CLIP_STEPS).astype(np.int64).sum())
    return total


def default_learning_rate(noise_std: float, n_columns: int, n_iterations: int, clip_norm: float) -> float:
    """Return the largest rate at which descent stays stable and only noise carries the weights at most NOISE_REACH.

    T steps with noise of standard deviation s in each of k coordinates end about rate s sqrt(T k) from the point that
    they would reach without it. Rows of norm C have a curvature of at most C^2/4, and 8/C^2 is the limit; half of it is
    taken.

    Args:
        noise_std: standard deviation of each coordinate of the mean gradient.
    """
    check_clip_norm(clip_norm)
    return min(4 / clip_norm**2, NOISE_REACH / (noise_std * math.sqrt(n_iterations * n_columns)))


def losses_of(path: Floats, columns: Floats, labels: NDArray[np.bool_]) -> list[float]:
    """Return the exact mean loss of public rows under each of a descent's weights."""
    return [metrics.log_loss(labels, sigmoid(columns @ weights)) for weights in path]  # never all scores at once


def check_clip_norm(clip_norm: float) -> None:
    least, largest = CLIP_NORMS
    if not least <= clip_norm <= largest:
        raise ConfigError(f"clip_norm must lie between {least:g} and {largest:g}, not {clip_norm!r}")


def check_positive(name: str, number: float) -> None:
    if not 0 < number < math.inf:
        raise ConfigError(f"{name} must be finite and above 0, not {number!r}")


def _scores(columns: Floats, weights: Floats) -> Floats:
    scores = np.zeros(len(columns))
    for column, weight in zip(columns.T, weights, strict=True):
        scores += column * weight
    return scores


def _blocks(columns: Floats, labels: NDArray[np.bool_]) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
    size = max(256, BLOCK_ENTRIES // columns.shape[1])
    for start in range(0, len(columns), size):
        yield columns[start : start + size], labels[start : start + size]
