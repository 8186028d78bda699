"""Measure the four values of walr.trust over the same rows and labels: seconds, bytes, and the loss of the model.

    python -m benchmarks.walr.trust [--json FILE] [--rows 20000] [--features 20] [--quick]

Each job runs between running processes, from its proposal to its stored model, with epsilon 1 and all rows trained on.
One repetition of each runs in turn, and figures are medians.

- trusted_s has one server, which reads labels and rows.
- split_s has two servers with shares of the labels, which read rows.
- paillier_s has one server, which reads labels; rows are encrypted (2048 bits).
- shares_s has two servers with shares of both, and a key node.

`bytes_sent` is what the active party sends; `dealt_bytes`, what the key node sends to the first server (counted).
`loss` is the log loss of the model on the rows that it was fitted to, which this program knows; `sklearn_loss`, that of
scikit-learn's fit to the labels themselves. The noise of two servers has twice the variance of that of one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression

from benchmarks.kit import machine
from blindfit.algorithms.protocols.walr import dealt_masks
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.short_rows import Plan
from blindfit.algorithms.statistics.quality import metrics
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.operator.split_labels import split_labels
from blindfit.coordinator.running.driving import drive
from blindfit.coordinator.running.launcher import launch
from blindfit.parties.systems import load_party

ROLES = {"active": "active", "one": "measurement", "east": "measurement", "west": "measurement", "notary": "key-node"}
JOBS = {
    "trusted": ("active", "one"),
    "two-servers": ("active", "east", "west"),
    "encrypted-rows": ("active", "one"),
    "shared-rows": ("active", "east", "west", "notary"),
}
KEYS = {"trusted": "trusted_s", "two-servers": "split_s", "encrypted-rows": "paillier_s", "shared-rows": "shares_s"}
PARTY = """
name = "{name}"
role = "{role}"
data_dir = "state/{name}"
identity = {{ certificate = "c", key = "k", authority = "a" }}
policy = {{ systems = ["walr"], accept_seed = true, max_epsilon = 8.0{unsafe} }}
peers = {{ {peers} }}
"""
LABELS = """
[populations.people]
epsilon = 100.0
delta = 1e-5

[datasets.rows]
url = "parquet:{name}.parquet"
id = "id"
population = "people"
active_parties = ["active"]
"""
OF = {"one": 'label = "label"\n', "active": '[datasets.rows]\nurl = "parquet:features.parquet"\nid = "id"\n'}
OF_SHARES = 'label = "share"\nlabel_kind = "share"\nsplit = "split_id"\n'

Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int)
    parser.add_argument("--quick", action="store_true", help="few rows and features: to see that it runs")
    options = parser.parse_args()
    rows, features, repetitions = (200, 2, 1) if options.quick else (20_000, 20, 5)
    console = Console()
    result = {"machine": machine.describe(), **measure(options.rows or rows, options.features or features, repetitions)}
    show(result, console)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(n_rows: int, features: int, repetitions: int) -> dict[str, Any]:
    x, y = generated(n_rows, features)
    with tempfile.TemporaryDirectory(prefix="blindfit-bench-") as temporary:
        directory = Path(temporary)
        write_files(directory, x, y)
        runs: dict[str, list[dict[str, float]]] = {trust: [] for trust in JOBS}
        for repetition in range(repetitions):
            for trust, found in runs.items():
                found.append(run_job(directory, trust, repetition, x, y))
    median = medians_of(runs)
    median["shared-rows"]["dealt_bytes"] = dealt_bytes(
        n_rows, features + 1, int(median["shared-rows"]["norm_bound_steps"])
    )
    return {
        "rows": n_rows,
        "features": features,
        "repetitions": repetitions,
        **{KEYS[trust]: found["job_s"] for trust, found in median.items()},
        "medians": median,
        **losses_without_privacy(x, y),
        "runs": runs,
    }


def medians_of(runs: Mapping[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the median of each figure over the runs of each kind."""
    return {
        kind: {name: statistics.median(r[name] for r in found) for name in found[0]} for kind, found in runs.items()
    }


def losses_without_privacy(x: Floats, y: Floats) -> dict[str, float]:
    """Return the log loss of scikit-learn's model of these rows, and that of a constant."""
    plain = LogisticRegression(C=np.inf).fit(x, y)
    return {
        "sklearn_loss": metrics.log_loss(y, plain.predict_proba(x)[:, 1]),
        "constant_loss": metrics.log_loss(y, np.full(len(y), y.mean())),
    }


def generated(n_rows: int, features: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(n_rows, features))
    weights = rng.normal(size=features) / np.sqrt(features)
    return x, (rng.random(n_rows) < 1 / (1 + np.exp(-(x @ weights - 1)))).astype(np.float64)


