"""Measure the cost of label DP in a vertical training: the figure of the test rows, and the time of an epoch.

    python -m benchmarks.vertical.taylor_privacy [--data DIR] [--json FILE] [--quick]

1. The figure is simulated on plain numbers (epsilons.py), at the defaults, as medians over orders of the rows and draws
   of the noise. There are three kinds of noise. Blindfit adds fresh noise to the noise that is kept for each batch.
   Without fresh noise (taylor.unsafe = ["no-gradient-noise"]) a partner can read a binary column. Noise that is drawn
   in every epoch and composes to the same epsilon is not what Blindfit does. The figure is the AUC on DIR/breast (10 +
   20 columns, 569 rows) and DIR/bank (three parties, 4,521 rows), and R squared on DIR/housing (20,640 rows, labels
   clipped to 0 to 5).
2. `epoch` is the time of an epoch on breast between processes with 2048 bits: without label DP, with it, and with it
   but without fresh noise. The jobs run in turn, and the figure is the median of several jobs each.

Without --data the data are looked for in ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.vertical import housing, taylor
from benchmarks.vertical.epsilons import AS_IT_IS, EPSILONS, KEPT_ONLY, WAYS, Pooled, simulate
from blindfit.parties.taylor.settings import TaylorJob

SMALL_DRAWS, LARGE_DRAWS = 61, 9
PRIVATE = "[privacy]\nepsilon = 1.0\n"
TIMED = {
    "without label DP": ("", "validation_fraction = 0.0\n"),
    AS_IT_IS: (PRIVATE, ""),
    KEPT_ONLY: (PRIVATE, 'gradient_noise = 0.0\nunsafe = ["no-gradient-noise"]\n'),
}


@dataclass(frozen=True)
class Effort:
    """Number of timed jobs and epochs."""

    timed: tuple[str, ...]
    jobs: int
    epochs: int


FULL = Effort(tuple(TIMED), 5, 4)
QUICK = Effort((AS_IT_IS,), 1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder of breast/, bank/ and housing/"
    )
    parser.add_argument("--quick", action="store_true", help="one draw, one short job each: to see that it runs")
    options = parser.parse_args()
    console = Console()
    result: dict[str, Any] = {"machine": machine.describe(), "epsilons": EPSILONS, "figures": {}}
    for name, (pooled, chosen, draws) in tables(options.data).items():
        job = TaylorJob.model_validate({"taylor": chosen})
        with console.status(name):
            found = simulate(job, pooled, draws=1 if options.quick else draws)
        result["figures"][name] = {way: [round(figure, 4) for figure in figures] for way, figures in found.items()}
        console.print(_figures(name, result["figures"][name]))
    with console.status("epochs between processes"):
        result["epoch"] = times_of_epochs(options.data, options.quick)
    console.print(_epochs(result["epoch"]))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def tables(data: Path) -> dict[str, tuple[Pooled, dict[str, Any], int]]:
    return {
        "breast, AUC": (breast(data), {}, SMALL_DRAWS),
        "bank, AUC": (bank(data), {}, LARGE_DRAWS),
        "housing, R squared": (houses(data), {"model": "linear"}, LARGE_DRAWS),
    }


def breast(data: Path) -> Pooled:
    guest, host = (
        np.loadtxt(data / "breast" / f"breast_hetero_{side}.csv", delimiter=",", skiprows=1)
        for side in ("guest", "host")
    )
    guest, host = guest[np.argsort(guest[:, 0])], host[np.argsort(host[:, 0])]
    return Pooled({"guest": guest[:, 2:], "host": host[:, 1:]}, guest[:, 1])


def bank(data: Path) -> Pooled:
    """Return the rows of three parties; the last column of the first file is the label."""
    first, *others = (np.loadtxt(data / "bank" / f"bank_client{i}.txt", delimiter=",") for i in range(3))
    rows = {"bank": first[:, :-1]} | {f"partner-{i}": part for i, part in enumerate(others)}
    return Pooled(rows, first[:, -1])


def houses(data: Path) -> Pooled:
    read = housing.Housing.read(data)
    rows = {party: np.column_stack([read.columns[name] for name in names]) for party, names in housing.COLUMNS.items()}
    return Pooled(rows, read.prices, (0.0, 5.0))


def times_of_epochs(data: Path, quick: bool) -> dict[str, list[float]]:
    """Return the milliseconds for each row and epoch of every job.

    Jobs run in turn, because a machine's speed drifts.
    """
    parties, effort = taylor.breast_parties(data, quick), QUICK if quick else FULL
    times: dict[str, list[float]] = {name: [] for name in effort.timed}
    for _ in range(effort.jobs):
        for name in effort.timed:
            tables_, options = TIMED[name]
            run = taylor.measure(parties, epochs=effort.epochs, batch_rows=128, tables=tables_, options=options)
            times[name].append(round(run.ms_per_row_epoch, 4))
    return times


def _figures(name: str, found: dict[str, list[float]]) -> Table:
    table = Table(name, *(f"epsilon {e:g}" for e in EPSILONS), box=None)
    for way in WAYS:
        table.add_row(way, *(f"{figure:.3f}" for figure in found[way]))
    table.caption = f"without label DP {found['none'][0]:.3f}"
    return table


def _epochs(times: dict[str, list[float]]) -> Table:
    table = Table("time of an epoch", "ms / row", "over the first", box=None)
    first = statistics.median(next(iter(times.values())))
    for name, of_jobs in times.items():
        median = statistics.median(of_jobs)
        table.add_row(name, f"{median:.3f}", f"{median / first:.2f}")
    return table


if __name__ == "__main__":
    main()
