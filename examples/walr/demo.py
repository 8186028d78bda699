"""`make demo`: WALR between two processes on real data, then what only a demo can know.

python examples/walr/demo.py [--out DIR] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blindfit.algorithms.statistics import metrics

HERE = Path(__file__).parent
console = Console(width=min(Console().width, 110))


def main() -> None:
    parser = argparse.ArgumentParser(description="WALR between two processes on the RAND health insurance data.")
    parser.add_argument("--out", type=Path, default=Path("runs/walr"), help="reports (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the job")
    options = parser.parse_args()
    if not (HERE / "data" / "visits.csv").exists():
        subprocess.run([sys.executable, HERE / "prepare.py"], check=True)
    # Every demo starts with an empty ledger; a real measurement server's is never thrown away.
    shutil.rmtree(HERE / "state", ignore_errors=True)
    run_job(options.out, options.set)
    console.print(comparison(options.out))


def run_job(out: Path, overrides: list[str]) -> None:
    job = os.path.relpath(HERE / "job.toml")
    command = [sys.executable, "-m", "blindfit", "run", job, "--out", str(out)]
    for override in overrides:
        command += ["--set", override]
    shown = " ".join(["blindfit", *command[3:]])
    console.print(f"[dim]$ {shown}[/]", highlight=False)
    finished = subprocess.run(command, check=False)
    if finished.returncode:
        sys.exit(finished.returncode)


def comparison(out: Path) -> Panel:
    """Log loss and AUC on held-out rows: needs both parties' files, which no party has."""
    ids, private = held_out_scores(out)
    features, labels = joined()
    held_out = np.isin(features["id"].to_pylist(), ids)
    x = np.column_stack([features[name].to_numpy() for name in features.column_names if name != "id"])
    y = np.array([labels[i] for i in features["id"].to_pylist()])
    order = dict(zip(ids, private, strict=True))
    private = np.array([order[i] for i in np.array(features["id"].to_pylist())[held_out]])
    plain = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf)).fit(x[~held_out], y[~held_out])
    rows = {
        "constant (base rate)": np.full(held_out.sum(), y[~held_out].mean()),
        "WALR, label DP": private,
        "scikit-learn, not private": plain.predict_proba(x[held_out])[:, 1],
    }
    table = Table("model", "log loss", "AUC", "gain kept", box=None)
    losses = {name: metrics.log_loss(y[held_out], p) for name, p in rows.items()}
    constant, best = losses["constant (base rate)"], losses["scikit-learn, not private"]
    for name, p in rows.items():
        kept = metrics.gain_kept(losses[name], best, constant)
        table.add_row(name, f"{losses[name]:.4f}", f"{metrics.auc(y[held_out], p):.4f}", f"{kept:.1%}")
    return Panel(
        table,
        title="known only because this is a demo",
        subtitle=f"{held_out.sum():,} held-out rows, both files here",
        expand=False,
    )


def held_out_scores(out: Path) -> tuple[list[str], np.ndarray]:
    types = pyarrow.csv.ConvertOptions(column_types={"id": "string"})
    scores = pyarrow.csv.read_csv(out / "insurer" / "held_out_scores.csv", convert_options=types)
    return scores["id"].to_pylist(), scores["probability"].to_numpy()


def joined():
    features = pq.read_table(HERE / "data" / "features.parquet")
    visits = pyarrow.csv.read_csv(HERE / "data" / "visits.csv")
    return features, dict(zip(visits["id"].to_pylist(), visits["saw_doctor"].to_pylist(), strict=True))


if __name__ == "__main__":
    main()
