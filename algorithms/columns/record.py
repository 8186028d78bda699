"""What a model remembers of the columns of the tables that it reads: their kinds, levels and rules for missing values.

    kind       a value in the table       the model's columns
    number     a finite number            age
    boolean    true or false              smokes: 1 or 0
    date       a date or a moment         born: days since 1970-01-01, in UTC
    category   a text, one of few         region=north, region=south, ...: 1 in a row with that level, else 0

A column whose rule is "indicator" has one more column, `age=` or `region=`: 1 in a row without a value, else 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from blindfit.algorithms.errors import DataError

Kind = Literal["number", "boolean", "date", "category"]
MissingRule = Literal["refuse", "mean", "indicator"]
UNIT_OF_DATES = "days since 1970-01-01"

#: What pandas, R and spreadsheets write without quotes for "no value" in a csv file.
MISSING_WORDS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "<NA>", "NaN", "nan")


def column_of_level(column: str, level: str) -> str:
    """Return the name of the model's column for one level; for the level "", of the rows without a value."""
    return f"{column}={level}"


@dataclass(frozen=True)
class TableColumn:
    """One column of a table, as training read it.

    Args:
        levels: those of a category that have a column of their own.
        reference: levels of a category that training met and that have no column; None where nobody recorded them.
        declared: whether the party's file names the levels; a declared level is never taken for "no value".
        missing: what a scorer does about a row without a value: refuse it, put the recorded mean, or put the mean
            (for a category: nothing) and mark the row in a column of its own.
    """

    name: str
    kind: Kind = "number"
    levels: tuple[str, ...] = ()
    reference: tuple[str, ...] | None = None
    missing: MissingRule = "refuse"
    declared: bool = False

    @property
    def valued(self) -> tuple[str, ...]:
        """The model's columns that hold its value."""
        if self.kind != "category":
            return (self.name,)
        return tuple(column_of_level(self.name, level) for level in self.levels)

    @property
    def made(self) -> tuple[str, ...]:
        """All of the model's columns that come from it."""
        return (*self.valued, column_of_level(self.name, "")) if self.missing == "indicator" else self.valued

    @cached_property
    def known(self) -> frozenset[str]:
        """The levels that training met, as far as they were recorded."""
        return frozenset(self.levels) | frozenset(self.reference or ())

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {"name": self.name, "kind": self.kind, "missing": self.missing}
        if self.kind == "date":
            content["unit"] = UNIT_OF_DATES
        if self.kind == "category":
            reference = None if self.reference is None else list(self.reference)
            content |= {"levels": list(self.levels), "declared": self.declared, "reference": reference}
        return content

    @classmethod
    def from_dict(cls, stored: Any) -> TableColumn:
        """Raises DataError: names the field that is wrong."""
        if not isinstance(stored, Mapping) or not isinstance(stored.get("name"), str):
            raise DataError("table.columns: not a list of tables with a name each")
        kind: Any = stored.get("kind")
        missing: Any = stored.get("missing")
        name = stored["name"]
        if kind not in get_args(Kind):
            raise DataError(f"table.columns: {name}: kind is not one of {', '.join(get_args(Kind))}")
        if missing not in get_args(MissingRule):
            raise DataError(f"table.columns: {name}: missing is not one of {', '.join(get_args(MissingRule))}")
        if kind == "date" and stored.get("unit") != UNIT_OF_DATES:
            raise DataError(f"table.columns: {name}: unit is not {UNIT_OF_DATES}")
        if kind != "category":
            return cls(name, kind, missing=missing)
        levels, reference = stored.get("levels"), stored.get("reference")
        if type(stored.get("declared")) is not bool:
            raise DataError(f"table.columns: {name}: declared is neither true nor false")
        met = None if reference is None else _texts(reference, f"table.columns: {name}: reference")
        of_it = _texts(levels, f"table.columns: {name}: levels")
        return cls(name, kind, of_it, met, missing, stored["declared"])


@dataclass(frozen=True)
class TableRecord:
    """All columns of a table that a model needs.

    Args:
        fill: by the model's columns, the mean that stands for a missing value.
        missing_words: the words that stood for "no value" in the csv file of training, where it was one.

    Raises:
        DataError: two columns of the model would have one name, or a mean is missing.
    """

    columns: tuple[TableColumn, ...]
    fill: Mapping[str, float] = field(default_factory=dict, hash=False)
    missing_words: tuple[str, ...] = MISSING_WORDS

    def __post_init__(self) -> None:
        names = [*(column.name for column in self.columns if column.kind == "category"), *self.made]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise DataError(f"table.columns: {twice[0]} comes twice", hint="rename one of the two columns")

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> TableRecord:
        return cls(tuple(TableColumn(name) for name in names))

    @cached_property
    def made(self) -> tuple[str, ...]:
        """The model's columns, in the order of the table's."""
        return tuple(name for column in self.columns for name in column.made)

    @property
    def names(self) -> tuple[str, ...]:
        """The table's columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def by_name(self) -> Mapping[str, TableColumn]:
        return {column.name: column for column in self.columns}

    @cached_property
    def behind(self) -> Mapping[str, TableColumn]:
        """By the model's columns, the column of the table that each comes from."""
        return {name: column for column in self.columns for name in column.made}

    def level_of(self, name: str) -> str | None:
        """Return the level that one of the model's columns stands for, "" for no value; None where it is a number."""
        column = self.behind[name]
        is_level = column.kind == "category" or name != column.name
        return name.removeprefix(column_of_level(column.name, "")) if is_level else None

    def select(self, names: Sequence[str]) -> TableRecord:
        """Return the record of these columns of the model, and of no others of the table."""
        wanted = dict.fromkeys(self.behind[name].name for name in names)
        return replace(self, columns=tuple(self.by_name[name] for name in wanted))

    def with_fill(self, fill: Mapping[str, float]) -> TableRecord:
        return replace(self, fill=dict(fill))

    def public(self) -> TableRecord:
        """Return the record without levels that were found in rows, for models that protect whole rows."""
        return replace(self, columns=tuple(replace(column, reference=None) for column in self.columns))

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": [column.to_dict() for column in self.columns],
            "fill": dict(self.fill),
            "missing_words": list(self.missing_words),
        }

    @classmethod
    def from_dict(cls, stored: Any) -> TableRecord:
        """Raises DataError: names the field that is wrong."""
        if not isinstance(stored, Mapping) or not isinstance(stored.get("columns"), list):
            raise DataError("table: not a table with a list of columns")
        columns = tuple(TableColumn.from_dict(column) for column in stored["columns"])
        fill = stored.get("fill")
        if not isinstance(fill, Mapping) or not all(map(_is_finite, fill.values())):
            raise DataError("table.fill: does not map columns to finite numbers")
        record = cls(columns, {name: float(mean) for name, mean in fill.items()})
        record = replace(record, missing_words=_texts(stored.get("missing_words"), "table.missing_words"))
        if lacking := [name for name in record.filled if name not in record.fill]:
            raise DataError(f"table.fill: {lacking[0]} is missing")
        return record

    @property
    def filled(self) -> tuple[str, ...]:
        """The model's columns that need a mean."""
        return tuple(
            name
            for column in self.columns
            for name in column.valued
            if column.missing == "mean" or (column.missing == "indicator" and column.kind != "category")
        )


def _is_finite(number: object) -> bool:
    try:
        return type(number) in (int, float) and math.isfinite(number)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _texts(stored: Any, name: str) -> tuple[str, ...]:
    if not isinstance(stored, list) or not all(isinstance(text, str) for text in stored):
        raise DataError(f"{name}: not a list of texts")
    return tuple(stored)
