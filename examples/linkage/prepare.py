"""Make the two registers of the linkage example: made-up people with typing errors and no common id.

    python examples/linkage/prepare.py [--out DIR]

    bank.csv       row, first_name, last_name, birth_date, postcode, defaulted, 6 features
    insurer.csv    row, first_name, last_name, birth_date, postcode, 6 features

Two thirds of the people of each register are in the other one, too. Features of both registers decide who defaulted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from dirty_records import registers

HERE = Path(__file__).parent
ROWS, IN_BOTH, FEATURES = 1500, 1000, 6


def main() -> None:
    parser = argparse.ArgumentParser(description="Two registers of made-up people.")
    parser.add_argument("--out", type=Path, default=HERE / "data", help="folder for the files (default: %(default)s)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(2026)
    people = registers(ROWS, ROWS, IN_BOTH, seed=2026)
    bank, insurer = draw.normal(size=(ROWS, FEATURES)), draw.normal(size=(ROWS, FEATURES))
    other_half = draw.normal(size=(ROWS, FEATURES))  # features of bank clients that the insurer does not have
    i, j = people.true_pairs.T
    other_half[i] = insurer[j]
    score = bank @ np.array([1.2, -0.8, 0.6, 0.4, 0.0, 0.0]) + other_half @ np.array([1.0, 0.9, -0.7, 0.0, 0.3, 0.0])
    defaulted = (draw.random(ROWS) < 1 / (1 + np.exp(-score))).astype(np.int64)
    write(out / "bank.csv", people.first, {"defaulted": defaulted}, bank, "account")
    write(out / "insurer.csv", people.second, {}, insurer, "policy")


def write(
    path: Path, people: dict[str, list[str]], label: dict[str, np.ndarray], features: np.ndarray, of: str
) -> None:
    columns = {f"{of}_{k}": features[:, k] for k in range(features.shape[1])}
    rows = {"row": [f"{of}-{number}" for number in range(len(features))]}
    pyarrow.csv.write_csv(pa.table({**rows, **people, **label, **columns}), path)


if __name__ == "__main__":
    main()
