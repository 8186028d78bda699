"""Test whether a WALR fit does better if its settings are chosen after the release, from the release.

    python -m benchmarks.walr.choice [--data DIR] [--json FILE] [--quick]

The data sets are those of benchmarks.walr.forecast. Each release is fitted with l2 of a tenth to ten times the default,
and with mu clipped or projected. `excess` is how much the log loss on held-out rows is above that without noise, over
the entropy of the base rate. It is the mean over the draws, for these fits:

- default has walr.l2 = "auto" and walr.mu = "auto".
- clipped and projected have the default l2, and walr.mu = "clip" or "project".
- chosen is the choice by a simulation like that of `blindfit plan`, with the rate and strength of the default's fit.
- best is the best fit of each draw by the labels, which nobody has.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.walr.data import DELTA, FRAC_BITS, Floats, PreparedRows, rand_data
from benchmarks.walr.forecast import DataSet, bank, generated, log_loss
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, scores, sigmoid, weighted_aggregate
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.algorithms.statistics.walr.fit import MuTreatment, fit_released, treatment_of
from blindfit.algorithms.statistics.walr.forecast import Assumed, Case, Fitting, forecast, l2_of
from blindfit.algorithms.statistics.walr.model import WALRModel

EPSILONS = (0.1, 0.25, 0.5, 1.0)
L2_FACTORS = (0.1, 1 / 3, 1.0, 3.0, 10.0)
TREATMENTS: tuple[MuTreatment, ...] = ("clip", "project")
COLUMNS = ("default", "clipped", "projected", "chosen", "best")
SIMULATED_ROWS, SIMULATED_DRAWS = 3_000, 6
RATES, STRENGTHS = (0.01, 0.99), (0.2, 5.0)  # within which a noisy fit's are taken

Choice = tuple[float, MuTreatment]  # l2 over the default, and what becomes of mu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where bank/ is")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="one draw, one epsilon, few rows: to see that it runs")
    options = parser.parse_args()
    draws, people, epsilons = (1, 300, EPSILONS[-1:]) if options.quick else (40, 10_000, EPSILONS)
    sets = [DataSet.split("RAND", *rand_data()[:2]), bank(options.data), generated(people)]
    measured = {one.name: measure(one, draws, epsilons) for one in sets}
    result = {"machine": machine.describe(), "draws": draws, "data": measured}
    show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


@dataclass(frozen=True, repr=False)
class Setting:
    """A data set at one epsilon."""

    data: DataSet
    prepared: PreparedRows
    rows: QuantisedRows
    epsilon: float

    @property
    def norm_bound(self) -> float:
        return self.prepared.bound * 2.0**-FRAC_BITS

    @property
    def case(self) -> Case:
        multiplier = gaussian.analytic_noise_multiplier(self.epsilon, DELTA)
        noise_std = multiplier * self.norm_bound / self.rows.n_rows
        return Case(self.epsilon, noise_std, Fitting(self.norm_bound, SolverSettings(l2=0.0)))

    def with_choice(self, choice: Choice) -> Case:
        factor, treatment = choice
        l2 = factor * l2_of(self.case, self.rows.n_features)
        return replace(self.case, fitting=replace(self.case.fitting, l2=l2, treatment=treatment))

    def weights(self, mu: Floats, choice: Choice) -> Floats:
        case = self.with_choice(choice)
        return fit_released(
            self.rows,
            mu,
            noise_std=case.noise_std,
            norm_bound=self.norm_bound,
            epsilon=self.epsilon,
            settings=case.fitting.settings,
            l2=case.fitting.l2,
            treatment=case.fitting.treatment,
        ).result.weights

    def loss(self, weights: Floats) -> float:
        return log_loss(self.data, WALRModel(self.prepared.standardiser, weights, True, self.norm_bound))


def measure(data: DataSet, draws: int, epsilons: Sequence[float]) -> list[dict[str, Any]]:
    prepared, labels = PreparedRows.of(*data.train), data.train[1]
    rows = QuantisedRows(prepared.rows.weights, FRAC_BITS)
    exact = weighted_aggregate(rows, labels)
    found = []
    for epsilon in epsilons:
        setting, generator = Setting(data, prepared, rows, epsilon), np.random.default_rng(5)
        without = setting.loss(fit(rows, exact, SolverSettings(l2=1 / rows.n_rows)).weights)
        noise = setting.case.noise_std * generator.standard_normal((draws, rows.n_features))
        excesses = np.array([of_release(setting, exact + one, generator) for one in noise]) - without
        found.append({"epsilon": epsilon, **dict(zip(COLUMNS, excesses.mean(axis=0).tolist(), strict=True))})
    return found


def of_release(setting: Setting, mu: Floats, generator: np.random.Generator) -> list[float]:
    """Return the losses of COLUMNS."""
    choices = list(product(L2_FACTORS, TREATMENTS))
    weights = {choice: setting.weights(mu, choice) for choice in choices}
    losses = {choice: setting.loss(of_choice) for choice, of_choice in weights.items()}
    default: Choice = (1.0, treatment_of("auto", setting.rows.n_rows * setting.rows.n_features))
    chosen = chosen_from(setting, weights[default], choices, generator)
    taken: tuple[Choice, ...] = (default, (1.0, "clip"), (1.0, "project"), chosen)
    return [*(losses[choice] for choice in taken), min(losses.values())]


def chosen_from(setting: Setting, weights: Floats, choices: Sequence[Choice], generator: np.random.Generator) -> Choice:
    z = scores(setting.rows, weights)
    assumed = Assumed(float(np.clip(sigmoid(z).mean(), *RATES)), float(np.clip(z.std(), *STRENGTHS)))
    which = generator.choice(setting.rows.n_rows, min(setting.rows.n_rows, SIMULATED_ROWS), replace=False)
    cases = [setting.with_choice(choice) for choice in choices]
    found = forecast(setting.rows.subset(which), assumed, cases, draws=SIMULATED_DRAWS, generator=generator)
    return choices[int(np.argmin([one.mean for one in found]))]


def show(result: dict[str, Any], console: Console) -> None:
    table = Table("data", "epsilon", *COLUMNS, title=f"Excess, {result['draws']} draws")
    for name, measured in result["data"].items():
        for row in measured:
            table.add_row(name, f"{row['epsilon']:g}", *(f"{row[column]:.4f}" for column in COLUMNS))
    console.print(table)


if __name__ == "__main__":
    main()
