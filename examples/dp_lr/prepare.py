"""Make the two files of the dp-lr example from scikit-learn's breast cancer data (Wisconsin, 569 tumours).

    python examples/dp_lr/prepare.py [--out DIR]

The features are ten measurements of cell nuclei, each with its mean, error and worst value. 60 tumours stand for a
public archive, and the other 509 for the patients of a hospital:

    archive.csv     id, 30 features, malignant
    patients.csv    id, 30 features, malignant
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from blindfit.parties.files.written import write_table

SEED = 569  # public: it decides only which tumours are in the archive
PUBLIC_ROWS = 60


def tumours() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the names of the features, the features, and 1 for malignant tumours."""
    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    return names, data.data, (data.target == 0).astype(np.int8)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make the files of the dp-lr example from the breast cancer data.")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "data", help="folder for the files (default: %(default)s)"
    )
    out: Path = parser.parse_args(arguments).out
    names, features, malignant = tumours()
    order = np.random.default_rng(SEED).permutation(len(malignant))
    for file, rows in (("archive.csv", order[:PUBLIC_ROWS]), ("patients.csv", order[PUBLIC_ROWS:])):
        columns = {name: features[rows, j] for j, name in enumerate(names)}
        write_table(out / file, {"id": [f"t{row:03}" for row in rows], **columns, "malignant": malignant[rows]})
        print(f"{os.path.relpath(out / file)}: {len(rows)} rows, {malignant[rows].mean():.1%} of them malignant")


if __name__ == "__main__":
    main()
