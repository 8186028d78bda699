"""Effect of the batch size on least squares on labels, on the sum of several trainings, and on the joint model."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.gradients.effort import Effort, mean
from benchmarks.vertical.epsilons import AS_IT_IS, Pooled, test_figure
from benchmarks.vertical.taylor_privacy import bank, breast
from blindfit.algorithms.statistics.vertical.gradient_leaks import label_auc
from blindfit.parties.taylor.settings import TaylorJob
from tests.attacks import least_squares_labels
from tests.attacks.least_squares_labels import COLUMNS, NONE, STRONG, WEAK
from tests.attacks.views import DEFAULTS, Setting

SIGNALS = {"strong": STRONG, "weak": WEAK, "coins": NONE}
EPSILON = 0.5


def measure(data: Path, effort: Effort) -> dict[str, Any]:
    return {
        "least_squares": [of_batches(rows, effort.many) for rows in effort.batch_rows],
        "trainings": trainings(effort),
        "joint_model": list(joint_models(data, effort)),
    }


def of_batches(batch_rows: int, data_sets: int) -> dict[str, Any]:
    setting = Setting(batch_rows=batch_rows)
    found = {name: _attacked(setting, signal, data_sets) for name, signal in SIGNALS.items()}
    return {"batch_rows": batch_rows, **found, "formula": round(label_auc(COLUMNS, batch_rows, setting.jitter), 4)}


def _attacked(setting: Setting, signal: tuple[float, float], data_sets: int) -> dict[str, float]:
    of_each = [least_squares_labels.train(setting, signal, seed) for seed in range(data_sets)]
    return {
        "auc": mean(least_squares_labels.attack(training, setting).auc for training in of_each),
        "own_auc": mean(map(least_squares_labels.own_auc, of_each)),
    }


def trainings(effort: Effort) -> dict[str, Any]:
    """Return the mean AUC of guesses at the same labels, from one training and from several in other batches of 128."""
    of_each = [least_squares_labels.retrained(effort.again, seed) for seed in range(effort.data_sets)]
    return {
        "trainings": effort.again,
        "one_auc": mean(least_squares_labels.auc_over(several[:1]) for several in of_each),
        "all_auc": mean(least_squares_labels.auc_over(several) for several in of_each),
    }


def joint_models(data: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield the median AUC on test rows, over orders of the rows and draws of the noise."""
    for name, pooled, epsilon in (
        ("bank marketing", bank(data), None),
        ("bank marketing", bank(data), EPSILON),
        ("breast cancer", breast(data), None),
    ):
        sizes = [rows for rows in effort.batch_rows if rows <= len(pooled.labels) / 2]
        of_each = {str(rows): _median_auc(pooled, epsilon, rows, effort.draws) for rows in sizes}
        yield {"data": name, "epsilon": epsilon, "auc": of_each}


def _median_auc(pooled: Pooled, epsilon: float | None, batch_rows: int, draws: int) -> float:
    privacy = None if epsilon is None else {"epsilon": epsilon}
    job = TaylorJob.model_validate({"privacy": privacy, "taylor": {"batch_rows": batch_rows}})
    return round(statistics.median(test_figure(job, pooled, AS_IT_IS, draw) for draw in range(draws)), 4)


# --- tables -------------------------------------------------------------------------------------------------


def show(found: dict[str, Any]) -> Iterator[Table]:
    yield _least_squares(found["least_squares"], found["trainings"])
    table = Table("joint model, AUC", *(f"batches of {rows}" for rows in found["joint_model"][0]["auc"]))
    for row in found["joint_model"]:
        name = row["data"] if row["epsilon"] is None else f"{row['data']}, epsilon {row['epsilon']:g}"
        table.add_row(name, *(f"{auc:.3f}" for auc in row["auc"].values()))
    yield table


def _least_squares(rows: list[dict[str, Any]], again: dict[str, Any]) -> Table:
    own = {name: mean(row[name]["own_auc"] for row in rows) for name in SIGNALS}
    headings = (f"{'coins, ' * (name == 'coins')}own {figure:.2f}" for name, figure in own.items())
    table = Table("rows of a batch", *headings, "the formula")
    table.caption = (
        f"jitter {DEFAULTS.jitter:g}; {again['trainings']} trainings in batches of 128 AUC {again['all_auc']:.2f}, "
        f"one {again['one_auc']:.2f}"
    )
    for row in rows:
        gains = (f"+ {row[name]['auc'] - row[name]['own_auc']:.3f}" for name in ("strong", "weak"))
        table.add_row(str(row["batch_rows"]), *gains, f"{row['coins']['auc']:.2f}", f"{row['formula']:.2f}")
    return table
