"""Measure how near a linear Taylor model comes to least squares on few rows, and the cost of each defence.

    python -m benchmarks.vertical.quality_linear [--data DIR] [--json FILE] [--splits 9] [--quick]

There are 560 rows, with columns spread over three parties and a fifth of the rows held out. Some are generated rows
whose columns explain half, 90% and 97% of the label; others are drawn from communities and housing. The training is the
plain oracle's, which the encrypted one agrees with bit for bit. `mse_over_least_squares` is the median over splits of
the test error over that of LinearRegression on all rows that are not held out.

- defaults: every defence, and the job's defaults
- no jitter: taylor.unsafe = ["no-jitter"]
- no fresh noise: taylor.unsafe = ["no-gradient-noise"]
- no shortening: taylor.unsafe = ["leverage"]
- gradient descent: every defence, taylor.optimiser = "sgd" and the defaults that go with it
- fewer rows: LinearRegression without the rows of the hold-out loss

Without --data the data are looked for in ../shared/data (see benchmarks.vertical.quality).
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LinearRegression

from benchmarks.kit import machine
from benchmarks.vertical.housing import Housing
from benchmarks.vertical.quality import communities_table, trained
from blindfit.parties.taylor.settings import TaylorJob

ROWS = 560
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "no jitter": {"jitter": 0.0, "unsafe": ["no-jitter"]},
    "no fresh noise": {"gradient_noise": 0.0, "unsafe": ["no-gradient-noise"]},
    "no shortening": {"unsafe": ["leverage"]},
    "gradient descent": {"optimiser": "sgd"},
}

Floats = NDArray[np.float64]


def tables(data: Path) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield name, columns and labels of each data set."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(ROWS, 12)) @ (np.eye(12) + 0.3 * rng.normal(size=(12, 12)))
    score = x @ rng.normal(size=12)
    for name, noise in (("explained 97%", 0.17), ("explained 90%", 0.33), ("explained 50%", 1.0)):
        yield name, x, score / score.std() + noise * rng.normal(size=ROWS)
    table = communities_table(data)
    chosen = rng.permutation(len(table))[:ROWS]
    step = max(1, (table.shape[1] - 1) // 12)
    yield "communities", table[chosen][:, :-1:step][:, :12], table[chosen][:, -1]
    read = Housing.read(data)
    chosen = rng.permutation(len(read.prices))[:ROWS]
    yield "housing", np.column_stack(list(read.columns.values()))[chosen], read.prices[chosen]


def train(x: Floats, y: Floats, seed: int, settings: dict[str, Any]) -> tuple[float, float]:
    """Return the errors of Blindfit, and of least squares on its training rows.

    Both are divided by the error of least squares on all rows that are not held out.
    """
    asked = {"protocol": "taylor", "seed": seed, "split": {"test_fraction": 0.2}}
    job = TaylorJob.model_validate({**asked, "taylor": {"model": "linear", **settings}})
    first, scores = trained(job, x, y)
    plan = first.plan
    predicted = scores * first.labels.scale + first.labels.mean
    plain = least_squares(x, y, np.setdiff1d(np.arange(len(y)), plan.test), plan.test)
    return error(y[plan.test], predicted) / plain, least_squares(x, y, plan.train, plan.test) / plain


def least_squares(x: Floats, y: Floats, rows: Any, test: Any) -> float:
    return error(y[test], LinearRegression().fit(x[rows], y[rows]).predict(x[test]))


def error(truth: Floats, predicted: Floats) -> float:
    return float(np.mean((truth - predicted) ** 2))


def measure(data: Path, splits: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, x, y in tables(data):
        ratios = {
            setting: [train(x, y, seed, chosen) for seed in range(splits)] for setting, chosen in SETTINGS.items()
        }
        found[name] = {setting: statistics.median(own for own, _ in pairs) for setting, pairs in ratios.items()}
        found[name]["fewer rows"] = statistics.median(fewer for _, fewer in ratios["defaults"])
    return {"splits": splits, "mse_over_least_squares": found}


def show(result: dict[str, Any], console: Console) -> None:
    columns = [*SETTINGS, "fewer rows"]
    table = Table("data", *columns, title=f"squared error over least squares, medians of {result['splits']} splits")
    for name, of in result["mse_over_least_squares"].items():
        table.add_row(name, *(f"{of[column]:.3f}" for column in columns))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--splits", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="one split: to see that it runs")
    options = parser.parse_args()
    if not (options.data / "communities").exists():
        parser.error(
            f"{options.data} has no folder communities: give the folder of the data as --data DIR (see --help)"
        )
    result = {"machine": machine.describe(), **measure(options.data, 1 if options.quick else options.splits)}
    show(result, Console(width=120))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
