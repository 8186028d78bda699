"""Make the files of the Taylor example from scikit-learn's breast cancer data (569 tumours, 30 features).

    python examples/taylor/prepare.py [--out DIR]

Three organisations know ten features each of the same tumours, and the hospital also knows which were malignant. Each
file has its own order of rows. The laboratory and the archive have rows that no other party has:

    hospital.csv     id, malignant, mean_radius ..
    laboratory.csv   id, error_radius ..
    archive.csv      id, worst_radius ..

hospital_new.csv, laboratory_new.csv and archive_new.csv have the same columns of 40 more tumours without a diagnosis.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from sklearn.datasets import load_breast_cancer

HERE = Path(__file__).parent
KINDS = {"hospital": "mean", "laboratory": "error", "archive": "worst"}
STRANGERS = {"hospital": 0, "laboratory": 60, "archive": 25}  # rows that only this party has
NEW_ROWS = 40
NEW_STRANGERS = {"hospital": 2, "laboratory": 5, "archive": 3}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The breast cancer data, split between three organisations.")
    parser.add_argument("--out", type=Path, default=HERE / "data", help="folder for the files (default: %(default)s)")
    out = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(2026)
    features, malignant, names = tumours()
    ids = np.array([f"T{number:05d}" for number in draw.choice(90_000, len(features), replace=False) + 10_000])
    for party in KINDS:
        labels = {"malignant": malignant} if party == "hospital" else {}
        table = {"id": ids, **labels, **columns_of(party, features, names)}
        write(table, STRANGERS[party], draw, out / f"{party}.csv")
    write_new(features, names, out)


def columns_of(party: str, features: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    return {name: features[:, j] for j, name in enumerate(names) if name.startswith(KINDS[party])}


def write_new(features: np.ndarray, names: list[str], out: Path) -> None:
    """Write tumours that resemble some of the others: each measurement differs by a few per cent."""
    draw = np.random.default_rng(2027)
    alike = features[draw.choice(len(features), NEW_ROWS, replace=False)]
    alike = np.round(alike * draw.normal(1, 0.05, alike.shape), 5)
    ids = np.array([f"N{number:05d}" for number in draw.choice(90_000, NEW_ROWS, replace=False) + 10_000])
    for party in KINDS:
        write({"id": ids, **columns_of(party, alike, names)}, NEW_STRANGERS[party], draw, out / f"{party}_new.csv")


def write(table: dict[str, np.ndarray], strangers: int, draw: np.random.Generator, path: Path) -> None:
    """Write the rows in a random order, with the rows that only this party has."""
    table = add_strangers(table, strangers, draw)
    order = draw.permutation(len(table["id"]))
    pyarrow.csv.write_csv(pa.table({name: column[order] for name, column in table.items()}), path)


def tumours() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the features, 1 for malignant tumours, and names such as mean_radius."""
    data = load_breast_cancer()
    names = [name.replace(" error", "").replace(" ", "_") for name in data.feature_names]
    kinds = np.repeat(["mean", "error", "worst"], 10)
    plain = [name.removeprefix("mean_").removeprefix("worst_") for name in names]
    return data.data, 1 - data.target, [f"{kind}_{name}" for kind, name in zip(kinds, plain, strict=True)]


def add_strangers(table: dict[str, np.ndarray], count: int, draw: np.random.Generator) -> dict[str, np.ndarray]:
    """Add copies of some rows under new ids."""
    if not count:
        return table
    again = draw.choice(len(table["id"]), count, replace=False)
    strangers = {name: column[again] for name, column in table.items()}
    strangers["id"] = np.array([f"X{number:05d}" for number in draw.choice(90_000, count, replace=False)])
    return {name: np.concatenate([column, strangers[name]]) for name, column in table.items()}


if __name__ == "__main__":
    main()
