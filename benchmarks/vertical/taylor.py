"""Vertical training on the Taylor loss, between real processes on this machine.

    python -m benchmarks.vertical.taylor [--json FILE] [--data DIR] [--plot FILE] [--quick]

1. `ms_per_row_epoch` is the time of training over its rows and epochs, as the median of three jobs. The data are
   DIR/breast (10 + 20 features, 569 rows) in batches of 128, with 2048-bit keys, an active party, a passive party and a
   key node. All defences and the hold-out loss of every epoch are on. `products_per_row_epoch` is the same time in
   products mod n^2 by GMP, and `vector_products_per_row_epoch` in products by the vector unit, if the processor has
   one. A training uses both. Products are timed in turn with the jobs, also on the wall clock. `forecast_error` is
   |forecast - measured| / measured; the pre-flight makes the forecast just before each job.
2. `growth` has made-up data and one epoch, with one thing varied at a time (rows, features, data parties), and the
   bytes sent for a row.

Without --data the data are looked for in ../shared/data; FATE's repository has them in examples/data, as
breast_hetero_guest.csv and breast_hetero_host.csv.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.kit.in_turn import in_turn, median_ratio
from benchmarks.kit.products import GMP, VECTOR_UNIT, Products, in_microseconds
from benchmarks.vertical.growth import draw, grow
from benchmarks.vertical.job_files import Roles, begin_party_file, write_parties
from blindfit.algorithms.errors import DataError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.running.driving import drive
from blindfit.coordinator.running.launcher import launch
from blindfit.coordinator.taylor.preflight import forecast_s

REPETITIONS = 3
PRODUCT_GROUPS = 320  # a tenth of a second by GMP: shorter than a job, longer than a disturbance
QUICK_PRODUCT_GROUPS = 8
BASE = {"rows": 1000, "features": 30, "parties": 2}
GROWTH: dict[str, list[int]] = {
    "rows": [1_000, 3_000, 10_000, 30_000, 100_000],
    "features": [10, 30, 100, 300],
    "parties": [2, 3, 4, 5],
}
TITLE = "Vertical training; otherwise 1,000 rows, 30 features, 2 data parties, 2048-bit keys, one epoch"
QUICK: dict[str, list[int]] = {"parties": [2]}
QUICK_ROWS = 128  # rows of each job

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Party:
    """One data party's file."""

    name: str
    columns: dict[str, NDArray[Any]]

    @property
    def role(self) -> str:
        return "active" if "y" in self.columns else "passive"

    def first(self, rows: int) -> Party:
        """Return the first rows by id, which are the same rows at each party."""
        chosen = np.argsort(self.columns["id"])[:rows]
        return Party(self.name, {name: column[chosen] for name, column in self.columns.items()})