def write_files(directory: Path, x: Floats, y: Floats) -> None:
    ids = pa.array([f"row-{i}" for i in range(len(y))])
    pq.write_table(
        pa.table({"id": ids, **{f"x{j}": x[:, j] for j in range(x.shape[1])}}), directory / "features.parquet"
    )
    pq.write_table(pa.table({"id": ids, "label": y.astype(np.int8)}), directory / "one.parquet")
    for name, role in ROLES.items():
        peers = ", ".join(f'{other} = {{ role = "{ROLES[other]}" }}' for other in ROLES if other != name)
        unsafe = ', unsafe = ["unchecked-rows"]' if name == "one" else ""
        text = PARTY.format(
            name=name, role=role, unsafe=unsafe, peers=f'coordinator = {{ role = "coordinator" }}, {peers}'
        )
        if role == "measurement":
            text += LABELS.format(name=name) + OF.get(name, OF_SHARES)
        elif role == "active":
            text += OF[name] + 'features = "rest"\n'
        (directory / f"{name}.toml").write_text(text)
    for trust, parties in JOBS.items():
        lines = [f'name = "{trust}"\nprotocol = "walr"\nseed = 7\nprivacy = {{ epsilon = 1.0 }}']
        lines += [f'walr = {{ trust = "{trust}" }}\nsplit = {{ test_fraction = 0 }}\n[parties]']
        for name in parties:
            dataset = "" if name == "notary" else ', dataset = "rows"'
            lines.append(f'{name} = {{ role = "{ROLES[name]}", config = "{name}.toml"{dataset} }}')
        (directory / f"{trust}.toml").write_text("\n".join(lines) + "\n")
    out = (directory / "east.parquet", directory / "west.parquet")
    split_labels(load_party(directory / "one.toml"), directory, "rows", out)


def run_job(directory: Path, trust: str, repetition: int, x: Floats, y: Floats) -> dict[str, float]:
    job = load_job(directory / f"{trust}.toml", [f"privacy.release={trust}-{repetition}"])
    with launch(job, directory / "out") as launched:
        session = drive(job, launched, Console(quiet=True))
        model = json.loads(next((directory / "out").rglob("model.json")).read_text())
    summary = session.summaries["active"]
    columns = {f"x{j}": x[:, j] for j in range(x.shape[1])}
    scores = WALRModel.from_dict(model).scores(columns)
    return {
        "job_s": session.seconds["job"],
        "aggregate_s": float(str(summary["timing.aggregate_s"])),
        "bytes_sent": float(str(summary["bytes_sent"])),
        "norm_bound_steps": round(float(str(summary["privacy.norm_bound"])) * 2 ** grid_bits(summary)),
        "loss": metrics.log_loss(y, 1 / (1 + np.exp(-scores))),
    }


def grid_bits(summary: Mapping[str, Any]) -> int:
    """Return the fraction bits of the grid, as the report names it: discrete Gaussian, grid 2^-12."""
    return int(str(summary["privacy.mechanism"]).rpartition("2^-")[2])


def dealt_bytes(n_rows: int, n_columns: int, norm_bound: int) -> int:
    """Return the bytes of the corrections that the first server gets."""
    plan = Plan(n_rows, n_columns, norm_bound)
    elements = 0
    for block in range(len(plan.blocks)):
        elements += short_rows.rows_item(plan, block, None).correction_length(macs=True)
        elements += short_rows.bits_item(plan, block, None).correction_length(macs=True)
        elements += dealt_masks.labels_item(plan, block, None).correction_length(macs=False)
    return 8 * elements


def show(result: dict[str, Any], console: Console) -> None:
    title = f"{result['rows']:,} rows x {result['features']} features, epsilon 1, {result['repetitions']} runs each"
    table = Table(
        "walr.trust", "s", "for the request, s", "over trusted", "MB sent", "MB dealt", "log loss", title=title
    )
    trusted = result["trusted_s"]
    for trust, found in result["medians"].items():
        table.add_row(
            trust,
            f"{found['job_s']:.2f}",
            f"{found['aggregate_s']:.2f}",
            f"{found['job_s'] / trusted:.1f}",
            f"{found['bytes_sent'] / 1e6:.1f}",
            f"{found['dealt_bytes'] / 1e6:.1f}" if "dealt_bytes" in found else "",
            f"{found['loss']:.4f}",
        )
    console.print(table)
    console.print(f"constant {result['constant_loss']:.4f}, scikit-learn {result['sklearn_loss']:.4f}")


if __name__ == "__main__":
    main()
