"""Columns of text, of dates and of missing values as columns of numbers, made where a table is read.

    column                           becomes
    region, one of `categories`      region=north, region=south, ...: 1 where a row has that level, else 0
    born, one of `dates`             born: days since 1970-01-01
    age, with missing = "indicator"  age, with its mean where a row has none; and age=: 1 where a row has none, else 0

A level that no column stands for is 0 in all of them, and so is one that comes first at a prediction. A missing
category is missing in each of its columns, but with "indicator": there it is a level of its own, `region=`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from blindfit.parties.data.advice import Advice
from blindfit.parties.data.columns import to_days, to_levels, to_numbers
from blindfit.parties.data.origin import Origin, Reader, refuse_missing_names, without_values
from blindfit.parties.data.settings import DatasetSettings

MOST_LEVELS = 100  # that are found in the rows: more are rather names of the rows


@dataclass(frozen=True)
class Encoding:
    """Which columns are made of which.

    Attributes:
        levels: of each column of categories.
        dates: columns of dates.
        indicators: columns of which another says where they have no value.
    """

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dates: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()

    def made_of(self, column: str) -> tuple[str, ...]:
        """What becomes of a column of the table."""
        named = tuple(made(column, level) for level in self.levels.get(column, ()))
        known = named if column in self.levels else (column,)
        return (*known, made(column, "")) if column in self.indicators else known

    def of_all(self, columns: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for column in columns for name in self.made_of(column))

    def column_of(self, name: str) -> tuple[str, str | None]:
        """The column that a made one comes from, and its level, which nobody may have; the column itself and None for
        any other."""
        for column in self.levels:
            if name.startswith(made(column, "")):
                return column, name.removeprefix(made(column, ""))
        indicated = next((column for column in self.indicators if name == made(column, "")), None)
        return (name, None) if indicated is None else (indicated, "")

    def stands_for_a_level(self, name: str) -> bool:
        """Also of levels that the table does not have: nobody has them."""
        return self.column_of(name)[1] is not None


NOTHING_ENCODED = Encoding()


def made(column: str, level: str) -> str:
    """The name of the column that says who has this level; of no level, who has no value."""
    return f"{column}={level}"


def encoding_of(reader: Reader, settings: DatasetSettings, columns: Sequence[str]) -> Encoding:
    """Reads the rows where levels or missing values are to be found in them.

    Args:
        columns: the features, as the table has them.

    Raises:
        DataError: a column of categories or dates is none of the features, or holds no texts, or none at all, or
            too many; another column has the name of a level.
    """
    categories, origin = settings.categories, reader.origin
    advice = Advice(settings, origin.dataset)
    refuse_missing_names([*categories, *settings.dates], columns, origin)
    _refuse_names_of_levels([*settings.key_columns(), *columns], columns, advice, origin)
    given = dict(categories) if isinstance(categories, Mapping) else {}
    found = {name: set[str]() for name in categories if name not in given}
    empty: set[str] = set()
    searched = list(columns) if settings.missing == "indicator" else list(found)
    for first_row, batch in _numbered(reader, searched):
        for name in searched:
            if name in categories:
                texts = to_levels(batch.column(name), name=name, origin=origin)
                has_none = texts.null_count > 0
                if name in found:
                    found[name].update(pc.unique(texts.drop_null()).to_pylist())
                    _check_levels(name, found[name], advice, origin)
            else:
                has_none = _numbers(batch, name, first_row, advice, origin).null_count > 0
            if has_none:
                empty.add(name)
    if without := [name for name, of_it in found.items() if not of_it]:
        raise without_values(origin, without[0], advice.leave_out(without[0]))
    levels = {name: given.get(name) or tuple(sorted(found[name])) for name in categories}
    indicators = tuple(name for name in columns if name in empty) if settings.missing == "indicator" else ()
    return Encoding(levels, settings.dates, indicators)


def _refuse_names_of_levels(used: Iterable[str], features: Sequence[str], advice: Advice, origin: Origin) -> None:
    """Refuse a column that has the name of a level, also of a level that no row has.

    A later table may have such a row, and a model tells columns apart only by their names.
    """
    for category in advice.settings.categories:
        for name in used:
            if name.startswith(made(category, "")):
                problem = f"its name is that of a level of {category}, one of `categories`"
                hint = f"rename {name} or {category}" + (f", or {advice.leave_out(name)}" if name in features else "")
                raise origin.error(problem, column=name, hint=hint)


def _check_levels(name: str, levels: set[str], advice: Advice, origin: Origin) -> None:
    if len(levels) > MOST_LEVELS:
        raise origin.error(
            f"it has more than {MOST_LEVELS} levels",
            column=name,
            hint=f"name the levels that matter: {advice.levels()}; a row with another level is then 0 in all of them",
        )


def _numbers(batch: Any, name: str, first_row: int, advice: Advice, origin: Origin) -> Any:
    """Return the numbers or dates of a column, with null where there is no value."""
    column = batch.column(name)
    if name in advice.settings.dates:
        values = to_days(column, name=name, first_row=first_row, origin=origin)
    else:
        values = to_numbers(column, name=name, first_row=first_row, origin=origin, hint=advice.no_number(name))
    return pa.array(values, from_pandas=True)


def _numbered(reader: Reader, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Batches with the 1-based number of their first row."""
    if not names:
        return
    first_row = 1
    for batch in reader.arrow_batches(names, 1 << 14):
        yield first_row, batch
        first_row += batch.num_rows


