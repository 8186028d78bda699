"""Levels of a category that a scorer meets and training did not: they are counted and reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from blindfit.algorithms.columns.record import TableColumn
from blindfit.algorithms.errors import BlindfitWarning

SHOWN = 3


class UnseenLevelWarning(BlindfitWarning):
    """A table to be scored has levels that the model's training did not meet.

    The row gets the score of a level that has no column. To refuse such rows instead, make the warning an error, as in
    the example.

    Example:
        >>> model = blindfit.load_model("models/regions.json")  # fitted to rows with north, south and west
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.UnseenLevelWarning)
        ...     model.predict(pd.DataFrame({"region": ["east"]}))
        Traceback (most recent call last):
        blindfit.algorithms.columns.levels.UnseenLevelWarning: column region: 1 row has a level ...
    """


@dataclass(frozen=True)
class Unseen:
    """Rows of one column whose level is new.

    Attributes:
        rows: number of rows of each new level.
        near: new levels that differ from a known level only in spelling, each with the known level.
    """

    column: TableColumn
    rows: Counter[str]
    near: dict[str, str]

    def __str__(self) -> str:
        levels = [ascii(level) for level, _ in self.rows.most_common(SHOWN)]
        more = ", ..." if len(self.rows) > SHOWN else ""
        known = "that training did not meet" if self.column.reference is not None else "that has no column in the model"
        count = self.rows.total()
        rows = "1 row has" if count == 1 else f"{count} rows have"
        text = (
            f"column {self.column.name}: {rows} a level {known} ({', '.join(levels)}{more}), "
            "which is scored as 0 in each of its columns"
        )
        if self.near:
            new, old = next(iter(self.near.items()))
            text += f"; {new!a} differs from {old!a} only in spelling"
        return text


def find_unseen_levels(texts: Any, column: TableColumn) -> Unseen | None:
    """Return the levels that training did not meet; None if training met all.

    Args:
        texts: a `pyarrow.StringArray` in one spelling.
    """
    rows: Counter[str] = Counter()
    for counted in pc.value_counts(texts.drop_null()).to_pylist():
        if counted["values"] not in column.known:
            rows[counted["values"]] = counted["counts"]
    if not rows:
        return None
    known = {loosely(level): level for level in (*(column.reference or ()), *column.chosen)}
    return Unseen(column, rows, {level: known[loosely(level)] for level in rows if loosely(level) in known})


def loosely(level: str) -> str:
    """Return what two levels have in common that differ only in case, spaces, or how a number is written."""
    text = "".join(level.casefold().split())
    try:
        return repr(float(text))
    except ValueError:
        return text


def merge_unseen(counts: Iterable[Unseen]) -> dict[str, Unseen]:
    """Return one count for each column, over all batches."""
    found: dict[str, Unseen] = {}
    for each in counts:
        name = each.column.name
        before = found.get(name)
        found[name] = each if before is None else Unseen(each.column, before.rows + each.rows, before.near | each.near)
    return found
