"""Learning from label proportions in benchmarks.walr.utility: bags of rows, and one noisy sum of labels for each.

Bags are made from public features: rows by a hash (at random), or near rows together (k-means). A row is in one bag,
so one label's change moves the vector of sums by 1. The model is the logistic one whose predictions add up, in each
bag, to the bag's noisy sum: least squares, each bag weighted by the noise and by what chance does to its sum, and a
ridge.

Source: Quadrianto, Smola, Caetano and Le 2009; Yu, Choromanski, Kumar, Jebara and Chang 2014 (the loss).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from sklearn.cluster import MiniBatchKMeans

from benchmarks.walr.utility.task import DELTA, Arm, Floats, Option, Predict, Task, linear, noise_of
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.randomness import public_generator
from blindfit.algorithms.statistics.linear.logistic import sigmoid

BAGS = {"few": 8, "some": 64, "many": 512, "most": 4096}  # never more than a tenth of the rows, nor fewer than columns
MOST_EVALUATIONS = 30
SAMPLE_ROWS = 20_000  # rows that place the centres


@dataclass(frozen=True)
class Bags:
    """Rows in the order of their bags.

    Args:
        starts: first row of each bag.
    """

    rows: Floats
    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Floats, bag: NDArray[Any]) -> Bags:
        order = np.argsort(bag, kind="stable")
        starts = np.flatnonzero(np.diff(bag[order], prepend=-1))
        return cls(rows[order], order, starts)

    @property
    def sizes(self) -> Floats:
        return np.diff(self.starts, append=len(self.rows)).astype(np.float64)

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each bag of values, which stand in the order of the bags' rows."""
        found: Floats = np.add.reduceat(values, self.starts, axis=0)
        return found


class Proportions(Arm):
    title = "label proportions"
    grid = tuple(
        {"bags": bags, "by": by, "ridge": ridge}
        for by, bags in (("hash", "few"), ("hash", "some"), *(("k-means", bags) for bags in BAGS))
        for ridge in (0.3, 3.0, 30.0, 300.0)
    )

    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        key = (option["by"], option["bags"])
        bags = task.once(key, lambda: bags_of(task, *key))
        std = noise_std(epsilon)
        draw = noise_of(task, f"proportions/{key}", epsilon, seed)
        noisy = bags.sums(task.trained_on[bags.order]) + std * draw.standard_normal(len(bags.starts))
        return linear(task, fit_sums(bags, noisy, std, option["ridge"]))


def noise_std(epsilon: float) -> float:
    return 0.0 if math.isinf(epsilon) else gaussian.analytic_noise_multiplier(epsilon, DELTA)


def bags_of(task: Task, by: str, bags: str) -> Bags:
    count = max(task.rows["train"].shape[1], min(BAGS[bags], task.n_rows // 10))
    draw = public_generator(1, f"walr utility/bags/{task.name}/{by}/{bags}")
    if by == "hash":
        return Bags.of(task.rows["train"], draw.integers(0, count, task.n_rows))
    means = MiniBatchKMeans(count, n_init=1, max_iter=20, random_state=1)
    means.fit(draw.permutation(task.rows["train"])[:SAMPLE_ROWS])
    return Bags.of(task.rows["train"], means.predict(task.rows["train"]))


def fit_sums(bags: Bags, noisy: Floats, std: float, ridge: float) -> Floats:
    """
    Args:
        ridge: penalty; it assumes a standard deviation of 1 / sqrt(ridge) for the weights.
    """
    rate = float(np.clip(noisy.sum() / len(bags.rows), 0.5 / len(bags.rows), 1 - 0.5 / len(bags.rows)))
    precision = 1 / np.sqrt(std**2 + bags.sizes * rate * (1 - rate))
    pull = np.full(bags.rows.shape[1], math.sqrt(ridge))
    pull[-1] = 0.0

    def residuals(weights: Floats) -> Floats:
        return np.append(precision * (bags.sums(sigmoid(bags.rows @ weights)) - noisy), pull * weights)

    def slopes(weights: Floats) -> Floats:
        given = sigmoid(bags.rows @ weights)
        sums = bags.sums((given * (1 - given))[:, None] * bags.rows)
        return np.vstack([precision[:, None] * sums, np.diag(pull)])

    start = np.zeros(bags.rows.shape[1])
    start[-1] = math.log(rate / (1 - rate))
    found: Floats = optimize.least_squares(
        residuals, start, slopes, method="lm", xtol=1e-5, ftol=1e-5, max_nfev=MOST_EVALUATIONS
    ).x
    return found
