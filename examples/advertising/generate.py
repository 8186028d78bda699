"""Make advertising data of any size: impressions with features, and which of them led to a conversion.

    python examples/advertising/generate.py --people 300000 --rows-per-person 3.3 --out data

    features.parquet       id, f0, f1, ...         for the advertiser
    conversions.parquet    id, person, label       for the measurement server, in another order

Five of every ten features are independent, three are correlated and two are binary. A label follows a logistic model
of the features and of an effect of the person. The intercept is solved for, so that the rate of conversions is the
requested one. The rows are made and written in blocks, so memory does not grow with their number.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

BLOCK_ROWS = 1 << 16  # rows of a block, which is one row group
CALIBRATION_PEOPLE = 50_000
PERSON_STD = 0.5  # standard deviation of a person's effect on the score
SCORE_STD = 1.5  # standard deviation of the features' effect
BINARY_RATE = 0.2
CORRELATION = 0.7  # between correlated features, through one common factor
#: Row numbers become distinct ids that do not show the order: n -> n * ODD mod 2^40.
ODD, ID_BITS = 669_530_388_271, 40

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Settings:
    people: int
    rows_per_person: float
    features: int
    positive_rate: float
    seed: int


@dataclass(frozen=True)
class Block:
    """All rows of some people: features (n, k), the score without intercept (n,), the person's number (n,)."""

    features: Floats
    score: NDArray[np.float64]
    person: NDArray[np.int64]


def kind_of(feature: int) -> str:
    return "binary" if feature % 10 >= 8 else "correlated" if feature % 10 >= 5 else "independent"


def columns_of(kind: str, n_features: int) -> list[int]:
    return [feature for feature in range(n_features) if kind_of(feature) == kind]


def weights(settings: Settings) -> Floats:
    drawn = np.random.default_rng([settings.seed, 0]).standard_normal(settings.features)
    return (SCORE_STD * drawn / np.linalg.norm(drawn)).astype(np.float32)


def make_block(settings: Settings, people: range, generator: np.random.Generator) -> Block:
    rows = 1 + generator.poisson(settings.rows_per_person - 1, len(people))
    person = np.repeat(np.arange(people.start, people.stop), rows)
    features = make_features(len(person), settings.features, generator)
    effect = PERSON_STD * generator.standard_normal(len(people))
    score = (features @ weights(settings)).astype(np.float64) + np.repeat(effect, rows)
    return Block(features, score, person)


def make_features(n_rows: int, n_features: int, generator: np.random.Generator) -> Floats:
    X = generator.standard_normal((n_rows, n_features), dtype=np.float32)
    correlated, binary = columns_of("correlated", n_features), columns_of("binary", n_features)
    factor = generator.standard_normal((n_rows, 1), dtype=np.float32)
    X[:, correlated] = np.float32(CORRELATION**0.5) * factor + np.float32((1 - CORRELATION) ** 0.5) * X[:, correlated]
    X[:, binary] = generator.random((n_rows, len(binary)), dtype=np.float32) < BINARY_RATE
    return X


def solve_intercept(settings: Settings) -> float:
    """Return the intercept at which a separate sample has the requested rate. It exists, as scores are continuous."""
    sample = make_block(settings, range(CALIBRATION_PEOPLE), np.random.default_rng([settings.seed, 1]))
    return float(brentq(lambda b: float(expit(sample.score + b).mean()) - settings.positive_rate, -50, 50))


def blocks(settings: Settings) -> Iterator[tuple[Block, np.random.Generator]]:
    """Yield all people in blocks of about BLOCK_ROWS rows, each with the generator of its labels."""
    size = max(1, int(BLOCK_ROWS / settings.rows_per_person))
    for start in range(0, settings.people, size):
        generator = np.random.default_rng([settings.seed, 2, start])
        yield make_block(settings, range(start, min(start + size, settings.people)), generator), generator


def names(prefix: str, numbers: NDArray[np.int64]) -> Any:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def ids(first: int, n_rows: int) -> Any:
    numbers = np.arange(first, first + n_rows, dtype=np.uint64) * np.uint64(ODD)
    return names("ad", (numbers & np.uint64((1 << ID_BITS) - 1)).astype(np.int64))


@contextmanager
def writer(path: Path, schema: pa.Schema, dictionary: list[str]) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of the file, which appears whole or not at all.

    Random floats do not compress, so only columns with few values get a dictionary.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with pq.ParquetWriter(unfinished, schema, use_dictionary=dictionary, compression="zstd") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def generate(settings: Settings, out: Path) -> tuple[int, int]:
    """Write both files. Return the number of rows and the number of positive rows."""
    feature_names = [f"f{j}" for j in range(settings.features)]
    feature_schema = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in feature_names)])
    label_schema = pa.schema([("id", pa.string()), ("person", pa.string()), ("label", pa.int8())])
    binary = [feature_names[j] for j in columns_of("binary", settings.features)]
    intercept, n_rows, n_positive = solve_intercept(settings), 0, 0
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        features = files.enter_context(writer(out / "features.parquet", feature_schema, binary))
        conversions = files.enter_context(writer(out / "conversions.parquet", label_schema, ["label"]))
        for block, generator in blocks(settings):
            label = (generator.random(len(block.score)) < expit(block.score + intercept)).astype(np.int8)
            row_ids = ids(n_rows, len(label))
            features.write_table(pa.Table.from_arrays([row_ids, *block.features.T.copy()], schema=feature_schema))
            table = pa.Table.from_arrays([row_ids, names("p", block.person), label], schema=label_schema)
            conversions.write_table(table.take(generator.permutation(len(label))))
            n_rows, n_positive = n_rows + len(label), n_positive + int(label.sum())
    return n_rows, n_positive


def parse_arguments() -> tuple[Settings, Path]:
    parser = argparse.ArgumentParser(description="Make advertising data: features.parquet, conversions.parquet.")
    parser.add_argument("--people", type=int, default=30_000, help="default: %(default)s")
    parser.add_argument("--rows-per-person", type=float, default=3.3, help="mean, at least 1; default: %(default)s")
    parser.add_argument("--features", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--positive-rate", type=float, default=0.05, help="in (0, 1); default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data", help="default: %(default)s")
    chosen = parser.parse_args()
    if chosen.people < 1 or chosen.features < 1 or chosen.rows_per_person < 1:
        parser.error("--people, --features and --rows-per-person must be at least 1")
    if not 0 < chosen.positive_rate < 1:
        parser.error("--positive-rate must lie between 0 and 1")
    if chosen.seed < 0:
        parser.error("--seed must not be negative")
    out: Path = chosen.out
    settings = {key: value for key, value in vars(chosen).items() if key != "out"}
    return Settings(**settings), out


def main() -> None:
    settings, out = parse_arguments()
    n_rows, n_positive = generate(settings, out)
    print(f"{n_rows:,} rows of {settings.people:,} people, base rate {n_positive / n_rows:.3%}")
    for name in ("features.parquet", "conversions.parquet"):
        print(f"{out / name}: {(out / name).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
