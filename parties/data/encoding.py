"""Conversion of a dataset's columns to a model's: the record of the columns, and three ways to read them.

    column                           becomes
    region, one of `categories`      region=north, region=south, ...: 1 where a row has that level, else 0
    born, one of `dates`             born: days since 1970-01-01
    age, with missing = "indicator"  age, with its mean where a row has none; and age=: 1 where a row has none, else 0

A missing category is missing in each of its columns, except with "indicator": there it is a level, `region=`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow.compute as pc

from blindfit.algorithms.columns.record import Kind, MissingRule, TableColumn, TableRecord, column_of_level
from blindfit.algorithms.columns.tables import to_indicators
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.columns import Floats, to_features, to_levels
from blindfit.parties.data.origin import (
    Origin,
    Reader,
    Tolerates,
    nothing,
    refuse_duplicate_names,
    refuse_missing_names,
    without_values,
)
from blindfit.parties.data.recipe_settings import recipes_of
from blindfit.parties.data.settings import DatasetSettings, words_besides

MOST_LEVELS = 100  # limit for levels that the rows define: a column with more probably names the rows


@dataclass(frozen=True)
class Described:
    """A record of a table's columns, and the problems of those without one.

    Attributes:
        record: columns that can be read.
        problems: reason why a column cannot be read, by the table's columns.
    """

    record: TableRecord
    problems: Mapping[str, DataError] = field(default_factory=dict)


def describe(
    reader: Reader, settings: DatasetSettings, columns: Sequence[str], tolerates: Tolerates = nothing
) -> Described:
    """Return the record of a dataset's features; read the rows if they define levels or may lack values.

    Args:
        columns: features, by the table's names.
        tolerates: test of a column's name: True if the column may have a problem.

    Raises:
        DataError: a column that is not tolerated has a problem. For example, a column of categories or dates is not a
            feature, has no texts or no values, or has too many levels; or another column has the name of a level.
    """
    declared = [name for name in (*settings.categories, *settings.dates) if name in columns or not tolerates(name)]
    refuse_missing_names(declared, columns, reader.origin)
    search = _Search(reader, settings, tolerates)
    for name in columns:
        search.refuse_names_of_levels(name, columns)
    search.read([name for name in columns if name not in search.problems])
    found = tuple(search.column(name) for name in columns if name not in search.problems)
    recipes = recipes_of(settings.derive, [column.name for column in found if column.kind != "category"])
    names = [name for column in found for name in {column.name, *column.encoded}]
    refuse_duplicate_names([*names, *(n for recipe in recipes for n in {recipe.name, *recipe.made})], reader.origin)
    levels = [level for column in found for level in column.chosen]
    words = words_besides(levels, settings.url, settings.missing_words)
    used = {source for recipe in recipes for source in recipe.of}
    read = tuple(column for column in found if column.is_feature or column.name in used)
    return Described(TableRecord(read, missing_words=words, recipes=recipes), search.problems)


class _Search:
    """Search of the rows for levels and missing values."""

    def __init__(self, reader: Reader, settings: DatasetSettings, tolerates: Tolerates) -> None:
        self._reader, self._settings, self._tolerates = reader, settings, tolerates
        given = settings.categories
        self._given = dict(given) if isinstance(given, Mapping) else {}
        self._levels = {name: set[str]() for name in given if name not in self._given}
        self._empty: set[str] = set()
        self.problems: dict[str, DataError] = {}

    def refuse_names_of_levels(self, name: str, columns: Sequence[str]) -> None:
        """Refuse a column that has the name of a level, also of a level that no row has.

        A later table may have such a row, and a model tells columns apart only by their names.
        """
        keys, origin = self._settings.key_columns(), self._reader.origin
        for category in self._settings.categories:
            for other in (*keys, *columns) if name == category else ():
                if other.startswith(column_of_level(category, "")):
                    problem = f"its name is that of a level of {category}, one of `categories`"
                    without = f", or {origin.advice.leave_out(other)}" if other in columns else ""
                    hint = f"rename {other} or {category}{without}"
                    self._note(other, origin.error(problem, column=other, hint=hint))

    def _note(self, name: str, problem: DataError) -> None:
        if not self._tolerates(name):
            raise problem
        self.problems[name] = problem

    def read(self, columns: Sequence[str]) -> None:
        if self._settings.missing == "indicator":
            searched = list(columns)
        else:
            searched = [name for name in columns if name in self._levels]
        first_row = 1
        for batch in self._reader.arrow_batches(searched, 1 << 14) if searched else ():
            for name in searched:
                if name not in self.problems:
                    try:
                        if name in self._reader.problems:
                            raise self._reader.problems[name]
                        self._look_at(name, batch.column(name), first_row)
                    except DataError as error:
                        self._note(name, error)
            first_row += batch.num_rows
        for name in searched:
            if name in self._levels and not self._levels[name] and name not in self.problems:
                self._note(name, without_values(self._reader.origin, name))

    def _look_at(self, name: str, column: Any, first_row: int) -> None:
        origin = self._reader.origin
        if name in self._settings.categories:
            known = self._given.get(name)
            texts = to_levels(column, name=name, origin=origin, first_row=first_row, known=known)
            if known is None:
                self._levels[name].update(pc.unique(texts.drop_null()).to_pylist())
                _check_levels(name, self._levels[name], origin)
            has_none = texts.null_count > 0
        else:
            features = to_features(column, self.column(name), first_row=first_row, origin=origin)
            has_none = bool(np.isnan(features[name]).any())
        if has_none:
            self._empty.add(name)

    def column(self, name: str) -> TableColumn:
        base = self._settings.reference_levels.get(name)
        if name in self._levels:
            levels, base = without_base(sorted(self._levels[name]), base)
            return TableColumn(name, "category", levels, (), self._rule(name), base=base)
        if name in self._given:
            levels, base = without_base(self._given[name], base)
            return TableColumn(name, "category", levels, None, self._rule(name), declared=True, base=base)
        is_feature = self._settings.is_feature(name)
        return TableColumn(name, self._kind(name), missing=self._rule(name), is_feature=is_feature)

    def _kind(self, name: str) -> Kind:
        if name in self._settings.dates:
            return "date"
        return "boolean" if name in self._reader.booleans else "number"

    def _rule(self, name: str) -> MissingRule:
        return rule_of(self._settings.missing, lacks_values=name in self._empty)


def without_base(levels: Sequence[str], base: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the levels that have a column, and the reference level.

    A category keeps its column if only the reference level is known: without the column the category would be lost.
    """
    others = tuple(level for level in levels if level != base)
    return (others, base) if others else (tuple(levels), None)


