"""`make demo`: WALR between two processes on real data, and a comparison with other models.

python -m examples.walr.demo [--out DIR] [--set KEY=VALUE ...]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blindfit.algorithms.statistics.quality import metrics
from examples.demo import GAIN_KEPT, begin, console, run_job

HERE = Path(__file__).parent


def main() -> None:
    options = begin(HERE, "WALR between two processes on the RAND health insurance data.", "visits.csv")
    run_job(HERE, options.out, options.set)
    console.print(comparison(options.out))


def comparison(out: Path) -> Panel:
    """Compare log loss and AUC on held-out rows. This needs the files of both parties, which no party has."""
    ids, private = read_held_out_scores(out)
    features, labels = join_files()
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
        Group(table, "", GAIN_KEPT),
        title="known only because this is a demo",
        subtitle=f"{held_out.sum():,} held-out rows, both files here",
        expand=False,
    )


def read_held_out_scores(out: Path) -> tuple[list[str], np.ndarray]:
    types = pyarrow.csv.ConvertOptions(column_types={"id": "string"})
    scores = pyarrow.csv.read_csv(out / "insurer" / "held_out_scores.csv", convert_options=types)
    return scores["id"].to_pylist(), scores["probability"].to_numpy()


def join_files():
    features = pq.read_table(HERE / "data" / "features.parquet")
    visits = pyarrow.csv.read_csv(HERE / "data" / "visits.csv")
    return features, dict(zip(visits["id"].to_pylist(), visits["saw_doctor"].to_pylist(), strict=True))


if __name__ == "__main__":
    main()
