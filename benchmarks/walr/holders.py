"""Measure WALR with the same columns at one party, or spread over several: seconds, bytes, the norm bound, the loss.

    python -m benchmarks.walr.holders [--json FILE] [--rows 20000] [--features 20] [--quick]

Each job runs between running processes, from its proposal to the stored model, with epsilon 1 and all rows trained on.
One repetition of each runs in turn, and figures are medians. With columns at one party, this party fits the model; with
columns at several parties, the server does.

- `one_s`, `two_s` and `four_s` are the seconds of a job.
- `bytes_sent` are the bytes of all parties with columns.
- `norm_bound` is that of whole rows; several parties choose a bound each, and the squares add up.
- `loss` is the log loss on the rows that the model was fitted to, which this program knows.
- `sklearn_loss` is that of scikit-learn's fit to the labels themselves.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from benchmarks.walr.trust import PARTY, Floats, generated, losses_without_privacy, medians_of
from blindfit.algorithms.statistics.quality import metrics
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart, real_scores
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.driving import drive
from blindfit.coordinator.running.launcher import launch
from blindfit.coordinator.running.session import JobSession

HOLDERS = {"one": 1, "two": 2, "four": 4}
LABELS = """
[populations.people]
epsilon = 100.0
delta = 1e-5

[datasets.rows]
url = "parquet:labels.parquet"
id = "id"
label = "label"
population = "people"
active_parties = ["active"]
"""
COLUMNS = '[datasets.rows]\nurl = "parquet:{name}.parquet"\nid = "id"\nfeatures = "rest"\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="few rows: to see that it runs")
    options = parser.parse_args()
    rows, repetitions = (1000, 1) if options.quick else (20_000, 5)
    result = {"machine": machine.describe(), **measure(options.rows or rows, options.features, repetitions)}
    show(result, Console())
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(n_rows: int, features: int, repetitions: int) -> dict[str, Any]:
    x, y = generated(n_rows, features)
    with tempfile.TemporaryDirectory(prefix="blindfit-bench-") as temporary:
        runs: dict[str, list[dict[str, float]]] = {words: [] for words in HOLDERS}
        for words, holders in HOLDERS.items():
            (Path(temporary) / words).mkdir()
            write_files(Path(temporary) / words, x, y, names_of(holders))
        for repetition in range(repetitions):
            for words, found in runs.items():
                found.append(run_job(Path(temporary) / words, names_of(HOLDERS[words]), repetition, x, y))
    median = medians_of(runs)
    return {
        "rows": n_rows,
        "features": features,
        "repetitions": repetitions,
        **{f"{words}_s": found["job_s"] for words, found in median.items()},
        "medians": median,
        **losses_without_privacy(x, y),
        "runs": runs,
    }


def names_of(holders: int) -> list[str]:
    return ["active", *(f"other-{i}" for i in range(1, holders))]


def write_files(directory: Path, x: Floats, y: Floats, names: list[str]) -> None:
    ids = pa.array([f"row-{i}" for i in range(len(y))])
    pq.write_table(pa.table({"id": ids, "label": y.astype(np.int8)}), directory / "labels.parquet")
    roles = {name: "passive" if i else "active" for i, name in enumerate(names)} | {"server": "measurement"}
    for name, columns in zip(names, np.array_split(np.arange(x.shape[1]), len(names)), strict=True):
        table = pa.table({"id": ids, **{f"x{j}": x[:, j] for j in columns}})
        pq.write_table(table, directory / f"{name}.parquet")
    for name, role in roles.items():
        others = ", ".join(f'{other} = {{ role = "{roles[other]}" }}' for other in roles if other != name)
        peers = f'coordinator = {{ role = "coordinator" }}, {others}'
        text = PARTY.format(name=name, role=role, unsafe="", peers=peers)
        text += (
            LABELS + f"passive_parties = {json.dumps(names[1:])}\n" if name == "server" else COLUMNS.format(name=name)
        )
        (directory / f"{name}.toml").write_text(text)
    lines = ['name = "holders"\nprotocol = "walr"\nseed = 7\nprivacy = { epsilon = 1.0 }']
    lines += ["split = { test_fraction = 0 }\n[parties]"]
    lines += [f'{n} = {{ role = "{role}", config = "{n}.toml", dataset = "rows" }}' for n, role in roles.items()]
    (directory / "job.toml").write_text("\n".join(lines) + "\n")


def run_job(directory: Path, names: list[str], repetition: int, x: Floats, y: Floats) -> dict[str, float]:
    job = load_job(directory / "job.toml", [f"privacy.release=draw-{repetition}"])
    with launch(job, directory / "out") as launched:
        session = drive(job, launched, Console(quiet=True))
        parts = [json.loads((directory / "out" / name / "model.json").read_text()) for name in names]
    columns = {f"x{j}": x[:, j] for j in range(x.shape[1])}
    return {
        "job_s": session.seconds["job"],
        "bytes_sent": float(sum(sent_by(session, name) for name in names)),
        "norm_bound": float(str(session.summaries["active"]["privacy.norm_bound"])),
        "loss": metrics.log_loss(y, 1 / (1 + np.exp(-scores_of(parts, columns)))),
    }


def sent_by(session: JobSession, name: str) -> int:
    return int(str(session.summaries[name]["bytes_sent"]))


def scores_of(parts: list[dict[str, Any]], columns: dict[str, Floats]) -> Floats:
    if len(parts) == 1:
        return WALRModel.from_dict(parts[0]).scores(columns)
    return real_scores(np.sum([VerticalModelPart.from_dict(part).score_parts(columns) for part in parts], axis=0))


def show(result: dict[str, Any], console: Console) -> None:
    title = f"{result['rows']:,} rows x {result['features']} features, epsilon 1, {result['repetitions']} runs each"
    table = Table("holders", "s", "x one", "MB sent", "norm bound", "log loss", title=title)
    for words, found in result["medians"].items():
        table.add_row(
            words,
            f"{found['job_s']:.2f}",
            f"{found['job_s'] / result['one_s']:.1f}",
            f"{found['bytes_sent'] / 1e6:.1f}",
            f"{found['norm_bound']:.2f}",
            f"{found['loss']:.4f}",
        )
    console.print(table)
    console.print(f"constant {result['constant_loss']:.4f}, scikit-learn {result['sklearn_loss']:.4f}")


if __name__ == "__main__":
    main()
