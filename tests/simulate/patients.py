"""A table of patients that a simulation cuts into parties."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = tuple(f"x{place}" for place in range(9))


def patients(rows: int = 700, *, seed: int = 1) -> pd.DataFrame:
    """Return features, of which each party has some that matter, and a label of 0 and 1."""
    draw = np.random.default_rng(seed)
    features = draw.normal(size=(rows, len(COLUMNS)))
    scores = features @ np.linspace(1.0, 0.4, len(COLUMNS))
    label = (draw.random(rows) < 1 / (1 + np.exp(-scores))).astype(int)
    return pd.DataFrame({**dict(zip(COLUMNS, features.round(4).T, strict=True)), "ill": label})


def write_patients(folder: Path, rows: int = 700) -> Path:
    path = folder / "patients.csv"
    patients(rows).to_csv(path, index=False)
    return path
