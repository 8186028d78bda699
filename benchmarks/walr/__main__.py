"""Measure what privacy costs WALR in accuracy, and what the whole job costs in time.

    python -m benchmarks.walr [--json FILE] [--rows 1000000] [--features 50] [--quick]

1. `gain_kept` is the private model's part of the non-private gain in log loss over the constant, on the RAND data (in
   statsmodels) with 30% held out. It is the median of 40 draws of the noise at each epsilon, with their 5th and 95th
   percentiles.
2. `time_over_sklearn` is the time of the whole job, from its proposal to its stored model, on rows x features from
   parquet. An active party and a measurement server run as two processes. It is divided by the time of scikit-learn's
   LogisticRegression (its defaults, lbfgs) on the same standardised and rounded training matrix in memory.
   `time_over_sklearn_from_files` is divided by a fit without privacy from both files: read, join by id, standardise,
   fit. Figures are medians; one repetition of each runs in turn.
3. The hybrid gradient is compared with the ordinary minibatch in benchmarks/walr/hybrid_gradient.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.kit import machine
from benchmarks.walr import hybrid_gradient
from benchmarks.walr.data import EXAMPLE, Floats, PreparedRows, private_model, rand_data
from blindfit.algorithms.statistics.quality import metrics
from blindfit.coordinator.job.job import Job, load_job
from blindfit.coordinator.running.driving import drive
from blindfit.coordinator.running.launcher import launch
from blindfit.parties.data.opening import open_source
from blindfit.parties.systems import load_party
from blindfit.parties.walr.reading import prepare_rows
from blindfit.parties.walr.settings import WalrJob

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
ALL_ROWS = "split.test_fraction=0"


@dataclass(frozen=True)
class Effort:
    """Size of the measurement."""

    draws: int
    rows: int
    features: int
    repetitions: int
    hybrid: hybrid_gradient.Effort


FULL = Effort(40, 1_000_000, 50, 5, hybrid_gradient.FULL)
QUICK = Effort(2, 3_000, 10, 1, hybrid_gradient.QUICK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--rows", type=int, help=f"of the whole job; default {FULL.rows:,}")
    parser.add_argument("--features", type=int, help=f"of its rows; default {FULL.features}")
    parser.add_argument("--quick", action="store_true", help="few draws, rows and features: to see that it runs")
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    console = Console()
    result: dict[str, Any] = {"machine": machine.describe()}
    result["accuracy"] = accuracy(effort.draws)
    show_accuracy(result["accuracy"], console)
    result["job"] = whole_job(options.rows or effort.rows, options.features or effort.features, effort.repetitions)
    show_job(result["job"], console)
    result["hybrid_gradient"] = hybrid_gradient.measure(console, effort.hybrid)
    result |= {key: result["job"][key] for key in ("rows_per_s", "time_over_sklearn", "server_peak_mib")}
    result["gain_kept"] = {
        str(row["epsilon"]): {key: row[key] for key in ("gain_kept", "low", "high")}
        for row in result["accuracy"]["rows"]
    }
    console.print_json(
        data={key: result[key] for key in ("rows_per_s", "time_over_sklearn", "server_peak_mib", "gain_kept")}
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


# --- accuracy on real data -------------------------------------------------------------------------------


def accuracy(draws: int) -> dict[str, Any]:
    x, y, held_out = rand_data()
    train, test = (x[~held_out], y[~held_out]), (x[held_out], y[held_out])
    constant = metrics.log_loss(test[1], np.full(len(test[1]), train[1].mean()))
    data = PreparedRows.of(*train)
    plain = LogisticRegression(C=np.inf, tol=1e-8).fit(data.standardiser.transform(train[0]), train[1])
    best = metrics.log_loss(test[1], plain.predict_proba(data.standardiser.transform(test[0]))[:, 1])
    rows = [accuracy_at(epsilon, draws, data, test, constant, best) for epsilon in EPSILONS]
    return {"data": "RAND health insurance", "constant": constant, "non_private": best, "draws": draws, "rows": rows}


def accuracy_at(
    epsilon: float, draws: int, data: PreparedRows, test: tuple[Floats, Floats], constant: float, best: float
) -> dict[str, Any]:
    losses = [metrics.log_loss(test[1], private_model(epsilon, data).probabilities(test[0])) for _ in range(draws)]
    kept = [metrics.gain_kept(loss, best, constant) for loss in losses]
    low, high = np.quantile(kept, [0.05, 0.95])
    return {
        "epsilon": epsilon,
        "log_loss": statistics.median(losses),
        "gain_kept": statistics.median(kept),
        "low": float(low),
        "high": float(high),
        "of_each_draw": kept,
    }


def show_accuracy(result: dict[str, Any], console: Console) -> None:
    title = f"RAND: constant {result['constant']:.4f}, non-private {result['non_private']:.4f}; {result['draws']} draws"
    table = Table("epsilon", "log loss", "gain kept, median", "5 %", "95 %", title=title)
    for row in result["rows"]:
        shares = [f"{row[name]:.1%}" for name in ("gain_kept", "low", "high")]
        table.add_row(f"{row['epsilon']:g}", f"{row['log_loss']:.4f}", *shares)
    console.print(table)


# --- the whole job -----------------------------------------------------------------------------------------


def whole_job(rows: int, features: int, repetitions: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="blindfit-bench-") as temporary:
        directory = Path(temporary)
        generate(directory / "data", rows, features)
        for name in ("job.toml", "advertiser.toml", "publisher.toml"):
            shutil.copy(EXAMPLE / name, directory / name)
        job = load_job(directory / "job.toml", [ALL_ROWS])
        # Generous budgets: every repetition is a release of its own, so that none is answered from the store.
        publisher = (directory / "publisher.toml").read_text().replace("epsilon = 4.0", "epsilon = 50.0")
        (directory / "publisher.toml").write_text(publisher)
        x, y = training_matrix(directory, job)
        runs = [
            (run_job(directory, i), time_sklearn(x, y), time_from_files(directory / "data")) for i in range(repetitions)
        ]
    return summarise(runs, len(y), features)


def generate(out: Path, rows: int, features: int) -> None:
    people = round(rows / 3.3)
    command = [sys.executable, EXAMPLE / "generate.py", "--people", people, "--rows-per-person", 3.3]
    command += ["--features", features, "--positive-rate", 0.05, "--out", out]
    subprocess.run(list(map(str, command)), check=True)


def run_job(directory: Path, repetition: int) -> dict[str, Any]:
    job = load_job(directory / "job.toml", [ALL_ROWS, f"privacy.release=run-{repetition}"])
    started = time.perf_counter()
    with launch(job, directory / "out") as launched:
        up_s = time.perf_counter() - started
        session = drive(job, launched, Console(quiet=True))
    advertiser, publisher = session.summaries["advertiser"], session.summaries["publisher"]
    return {
        "launch_s": up_s,
        "job_s": session.seconds["job"],
        **{name.removeprefix("timing."): advertiser[name] for name in advertiser if name.startswith("timing.")},
        "bytes_sent": advertiser["bytes_sent"],
        "rows_sent": advertiser["rows.trained"] + advertiser["rows.not_counted"],  # type: ignore[operator]
        "active_peak_mib": advertiser["peak_memory_mib"],
        "server_peak_mib": publisher["peak_memory_mib"],
    }


def training_matrix(directory: Path, job: Job[WalrJob]) -> tuple[Floats, NDArray[np.int8]]:
    """Return the very rows that the job trains on, as scikit-learn takes them."""
    import pyarrow.parquet as pq

    settings = load_party(directory / "advertiser.toml")
    source = open_source(settings.datasets["impressions"], directory, "impressions")
    prepared = prepare_rows(source, job.parameters, job.parameters.trial_randomness, lambda *_: None)
    table = pq.read_table(directory / "data" / "conversions.parquet")
    labels = dict(zip(table["id"].to_pylist(), table["label"].to_pylist(), strict=True))
    x: Floats = prepared.train.weights[:, :-1].astype(np.float64) * prepared.grid.step
    return x, np.array([labels[i] for i in prepared.train.ids], np.int8)


def time_sklearn(x: Floats, y: NDArray[np.int8]) -> float:
    started = time.perf_counter()
    LogisticRegression().fit(x, y)
    return time.perf_counter() - started


def time_from_files(data: Path) -> float:
    import pyarrow.parquet as pq

    started = time.perf_counter()
    features, labels = pq.read_table(data / "features.parquet"), pq.read_table(data / "conversions.parquet")
    joined = features.join(labels, "id", join_type="inner").combine_chunks()
    x = np.column_stack([joined[name].to_numpy() for name in features.column_names if name != "id"])
    LogisticRegression().fit(StandardScaler().fit_transform(x.astype(np.float64)), joined["label"].to_numpy())
    return time.perf_counter() - started


def summarise(runs: list[tuple[dict[str, Any], float, float]], n_train: int, features: int) -> dict[str, Any]:
    jobs, sklearn_s = [run[0] for run in runs], [run[1] for run in runs]
    median = {name: statistics.median(run[name] for run in jobs) for name in jobs[0]}
    return {
        **median,
        "training_rows": n_train,
        "features": features,
        "sklearn_s": statistics.median(sklearn_s),
        "rows_per_s": round(median["rows_sent"] / median["job_s"]),
        "aggregate_rows_per_s": round(median["rows_sent"] / median["aggregate_s"]),
        "sklearn_from_files_s": statistics.median(run[2] for run in runs),
        "time_over_sklearn": round(statistics.median(run["job_s"] / s for run, s, _ in runs), 2),
        "time_over_sklearn_from_files": round(statistics.median(run["job_s"] / s for run, _, s in runs), 2),
        "fit_over_sklearn": round(statistics.median(run["fit_s"] / s for run, s, _ in runs), 2),
        "runs": jobs,
    }


def show_job(result: dict[str, Any], console: Console) -> None:
    table = Table(
        "figure",
        "median",
        title=f"{result['training_rows']:,} training rows x {result['features']} features, two processes",
    )
    for name, value in result.items():
        if name != "runs":
            table.add_row(name, f"{value:,.3g}" if isinstance(value, float) else f"{value:,}")
    console.print(table)


if __name__ == "__main__":
    main()
