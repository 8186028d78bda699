"""Test whether the hybrid gradient is nearer to the full gradient than the ordinary one, as the WALR paper claims.

Both estimate the gradient of all rows from m of them. Ordinary minibatch descent needs the labels of its batch, which
one release of mu cannot give. So it exists only here. The mean squared distance times m is expected to be:

    hybrid    tr Cov(p x)           about E p^2 |x|^2
    ordinary  tr Cov((p - y) x)     about E p (1 - p) |x|^2 at the optimum

so the claim holds where labels are rare, and fails where half of them or more are positive. Centring the hybrid one
(p - c in place of p, c the rate of labels) mends that.

    python -m benchmarks.walr.hybrid_gradient [--json FILE] [--quick]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from blindfit.algorithms.statistics.linear.logistic import Floats, Rows, as_rows, sigmoid, weighted_aggregate
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit, hybrid_gradient

INTERCEPTS = (-4.0, -2.0, 0.0, 2.0)


@dataclass(frozen=True)
class Effort:
    """Size of the measurement."""

    rows: int
    draws: int
    batch_sizes: tuple[int, ...]


FULL = Effort(100_000, 100, (64, 256, 1024, 4096))
QUICK = Effort(2_000, 5, (64, 256))


@dataclass(frozen=True)
class Distances:
    """Mean Euclidean distances from the full gradient at one point, over many batches of one size."""

    weights_at: str
    batch_rows: int
    ordinary: float
    hybrid: float
    hybrid_centred: float


def ordinary_minibatch_gradient(batch: Floats, labels: Floats, weights: Floats) -> Floats:
    gradient: Floats = (sigmoid(batch @ weights) - labels) @ batch / len(batch)
    return gradient


def compare(
    rows: Rows | ArrayLike, labels: ArrayLike, ms: Sequence[int], draws: int, generator: np.random.Generator
) -> list[Distances]:
    """Measure all three on the same batches, at weights 0 and at the optimum without l2."""
    known, outcome = as_rows(rows), np.asarray(labels, dtype=np.float64)
    mu = weighted_aggregate(known, outcome)
    optimum = fit(known, mu, SolverSettings(l2=0.0, unpenalised=None)).weights
    points = {"zero": np.zeros_like(mu), "optimum": optimum}
    return [
        _compare_at(name, weights, known, outcome, mu, m, draws, generator)
        for name, weights in points.items()
        for m in ms
    ]


def _compare_at(
    name: str,
    weights: Floats,
    rows: Rows,
    labels: Floats,
    mu: Floats,
    batch_rows: int,
    draws: int,
    generator: np.random.Generator,
) -> Distances:
    all_scores = np.concatenate([block @ weights for block in rows.blocks()])
    full = weighted_aggregate(rows, sigmoid(all_scores)) - mu
    mean_row, rate = weighted_aggregate(rows, np.ones(rows.n_rows)), float(labels.mean())
    estimators: list[Callable[[Floats, Floats], Floats]] = [
        lambda batch, batch_labels: ordinary_minibatch_gradient(batch, batch_labels, weights),
        lambda batch, _labels: hybrid_gradient(batch, mu, weights),
        lambda batch, _labels: hybrid_gradient(batch, mu, weights, centre=rate, mean_row=mean_row),
    ]
    distances = np.zeros(len(estimators))
    for _ in range(draws):
        which: NDArray[np.intp] = generator.choice(rows.n_rows, batch_rows, replace=False)
        batch = rows.take(which)
        distances += [np.linalg.norm(estimate(batch, labels[which]) - full) for estimate in estimators]
    return Distances(name, batch_rows, *(distances / draws).tolist())


def measure(console: Console, effort: Effort) -> dict[str, list[dict[str, object]]]:
    """Print a table of distances at several base rates; returns them by base rate."""
    generator = np.random.default_rng(1)
    features = np.hstack([generator.normal(size=(effort.rows, 20)), np.ones((effort.rows, 1))])
    table = Table(
        "base rate", "weights at", "m", "ordinary", "hybrid", "hybrid, centred", title="distance from the full gradient"
    )
    results: dict[str, list[dict[str, object]]] = {}
    for intercept in INTERCEPTS:
        weights = np.append(generator.normal(size=20) / 4, intercept)
        labels = generator.random(effort.rows) < sigmoid(features @ weights)
        rate = f"{labels.mean():.3f}"
        found = compare(features, labels, effort.batch_sizes, effort.draws, generator)
        results[rate] = [asdict(distances) for distances in found]
        for d in found:
            figures = [f"{value:.4f}" for value in (d.ordinary, d.hybrid, d.hybrid_centred)]
            table.add_row(rate, d.weights_at, str(d.batch_rows), *figures)
    console.print(table)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="few rows and draws: to see that it runs")
    options = parser.parse_args()
    result = {"machine": machine.describe(), "distances": measure(Console(), QUICK if options.quick else FULL)}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
