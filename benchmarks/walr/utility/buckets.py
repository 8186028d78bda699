"""The noisy breakdowns of benchmarks.walr.utility: positive labels counted by feature, or by pairs of features.

Each feature is cut into bins, by quantiles of the public features, or has its categories for bins. All histograms are
one vector query: a label is in one bin of each histogram, so one label's change moves the vector by the root of the
number of histograms. Counts of rows are public, since features are. A bin's indicator is a feature like any other, so
that the counts are the noisy mean mu of a logistic model on such features, and the model is fitted as WALR's.

Models of single features: `linear` replaces each feature by its mean in the bin; `additive` has a weight for each bin.
Of pairs: `linear` averages the margins of all tables; `products` adds the product of every two numbers; `cells` has a
weight for each cell of each table; both where there are not too many.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from benchmarks.walr.utility.bins import Binned, Codes, bin_indicators, with_constant
from benchmarks.walr.utility.data import PARTS
from benchmarks.walr.utility.task import DELTA, Arm, Floats, Option, Predict, Task, fit_mean, noise_of
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.statistics.linear.logistic import RealRows, sigmoid, softplus

MOST_ENTRIES = {"products": 50_000_000, "cells": 5_000_000}  # rows times pairs; more would take minutes a fit
L2_FACTORS = (0.1, 0.5, 2.5)  # times the noise of mu


def noise_std(histograms: int, epsilon: float) -> float:
    """Return the noise of each count, where a label is in one bin of each histogram."""
    return 0.0 if math.isinf(epsilon) else gaussian.analytic_noise_multiplier(epsilon, DELTA) * math.sqrt(histograms)


# --- single features -------------------------------------------------------------------------------------


class Singles(Arm):
    title = "buckets, single features"
    grid = tuple(
        {"bins": bins, "model": model, "l2": factor}
        for bins, model in ((4, "linear"), (8, "linear"), (16, "linear"), (4, "additive"), (8, "additive"))
        for factor in L2_FACTORS
    )

    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        binned = task.once(("bins", option["bins"]), lambda: Binned.of(task, option["bins"]))
        std = noise_std(len(binned.sizes), epsilon)
        counts = histograms(binned, task.trained_on)
        draw = noise_of(task, f"singles/{option['bins']}", epsilon, seed)
        noisy = [count + std * draw.standard_normal(len(count)) for count in counts]
        if option["model"] == "linear":
            return fit_linear(task, binned, noisy, [std] * len(noisy), option)
        return fit_additive(task, binned, noisy, std, option)


def histograms(binned: Binned, labels: Floats) -> list[Floats]:
    """Count positive labels in each bin of each feature."""
    return [bin_counts(codes, labels, size) for codes, size in zip(binned.codes["train"], binned.sizes, strict=True)]


def bin_counts(codes: Codes, labels: Floats, size: int) -> Floats:
    counts: Floats = np.bincount(codes, labels, size).astype(np.float64)
    return counts


def total(counts: list[Floats], stds: list[float]) -> float:
    """Return the number of positive labels, from all histograms, each weighted by its precision."""
    precisions = [1 / (len(count) * max(std, 1e-9) ** 2) for count, std in zip(counts, stds, strict=True)]
    return float(np.average([count.sum() for count in counts], weights=precisions))


def fit_linear(task: Task, binned: Binned, noisy: list[Floats], stds: list[float], option: Option) -> Predict:
    sums = [count @ mean for count, mean in zip(noisy, binned.means, strict=True)]
    mu = np.append(np.concatenate(sums), total(noisy, stds)) / task.n_rows
    noise = [std * np.linalg.norm(mean, axis=0) for std, mean in zip(stds, binned.means, strict=True)]
    l2 = option["l2"] * float(np.sqrt(np.mean(np.square(np.concatenate(noise))))) / task.n_rows
    key = ("flattened", option["bins"])
    rows = task.once(key, lambda: {part: with_constant(binned.flattened(part)) for part in PARTS})
    weights = fit_mean(RealRows(rows["train"]), mu, l2)
    return lambda part: sigmoid(rows[part] @ weights)


def fit_additive(task: Task, binned: Binned, noisy: list[Floats], std: float, option: Option) -> Predict:
    key = ("indicators", option["bins"])
    rows = task.once(key, lambda: {part: with_constant(bin_indicators(binned, part)) for part in PARTS})
    mu = np.append(np.concatenate(noisy), total(noisy, [std] * len(noisy))) / task.n_rows
    weights = fit_mean(RealRows(rows["train"]), mu, option["l2"] * max(std, 1.0) / task.n_rows)
    return lambda part: sigmoid(rows[part].astype(np.float32) @ weights)


# --- pairs of features -----------------------------------------------------------------------------------


class Pairs(Arm):
    title = "buckets, pairs of features"
    grid = tuple(
        {"bins": bins, "model": model, "l2": factor}
        for bins, model in ((2, "linear"), (4, "linear"), (8, "linear"), *itertools.product((2, 4), MOST_ENTRIES))
        for factor in L2_FACTORS
    )

    def options(self, task: Task) -> tuple[Option, ...]:
        entries = task.n_rows * math.comb(len(task.groups), 2)
        return tuple(o for o in self.grid if entries <= MOST_ENTRIES.get(o["model"], math.inf))

    def fit(self, task: Task, epsilon: float, option: Option, seed: int) -> Predict:
        binned = task.once(("bins", option["bins"]), lambda: Binned.of(task, option["bins"]))
        counts = tables(binned, task.trained_on)
        std = noise_std(len(counts), epsilon)
        draw = noise_of(task, f"pairs/{option['bins']}", epsilon, seed)
        noisy = {pair: count + std * draw.standard_normal(count.shape) for pair, count in counts.items()}
        if option["model"] == "cells":
            return fit_cells(task, binned, noisy, std, option)
        margins, stds = margins_of(binned, noisy, std)
        if option["model"] == "linear":
            return fit_linear(task, binned, margins, stds, option)
        return fit_products(task, binned, noisy, (margins, stds), std, option)


Pair = tuple[int, int]


def tables(binned: Binned, labels: Floats) -> dict[Pair, Floats]:
    """Count positive labels in each cell of each pair of features."""
    codes, sizes = binned.codes["train"], binned.sizes
    return {
        (g, h): bin_counts(codes[g] * sizes[h] + codes[h], labels, sizes[g] * sizes[h]).reshape(sizes[g], sizes[h])
        for g, h in itertools.combinations(range(len(sizes)), 2)
    }


def margins_of(binned: Binned, noisy: dict[Pair, Floats], std: float) -> tuple[list[Floats], list[float]]:
    """Return each feature's histogram and its noise, from all tables of the feature, each weighted by its precision."""
    margins, stds = [], []
    for feature in range(len(binned.sizes)):
        mine = [(pair, table) for pair, table in noisy.items() if feature in pair]
        others = [pair[1 - pair.index(feature)] for pair, _ in mine]
        precisions = [1 / binned.sizes[other] for other in others]
        sums = [table.sum(axis=1 - pair.index(feature)) for pair, table in mine]
        margins.append(np.average(sums, axis=0, weights=precisions))
        stds.append(std / math.sqrt(sum(precisions)))
    return margins, stds


