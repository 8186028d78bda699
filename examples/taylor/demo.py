"""`make demo-taylor`: three organisations and a key node, each a process, and a comparison with other models.

python -m examples.taylor.demo [--out DIR] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.vertical.epsilons import EPSILONS, WAYS, draw_curve, simulate, tumours
from blindfit.algorithms.statistics.quality import metrics
from blindfit.coordinator.job.job import load_job
from examples.demo import begin, console, run_job
from examples.taylor.joined import joined

DRAWS = 61  # draws of the order of the rows, and of the noise
HERE = Path(__file__).parent


def main() -> None:
    options = begin(HERE, "Vertical logistic regression between four processes.", "archive_new.csv")
    run_job(HERE, options.out, options.set)
    with console.status("simulating what label DP costs"):
        curve = privacy_curve(options.out, options.set)
    console.print(
        Panel(
            Group(comparison(options.out, options.set), "", curve),
            title="known only because this is a demo",
            subtitle="all three files here",
            expand=False,
        )
    )


def comparison(out: Path, overrides: list[str]) -> Table:
    """Compare log loss and AUC on the test rows of the run, for models that were fitted to all other common rows."""
    ids, rows, labels = joined()
    scored = scores_of(out / "hospital" / "test_scores.csv")
    test = np.isin(ids, list(scored))
    x = np.hstack(list(rows.values()))
    x = StandardScaler().fit(x[~test]).transform(x)
    optimum = taylor_optimum(x[~test], labels[~test], load_job(HERE / "job.toml", overrides).parameters.taylor.l2)
    figures = json.loads((out / "hospital" / "report.json").read_text())["evaluation"]
    table = Table("model", "log loss", "AUC", box=None)
    table.add_row("Blindfit, this run", f"{figures['log_loss']:.4f}", f"{figures['auc']:.4f}")
    if "log_loss_before" in figures:
        table.add_row("Blindfit, before calibration", f"{figures['log_loss_before']:.4f}", f"{figures['auc']:.4f}")
    found = {
        "constant (base rate)": np.full(test.sum(), labels[~test].mean()),
        "optimum of the Taylor loss, in one place": sigmoid(np.c_[x[test], np.ones(test.sum())] @ optimum),
        "scikit-learn, in one place": LogisticRegression().fit(x[~test], labels[~test]).predict_proba(x[test])[:, 1],
    }
    for name, probabilities in found.items():
        loss, auc = metrics.log_loss(labels[test], probabilities), metrics.auc(labels[test], probabilities)
        table.add_row(name, f"{loss:.4f}", f"{auc:.4f}")
    table.caption = f"{test.sum():,} test rows"
    return table


def scores_of(path: Path) -> dict[str, float]:
    types = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})
    table = pyarrow.csv.read_csv(path, convert_options=types)
    return dict(zip(table["id"].to_pylist(), table["probability"].to_pylist(), strict=True))


def taylor_optimum(x: np.ndarray, labels: np.ndarray, l2: float) -> np.ndarray:
    """Return the minimum of the mean of log 2 - y z / 2 + z^2 / 8, plus l2 |theta|^2 / 2 without the intercept."""
    x = np.c_[x, np.ones(len(x))]
    y = np.where(labels > 0, 1.0, -1.0)
    penalty = l2 * np.diag([*np.ones(x.shape[1] - 1), 0.0])
    return np.linalg.solve(x.T @ x / (4 * len(x)) + penalty, x.T @ y / (2 * len(x)))


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def privacy_curve(out: Path, overrides: list[str]) -> Table:
    """Simulate the AUC at each epsilon, and draw it into a file next to the report."""
    without_privacy = [o for o in overrides if not o.startswith("privacy.")]
    found = simulate(load_job(HERE / "job.toml", without_privacy).parameters, tumours(), draws=DRAWS)
    path = out / "epsilon.png"
    draw_curve(found, path)
    table = Table("noise of label DP", *(f"epsilon {e:g}" for e in EPSILONS), box=None)
    for way in WAYS:
        table.add_row(way, *(f"{auc:.3f}" for auc in found[way]))
    table.caption = f"median AUC of simulations; {found['none'][0]:.3f} without noise; drawn in {path}"
    return table


if __name__ == "__main__":
    main()
