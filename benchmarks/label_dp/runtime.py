"""Measure how long each label mechanism takes to be fitted to labels, and to release them.

    python -m benchmarks.label_dp.runtime [--json FILE] [--quick]

Three generated columns of the sizes and ranges of Communities and Crime (1,595 training labels), California Housing
(16,512) and Criteo Sponsored Search (1,316,781). Epsilon is 1, a third of it for the prior where there is one. "Values"
is the number of distinct labels that the mechanism gets: rr-on-bins rounds labels down to 0.01, 0.01 and 1 first. The
linear program of unbiased has 33 inputs and 65 outputs at each size, labels between two inputs going to one of them at
random. --quick leaves out the largest column and the bins of 10,000 values.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from blindfit.algorithms.privacy.label_mechanisms import NAMES, LabelGrid, MechanismSettings, fit
from blindfit.algorithms.privacy.label_mechanisms.rr_on_bins import optimal_bins
from blindfit.algorithms.randomness import public_generator, system_uniform

EPSILON, DELTA = 1.0, 1e-5
AIM_S, AIM_BINS_S = 5.0, 1.0


@dataclass(frozen=True)
class Column:
    """Labels like those of a data set, with the options that its experiments set by hand."""

    like: str
    grid: LabelGrid
    labels: npt.NDArray[np.float64]
    rounding: float
    half_width: float


def columns(*, quick: bool) -> Iterator[Column]:
    draw = public_generator(1, "label DP runtimes")
    crime = np.asarray(np.round(np.minimum(draw.gamma(1.2, 0.2, 1595), 1), 2), dtype=np.float64)
    yield Column("Crime", LabelGrid(0.0, 1.0), crime, 0.01, 0.4)
    housing = np.clip(draw.lognormal(0.6, 0.55, 16_512), 0.15, 5.0)
    yield Column("Housing", LabelGrid(0.15, 5.0), housing, 0.01, 1.5)
    if not quick:
        criteo = np.minimum(draw.lognormal(3.5, 1.2, 1_316_781), 400)
        yield Column("Criteo", LabelGrid(0.0, 400.0), criteo, 1.0, 70.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    result = {"machine": machine.describe()} | measure(quick=options.quick)
    show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(*, quick: bool) -> dict[str, Any]:
    runs = [run(column, name) for column in columns(quick=quick) for name in NAMES]
    return {
        "epsilon": EPSILON,
        "delta_of_gaussian": DELTA,
        "runs": runs,
        "bins_s": {str(count): bins_s(count) for count in ((400,) if quick else (400, 10_000))},
        "aim_s": AIM_S,
        "aim_bins_s": AIM_BINS_S,
    }


def run(column: Column, name: str) -> dict[str, Any]:
    own: dict[str, dict[str, Any]] = {
        "gaussian": {"delta": DELTA},
        "rr-on-bins": {"rounding": column.rounding},
        "rp-banded": {"half_width": column.half_width},
    }
    settings = MechanismSettings(name, column.grid, EPSILON, **own.get(name, {}))
    started = time.perf_counter()
    fitted = fit(settings, column.labels, system_uniform)
    fitted_at = time.perf_counter()
    noisy = fitted.mechanism.randomise(column.labels, system_uniform)
    ended = time.perf_counter()
    if noisy.shape != column.labels.shape or not np.isfinite(noisy).all():
        raise SystemExit(f"{name} did not release every label")
    return {
        "like": column.like,
        "labels": len(column.labels),
        "mechanism": name,
        "values": distinct(column, name),
        "fit_s": fitted_at - started,
        "release_s": ended - fitted_at,
    }


def distinct(column: Column, name: str) -> int:
    if name == "rr-on-bins":
        return len(np.unique(np.floor((column.labels - column.grid.lo) / column.rounding + 1e-9)))
    return len(np.unique(column.labels))


def bins_s(count: int) -> float:
    """Return the seconds of the choice of bins, for `count` distinct values of unequal mass."""
    mass = public_generator(1, "bins").dirichlet(np.ones(count))
    values = np.arange(count, dtype=np.float64)
    moments = np.stack([mass * values**power for power in range(3)])
    started = time.perf_counter()
    optimal_bins(moments, math.exp(EPSILON))
    return time.perf_counter() - started


def show(result: dict[str, Any], console: Console) -> None:
    table = Table("like", "labels", "mechanism", "values", "fit", "release", title=f"epsilon {result['epsilon']:g}")
    for line in result["runs"]:
        times = (f"{line[key]:.3f} s" for key in ("fit_s", "release_s"))
        table.add_row(line["like"], f"{line['labels']:,}", line["mechanism"], f"{line['values']:,}", *times)
    console.print(table)
    for count, seconds in result["bins_s"].items():
        console.print(f"optimal bins of {int(count):,} values: {seconds:.3f} s")
    console.print(
        f"aims: at most {result['aim_s']:g} s a column, {result['aim_bins_s']:g} s for the bins of 400 values"
    )


if __name__ == "__main__":
    main()