@dataclass(frozen=True)
class EncodedReader:
    """A table as its encoding makes it.

    Attributes:
        unused: columns of the table that no setting uses; one of them may have the name of a level.
    """

    reader: Reader
    encoding: Encoding
    advice: Advice
    unused: frozenset[str] = frozenset()

    @property
    def settings(self) -> DatasetSettings:
        return self.advice.settings

    @property
    def origin(self) -> Origin:
        return self.reader.origin

    @property
    def names(self) -> tuple[str, ...]:
        return self.encoding.of_all(self._used)

    @property
    def _used(self) -> list[str]:
        return [name for name in self.reader.names if name not in self.unused]

    def fingerprint(self) -> str | None:
        return self.reader.fingerprint()

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        there = set(self._used)
        origins = {name: (name, None) if name in there else self.encoding.column_of(name) for name in names}
        wanted = list(dict.fromkeys(column for column, _ in origins.values()))
        first_row = 1
        for batch in self.reader.arrow_batches(wanted, batch_rows):
            yield pa.RecordBatch.from_arrays(
                [self._made(batch, column, level, first_row) for column, level in origins.values()], list(names)
            )
            first_row += batch.num_rows

    def _made(self, batch: Any, column: str, level: str | None, first_row: int) -> Any:
        is_category = column in self.encoding.levels
        if level is None and column not in self.encoding.dates:
            return batch.column(column)
        if not is_category:
            numbers = _numbers(batch, column, first_row, self.advice, self.origin)
            return numbers if level is None else numbers.is_null().cast(pa.float64())
        texts = to_levels(batch.column(column), name=column, origin=self.origin)
        if level == "":
            return texts.is_null().cast(pa.float64())
        if self.settings.missing == "refuse" and texts.null_count:
            row = first_row + texts.is_null().index(True).as_py()
            hint = self.advice.missing(of_category=True)
            raise self.origin.error("the value is missing (empty or null)", row=row, column=column, hint=hint)
        has = pc.equal(texts, pa.scalar(level)).cast(pa.float64())
        return pc.fill_null(has, 0.0) if column in self.encoding.indicators else has


@dataclass(frozen=True)
class WithAbsentLevels:
    """Rows and columns of zeros, of levels that none of them has."""

    reader: Reader
    absent: tuple[str, ...]

    @property
    def origin(self) -> Origin:
        return self.reader.origin

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.reader.names, *self.absent)

    def fingerprint(self) -> str | None:
        return self.reader.fingerprint()

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        there = [name for name in names if name not in self.absent]
        for batch in self.reader.arrow_batches(there, batch_rows):
            zeros = pa.array([0.0] * batch.num_rows, pa.float64())
            arrays = [zeros if name in self.absent else batch.column(name) for name in names]
            yield pa.RecordBatch.from_arrays(arrays, list(names))
