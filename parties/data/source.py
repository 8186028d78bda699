"""A dataset with its roles: batches of ids, persons, labels and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.named_columns import column_behind
from blindfit.parties.data.advice import Advice
from blindfit.parties.data.ahead import each_ahead
from blindfit.parties.data.columns import refuse_missing, to_labels, to_numbers, to_shares, to_texts
from blindfit.parties.data.encoding import NOTHING_ENCODED, EncodedReader, Encoding, encoding_of
from blindfit.parties.data.files import open_file
from blindfit.parties.data.id_hash import HashKeys, hash_texts
from blindfit.parties.data.local_files import local_path
from blindfit.parties.data.origin import (
    Origin,
    Reader,
    no_rows,
    refuse_duplicate_names,
    refuse_missing_names,
    without_values,
)
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.urls import KINDS_OF_URL, database_of, file_of, without_password


@dataclass(frozen=True, repr=False, eq=False)
class RowBatch:
    """Consecutive rows. It holds none only where `missing = "drop"` left none of a batch.

    Attributes:
        rows: int64 (n,), the 1-based data row of each.
        ids: `pyarrow.StringArray` of n, in one spelling.
        persons: `pyarrow.StringArray` of n, in one spelling.
        labels: uint8 (n,) in {0, 1}, or float64 (n,), or uint64 (n,), shares modulo 2^61 - 1.
        features: float64 (n, k), C-contiguous.
    """

    rows: NDArray[np.int64]
    ids: Any
    persons: Any | None
    labels: NDArray[Any] | None
    features: NDArray[np.float64]

    @property
    def first_row(self) -> int:
        return int(self.rows[0])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Source:
    """A dataset that exists and has the columns that its settings name."""

    name: str
    settings: DatasetSettings
    feature_names: tuple[str, ...]
    _reader: Reader = field(repr=False)
    encoding: Encoding = NOTHING_ENCODED
    for_model: bool = False  # no party file describes it
    _before: int = field(default=0, repr=False)  # rows of the whole that come before its first one

    @classmethod
    def of(
        cls,
        reader: Reader,
        settings: DatasetSettings,
        name: str,
        encoding: Encoding = NOTHING_ENCODED,
        *,
        for_model: bool = False,
    ) -> Source:
        """Return a source of columns that are numbers already.

        Args:
            encoding: how they were made.

        Raises:
            DataError: the reader has not the columns that the settings name.
        """
        return cls(name, settings, _features_of(reader, settings), reader, encoding, for_model)

    @property
    def advice(self) -> Advice:
        return Advice(self.settings, "" if self.for_model else self.name)

    def refuse_missing(self, columns: Sequence[str]) -> None:
        """Raises DataError: it has no such feature; a level that no row has is one."""
        there = [name for name in columns if not self.encoding.stands_for_a_level(name)]
        refuse_missing_names(there, self.feature_names, self.origin)

    @property
    def origin(self) -> Origin:
        return self._reader.origin

    def fingerprint(self) -> str | None:
        """Changes whenever the content may have; None for databases, which cannot tell."""
        return self._reader.fingerprint()

    @property
    def n_rows(self) -> int | None:
        """Without reading any; None where it cannot be known, nor read in parts."""
        return getattr(self._reader, "n_rows", None)

    def batches(
        self,
        *,
        persons: bool = True,
        labels: bool = True,
        features: bool = True,
        means: Mapping[str, float] | None = None,
    ) -> Iterator[RowBatch]:
        """All rows in order, `batch_rows` at a time. A role not asked for is neither read nor checked.

        Args:
            means: what is put in place of a missing value, where the settings fill it; by default the column's mean.
        """
        roles = _Roles(
            id=self.settings.id,
            person=self.settings.person if persons else None,
            label=self.settings.label if labels else None,
            features=self.feature_names if features else (),
        )
        filled = None
        if self.settings.fills and roles.features:
            filled = self._means(roles.features) if means is None else np.array([means[n] for n in roles.features])

        def made(of: tuple[int, Any]) -> RowBatch:
            first_row, arrow = of
            return self._treat_missing(self._convert(arrow, first_row, roles), roles.features, filled)

        kept = 0
        for batch in each_ahead(made, self._arrow_batches(roles.names())):
            kept += len(batch)
            yield batch
        if kept == 0:
            raise no_row_left(self)

    def part(self, first: int, last: int) -> Source:
        """Rows from the first up to before the last, counted from 0, to be read wherever their file is. They keep their
        numbers.

        Raises:
            DataError: they are not in a file that can be read in parts, as a snapshot or a Parquet file is.
        """
        part = getattr(self._reader, "part", None)
        if part is None:
            raise self.origin.error("it cannot be read in parts", hint="publish it: a snapshot can")
        return replace(self, _reader=part(first, last), _before=first)

    def means(self) -> dict[str, float] | None:
        """What is put in place of a missing value; None where the settings say otherwise."""
        if not self.settings.fills:
            return None
        return dict(zip(self.feature_names, self._means(self.feature_names).tolist(), strict=True))

    def canonical(self) -> Iterator[tuple[RowBatch, Any]]:
        """Every row with all that the settings name, checked, and the same as a `pyarrow.RecordBatch` of one schema.

        A missing value is null where the settings put a mean in its place: the mean is taken where rows are read.
        """
        quasi = list(self.settings.quasi_identifiers.values())
        roles = _Roles(self.settings.id, self.settings.person, self.settings.label, self.feature_names)
        for first_row, arrow in self._arrow_batches(roles.names() + quasi):
            batch = self._convert(arrow.select(roles.names()), first_row, roles)
            if not self.settings.fills:
                batch = self._treat_missing(batch, roles.features, None)
            columns = [c for c in (batch.ids, batch.persons, batch.labels) if c is not None] + list(batch.features.T)
            arrays = [pa.array(column, from_pandas=True) for column in columns]
            for name in quasi:
                column = arrow.column(name)
                arrays.append(to_texts(column, name=name, first_row=first_row, origin=self.origin, required=False))
            yield batch, pa.RecordBatch.from_arrays(arrays, [*roles.names(), *quasi])

    def split_id(self, found: str = "") -> str:
        """That of all rows, of a dataset of shares.

        Args:
            found: that of the first row, where it is known.

        Raises:
            DataError: a row is of another split than the first.
        """
        name = str(self.settings.split)
        for first_row, arrow in self._arrow_batches([name]):
            ids = to_texts(arrow.column(0), name=name, first_row=first_row, origin=self.origin)
            found = found or ids[0].as_py()
            others = np.flatnonzero(ids.to_numpy(zero_copy_only=False) != found)
            if others.size:
                raise self.origin.error(
                    "the row is of another split than the first row",
                    row=first_row + int(others[0]),
                    column=name,
                    hint="all rows are split again each time: take a table as `blindfit split-labels` wrote it",
                )
        return found

    def records(self, fields: Sequence[str]) -> dict[str, list[str]]:
        """The quasi-identifiers of every row, in the order of the rows, for record linkage; a missing one is empty.

        Raises:
            DataError: the dataset offers no such field.
        """
        offered = self.settings.quasi_identifiers
        if unknown := [field for field in fields if field not in offered]:
            raise self.origin.error(
                f"{unknown[0]} is not one of its quasi_identifiers ({', '.join(offered) or 'none'})",
                hint=f'name the column that has it: datasets.{self.name}.quasi_identifiers.{unknown[0]} = "..."',
            )
        records: dict[str, list[str]] = {which: [] for which in fields}
        names = [offered[which] for which in fields]
        for first_row, arrow in self._arrow_batches(names):
            for which, name, column in zip(fields, names, arrow.columns, strict=True):
                texts = to_texts(column, name=name, first_row=first_row, origin=self.origin, required=False)
                records[which] += texts.to_pylist()
        return records

    def _arrow_batches(self, names: list[str]) -> Iterator[tuple[int, Any]]:
        first_row, size = 1 + self._before, self.settings.batch_rows
        for batch in _in_equal_batches(self._reader.arrow_batches(names, size), size):
            yield first_row, batch
            first_row += batch.num_rows
        if first_row == 1 + self._before:
            raise no_rows(self.origin)

    def _convert(self, arrow: Any, first_row: int, roles: _Roles) -> RowBatch:
        origin, binary = self.origin, self.settings.label_kind == "binary"
        columns = dict(zip(roles.names(), arrow.columns, strict=True))

        def texts(name: str) -> Any:
            return to_texts(columns[name], name=name, first_row=first_row, origin=origin)

        def labels(name: str) -> NDArray[Any]:
            if self.settings.label_kind == "share":
                return to_shares(columns[name], name=name, first_row=first_row, origin=origin)
            positive = self.settings.positive
            return to_labels(
                columns[name],
                name=name,
                binary=binary,
                first_row=first_row,
                origin=origin,
                hint=self.advice.labels(),
                positive=positive,
            )

        return RowBatch(
            rows=np.arange(first_row, first_row + arrow.num_rows),
            ids=texts(roles.id),
            persons=texts(roles.person) if roles.person else None,
            labels=labels(roles.label) if roles.label else None,
            features=self._features(arrow, first_row, roles.features),
        )

    def _features(self, arrow: Any, first_row: int, names: tuple[str, ...]) -> NDArray[np.float64]:
        values, advice = np.empty((arrow.num_rows, len(names))), self.advice
        for j, name in enumerate(names):
            values[:, j] = to_numbers(
                arrow.column(name), name=name, first_row=first_row, origin=self.origin, hint=advice.no_number(name)
            )
        return values

    def _treat_missing(self, batch: RowBatch, names: tuple[str, ...], means: NDArray[np.float64] | None) -> RowBatch:
        if self.settings.missing == "drop":
            return _take(batch, np.flatnonzero(~np.isnan(batch.features).any(axis=1)))
        if means is not None:
            np.copyto(batch.features, means, where=np.isnan(batch.features))
            return batch
        hint = self.advice.missing()
        for j, name in enumerate(names):
            refuse_missing(batch.features[:, j], name=name, first_row=batch.first_row, origin=self.origin, hint=hint)
        return batch

    def _means(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """Each feature's mean over the rows that have it: a pass of its own."""
        total, count = np.zeros(len(names)), np.zeros(len(names))
        for first_row, arrow in self._arrow_batches(list(names)):
            values = self._features(arrow, first_row, names)
            total += np.nansum(values, axis=0)
            count += (~np.isnan(values)).sum(axis=0)
        if not count.all():
            name = self.encoding.column_of(names[int(np.argmin(count))])[0]
            raise without_values(self.origin, name, self.advice.leave_out(name))
        return total / count


