"""Tables that the tests cut: one made here, and public ones from packages that the tests install anyway."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from tests.init.public_tables import read_titanic

ROWS = 700


def people(rows: int = ROWS) -> pd.DataFrame:
    """Make rows with ids, numbers, texts, dates, a boolean, gaps, a constant, free text and two labels."""
    draw = np.random.default_rng(5)
    age, income, region = draw.normal(45, 12, rows).round(1), draw.normal(size=rows), draw.integers(0, 3, rows)
    score = (age - 45) / 12 + income + region - 1 + draw.logistic(size=rows)
    return pd.DataFrame(
        {
            "client": [f"c{i:05}" for i in range(rows)],
            "age": np.where(np.arange(rows) % 17 == 0, np.nan, age),
            "income": income,
            "region": np.array(["north", "south", "west"])[region],
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 2000, rows), "D"),
            "smokes": draw.integers(0, 2, rows) > 0,
            "spent": draw.normal(size=rows),
            "visits": draw.normal(size=rows),
            "note": [f"free text {i}" for i in range(rows)],
            "planet": "earth",
            "churned": np.where(score > 0, "yes", "no"),
            "amount": (score * 10).round(2),
        }
    )


def titanic() -> Any:
    """Return the passengers of the Titanic: a label of 0 and 1, texts and gaps."""
    return read_titanic().drop(columns=["boat", "body"])


def births() -> Any:
    """Return births in Pennsylvania, with a number as the label and texts of two levels."""
    with files("statsmodels").joinpath("treatment/tests/results/cataneo2.csv").open() as file:
        table: Any = pd.read_csv(file)
    return table[["bweight", "mbsmoke", "mmarried", "foreign", "deadkids", "mage", "medu", "fage", "fedu", "nprenatal"]]


def tumours() -> Any:
    """Return scikit-learn's breast cancer cells with a count as label: the number of further rows of the kind."""
    from sklearn.datasets import load_breast_cancer

    table: Any = load_breast_cancer(as_frame=True).frame
    columns = [name for name in table if name.startswith("mean")]
    return table[columns].assign(count=np.minimum(table["mean radius"].round() - 6, 20).astype(int))
