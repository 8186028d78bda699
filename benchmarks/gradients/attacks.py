"""Attacks on gradients, with the defences off and at the defaults.

It makes the first table of docs/evidence/attacks.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.gradients.effort import Effort, in_full, mean, timed
from benchmarks.gradients.features import column_in_noise, column_without_noise, in_noise, seen_by_least_squares
from blindfit.algorithms.statistics.quality.metrics import auc
from blindfit.algorithms.statistics.vertical.gradient_leaks import label_auc, shorten_rows
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.taylor.parameters import preparation_of
from tests.attacks import lattice_features, lattice_labels, least_squares_labels, lone_rows
from tests.attacks.least_squares_labels import RESHUFFLED, STRONG
from tests.attacks.views import (
    DEFAULTS,
    SMALL_BATCHES,
    Data,
    Floats,
    Setting,
    breast,
    coins,
    simulate,
    without_defences,
)

PASSIVE_COLUMNS = 20  # of breast cancer
FLAGS = {lone_rows.rare_value: "rare_value", lone_rows.nested_values: "nested_values"}


def measure(effort: Effort) -> dict[str, Any]:
    return {
        "first_gradient": first_gradient(effort),
        "differences": differences(effort),
        "least_squares": least_squares(effort),
        "lone_rows": lone(effort),
        "features": features(effort),
        "rows_that_stand_out": standing_out(effort),
    }


@dataclass(frozen=True)
class Guess:
    """Guess at the labels of one batch."""

    labels: Floats
    found: Floats
    own_auc: float
    seconds: float

    @property
    def right(self) -> int:
        return int((np.sign(self.found) == self.labels).sum())

    @property
    def auc(self) -> float:
        return auc(self.labels > 0, self.found)


def _in_full(guesses: list[Guess]) -> dict[str, Any]:
    return {
        "rows": [len(guess.labels) for guess in guesses],
        "right": [guess.right for guess in guesses],
        "seconds": [round(guess.seconds, 2) for guess in guesses],
    }


# --- labels -------------------------------------------------------------------------------------------------


def guess_from_first_gradient(data: Data, setting: Setting, effort: Effort) -> Guess:
    training = simulate(data, setting)
    seen, batch = training.seen[1], training.plan.batches[0]
    found, seconds = timed(lattice_labels.from_first_gradient, seen, setting, blocks=effort.blocks)
    return Guess(training.y[batch], found, seen.own_auc(batch, training.y), seconds)


def guesses_at_coins(setting: Setting, data_sets: int, effort: Effort) -> list[Guess]:
    return [
        guess_from_first_gradient(coins(np.random.default_rng(seed), breast()), replace(setting, seed=seed), effort)
        for seed in range(data_sets)
    ]


def first_gradient(effort: Effort) -> dict[str, Any]:
    seeds = range(effort.data_sets)
    off = without_defences(batch_rows=SMALL_BATCHES.batch_rows, epochs=1)
    defended = [guess_from_first_gradient(breast(), replace(SMALL_BATCHES, seed=seed), effort) for seed in seeds]
    at_coins = guesses_at_coins(SMALL_BATCHES, effort.many, effort)
    return {
        "off": _in_full([guess_from_first_gradient(breast(), replace(off, seed=seed), effort) for seed in seeds]),
        "off_coins": _in_full(guesses_at_coins(replace(off, batch_rows=effort.rows), effort.data_sets, effort)),
        "defaults_auc": mean(guess.auc for guess in defended),
        "own_auc": mean(guess.own_auc for guess in defended),
        "coins_auc": mean(guess.auc for guess in at_coins),
        "coins_formula": mean(
            label_auc(PASSIVE_COLUMNS, len(guess.labels), SMALL_BATCHES.jitter) for guess in at_coins
        ),
    }


def guess_from_differences(setting: Setting, weight: float, effort: Effort) -> Guess:
    training = simulate(lattice_labels.beside_few_columns(setting.seed), setting)
    seen, batch = training.seen[1], training.plan.batches[0]
    columns = lattice_labels.FEW_COLUMNS
    found, seconds = timed(lattice_labels.from_differences, seen, columns, weight, blocks=effort.blocks)
    return Guess(training.y[batch], found, seen.own_auc(batch, training.y), seconds)


def differences(effort: Effort) -> dict[str, Any]:
    """Return the guesses from differences; at the defaults the attacker tries every weight of the equations."""
    start: dict[str, Any] = {**lattice_labels.SECRET_START, "batch_rows": effort.rows, "epochs": effort.epochs}
    off, defended = without_defences(**start), replace(DEFAULTS, **start)

    def share(weight: float) -> float:
        guesses = [
            guess_from_differences(replace(defended, seed=seed), weight, effort) for seed in range(effort.data_sets)
        ]
        return mean(guess.right / len(guess.labels) for guess in guesses)

    exact = lattice_labels.PRECISION
    return {
        "off": _in_full(
            [guess_from_differences(replace(off, seed=seed), exact, effort) for seed in range(effort.data_sets)]
        ),
        "defaults_share": max(share(weight) for weight in (exact, *lattice_features.WEIGHTS)),
    }


def least_squares(effort: Effort) -> dict[str, Any]:
    """Return means over data sets of 2,000 rows with 10 + 10 columns."""
    reshuffled = {**RESHUFFLED, "epochs": min(RESHUFFLED["epochs"], effort.epochs)}
    settings = {
        "off": without_defences(**reshuffled),
        "reshuffled": Setting(**reshuffled),
        "defaults": DEFAULTS,
    }
    return {name: _least_squares(setting, effort.data_sets) for name, setting in settings.items()}


def _least_squares(setting: Setting, data_sets: int) -> dict[str, float]:
    trainings = [least_squares_labels.train(setting, STRONG, seed) for seed in range(data_sets)]
    found = [timed(least_squares_labels.attack, training, setting) for training in trainings]
    return {
        "auc": mean(best.auc for best, _ in found),
        "own_auc": mean(map(least_squares_labels.own_auc, trainings)),
        "share": mean(best.share for best, _ in found),
        "seconds": mean(seconds for _, seconds in found),
    }


def lone(effort: Effort) -> dict[str, dict[str, float]]:
    settings = {
        "off": without_defences(),
        "without_the_leverage_rule": replace(DEFAULTS, shorten=False),
        "defaults": DEFAULTS,
    }
    return {
        name: {flag: mean([lone_rows.attack(ones, setting, effort.attacked).share]) for ones, flag in FLAGS.items()}
        for name, setting in settings.items()
    }


def standing_out(effort: Effort) -> dict[str, list[int]]:
    """Return how many training rows of breast cancer are shortened in 20 columns, in several orders of the rows."""
    found: dict[str, list[int]] = {"training_rows": [], "batches of 128": [], "one batch": []}
    data, split = breast(), preparation_of(DEFAULTS.job)
    for seed in range(effort.many):
        order = np.random.default_rng(seed).permutation(len(data.y))
        plan = RowPlan.of(
            order,
            test_fraction=split.test_fraction,
            validation_fraction=split.validation_fraction,
            batch_rows=SMALL_BATCHES.batch_rows,
        )
        columns = data.scaled(plan.train)[1]
        found["training_rows"].append(len(plan.train))
        found["batches of 128"].append(shorten_rows(columns, plan.batches)[1])
        found["one batch"].append(shorten_rows(columns, [plan.train])[1])
    return found


# --- features -----------------------------------------------------------------------------------------------


def features(effort: Effort) -> dict[str, Any]:
    off = without_defences(batch_rows=effort.rows, epochs=effort.epochs)
    defended = replace(DEFAULTS, batch_rows=effort.rows, epochs=effort.epochs)
    return {
        "off": column_without_noise(off, effort),
        "off_least_squares_auc": seen_by_least_squares(off, effort),
        "defaults": column_in_noise(defended, effort),
        "defaults_least_squares_auc": seen_by_least_squares(defended, effort),
    }


# --- the table ----------------------------------------------------------------------------------------------


def show(found: dict[str, Any]) -> Table:
    table = Table("attack", "defences off", "at the defaults", show_lines=True)
    first, moved, squares, lone_, column = (found[name] for name in list(found)[:5])
    table.add_row(
        "lattice, labels",
        f"{in_full(first['off'])}; coins: {in_full(first['off_coins'])}",
        f"AUC {first['defaults_auc']:.2f}, own {first['own_auc']:.2f}; coins {first['coins_auc']:.2f} "
        f"(least squares, the formula: {first['coins_formula']:.2f})",
    )
    table.add_row(
        "the same from differences", in_full(moved["off"]), f"{moved['defaults_share']:.0%} of labels that are coins"
    )
    off, reshuffled, kept = (squares[name] for name in ("off", "reshuffled", "defaults"))
    table.add_row(
        "least squares, labels",
        f"{off['share']:.1%} of labels, AUC {off['auc']:.3f}, own {off['own_auc']:.3f}, {off['seconds']:.1f} s",
        f"AUC {kept['auc']:.3f}, own {kept['own_auc']:.3f}; reshuffled batches: AUC {reshuffled['auc']:.2f}",
    )
    shares = {name: " and ".join(f"{share:.0%}" for share in of.values()) for name, of in lone_.items()}
    table.add_row(
        "lone rows, a rare value and nested ones",
        f"{shares['off']}; all but the leverage rule on: {shares['without_the_leverage_rule']}",
        shares["defaults"],
    )
    table.add_row(
        "lattice, features",
        f"{in_full(column['off'])} (least squares: AUC {column['off_least_squares_auc']:.2f})",
        f"{in_noise(column['defaults'])} (least squares: AUC {column['defaults_least_squares_auc']:.2f})",
    )
    table.caption = _standing_out(found["rows_that_stand_out"])
    return table


def _standing_out(found: dict[str, list[int]]) -> str:
    rows, *counts = found.items()
    said = ", ".join(f"{min(of)} to {max(of)} in {name}" for name, of in counts)
    return f"of {rows[1][0]} training rows stand out: {said}"