def open_source(settings: DatasetSettings, base_dir: Path, name: str) -> Source:
    """Opens a dataset and checks that it has its columns; no row is checked yet.

    Args:
        settings: Where it is and what its columns mean.
        base_dir: What a relative path starts from: the directory of the party file.
        name: What errors call it.

    Raises:
        DataError: No such file or table, no such column, or it cannot be opened.

    Of a dataset with levels that are to be found in the rows, these are read.
    """
    reader = _open_reader(settings, base_dir, name)
    columns = _features_of(reader, settings)
    if not settings.encodes or not columns:
        return Source(name, settings, columns, reader)
    encoding = encoding_of(reader, settings, columns)
    unused = frozenset(reader.names) - {*settings.key_columns(), *columns}
    made = EncodedReader(reader, encoding, Advice(settings, name), unused)
    refuse_duplicate_names(made.names, made.origin)
    return Source(name, settings, encoding.of_all(columns), made, encoding)


def fingerprint_of(settings: DatasetSettings, base_dir: Path, name: str) -> str | None:
    """As that of `open_source`, and no row is read, whatever levels are to be found in them.

    Raises:
        DataError: as `open_source`, but for what is wrong with rows.
    """
    reader = _open_reader(settings, base_dir, name)
    _features_of(reader, settings)
    return reader.fingerprint()


