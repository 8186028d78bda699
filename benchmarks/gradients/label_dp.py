"""The same attacks under label DP, and how many bits of a column fresh noise leaves to a partner."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from benchmarks.gradients.attacks import guesses_at_coins
from benchmarks.gradients.effort import Effort, in_full, mean
from benchmarks.gradients.features import column_in_noise, column_without_noise, in_noise
from blindfit.algorithms.statistics.vertical.gradient_leaks import LEAST_NOISE
from tests.attacks import lattice_features, lone_rows
from tests.attacks.lattice_features import READERS, nearly_the_label
from tests.attacks.views import SMALL_BATCHES, Setting

MOST_FOR_COINS = 1.0  # a larger epsilon allows to guess most of them
HIDDEN_BY: dict[str, dict[str, Any]] = {
    "nothing": {"gradient_noise": 0.0, "shorten": False},
    "the leverage rule": {"gradient_noise": 0.0},
    "fresh noise": {"shorten": False},
    "both": {},
}


@dataclass(frozen=True)
class Reading:
    """Setting in which bits of a column are counted."""

    epsilon: float | None
    rows: int = 96
    noise: float = LEAST_NOISE


READINGS = (
    *(Reading(None, 128, noise) for noise in (LEAST_NOISE, LEAST_NOISE / 10)),
    *(Reading(epsilon) for epsilon in (None, 8.0, 1.0, 0.5, 0.1)),
    *(Reading(epsilon, noise=noise) for epsilon in (0.5, 0.1) for noise in (2.0, 3.0)),
)


def measure(effort: Effort) -> dict[str, Any]:
    setting = Setting(batch_rows=effort.rows, epochs=effort.epochs)
    private = {f"{epsilon:g}": replace(setting, epsilon=epsilon) for epsilon in effort.epsilons}
    return {
        "rows": effort.rows,
        "without_fresh_noise": {
            epsilon: column_without_noise(replace(one, gradient_noise=0.0), effort) for epsilon, one in private.items()
        },
        "with_fresh_noise": {epsilon: column_in_noise(one, effort) for epsilon, one in private.items()},
        "lone_score_wrong_by": {name: lone_score(changes, effort) for name, changes in HIDDEN_BY.items()},
        "coins": [guessed_coins(epsilon, effort) for epsilon in effort.epsilons if epsilon <= MOST_FOR_COINS],
        "bits": [bits(reading, effort) for reading in READINGS],
    }


def lone_score(changes: dict[str, object], effort: Effort) -> dict[str, float]:
    """Return the error of a partner's reading over the move of a lone row's score, at epsilon 1."""
    errors = [lone_rows.median_error(lone_rows.label_dp(seed, **changes)) for seed in range(effort.many)]
    return {"least": min(errors), "median": statistics.median(errors), "most": max(errors)}


def guessed_coins(epsilon: float, effort: Effort) -> dict[str, float]:
    setting = replace(SMALL_BATCHES, epsilon=epsilon, batch_rows=effort.rows, epochs=1)
    share = mean(guess.right / len(guess.labels) for guess in guesses_at_coins(setting, effort.many, effort))
    return {"epsilon": epsilon, "share": share, "allowed": round(1 / (1 + math.exp(-epsilon)), 4)}


def bits(reading: Reading, effort: Effort) -> dict[str, Any]:
    """Return the bits that either party reads of a column, over several data sets.

    The column is the label in 19 rows of 20.
    """
    setting = Setting(reading.epsilon, gradient_noise=reading.noise, batch_rows=reading.rows, epochs=effort.epochs)
    settings = [replace(setting, seed=seed) for seed in range(effort.many)]
    read = [lattice_features.bits_read(one, reader) for one in settings for reader in READERS]
    columns = [lattice_features.train("active", replace(one, epochs=0), nearly_the_label)[1] for one in settings]
    return {
        "epsilon": reading.epsilon,
        "rows": reading.rows,
        "noise": reading.noise,
        "median": round(statistics.median(read), 1),
        "worst": round(max(read), 1),
        "held": round(mean(map(lattice_features.bits_held, columns)), 1),
    }


# --- tables -------------------------------------------------------------------------------------------------


def show(found: dict[str, Any]) -> Iterator[Table]:
    yield _attacks(found)
    yield _lone_score(found["lone_score_wrong_by"])
    table = Table("bits of a column", "epsilon", "fresh noise", "median", "at worst", "it has")
    for row in found["bits"]:
        epsilon = "none" if row["epsilon"] is None else f"{row['epsilon']:g}"
        counts = (f"{row[name]:.0f}" for name in ("median", "worst", "held"))
        table.add_row(f"{row['rows']} rows", epsilon, f"{row['noise']:g}", *counts)
    yield table


def _attacks(found: dict[str, Any]) -> Table:
    table = Table(
        f"attack, {found['rows']} rows",
        *(f"epsilon {epsilon}" for epsilon in found["with_fresh_noise"]),
        show_lines=True,
    )
    table.add_row("column by lattice, without fresh noise", *map(in_full, found["without_fresh_noise"].values()))
    table.add_row("the same with fresh noise", *map(in_noise, found["with_fresh_noise"].values()))
    table.add_row(
        "labels that are coins", *(f"{one['share']:.2f}, allowed {one['allowed']:.2f}" for one in found["coins"])
    )
    return table


def _lone_score(found: dict[str, dict[str, float]]) -> Table:
    title = "how a lone row's score moves, epsilon 1: what a partner's reading is wrong by, over the move"
    table = Table("hidden by", "median", "least", "most", title=title)
    for name, wrong in found.items():
        table.add_row(name, *(f"{wrong[of]:,.{1 if wrong[of] > 1 else 5}f}" for of in ("median", "least", "most")))
    return table
