"""Make the files of the WALR example from the RAND health insurance experiment (statsmodels; public domain).

    python examples/walr/prepare.py [--out DIR] [--holders]

An insurer knows nine features of each of 20,190 person-years. A measurement server knows whether the person saw a
doctor. Both files have the same made-up ids, each in its own order:

    features.parquet    id, lncoins, idp, lpi, fmde, physlm, disea, hlthg, hlthf, hlthp
    visits.csv          id, saw_doctor

A third file has all columns of some rows. `blindfit simulate` cuts it into parties:

    sample.csv          id, the nine features, saw_doctor

With --holders, two more files have the same features for two parties. Each party lacks some of the people:

    plans.parquet       id, lncoins, idp, lpi, fmde
    health.parquet      id, physlm, disea, hlthg, hlthf, hlthp
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

SEED = 20190  # public: it decides only ids and orders
OUTCOME = "mdvis"  # number of visits to a doctor in the year
PARTIES = {"plans": ["lncoins", "idp", "lpi", "fmde"], "health": ["physlm", "disea", "hlthg", "hlthf", "hlthp"]}
KNOWN = 0.95  # share of the people that each party has
SAMPLE_ROWS = 2000


def rand_table() -> pa.Table:
    """Return the id, the nine features and saw_doctor, with one row for each person-year."""
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        sys.exit("statsmodels, which holds the RAND data, is not installed: pip install 'statsmodels>=0.14.4'")
    data = randhie.load_pandas().data
    numbers = np.random.default_rng(SEED).permutation(len(data))
    columns = {"id": [f"py{number:05}" for number in numbers]}
    columns |= {name: data[name].to_numpy() for name in data.columns if name != OUTCOME}
    columns["saw_doctor"] = (data[OUTCOME] > 0).to_numpy().astype(np.int8)
    return pa.table(columns)


def shuffle(table: pa.Table, seed: int) -> pa.Table:
    return table.take(np.random.default_rng(seed).permutation(len(table)))


def write(path: Path, write_to: Callable[[Path], None]) -> None:
    """Write the whole file, or none of it."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        write_to(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_parties(table: pa.Table, out: Path) -> None:
    for number, (name, columns) in enumerate(PARTIES.items()):
        rows = shuffle(table.select(["id", *columns]), SEED + 3 + number).slice(0, int(KNOWN * len(table)))
        write(out / f"{name}.parquet", lambda path, rows=rows: pq.write_table(rows, path))  # type: ignore[misc]
        print(f"{os.path.relpath(out / f'{name}.parquet')}: {len(rows):,} rows, {len(columns)} features")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make the files of the WALR example from the RAND data.")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "data", help="folder for the files (default: %(default)s)"
    )
    parser.add_argument("--holders", action="store_true", help="also write the features of two parties")
    given = parser.parse_args(arguments)
    out: Path = given.out
    table = rand_table()
    features = shuffle(table.drop_columns(["saw_doctor"]), SEED + 1)
    visits = shuffle(table.select(["id", "saw_doctor"]), SEED + 2)
    out.mkdir(parents=True, exist_ok=True)
    write(out / "features.parquet", lambda path: pq.write_table(features, path))
    write(out / "visits.csv", lambda path: pyarrow.csv.write_csv(visits, path))
    write(out / "sample.csv", lambda path: pyarrow.csv.write_csv(shuffle(table, SEED + 5).slice(0, SAMPLE_ROWS), path))
    share = np.mean(visits["saw_doctor"].to_numpy())
    print(f"{os.path.relpath(out / 'features.parquet')}: {len(features):,} rows, {features.num_columns - 1} features")
    if given.holders:
        write_parties(table, out)
    print(f"{os.path.relpath(out / 'visits.csv')}: {len(visits):,} rows, {share:.1%} of them saw a doctor")
    print(f"{os.path.relpath(out / 'sample.csv')}: {SAMPLE_ROWS:,} rows, with all columns")


if __name__ == "__main__":
    main()
