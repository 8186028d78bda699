"""Noisy gradient descent on private labels and public features in benchmarks.walr.utility.

A row's gradient is (p - y) x, shortened to norm C. A change of its label turns p x into (p - 1) x: in opposite
directions, together |x| long, each at most C. So a sum over all rows moves by min(R, 2C) at most, and T of them are
one Gaussian release (batch_fraction 1). In a Poisson sample the two gradients of the row are bounded by C each, which
is the neighbouring relation "replace one" of dp_accounting, whose composed privacy loss distributions give the noise.

Source: Song, Chaudhuri and Sarwate 2013; Abadi et al. 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.walr.utility.task import DELTA, Arm, Option, Predict, Task, linear, noise_of
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.algorithms.statistics.dp_lr import descent
from blindfit.algorithms.statistics.dp_lr.descent import CLIP_STEPS, DescentSettings

RUNS = ((1.0, 10), (0.05, 50), (0.01, 200))  # the share of rows in a step, and how many steps


class Descent(Arm):
    title = "DP-SGD"
    grid = tuple(
        {"batch_fraction": fraction, "n_iterations": steps, "clip": clip, "rate": rate}
        for fraction, steps in RUNS
        for clip in (0.25, 0.5)
        for rate in (0.3, 1.0, 3.0, 10.0)
    )

    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        clip = option["clip"] * task.norm_bound
        std = noise_std(epsilon, option, clip, task.norm_bound)
        expected = option["batch_fraction"] * task.n_rows
        draw = noise_of(task, f"descent/{sorted(option.items())}", epsilon, seed)
        columns = task.rows["train"].shape[1]
        rate = option["rate"] * descent.default_learning_rate(
            max(std, 1e-9) / expected, columns, option["n_iterations"], clip
        )

        def noisy(sums: Sequence[int]) -> list[int]:
            steps = std / clip * CLIP_STEPS * draw.standard_normal(len(sums))
            return [exact + round(noise) for exact, noise in zip(sums, steps.tolist(), strict=True)]

        fraction = option["batch_fraction"]
        found = descent.descend(
            task.rows["train"],
            task.trained_on > 0,
            DescentSettings(clip, rate, option["n_iterations"], expected),
            start=np.zeros(columns),
            anchor=np.zeros(columns),
            sample=None if fraction == 1 else lambda: poisson_sample(task.n_rows, fraction, draw),
            release_gradient=noisy,
        )
        return linear(task, found.path[option["n_iterations"] // 2 :].mean(axis=0))


def noise_std(epsilon: float, option: Option, clip: float, norm_bound: float) -> float:
    """Return the noise of each coordinate of a step's sum of gradients."""
    if math.isinf(epsilon):
        return 0.0
    run = RunPrivacy(epsilon, DELTA, option["n_iterations"], option["batch_fraction"], "replace-one")
    moved = min(norm_bound, 2 * clip) if option["batch_fraction"] == 1 else run.sensitivity * clip
    return run.noise_multiplier() * moved


def poisson_sample(n_rows: int, fraction: float, draw: np.random.Generator) -> NDArray[np.bool_]:
    """Draw each row with this probability: a binomial number of rows, all equally likely."""
    chosen = np.zeros(n_rows, np.bool_)
    chosen[draw.choice(n_rows, draw.binomial(n_rows, fraction), replace=False, shuffle=False)] = True
    return chosen
