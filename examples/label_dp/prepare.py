"""Make the two files of the label-DP example from the RAND health insurance experiment (statsmodels; public domain).

    python examples/label_dp/prepare.py [--out DIR]

An insurer knows nine features of each of 20,190 person-years. A clinic knows how often the person saw a doctor. Both
files have the same made-up ids, each in its own order:

    features.csv    id, lncoins, idp, lpi, fmde, physlm, disea, hlthg, hlthf, hlthp
    visits.csv      id, visits
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from blindfit.parties.files.written import write_table

SEED = 20190  # public: it decides only ids and orders
OUTCOME = "mdvis"  # number of visits to a doctor in the year


def rand_table() -> pa.Table:
    """Return the id, the nine features and visits, with one row for each person-year."""
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        sys.exit("statsmodels, which holds the RAND data, is not installed: pip install 'statsmodels>=0.14.4'")
    data = randhie.load_pandas().data
    numbers = np.random.default_rng(SEED).permutation(len(data))
    columns = {"id": [f"py{number:05}" for number in numbers]}
    columns |= {name: data[name].to_numpy() for name in data.columns if name != OUTCOME}
    return pa.table({**columns, "visits": data[OUTCOME].to_numpy()})


def shuffle(table: pa.Table, seed: int) -> dict[str, pa.ChunkedArray]:
    mixed = table.take(np.random.default_rng(seed).permutation(len(table)))
    return dict(zip(mixed.column_names, mixed.columns, strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make the files of the label-DP example from the RAND data.")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "data", help="folder for the files (default: %(default)s)"
    )
    out: Path = parser.parse_args(arguments).out
    table = rand_table()
    write_table(out / "features.csv", shuffle(table.drop_columns(["visits"]), SEED + 1))
    write_table(out / "visits.csv", shuffle(table.select(["id", "visits"]), SEED + 2))
    visits = table["visits"].to_numpy()
    print(f"{os.path.relpath(out / 'features.csv')}: {len(table):,} rows, {table.num_columns - 2} features")
    print(f"{os.path.relpath(out / 'visits.csv')}: {len(table):,} rows, {visits.mean():.2f} visits on average")


if __name__ == "__main__":
    main()
