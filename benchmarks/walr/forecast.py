"""Compare the forecast of `blindfit plan` with the outcome of WALR releases.

    python -m benchmarks.walr.forecast [--data DIR] [--json FILE] [--quick]

Three data sets have 30% held out: RAND (in statsmodels), bank marketing (DIR/bank), and 33,000 rows made by
examples/advertising/generate.py. At each epsilon the release and the fit are made 300 times. `excess` is how much the
mean log loss on held-out rows is above that without noise, over the entropy of the base rate. The forecast has the
training rows' features. It assumes the rate and strength that their labels have (`right`), or a rate of the rarer class
and a strength that are a third larger (`more`) or smaller (`less`).

`forecast_error` is the forecast's excess over the measured one, less 1, at its worst where the excess is above 1% of
the loss. Without --data the data are looked for in ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.walr.data import DELTA, EXAMPLE, FRAC_BITS, Floats, PreparedRows, private_model, rand_data
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, scores, weighted_aggregate
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.algorithms.statistics.quality import metrics
from blindfit.algorithms.statistics.walr.forecast import Assumed, Case, Fitting, entropy, forecast, without_noise
from blindfit.algorithms.statistics.walr.model import WALRModel

EPSILONS = (0.1, 0.25, 0.5, 1.0, 4.0)
COUNTS_FROM = 0.01  # of the loss
WRONG = {"right": 1.0, "more": 4 / 3, "less": 2 / 3}


@dataclass(frozen=True)
class DataSet:
    name: str
    train: tuple[Floats, Floats]  # features, labels 0 and 1
    test: tuple[Floats, Floats]

    @classmethod
    def split(cls, name: str, x: Floats, y: Floats) -> DataSet:
        held_out = np.random.default_rng(7).random(len(y)) < 0.3
        return cls(name, (x[~held_out], y[~held_out]), (x[held_out], y[held_out]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where bank/ is")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="few draws, two epsilons, few rows: to see that it runs")
    options = parser.parse_args()
    draws, people, epsilons = (2, 300, EPSILONS[:2]) if options.quick else (300, 10_000, EPSILONS)
    console = Console()
    result: dict[str, Any] = {"machine": machine.describe(), "draws": draws, "data": {}}
    sets = [DataSet.split("RAND", *rand_data()[:2]), bank(options.data), generated(people)]
    for data in sets:
        measured = result["data"][data.name] = measure(data, draws, epsilons)
        show(data.name, measured, console)
    result["forecast_error"] = {name: worst(result["data"].values(), name) for name in WRONG}
    console.print_json(data={"forecast_error": result["forecast_error"]})
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


# --- data -------------------------------------------------------------------------------------------------


def bank(directory: Path) -> DataSet:
    paths = [directory / "bank" / f"bank_client{number}.txt" for number in range(3)]
    for path in paths:
        if not path.exists():
            raise DataError(
                f"{path} does not exist", hint="give the folder of bank/ (from the Falcon code) as --data DIR"
            )
    first, *others = (np.loadtxt(path, delimiter=",") for path in paths)
    return DataSet.split("bank marketing", np.hstack([first[:, :-1], *others]), first[:, -1])


def generated(people: int) -> DataSet:
    with tempfile.TemporaryDirectory(prefix="blindfit-bench-") as directory:
        command = [sys.executable, EXAMPLE / "generate.py", "--people", people, "--out", directory]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        features, labels = (pq.read_table(Path(directory) / f"{name}.parquet") for name in ("features", "conversions"))
    labels = labels.sort_by("id").column("label").to_numpy()
    x = features.sort_by("id").drop_columns("id").to_pandas().to_numpy(np.float64)
    return DataSet.split("generated", x, labels.astype(np.float64))


# --- measured --------------------------------------------------------------------------------------------


def measure(data: DataSet, draws: int, epsilons: Sequence[float]) -> dict[str, Any]:
    prepared = PreparedRows.of(*data.train)
    rows, norm_bound = QuantisedRows(prepared.rows.weights, FRAC_BITS), prepared.bound * 2.0**-FRAC_BITS
    labels = data.train[1]
    exact = fit(rows, weighted_aggregate(rows, labels), SolverSettings(l2=1 / rows.n_rows)).weights
    without = log_loss(data, WALRModel(prepared.standardiser, exact, True, norm_bound))
    happened = {
        epsilon: [log_loss(data, private_model(epsilon, prepared)) - without for _ in range(draws)]
        for epsilon in epsilons
    }
    strength = float(scores(rows, exact).std())
    assumed = {name: _assumed(labels.mean(), strength, factor) for name, factor in WRONG.items()}
    expected = {name: excesses(rows, norm_bound, one, draws, epsilons) for name, one in assumed.items()}
    return {
        "rows": rows.n_rows,
        "columns": rows.n_features,
        "base_rate": float(labels.mean()),
        "strength": strength,
        "without_noise": without,
        "epsilons": [
            {
                "epsilon": epsilon,
                "excess": float(np.mean(of)),
                "range": [float(q) for q in np.quantile(of, [0.05, 0.95])],
                "counts": bool(np.mean(of) > COUNTS_FROM * without),
                **{name: expected[name][place] for name in WRONG},
            }
            for place, (epsilon, of) in enumerate(happened.items())
        ],
    }


def log_loss(data: DataSet, model: WALRModel) -> float:
    """Return the log loss of held-out rows over the entropy of their base rate."""
    x, y = data.test
    return metrics.log_loss(y, model.probabilities(x)) / entropy(float(y.mean()))


def _assumed(rate: float, strength: float, factor: float) -> Assumed:
    rarer = min(rate, 1 - rate) * factor
    return Assumed(rarer if rate < 0.5 else 1 - rarer, strength * factor)


def excesses(
    rows: QuantisedRows, norm_bound: float, assumed: Assumed, draws: int, epsilons: Sequence[float]
) -> list[float]:
    fitting = Fitting(norm_bound, SolverSettings(l2=0.0))
    cases = [
        Case(epsilon, gaussian.analytic_noise_multiplier(epsilon, DELTA) * norm_bound / rows.n_rows, fitting)
        for epsilon in epsilons
    ]
    exact, *noisy = forecast(
        rows, assumed, [without_noise(fitting, rows.n_rows), *cases], draws=draws, generator=np.random.default_rng(1)
    )
    return [one.mean - exact.mean for one in noisy]


def worst(measured: Any, assumption: str) -> float | None:
    errors = [row[assumption] / row["excess"] - 1 for data in measured for row in data["epsilons"] if row["counts"]]
    return max(errors, key=abs) if errors else None


def show(name: str, measured: dict[str, Any], console: Console) -> None:
    size = f"{measured['rows']:,} rows, {measured['columns']} columns"
    title = f"{name}: {size}; without noise {measured['without_noise']:.3f}"
    table = Table("epsilon", "excess", "range", *WRONG, title=title)
    for row in measured["epsilons"]:
        low, high = row["range"]
        told = [f"{row[assumption]:.4f}" for assumption in WRONG]
        table.add_row(f"{row['epsilon']:g}", f"{row['excess']:.4f}", f"{low:.4f} to {high:.4f}", *told)
    console.print(table)


if __name__ == "__main__":
    main()
