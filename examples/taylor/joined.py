"""The three files in one table, which no party has: only a demo can make it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from examples.taylor.prepare import KINDS

HERE = Path(__file__).parent


@cache
def joined() -> tuple[list[str], dict[str, np.ndarray], np.ndarray]:
    """Return the ids that all parties have, the columns of each party in this order, and 1 for malignant tumours."""
    tables = {party: by_id(HERE / "data" / f"{party}.csv") for party in KINDS}
    ids = sorted(set.intersection(*(set(table) for table in tables.values())))
    rows = {party: np.array([table[i] for i in ids]) for party, table in tables.items()}
    labels, rows["hospital"] = rows["hospital"][:, 0], rows["hospital"][:, 1:]
    return ids, rows, labels


def by_id(path: Path) -> dict[str, tuple[float, ...]]:
    types = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})
    table = pyarrow.csv.read_csv(path, convert_options=types)
    columns = [table[name].to_numpy() for name in table.column_names if name != "id"]
    return dict(zip(table["id"].to_pylist(), zip(*columns, strict=True), strict=True))
