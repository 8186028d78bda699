"""Arms of benchmarks.walr.utility that release a noisy X^T y, or labels that give one.

In all of them labels enter the fit only through the mean mu of X^T y, and every fit minimises

    mean softplus(x . w) - w . mu + l2/2 |w|^2.

One label's change moves the sum X^T y by one row, of norm R at most.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.walr.data import FRAC_BITS
from benchmarks.walr.utility.task import DELTA, Arm, Floats, Option, Predict, Task, fit_mean, linear, noise_of
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.statistics.linear.logistic import RealRows
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.algorithms.statistics.walr import defaults
from blindfit.algorithms.statistics.walr.fit import MuTreatment, treat, treatment_of

L2_FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # times the noise of mu


# --- WALR ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walr(Arm):
    """
    Args:
        automatic: True if l2 follows the noise, as by default; otherwise l2 is 1 over the number of rows.
        treatment: treatment of the noisy mean.
    """

    title: str
    automatic: bool
    treatment: MuTreatment

    def fit(self, task: Task, epsilon: float, _option: Option, seed: int) -> Predict:
        """Fit as `fit.fit_released`, without its check of feasibility, which changes no weight."""
        mu, noise_std = task.once((epsilon, seed), lambda: released_mean(task, epsilon, seed))
        treatment = treatment_of(self.treatment, task.integers.size)
        mu = task.once((epsilon, seed, treatment), lambda: treat(task.quantised, mu, treatment))
        l2 = 1 / task.n_rows
        if self.automatic:
            l2 = defaults.default_l2(noise_std, task.norm_bound, task.integers.shape[1], epsilon)
        return linear(task, fit(task.quantised, mu, SolverSettings(l2=l2)).weights)


DEFAULT_WALR = Walr("WALR", automatic=True, treatment="auto")


def mechanism_of(task: Task, epsilon: float) -> GaussianMechanism:
    """Return the mechanism of the measurement server; see `walr.mechanism_of`."""
    return GaussianMechanism(gaussian.noise_multiplier("analytic", epsilon, DELTA), task.bound**2)


def released_mean(task: Task, epsilon: float, seed: int) -> tuple[Floats, float]:
    """Return mu and the deviation of its noise: exact integer sums and discrete Gaussian noise, from a seed."""
    exact = task.once("exact sums", lambda: task.integers[task.trained_on > 0].sum(axis=0, dtype=np.int64).tolist())
    mechanism = mechanism_of(task, epsilon)
    sums = mechanism.release(exact, random.Random(f"walr utility/{task.name}/{epsilon:g}/{seed}").randrange)
    scale = 2.0**-FRAC_BITS / task.n_rows
    return np.array(sums, np.float64) * scale, math.sqrt(mechanism.sigma_squared) * scale


# --- objective perturbation ------------------------------------------------------------------------------


class Objective(Arm):
    """A random linear term b . w / N in the objective.

    The objectives of two neighbours differ only in the term w . X^T y, and the Hessian has no label in it. So the
    Jacobian of the map from b to the minimiser is the same for both. No part of epsilon goes to it, and no least l2 is
    needed. What is left is the density of b at two points that are R apart. e^(-epsilon |b| / R) is epsilon-DP
    (`gamma`). N(0, (s R)^2) is (epsilon, delta)-DP (`gaussian`), which is WALR's own noise.

    Source: Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2; Kifer, Smith and Thakurta 2012, Algorithm 1.
    """

    title = "objective perturbation"
    grid = tuple({"noise": noise, "l2": factor} for noise in ("gamma", "gaussian") for factor in L2_FACTORS)

    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        n_columns = task.integers.shape[1]
        draw = noise_of(task, f"objective/{option['noise']}", epsilon, seed)
        noise = linear_term(option["noise"], epsilon, task.norm_bound, n_columns, draw) / task.n_rows
        l2 = option["l2"] * noise_std(option["noise"], epsilon, task.norm_bound, n_columns) / task.n_rows
        return linear(task, fit_mean(RealRows(task.rows["train"]), exact_mean(task) + noise, l2))


def linear_term(noise: str, epsilon: float, norm_bound: float, n_columns: int, draw: np.random.Generator) -> Floats:
    if math.isinf(epsilon):
        return np.zeros(n_columns)
    direction = draw.standard_normal(n_columns)
    if noise == "gaussian":
        return direction * noise_std(noise, epsilon, norm_bound, n_columns)
    length = draw.gamma(n_columns, norm_bound / epsilon)
    result: Floats = direction * (length / np.linalg.norm(direction))
    return result


def noise_std(noise: str, epsilon: float, norm_bound: float, n_columns: int) -> float:
    """Return the noise of each coordinate of b."""
    if math.isinf(epsilon):
        return 0.0
    if noise == "gaussian":
        return gaussian.analytic_noise_multiplier(epsilon, DELTA) * norm_bound
    return norm_bound / epsilon * math.sqrt(n_columns + 1)  # E |b|^2 is k (k + 1) (R / epsilon)^2


def exact_mean(task: Task) -> Floats:
    mean: Floats = task.once("exact mean", lambda: task.trained_on @ task.rows["train"] / task.n_rows)
    return mean


# --- randomised response ---------------------------------------------------------------------------------


class RandomisedResponse(Arm):
    """Every label is flipped with probability q = 1 / (1 + e^epsilon), which is epsilon-DP.

    (y' - q) / (1 - 2 q) has the mean y, and the logistic loss is affine in y. So the loss of these labels has no bias.

    Source: Warner 1965; Natarajan, Dhillon, Ravikumar and Tewari 2013, Lemma 1.
    """

    title = "randomised response"
    grid = tuple({"l2": factor} for factor in L2_FACTORS)

    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        noisy = debiased(randomised(task.trained_on, epsilon, noise_of(task, "response", epsilon, seed)), epsilon)
        l2 = option["l2"] * debiased_std(epsilon) / math.sqrt(task.n_rows)
        return linear(task, fit_mean(RealRows(task.rows["train"]), noisy @ task.rows["train"] / task.n_rows, l2))


def turned(epsilon: float) -> float:
    """Return the probability that a label is flipped."""
    return math.exp(-epsilon) / (1 + math.exp(-epsilon))


def randomised(labels: Floats, epsilon: float, draw: np.random.Generator) -> Floats:
    flips: NDArray[Any] = draw.random(len(labels)) < turned(epsilon)
    result: Floats = np.where(flips, 1 - labels, labels)
    return result


def debiased(labels: Floats, epsilon: float) -> Floats:
    q = turned(epsilon)
    return (labels - q) / (1 - 2 * q)


def debiased_std(epsilon: float) -> float:
    q = turned(epsilon)
    return math.sqrt(q * (1 - q)) / (1 - 2 * q)