def rule_of(missing: str, *, lacks_values: bool) -> MissingRule:
    """Return the rule by which a scorer treats a missing value.

    Args:
        missing: option of the dataset.
        lacks_values: True if the column lacked values in training.
    """
    if missing not in ("mean", "indicator"):
        return "refuse"
    return "indicator" if missing == "indicator" and lacks_values else "mean"


def kind_in(settings: DatasetSettings, reader: Reader, name: str) -> Kind:
    """Return the kind of a feature without reading a row."""
    if name in settings.categories:
        return "category"
    return "date" if name in settings.dates else "boolean" if name in reader.booleans else "number"


def _check_levels(name: str, levels: set[str], origin: Origin) -> None:
    if len(levels) > MOST_LEVELS:
        raise origin.error(
            f"it has more than {MOST_LEVELS} levels",
            column=name,
            hint=f"name the levels that matter: {origin.advice.levels()}; a row with another level is then 0 in all of "
            "them",
        )


# --- ways to read features ------------------------------------------------------------------------


class Features(Protocol):
    """Conversion of a reader's columns to a model's."""

    def columns_needed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the reader's columns that these columns of the model come from."""

    def of(self, batch: Any, names: Sequence[str], first_row: int, origin: Origin) -> dict[str, Floats]:
        """Return these columns of the model, NaN where a value is missing."""

    def levels(self, batch: Any, column: TableColumn, first_row: int, origin: Origin) -> Any:
        """Return the texts of a category, null where a value is missing."""


@dataclass(frozen=True)
class FromTable:
    """Features of a table, converted by a record.

    Args:
        found: the categories whose levels were found in these rows.
    """

    record: TableRecord
    found: frozenset[str] = frozenset()

    def columns_needed(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(column.name for column in self.record.select(names))

    def of(self, batch: Any, names: Sequence[str], first_row: int, origin: Origin) -> dict[str, Floats]:
        features: dict[str, Floats] = {}
        for column in self.record.select(names):
            if column.kind == "category":
                features |= to_indicators(self.levels(batch, column, first_row, origin), column)
            else:
                features |= to_features(batch.column(column.name), column, first_row=first_row, origin=origin)
        return features

    def levels(self, batch: Any, column: TableColumn, first_row: int, origin: Origin) -> Any:
        known = None if column.name in self.found else column.chosen + (column.reference or ())
        return to_levels(batch.column(column.name), name=column.name, first_row=first_row, origin=origin, known=known)


@dataclass(frozen=True)
class AsWritten:
    """Features of a snapshot, as its own dataset describes them: they were converted when it was made."""

    def columns_needed(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names)

    def of(self, batch: Any, names: Sequence[str], first_row: int, origin: Origin) -> dict[str, Floats]:  # noqa: ARG002
        return {name: _numbers(batch.column(name)) for name in names}

    def levels(self, batch: Any, column: TableColumn, first_row: int, origin: Origin) -> Any:  # noqa: ARG002
        return batch.column(column.name)


@dataclass(frozen=True)
class ByModel:
    """Features of a snapshot, as a model's record describes them.

    A snapshot has each number, boolean and date under the name of the table's column, and the text of each category.
    """

    record: TableRecord

    def columns_needed(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(column.name for column in self.record.select(names))

    def of(self, batch: Any, names: Sequence[str], first_row: int, origin: Origin) -> dict[str, Floats]:  # noqa: ARG002
        features: dict[str, Floats] = {}
        for column in self.record.select(names):
            if column.kind == "category":
                features |= to_indicators(batch.column(column.name), column)
            else:
                values = features[column.name] = _numbers(batch.column(column.name))
                if column.missing == "indicator":
                    features[column_of_level(column.name, "")] = np.isnan(values).astype(np.float64)
        return features

    def levels(self, batch: Any, column: TableColumn, first_row: int, origin: Origin) -> Any:  # noqa: ARG002
        return batch.column(column.name)


def _numbers(column: Any) -> Floats:
    found: Floats = column.to_numpy(zero_copy_only=False)
    return found