def open_for_model(
    settings: DatasetSettings, columns: Sequence[str], base_dir: Path, name: str, option: str = ""
) -> Source:
    """Return a table that has a model's columns, or those that they were made of: a category, a column that lacks
    values.

    Args:
        option: what names the table.

    Raises:
        DataError: as `open_source`.
    """
    reader = _open_reader(settings, base_dir, name, option)
    levels: dict[str, tuple[str, ...]] = {}
    indicators = []
    for made in columns:
        behind = "" if made in reader.names else column_behind(made, reader.names)
        if behind and made == f"{behind}=":
            indicators.append(behind)
        elif behind:
            levels[behind] = (*levels.get(behind, ()), made.removeprefix(f"{behind}="))
    chosen = settings.model_copy(
        update={"features": tuple(columns), "missing": "indicator" if indicators else settings.missing}
    )
    encoding = Encoding(levels, indicators=tuple(indicators))
    return Source.of(EncodedReader(reader, encoding, Advice(chosen, "")), chosen, name, encoding, for_model=True)


def _open_reader(settings: DatasetSettings, base_dir: Path, name: str, option: str = "") -> Reader:
    if found := file_of(settings.url):
        kind, path = found
        return open_file(kind, local_path(path, base_dir, name), name, settings.made_by, option)
    shown = without_password(settings.url)
    url = database_of(settings.url)
    if url is None:
        raise DataError(f"{name}: {shown}: this kind of URL is not known", hint=f"use {KINDS_OF_URL}")
    from blindfit.parties.data.database import open_table  # here: a file needs no SQLAlchemy

    return open_table(url, base_dir, name, settings.made_by, settings.text_columns())


