"""Measure record linkage: the share of right matches at each threshold, and the effect of wrong ones on a model.

    python -m benchmarks.vertical.linkage [--json FILE] [--quick]

1. `thresholds` has made-up registers (examples/linkage/dirty_records.py), with each field of each record wrong with
   probability 0.12. It has precision and recall by the truth, and what a key node estimates without the truth.
2. `wrong_matches` has a logistic regression on rows of which a share was exchanged, judged on the right ones, as means
   over 20 repeats. The made-up data have 5 + 5 normal columns and 4,000 rows. In scikit-learn's breast cancer data the
   10 means are at one party, and the errors and worst values at the other.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer

from benchmarks.kit import machine
from blindfit.algorithms.alignment import clk
from blindfit.algorithms.alignment.clk import Encoding, Field
from blindfit.algorithms.alignment.matching import alike_pairs, assign
from blindfit.algorithms.alignment.sensitivity import expected_errors, refit_with_wrong_matches
from examples.linkage.dirty_records import registers

FIELDS = (Field("first_name"), Field("last_name"), Field("birth_date", "date"), Field("postcode"))
SECRET = b"the secret of the two parties..."
SEED = 4
REPEATS, QUICK_REPEATS = 20, 2
MADE_UP_ROWS = 4_000


@dataclass(frozen=True)
class Case:
    """Registers of as many rows each, a share of whose people is in both, and how they are linked."""

    rows: int
    threshold: float
    in_both: float = 0.5
    fold: bool = False


CASES = (
    Case(2_000, 0.8),
    Case(20_000, 0.75),
    Case(20_000, 0.8),
    Case(20_000, 0.85),
    Case(20_000, 0.75, fold=True),
    Case(20_000, 0.8, in_both=0.1),
    Case(20_000, 0.85, in_both=0.1),
)
QUICK_CASES = (Case(300, 0.8),)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="small registers, few repeats: to see that it runs")
    options = parser.parse_args()
    cases, repeats = (QUICK_CASES, QUICK_REPEATS) if options.quick else (CASES, REPEATS)
    console = Console()
    result: dict[str, Any] = {
        "machine": machine.describe(),
        "thresholds": [linked(case) for case in cases],
        "repeats": repeats,
        "wrong_matches": dict(wrong_matches(repeats)),
    }
    console.print(_thresholds(result["thresholds"]))
    for name, rows in result["wrong_matches"].items():
        console.print(_wrong_matches(name, rows))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def linked(case: Case) -> dict[str, Any]:
    n_both = round(case.in_both * case.rows)
    people = registers(case.rows, case.rows, n_both, SEED)
    encoding = Encoding(FIELDS, fold=case.fold)
    first, second = (clk.encode(side, encoding, SECRET) for side in (people.first, people.second))
    pairs, _ = alike_pairs(first, second, case.threshold)
    matches = assign(pairs, case.threshold)
    found = set(zip(matches.first.tolist(), matches.second.tolist(), strict=True))
    right = len(found & set(map(tuple, people.true_pairs.tolist())))
    errors = expected_errors(pairs, matches, (case.rows, case.rows), case.threshold)
    return asdict(case) | {
        "precision": right / len(found),
        "recall": right / n_both,
        "wrong_estimated": errors.wrong_share,
        "missed_estimated": errors.missed_share,
    }


def wrong_matches(repeats: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    generator = np.random.default_rng(SEED)
    columns = generator.normal(size=(MADE_UP_ROWS, 10))
    scores = columns @ generator.normal(size=10)
    labels = (generator.random(MADE_UP_ROWS) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    tumours, malignant = load_breast_cancer(return_X_y=True)
    tumours = (tumours - tumours.mean(axis=0)) / tumours.std(axis=0)
    for name, X, y, first in (
        ("made-up, 5 + 5", columns, labels, 5),
        ("breast cancer, 10 + 20", tumours, malignant, 10),
    ):
        found = refit_with_wrong_matches(X[:, :first], X[:, first:], y, generator, repeats=repeats)
        yield name, [asdict(one) for one in found]


def _thresholds(rows: list[dict[str, Any]]) -> Table:
    table = Table("rows each", "threshold", "in both", "precision", "recall", "wrong, estimated", "missed, estimated")
    for row in rows:
        low, high = row["wrong_estimated"]
        table.add_row(
            f"{row['rows']:,}{', folded' if row['fold'] else ''}", f"{row['threshold']:g}", f"{row['in_both']:.0%}",
            f"{row['precision']:.3f}", f"{row['recall']:.3f}", f"{low:.1%} - {high:.1%}",
            f"{row['missed_estimated']:.1%}",
        )  # fmt: skip
    return table


def _wrong_matches(name: str, rows: list[dict[str, Any]]) -> Table:
    table = Table("wrong", "log loss", "second party's weights", title=name)
    for row in rows:
        table.add_row(f"{row['wrong_share']:.0%}", f"{row['log_loss']:.4f}", f"{row['second_party_weights']:.2f}")
    return table


if __name__ == "__main__":
    main()
