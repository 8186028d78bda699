"""Deal the rows of a table to parties: a pure function of the options, the seed and the repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.init.command import LEAST_COMMON
from blindfit.coordinator.simulate.asked import Asked
from blindfit.coordinator.terminal.wording import quantity

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Each purpose draws from a separate stream, so that an option changes no draw of another purpose.
HELD_OUT, OWNERS, DUPLICATES, ORDER, GAPS = range(1, 6)


@dataclass(frozen=True)
class Dealt:
    """Rows by their places in the table, counted from 0.

    Attributes:
        held_out: rows that no party has.
        training: all other rows; the measurement server has their labels.
        by_party: the rows of each party with columns, in the order of its table.
        common: the rows that all parties with columns have, in the order of a table that joins them.
        twice: number of ids that occur twice in the records of each party, which leaves them out.
    """

    held_out: Rows
    training: Rows
    by_party: Mapping[str, Rows]
    common: Rows
    twice: Mapping[str, int]


def deal_rows(labels: Floats, parties: Sequence[str], asked: Asked, repeat: int, *, label_is_number: bool) -> Dealt:
    """Hold out rows, and deal the others.

    With m training rows, P parties and the overlap o, c rows are common, c = m / (1 + P (1 - o) / o). The other rows
    belong to one party each, so that c is the share o of each party's rows.

    Raises:
        DataError: too few rows are common, or all of them have one label.
    """
    held_out = _hold_out(labels, asked, repeat, label_is_number=label_is_number)
    training = np.setdiff1d(np.arange(len(labels)), held_out)
    shuffled = _stream(asked, OWNERS, repeat).permutation(training)
    own = len(parties) * (1 - asked.overlap) / asked.overlap
    n_common = round(len(training) / (1 + own))
    parts = np.array_split(shuffled[n_common:], len(parties))
    twice, by_party = _stream(asked, DUPLICATES, repeat), {}
    for party, part in zip(parties, parts, strict=True):
        rows = np.sort(np.concatenate([shuffled[:n_common], part]))
        gone = twice.choice(rows, round(asked.duplicates * len(rows)), replace=False)
        by_party[party] = np.setdiff1d(rows, gone)
    n_before = n_common + np.array([len(part) for part in parts])
    common = by_party[parties[0]]
    for rows in by_party.values():
        common = np.intersect1d(common, rows)
    _refuse_too_few(labels[common], labels[held_out], asked, label_is_number=label_is_number)
    order = _stream(asked, ORDER, repeat)
    if asked.shuffle:
        by_party = {party: order.permutation(rows) for party, rows in by_party.items()}
        training, common = order.permutation(training), order.permutation(common)
    left = {party: int(n - len(by_party[party])) for party, n in zip(parties, n_before, strict=True)}
    return Dealt(held_out, training, by_party, common, left)


def draw_gaps(training: Rows, columns: Sequence[str], asked: Asked, repeat: int) -> dict[str, Rows]:
    """Return the training rows whose value is emptied, for each column."""
    stream, rows = _stream(asked, GAPS, repeat), np.sort(training)
    count = round(asked.missing * len(rows))
    return {name: stream.choice(rows, count, replace=False) for name in columns}


def _stream(asked: Asked, purpose: int, repeat: int) -> np.random.Generator:
    return np.random.default_rng([asked.seed, purpose, repeat])


def _hold_out(labels: Floats, asked: Asked, repeat: int, *, label_is_number: bool) -> Rows:
    """Return held-out rows at random; for labels 0 and 1, the same share of each."""
    stream, every = _stream(asked, HELD_OUT, repeat), np.arange(len(labels))
    groups = [every] if label_is_number else [every[labels == 0], every[labels == 1]]
    drawn = [stream.choice(group, round(asked.test_fraction * len(group)), replace=False) for group in groups]
    return np.sort(np.concatenate(drawn))


def _refuse_too_few(common: Floats, held_out: Floats, asked: Asked, *, label_is_number: bool) -> None:
    if len(common) < LEAST_COMMON:
        lowers = {"overlap": asked.overlap < 1, "duplicates": asked.duplicates > 0}
        named = [f"--{option}" for option, lowers_it in lowers.items() if lowers_it]
        ways = {"--overlap": "raise --overlap", "--duplicates": "lower --duplicates"}
        hints = [*(ways[option] for option in named), "lower --test-fraction, or name a table with more rows"]
        raise DataError(
            f"the cut leaves {quantity(len(common), 'training row')} that all parties have: fewer than {LEAST_COMMON} "
            "are too few",
            hint=", ".join(hints),
        )
    if not label_is_number:
        for what, found in {"training rows that all parties have": common, "held-out rows": held_out}.items():
            if not 0 < found.sum() < len(found):
                only = int(found[0]) if len(found) else 0
                raise DataError(
                    f"all {len(found):,} {what} have the label {only}, so no model can be fitted and compared",
                    hint="name a table with more rows of the rarer label, or change --test-fraction or --seed",
                )
    elif len(np.unique(held_out)) < 2 or len(np.unique(common)) < 2:
        raise DataError(
            "the held-out rows or the training rows all have the same label, so nothing can be compared",
            hint="name a table with more rows, or change --test-fraction or --seed",
        )