def _features_of(reader: Reader, settings: DatasetSettings) -> tuple[str, ...]:
    """As the reader has them. Raises DataError: it has not the columns that the settings name."""
    wanted = () if settings.features == "rest" else settings.features
    refuse_missing_names([*settings.key_columns(), *wanted, *settings.left_out], reader.names, reader.origin)
    return _rest(reader, settings) if settings.features == "rest" else wanted


def _rest(reader: Reader, settings: DatasetSettings) -> tuple[str, ...]:
    """Return every other column, but for those that the settings leave out.

    A column that does not hold numbers is an error when it is read: leaving it out in silence would let a single bad
    cell of a CSV file take its column out of the model.
    """
    used = (*settings.key_columns(), *settings.left_out)
    rest = tuple(name for name in reader.names if name not in used)
    table = f"datasets.{reader.origin.dataset}"
    if "" in rest:
        place = reader.names.index("") + 1
        hint = f"give it a name in the table, or list the other columns: {table}.features = [...]"
        raise reader.origin.error(f"column {place} has no name", hint=hint)
    if not rest:
        hint = f"remove {table}.features" + (f" or {table}.except" if settings.left_out else "")
        raise reader.origin.error("no column is left for the features", hint=hint)
    return rest


def no_row_left(source: Source) -> DataError:
    """Return the error of a dataset whose rows all have a missing value, and are left out."""
    hint = f'set {source.advice.table}.missing = "mean"'
    return source.origin.error("every row has a missing value, so none is left", hint=hint)


class DuplicateSearch:
    """Looks for ids that come twice, beside another pass over the rows. 24 bytes a row of memory."""

    def __init__(self) -> None:
        self._keys = HashKeys.random()
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]] = []

    def add(self, batch: RowBatch) -> None:
        self._parts.append((batch.rows, *hash_texts(batch.ids, self._keys)))

    def first(self) -> tuple[int, int] | None:
        """The first row whose id an earlier row has: (the earlier row, this row), or None."""
        rows, high, low = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        in_order = np.sort(high)
        if not (in_order[1:] == in_order[:-1]).any():
            return None
        order = np.lexsort((rows, low, high))
        high, low, rows = high[order], low[order], rows[order]
        again = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1]))
        if not again.size:
            return None
        first = again[np.argmin(rows[again + 1])]
        return int(rows[first]), int(rows[first + 1])

    def refuse_duplicates(self, source: Source) -> None:
        """Raises the DataError that names both rows of the first duplicate."""
        if found := self.first():
            raise duplicate_error(source, *found)


def duplicate_error(source: Source, earlier: int, later: int) -> DataError:
    return source.origin.error(
        f"the id is that of {source.origin.locate(earlier)} again",
        row=later,
        column=source.settings.id,
        hint="an id names one row, whatever white space is around it: remove one of them",
    )


@dataclass(frozen=True)
class _Roles:
    """The columns to read in one pass."""

    id: str
    person: str | None
    label: str | None
    features: tuple[str, ...]

    def names(self) -> list[str]:
        return [name for name in (self.id, self.person, self.label) if name is not None] + list(self.features)


def _take(batch: RowBatch, kept: NDArray[np.int64]) -> RowBatch:
    return RowBatch(
        rows=batch.rows[kept],
        ids=batch.ids.take(pa.array(kept)),
        persons=None if batch.persons is None else batch.persons.take(pa.array(kept)),
        labels=None if batch.labels is None else batch.labels[kept],
        features=batch.features[kept],
    )


def _in_equal_batches(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """The same rows, `size` at a time, so that every kind of source gives the same batches."""
    held: list[Any] = []
    n_held = 0
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        while n_held >= size:
            table = pa.Table.from_batches(held)
            yield _one_batch(table.slice(0, size))
            held = table.slice(size).to_batches()
            n_held -= size
    if n_held:
        yield _one_batch(pa.Table.from_batches(held))


def _one_batch(table: Any) -> Any:
    return table.combine_chunks().to_batches()[0]