@dataclass(frozen=True)
class Measured:
    rows: int
    epochs: int
    train_s: float
    forecast_s: float  # by the pre-flight
    bytes_sent: int

    @property
    def forecast_error(self) -> float:
        return abs(self.forecast_s - self.train_s) / self.train_s

    @property
    def ms_per_row_epoch(self) -> float:
        return self.train_s * 1e3 / (self.rows * self.epochs)

    @property
    def bytes_per_row_epoch(self) -> float:
        return self.bytes_sent / (self.rows * self.epochs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where breast/ is")
    parser.add_argument("--plot", type=Path, help="draw the growth here")
    parser.add_argument("--quick", action="store_true", help="small shapes, one repetition")
    options = parser.parse_args()
    console = Console()
    result = {"machine": machine.describe(), **breast(options.data, options.quick)}
    console.print(_headline(result))
    shapes, base = (QUICK, BASE | {"rows": QUICK_ROWS}) if options.quick else (GROWTH, BASE)
    result["growth"] = growth(shapes, base, console)
    console.print(_growth_table(result["growth"]))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.plot:
        draw(result["growth"], options.plot, TITLE, "ms_per_row_epoch", "ms", "bytes_per_row_epoch")


# --- the figure ----------------------------------------------------------------------------------------


def breast(data: Path, quick: bool) -> dict[str, Any]:
    parties, jobs = breast_parties(data, quick), list[Measured]()
    products = Products("product", machine.random_modulus(), QUICK_PRODUCT_GROUPS if quick else PRODUCT_GROUPS)

    def job() -> None:
        jobs.append(measure(parties, epochs=1 if quick else 10, batch_rows=128))

    times = in_turn({**products.runs, "job": job}, 1 if quick else REPETITIONS, time.perf_counter)
    ms, product_s = [job.ms_per_row_epoch for job in jobs], products.seconds(times)
    found = {unit: round(median_ratio(ms, seconds) / 1e3, 1) for unit, seconds in product_s.items()}
    return {
        "ms_per_row_epoch": round(statistics.median(ms), 4),
        "ms_of_each_run": [round(job.ms_per_row_epoch, 4) for job in jobs],
        **in_microseconds({unit: statistics.median(seconds) for unit, seconds in product_s.items()}),
        "products_per_row_epoch": found[GMP],
        "vector_products_per_row_epoch": found.get(VECTOR_UNIT),
        "bytes_per_row_epoch": round(statistics.median(job.bytes_per_row_epoch for job in jobs)),
        "forecast_error": round(statistics.median(job.forecast_error for job in jobs), 4),
        "forecast_error_of_each_run": [round(job.forecast_error, 4) for job in jobs],
    }


def breast_parties(data: Path, quick: bool) -> list[Party]:
    sides = (("guest", "bank"), ("host", "insurer"))
    parties = [_read(data / "breast" / f"breast_hetero_{side}.csv", name) for side, name in sides]
    return [party.first(QUICK_ROWS) for party in parties] if quick else parties


def _read(path: Path, name: str) -> Party:
    if not path.exists():
        raise SystemExit(
            str(DataError(f"{path} does not exist; give the folder of breast/ as --data DIR (see --help)"))
        )
    table = pyarrow.csv.read_csv(path)
    columns = {column: table[column].to_numpy() for column in table.column_names}
    return Party(name, {**columns, "id": np.array([f"r{number}" for number in columns["id"]])})


def made_up(rows: int, features: int, parties: int, seed: int = 1) -> list[Party]:
    """Label rows by a logistic model on all columns, which the parties hold in nearly equal parts."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, features))
    scores = X @ draw.normal(size=features) / np.sqrt(features)
    labels = (draw.random(rows) < 1 / (1 + np.exp(-2 * scores))).astype(np.int64)
    ids = np.array([f"r{number}" for number in range(rows)])
    made = []
    for number, part in enumerate(np.array_split(np.arange(features), parties)):
        columns: dict[str, NDArray[Any]] = {"id": ids}
        if number == 0:
            columns["y"] = labels
        made.append(Party(f"party-{number}", columns | {f"x{j}": X[:, j] for j in part}))
    return made


def growth(shapes: dict[str, list[int]], base: dict[str, int], console: Console) -> dict[str, list[dict[str, Any]]]:
    def measure_shape(shape: dict[str, int]) -> dict[str, float]:
        run = measure(made_up(**shape), epochs=1, batch_rows=max(128, 8 * shape["features"]))
        names = ("ms_per_row_epoch", "bytes_per_row_epoch", "forecast_error")
        return {name: getattr(run, name) for name in names}

    return grow(shapes, base, measure_shape, console, digits=4)


# --- one job between processes ---------------------------------------------------------------------------


def measure(parties: list[Party], *, epochs: int, batch_rows: int, tables: str = "", options: str = "") -> Measured:
    """`options` are further ones of [taylor], `tables` further tables of the job file."""
    with tempfile.TemporaryDirectory(prefix="blindfit-benchmark-") as directory:
        base = Path(directory)
        _write_job(base, parties, epochs, batch_rows, tables, options)
        job = load_job(base / "job.toml")
        forecast = forecast_s(job, [PartyHere.of(job, party.name) for party in parties])
        with launch(job, base / "out") as launched:
            session = drive(job, launched, Console(quiet=True))
    active = session.summaries[parties[0].name]
    sent = [int(str(summary.get("bytes_sent", 0))) for summary in session.summaries.values()]
    return Measured(
        rows=int(str(active["rows.trained"])),
        epochs=int(str(active["fit.epochs"])),
        train_s=float(str(active["timing.train_s"])),
        forecast_s=forecast,
        bytes_sent=sum(sent),
    )


def _write_job(base: Path, parties: list[Party], epochs: int, batch_rows: int, tables: str, options: str) -> None:
    roles = {party.name: party.role for party in parties} | {"notary": "key-node"}
    job = 'name = "benchmark"\nprotocol = "taylor"\nseed = 1\n[split]\ntest_fraction = 0.0\n'
    patience = "" if tables or options else "patience = 0\n"  # without a hold-out it would do nothing
    job += f"{tables}[taylor]\nepochs = {epochs}\nbatch_rows = {batch_rows}\n{patience}{options}"
    (base / "job.toml").write_text(job + write_parties(base, roles, _party_file))
    for party in parties:
        pyarrow.csv.write_csv(pa.table(party.columns), base / f"{party.name}.csv")


def _party_file(name: str, roles: Roles) -> str:
    policy = 'unsafe = ["no-gradient-noise"]\n'  # what benchmarks.vertical.taylor_privacy compares with
    text = begin_party_file(name, roles, "taylor", policy)
    if roles[name] == "key-node":
        return text
    active = roles[name] == "active"
    label = 'label = "y"\npopulation = "people"\n' if active else ""
    budget = "[populations.people]\nepsilon = 100.0\ndelta = 1e-5\n" if active else ""
    dataset = f'[datasets.rows]\nurl = "csv:{name}.csv"\nid = "id"\n{label}features = "rest"\n'
    return text + '[compute]\nbackend = "serial"\n' + dataset + budget


# --- showing -----------------------------------------------------------------------------------------------


def _headline(result: dict[str, Any]) -> Table:
    table = Table("breast, 10 + 20 features, 569 rows, 2048 bits", "measured", box=None)
    table.add_row("ms for each row and epoch", f"{result['ms_per_row_epoch']:.3f}")
    product = f"{result['products_per_row_epoch']:.0f}, of {result['product_us']:.2f} us each"
    table.add_row(f"the same in products mod n^2 by {GMP}", product)
    if result["vector_product_us"] is not None:
        product = f"{result['vector_products_per_row_epoch']:.0f}, of {result['vector_product_us']:.2f} us each"
        table.add_row(f"the same in products by {VECTOR_UNIT}", product)
    table.add_row("bytes sent by all, each row and epoch", f"{result['bytes_per_row_epoch']:,}")
    table.add_row("|forecast - measured| / measured time", f"{result['forecast_error']:.2f}")
    return table


def _growth_table(grown: dict[str, list[dict[str, Any]]]) -> Table:
    table = Table(
        "varied", "rows", "features", "data parties", "ms / row epoch", "bytes / row epoch", "forecast error", box=None
    )
    for varied, points in grown.items():
        for point in points:
            shape = [f"{point[name]:,}" for name in BASE]
            figures = (f"{point['ms_per_row_epoch']:.3f}", f"{point['bytes_per_row_epoch']:,.0f}")
            table.add_row(varied, *shape, *figures, f"{point['forecast_error']:.2f}")
    return table


if __name__ == "__main__":
    main()