def fit_products(
    task: Task,
    binned: Binned,
    noisy: dict[Pair, Floats],
    margins: tuple[list[Floats], list[float]],
    std: float,
    option: Option,
) -> Predict:
    pairs = list(itertools.combinations(binned.numbers, 2))
    outer = [binned.means[g] * binned.means[h].T for g, h in pairs]
    counts, stds = margins
    singles = [count @ mean for count, mean in zip(counts, binned.means, strict=True)]
    products = [float((noisy[pair] * product).sum()) for pair, product in zip(pairs, outer, strict=True)]
    mu = np.concatenate([*singles, products, [total(counts, stds)]]) / task.n_rows
    typical = math.sqrt(np.mean([np.square(product).sum() for product in outer])) if outer else 1.0
    key = ("products", option["bins"])
    rows = task.once(key, lambda: {part: with_constant(with_products(binned, pairs, part)) for part in PARTS})
    weights = fit_mean(RealRows(rows["train"]), mu, option["l2"] * std * typical / task.n_rows)
    return lambda part: sigmoid(rows[part] @ weights)


def with_products(binned: Binned, pairs: list[Pair], part: str) -> NDArray[np.float32]:
    codes = binned.codes[part]
    products = [binned.means[g][codes[g]] * binned.means[h][codes[h]] for g, h in pairs]
    return np.hstack([binned.flattened(part), *products]).astype(np.float32)


def fit_cells(task: Task, binned: Binned, noisy: dict[Pair, Floats], std: float, option: Option) -> Predict:
    key = ("cells", option["bins"])
    rows = task.once(key, lambda: {part: cell_indicators(binned, list(noisy), part) for part in PARTS})
    share = float(np.mean([table.sum() for table in noisy.values()])) / task.n_rows
    margin = 1 / (2 * task.n_rows)
    mu = np.append(np.concatenate([table.ravel() for table in noisy.values()]) / task.n_rows, share)
    mu[-1] = np.clip(share, margin, 1 - margin)
    weights = fit_sparse(rows["train"], mu, option["l2"] * max(std, 1.0) / task.n_rows)
    return lambda part: sigmoid(rows[part] @ weights)


def cell_indicators(binned: Binned, pairs: list[Pair], part: str) -> Any:
    """Return a sparse matrix: rows x (cells of all tables, and the constant)."""
    codes, sizes = binned.codes[part], binned.sizes
    starts = np.cumsum([0, *(sizes[g] * sizes[h] for g, h in pairs)])
    cells = [start + codes[g] * sizes[h] + codes[h] for start, (g, h) in zip(starts, pairs, strict=False)]
    places = np.stack([*cells, np.full(codes.shape[1], starts[-1])], axis=1)
    pointers = np.arange(0, places.size + 1, places.shape[1])
    return sparse.csr_array((np.ones(places.size), places.ravel(), pointers), (len(places), int(starts[-1]) + 1))


def fit_sparse(rows: Any, mu: Floats, l2: float) -> Floats:
    """Minimise WALR's objective for sparse rows, with no penalty on the last weight."""
    penalty = np.full(len(mu), l2)
    penalty[-1] = 0.0

    def value_and_gradient(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        value = softplus(scores).mean() - weights @ mu + weights @ (penalty * weights) / 2
        return float(value), rows.T @ sigmoid(scores) / rows.shape[0] - mu + penalty * weights

    found = optimize.minimize(value_and_gradient, np.zeros(len(mu)), jac=True, method="L-BFGS-B")
    result: Floats = found.x
    return result
