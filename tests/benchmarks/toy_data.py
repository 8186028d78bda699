"""Small files in the formats of the data sets that benchmarks read, with made-up rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

ROWS = 600


def write_toy_data(directory: Path) -> None:
    draw = np.random.default_rng(11)
    _write_breast(directory / "breast", draw)
    _write_bank(directory / "bank", draw)
    _write_housing(directory / "housing", draw)
    _write_communities(directory / "communities", draw)


def _write_breast(directory: Path, draw: np.random.Generator) -> None:
    features = draw.normal(size=(ROWS, 30))
    labels = (features.sum(axis=1) + draw.normal(size=ROWS) > 0).astype(int)
    ids = np.arange(ROWS)
    guest = np.column_stack([ids, labels, features[:, :10]])
    host = np.column_stack([ids, features[:, 10:]])
    _write(directory / "breast_hetero_guest.csv", ["id", "y", *(f"x{j}" for j in range(10))], guest)
    _write(directory / "breast_hetero_host.csv", ["id", *(f"x{j}" for j in range(20))], host)


def _write_bank(directory: Path, draw: np.random.Generator) -> None:
    features = draw.random((ROWS, 16))
    labels = (features[:, 0] + 0.3 * draw.normal(size=ROWS) > 0.5).astype(float)
    parts = (np.column_stack([features[:, :6], labels]), features[:, 6:11], features[:, 11:])
    for number, part in enumerate(parts):
        _write(directory / f"bank_client{number}.txt", [], part)


def _write_housing(directory: Path, draw: np.random.Generator) -> None:
    households, income = draw.integers(50, 1000, ROWS), draw.uniform(1, 10, ROWS)
    values = [
        draw.uniform(-124, -114, ROWS), draw.uniform(32, 42, ROWS), draw.integers(1, 52, ROWS),
        5 * households + draw.integers(0, 99, ROWS), households + draw.integers(0, 9, ROWS),
        3 * households + draw.integers(0, 99, ROWS), households, income,
        np.clip(4e4 * income + 2e4 * draw.normal(size=ROWS), 15_000, 500_000),
    ]  # fmt: skip
    names = ["longitude", "latitude", "age", "rooms", "bedrooms", "population", "households", "income", "value"]
    _write(directory / "cal_housing.data", names, np.column_stack(values))


def _write_communities(directory: Path, draw: np.random.Generator) -> None:
    features = np.round(draw.random((ROWS, 6)), 2)
    crimes = np.round(features.mean(axis=1), 2)
    unused = np.zeros((ROWS, 5), int)
    names = ["state", "county", "community", "communityname string", "fold", *"abcde", "OtherPerCap"]
    _write(directory / "communities.data", [*names, "ViolentCrimesPerPop"], np.column_stack([unused, features, crimes]))


def _write(path: Path, names: list[str], rows: np.ndarray) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = [",".join(f"{value:.10g}" for value in row) for row in rows]
    path.write_text("\n".join(([",".join(names)] if names else []) + lines) + "\n")
