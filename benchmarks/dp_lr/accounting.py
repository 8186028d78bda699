"""Measure the noise of sampled runs at small deltas: as it was, as it is, and the least that suffices.

    python -m benchmarks.dp_lr.accounting [--json FILE] [--quick]

A run sums Poisson samples and has epsilon 1. The noise multiplier is the noise over the sensitivity. The columns are

- before is the multiplier that Blindfit took when dp_accounting composed the losses.
- now is the multiplier that it takes since privacy_losses.py composes them after a tilt.
- bound is the least multiplier that can suffice; losses rounded down to a fine grid give a lower bound on epsilon.
- spent is the epsilon of the multiplier of now, counted on a grid that is four times finer.

The first runs sum all rows in every iteration. For them the analytic Gaussian is exact, before and now.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks.kit import machine
from blindfit.algorithms.privacy import privacy_losses
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.privacy.noisy_iterations import Neighbours, RunPrivacy
from blindfit.algorithms.privacy.privacy_losses import Floats

EPSILON = 1.0
DELTAS, QUICK_DELTAS = (1e-5, 1e-9, 1e-12, 1e-15, 1e-18), (1e-5, 1e-15)
RUNS: tuple[tuple[float, int], ...] = ((1.0, 50), (0.1, 50), (0.01, 1000))
NEIGHBOURS: tuple[Neighbours, ...] = ("replace-one", "add-or-remove")
LOSS_CELLS, WIDEST_CELL = 200, 5e-3  # dp_accounting's grid, as it was
POINTS = 1_000_001  # values of the noise at which losses are rounded down
ROUNDED_BY = 1e-2  # part of epsilon that all iterations together lose by the rounding, at most
CLOSE = 1e-3  # relative


@dataclass(frozen=True)
class Noise:
    """The noise of one kind of run at one delta."""

    neighbours: str
    batch_fraction: float
    iterations: int
    delta: float
    before: float
    now: float
    bound: float
    spent: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--quick", action="store_true", help="two deltas, one kind of neighbours")
    options = parser.parse_args()
    neighbours = NEIGHBOURS[:1] if options.quick else NEIGHBOURS
    deltas = QUICK_DELTAS if options.quick else DELTAS
    found = [
        noise_of(RunPrivacy(EPSILON, delta, iterations, fraction, kind))
        for kind in neighbours
        for fraction, iterations in RUNS
        for delta in deltas
    ]
    show(found)
    if options.json:
        result = {"machine": machine.describe(), "epsilon": EPSILON, "runs": [asdict(noise) for noise in found]}
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def show(found: list[Noise]) -> None:
    columns = ("neighbours", "sampled", "iterations", "delta", "before", "now", "bound", "before/now", "now/bound")
    table = Table(*columns, "spent", title=f"noise multiplier of each iteration, epsilon {EPSILON:g} for the run")
    for noise in found:
        table.add_row(
            noise.neighbours,
            f"{noise.batch_fraction:.3g}",
            str(noise.iterations),
            f"{noise.delta:g}",
            *(f"{multiplier:.4g}" for multiplier in (noise.before, noise.now, noise.bound)),
            f"{noise.before / noise.now:.3f}",
            f"{noise.now / noise.bound:.4f}",
            f"{noise.spent:.5f}",
        )
    Console(width=130).print(table)


def noise_of(privacy: RunPrivacy) -> Noise:
    now = privacy.noise_multiplier()
    if privacy.batch_fraction == 1:
        before = bound = analytic_noise_multiplier(privacy.epsilon, privacy.delta) * math.sqrt(privacy.n_iterations)
        return _noise(privacy, before, now, bound, privacy.epsilon)
    with mock.patch.multiple(privacy_losses, CELLS=4 * privacy_losses.CELLS, _SMALL=4 * privacy_losses._SMALL):
        spent = privacy_losses.composed_epsilon(_parts(now, privacy), privacy.delta)
    before = multiplier_before(privacy)
    bound = least(lambda multiplier: rounded_down_epsilon(multiplier, privacy), privacy.epsilon, now)
    return _noise(privacy, before, now, bound, spent)


def _noise(privacy: RunPrivacy, before: float, now: float, bound: float, spent: float) -> Noise:
    run = (privacy.neighbours, privacy.batch_fraction, privacy.n_iterations, privacy.delta)
    return Noise(*run, before, now, bound, spent)


def _parts(multiplier: float, privacy: RunPrivacy) -> privacy_losses.Parts:
    one = privacy_losses.sampled_gaussian(multiplier, privacy.batch_fraction, privacy.sensitivity)
    return [(one, privacy.n_iterations)]


def least(spent: Callable[[float], float], epsilon: float, guess: float) -> float:
    """Return the multiplier that spends exactly epsilon."""
    low, high = guess / 2, guess
    while spent(high) > epsilon:
        low, high = high, 2 * high

    def excess(multiplier: float) -> float:
        return math.log(max(min(spent(multiplier), 1e6), 1e-9) / epsilon)

    return float(brentq(excess, low, high, rtol=1e-4))


def multiplier_before(privacy: RunPrivacy) -> float:
    """Search as Blindfit did: from the noise without sampling upwards, then downwards."""
    enough = analytic_noise_multiplier(privacy.epsilon, privacy.delta) * math.sqrt(privacy.n_iterations)
    while library_epsilon(enough, privacy) > privacy.epsilon:
        enough *= 1 + CLOSE
    too_small = enough / 2
    while library_epsilon(too_small, privacy) <= privacy.epsilon:
        enough, too_small = too_small, too_small / 2
    while enough / too_small > 1 + CLOSE:
        middle = math.sqrt(enough * too_small)
        holds = library_epsilon(middle, privacy) <= privacy.epsilon
        enough, too_small = (middle, too_small) if holds else (enough, middle)
    return enough


def library_epsilon(multiplier: float, privacy: RunPrivacy) -> float:
    import dp_accounting as library
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    relations = library.NeighboringRelation
    relation = relations.REPLACE_ONE if privacy.neighbours == "replace-one" else relations.ADD_OR_REMOVE_ONE
    accountant = PLDAccountant(relation, min(privacy.epsilon / LOSS_CELLS, WIDEST_CELL))
    noise = library.GaussianDpEvent(multiplier * privacy.sensitivity)
    accountant.compose(library.PoissonSampledDpEvent(privacy.batch_fraction, noise), privacy.n_iterations)
    return float(accountant.get_epsilon(privacy.delta))


def rounded_down_epsilon(multiplier: float, privacy: RunPrivacy) -> float:
    """Return a lower bound on epsilon: each loss of the law with the row, against the other law, is rounded down."""
    q, std = privacy.batch_fraction, multiplier * privacy.sensitivity
    step = ROUNDED_BY * privacy.epsilon / privacy.n_iterations
    reach = norm.isf(privacy.delta / privacy.n_iterations / 1e3) * std
    x = np.linspace(-reach, 1 + reach, POINTS)
    without = -((x / std) ** 2) / 2
    with_row = np.logaddexp(math.log1p(-q) + without, math.log(q) - ((x - 1) / std) ** 2 / 2)
    if privacy.sensitivity == 2:
        without = np.logaddexp(math.log1p(-q) + without, math.log(q) - ((x + 1) / std) ** 2 / 2)
    losses = np.floor((with_row - without)[:-1] / step).astype(int)  # a cell has the loss of its lower end
    first = int(losses.min())
    chances = (1 - q) * _cells(x / std) + q * _cells((x - 1) / std)
    with np.errstate(divide="ignore"):
        log_chances = np.log(np.bincount(losses - first, weights=chances))
    release = privacy_losses._OnGrid(step, first, log_chances, -math.inf)
    return privacy_losses._Composition(((release, privacy.n_iterations),)).epsilon(math.log(privacy.delta))


def _cells(z: Floats) -> Floats:
    """Return the chance of N(0, 1) between each point and the next, with all digits in both tails."""
    below, above = np.diff(norm.cdf(z)), -np.diff(norm.sf(z))
    chances: Floats = np.where(z[:-1] > 0, above, below)
    return chances


if __name__ == "__main__":
    main()
