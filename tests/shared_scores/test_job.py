"""A whole job between nodes: trained in shares, predicted in shares, as good as the model that was opened."""

from __future__ import annotations

import csv
from pathlib import Path

# One batch of all rows, and no validation: the weights, before they are rounded, are the same in both trainings.
SAME = ("falcon.batch_rows=1000", "falcon.validation_fraction=0", "split.test_fraction=0", 'falcon.schedule="constant"')
SHARED = 'falcon.weights="shared"'


def scores(root: Path, session: str) -> dict[str, tuple[float, float]]:
    path = root / f"state/bank/predictions/{session}/scores.csv"
    with path.open(newline="") as file:
        return {row["id"]: (float(row["score"]), float(row["probability"])) for row in csv.DictReader(file)}
