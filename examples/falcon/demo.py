"""`make demo-falcon`: three organisations and a key node, each a process, and a comparison with other models.

python -m examples.falcon.demo [--out DIR] [--set KEY=VALUE ...]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from rich.panel import Panel
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from blindfit import load_model
from blindfit.algorithms.statistics.quality import metrics
from examples.demo import begin, console, forget, run_job
from examples.taylor.joined import joined

HERE = Path(__file__).parent


def main() -> None:
    about = "Vertical logistic regression between four processes, with encrypted weights, then in secret shares."
    options = begin(HERE, about, "archive_new.csv", data_of=HERE.parent / "taylor")
    outs = {"in shares": options.out, "encrypted": options.out / "threshold"}
    run_job(HERE, outs["encrypted"], [*options.set, "falcon.backend=threshold"])
    console.print(
        "\n[dim]The same on secret shares. For the demo, the hospital forgets what its labels have revealed."
        " Otherwise it would refuse a second training on so few rows.[/]"
    )
    forget(HERE)
    run_job(HERE, outs["in shares"], options.set)
    console.print(
        Panel(
            comparison(outs),
            title="known only because this is a demo",
            subtitle="all files and parts of the model, here",
            expand=False,
        )
    )


def comparison(outs: Mapping[str, Path]) -> Table:
    """Compare log loss and AUC on the test rows, which are the same in each run."""
    ids, rows, labels = joined()
    tested = set(
        pyarrow.csv.read_csv(outs["in shares"] / "hospital" / "test_rows.csv", convert_options=AS_TEXT)[
            "id"
        ].to_pylist()
    )
    test = np.isin(ids, list(tested))
    found = {"constant (base rate)": np.full(test.sum(), labels[~test].mean())}
    for how, out in outs.items():
        parts = {name: load_model(out / name / "model.json") for name in rows}
        scores = sum(part.score_parts(rows[name][test]) for name, part in parts.items())
        found[f"Blindfit, {how}, opened weights"] = parts["hospital"].predictions(scores)
    x = np.hstack(list(rows.values()))
    x = StandardScaler().fit(x[~test]).transform(x)
    plain = LogisticRegression().fit(x[~test], labels[~test])
    found["scikit-learn, in one place"] = plain.predict_proba(x[test])[:, 1]
    table = Table("model", "log loss", "AUC", box=None)
    for name, probabilities in found.items():
        loss, auc = metrics.log_loss(labels[test], probabilities), metrics.auc(labels[test], probabilities)
        table.add_row(name, f"{loss:.4f}", f"{auc:.4f}")
    table.caption = f"{test.sum():,} test rows; in the runs, no party had their scores"
    return table


AS_TEXT = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})


if __name__ == "__main__":
    main()
