"""`make demo-falcon`: three organisations and a key node, each a process, then what only a demo can know.

python -m examples.falcon.demo [--out DIR] [--set KEY=VALUE ...]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from rich.panel import Panel
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from blindfit import load_model
from blindfit.algorithms.statistics import metrics
from examples.demo import begin, console, run_job
from examples.taylor.joined import joined

HERE = Path(__file__).parent


def main() -> None:
    about = "Vertical logistic regression between four processes, in secret shares."
    options = begin(HERE, about, "archive_new.csv", data_of=HERE.parent / "taylor")
    run_job(HERE, options.out, options.set)
    console.print(
        Panel(
            comparison(options.out),
            title="known only because this is a demo",
            subtitle="all three files, and all three parts of the model, here",
            expand=False,
        )
    )


def comparison(out: Path) -> Table:
    """Log loss and AUC on the run's own test rows, of models that were fitted to all the other common rows."""
    ids, rows, labels = joined()
    tested = set(pyarrow.csv.read_csv(out / "hospital" / "test_rows.csv", convert_options=AS_TEXT)["id"].to_pylist())
    test = np.isin(ids, list(tested))
    parts = {name: load_model(out / name / "model.json") for name in rows}
    scores = sum(part.score_parts(rows[name][test]) for name, part in parts.items())
    x = np.hstack(list(rows.values()))
    x = StandardScaler().fit(x[~test]).transform(x)
    found = {
        "constant (base rate)": np.full(test.sum(), labels[~test].mean()),
        "Blindfit, this run's opened weights": parts["hospital"].predictions(scores),
        "scikit-learn, in one place": LogisticRegression().fit(x[~test], labels[~test]).predict_proba(x[test])[:, 1],
    }
    table = Table("model", "log loss", "AUC", box=None)
    for name, probabilities in found.items():
        loss, auc = metrics.log_loss(labels[test], probabilities), metrics.auc(labels[test], probabilities)
        table.add_row(name, f"{loss:.4f}", f"{auc:.4f}")
    table.caption = f"{test.sum():,} test rows, whose scores nobody had in the run itself"
    return table


AS_TEXT = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})


if __name__ == "__main__":
    main()
