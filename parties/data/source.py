"""A dataset with its roles: batches of ids, persons, labels and features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.columns.derived import derive_matrix, fit_recipes, with_given_numbers
from blindfit.algorithms.columns.recipes import BadInput
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import DataError, LocalProtocolError
from blindfit.parties.data.ahead import each_ahead
from blindfit.parties.data.columns import Floats, refuse_without_value, to_fields, to_labels, to_shares, to_texts
from blindfit.parties.data.encoding import Features
from blindfit.parties.data.origin import (
    Origin,
    Reader,
    Tolerates,
    no_rows,
    nothing,
    refuse_missing_names,
    without_values,
)
from blindfit.parties.data.row_batch import RowBatch, in_equal_batches, take
from blindfit.parties.data.settings import DatasetSettings

_LABELS = {"binary": "uint8", "number": "float64", "share": "uint64"}  # names of Arrow's types


@dataclass(frozen=True)
class Source:
    """A dataset that exists and has the columns that its settings name.

    Args:
        record: columns from which the features are made.
        feature_names: columns of a batch's features, in order: the model's columns, or the columns from which recipes
            without numbers will compute them.
        problems: reasons why features cannot be read, by the table's columns, where that is tolerated.
        tolerates: test of a column's name: True if the column may have a problem.
        keeps_gaps: True if a batch has NaN where a mean would stand for a missing value.
    """

    name: str
    settings: DatasetSettings
    record: TableRecord
    feature_names: tuple[str, ...]
    _reader: Reader = field(repr=False)
    _features: Features = field(repr=False)
    problems: Mapping[str, DataError] = field(default_factory=dict, repr=False)
    tolerates: Tolerates = field(default=nothing, repr=False)
    keeps_gaps: bool = False
    _before: int | None = field(default=None, repr=False)  # rows before its first one; None: it is the whole

    @classmethod
    def of(
        cls,
        reader: Reader,
        settings: DatasetSettings,
        name: str,
        record: TableRecord,
        columns: Sequence[str],
        features: Features,
    ) -> Source:
        """Return the rows of a snapshot.

        Args:
            columns: columns of the model, in order.
            features: conversion of the reader's columns.

        Raises:
            DataError: the reader lacks a column that is needed.
        """
        needed = features.columns_needed(record.read_for(columns)) if columns else ()
        refuse_missing_names([*settings.key_columns(), *needed], reader.names, reader.origin)
        return cls(name, settings, record, tuple(columns), reader, features)

    @property
    def origin(self) -> Origin:
        return self._reader.origin

    def fingerprint(self) -> str | None:
        """Return a text that changes whenever the content may have changed; None for databases, which do not report
        changes.
        """
        return self._reader.fingerprint()

    @property
    def n_rows(self) -> int | None:
        """Number of rows, without reading them; None if it is not known before, and then the rows cannot be read in
        parts.
        """
        return getattr(self._reader, "n_rows", None)

    @property
    def model_columns(self) -> tuple[str, ...]:
        """Columns of a model that is trained on these rows."""
        return self.record.made

    def with_means(self) -> Source:
        """Return the same source with the mean that replaces missing values in each column. This may take one pass over
        the rows.
        """
        if not self.settings.fills or self.record.fill or not self.feature_names:
            return self
        names = self.record.read_for(self.feature_names)
        means = dict(zip(names, self._means(names).tolist(), strict=True))
        return replace(self, record=self.record.with_fill({name: means[name] for name in self.record.filled}))

    def with_recipes(self, choose: Callable[[Any], NDArray[np.bool_]] | None = None) -> Source:
        """Return the same source with the model's columns, where recipes compute some. This may take one pass over the
        rows.

        Args:
            choose: function that selects the training rows by their ids; None for all rows. Only these rows decide a
                recipe's numbers.

        Raises:
            DataError: there is no training row.
        """
        source = self.with_means()
        if source.record.is_fitted:
            return source._of_model(source.record)
        read = tuple(dict.fromkeys(name for recipe in source.record.recipes for name in recipe.of))
        places, held = [source.feature_names.index(name) for name in read], [np.empty((0, len(read)))]
        for batch in source.with_gaps().batches(persons=False, labels=False):
            values = batch.features[:, places]
            held.append(values if choose is None else values[choose(batch.ids)])
        values = np.concatenate(held)
        return source._of_model(fit_recipes(source.record, dict(zip(read, values.T, strict=True))))

    def with_gaps(self) -> Source:
        """Return the same source without the means of missing values, for recipes that are not yet fitted to the
        values.
        """
        source = self.with_means()
        return replace(source, keeps_gaps=not source.record.is_fitted)

    def with_given_recipes(self) -> Source:
        """Return the same source with the model's columns, without reading the rows.

        Raises:
            DataError: a recipe has no numbers.
        """
        return self._of_model(with_given_numbers(self.record))

    def _of_model(self, record: TableRecord) -> Source:
        return replace(self, record=record, feature_names=record.made) if record.recipes else self

    def batches(self, *, persons: bool = True, labels: bool = True, features: bool = True) -> Iterator[RowBatch]:
        """Yield all rows in order, `batch_rows` at a time. A role that is not requested is neither read nor checked."""
        roles = _Roles(
            id=self.settings.id,
            person=self.settings.person if persons else None,
            label=self.settings.label if labels else None,
        )
        names = self.feature_names if features else ()
        filled, read = self.with_means() if names else self, self.record.read_for(names)

        def make(of: tuple[int, Any]) -> RowBatch:
            first_row, arrow = of
            return filled._derive(filled._treat_missing(self._convert(arrow, first_row, roles, read), read), read)

        kept = 0
        for batch in each_ahead(make, self._arrow_batches(roles.names() + self._list_needed(read))):
            kept += len(batch)
            yield batch
        if kept == 0 and self._before is None:
            raise no_row_left(self)

    def part(self, first: int, last: int) -> Source:
        """Return the rows [first, last), counted from 0, for any process that sees their file. They keep their row
        numbers.

        Raises:
            DataError: they are not in a file that can be read in parts, such as a snapshot or a Parquet file.
        """
        part = getattr(self._reader, "part", None)
        if part is None:
            raise self.origin.error("it cannot be read in parts", hint="publish it: a snapshot can")
        return replace(self, _reader=part(first, last), _before=first)

    def canonical(self, problems: dict[str, DataError] | None = None) -> Iterator[tuple[RowBatch, Any]]:
        """Yield every row with all columns that the settings name, checked, and the same rows as a
        `pyarrow.RecordBatch` of one schema.

        A missing value is null. The reader of the snapshot later puts a mean in its place or leaves out the row, as the
        settings demand. The texts of categories come under the names of their columns.

        Args:
            problems: dictionary to which the reason is added, by the table's columns, if a column cannot be read and
                that is tolerated; its values are null.
        """
        problems = {} if problems is None else problems
        settings, names = self.settings, self.feature_names
        quasi = tuple(settings.quasi_identifiers.values())
        roles = _Roles(settings.id, settings.person, settings.label).names()
        for first_row, arrow in self._arrow_batches(list(dict.fromkeys([*roles, *self._list_needed(names), *quasi]))):
            columns = {settings.id: self._texts(arrow, settings.id, first_row)}
            if (person := settings.person) is not None:
                texts = partial(self._texts, arrow, person, first_row)
                columns[person] = self._or_null(person, texts, pa.string(), arrow.num_rows, problems)
            if (label := settings.label) is not None:
                found = self._or_null(
                    label,
                    partial(self._labels, arrow, label, first_row),
                    pa.type_for_alias(_LABELS[settings.label_kind]),
                    arrow.num_rows,
                    problems,
                )
                columns[label] = pa.array(found)
            features, levels = self._tolerant_features(arrow, first_row, problems)
            columns |= {name: pa.array(features[name], from_pandas=True) for name in names}
            for name in quasi:
                fields = partial(to_fields, arrow.column(name), name=name, first_row=first_row, origin=self.origin)
                columns[name] = self._or_null(name, fields, pa.string(), arrow.num_rows, problems)
            batch = RowBatch(
                rows=np.arange(first_row, first_row + arrow.num_rows),
                ids=columns[settings.id],
                persons=None if person is None or person in problems else columns[person],
                labels=None if label is None or label in problems else columns[label].to_numpy(),
                features=np.column_stack([features[n] for n in names]) if names else np.empty((arrow.num_rows, 0)),
            )
            yield batch, pa.RecordBatch.from_pydict(columns | levels)

    def _tolerant_features(
        self, arrow: Any, first_row: int, problems: dict[str, DataError]
    ) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the model's columns, and the texts of categories."""
        rows = np.arange(first_row, first_row + arrow.num_rows)
        features: dict[str, Floats] = {}
        levels: dict[str, Any] = {}
        for column in self.record.columns:

            def convert(column: TableColumn = column) -> tuple[dict[str, Floats], Any]:
                found = self._features.of(arrow, column.encoded, first_row, self.origin)
                if self.settings.missing == "refuse":
                    refuse_without_value(found, column, rows, self.origin)
                is_category = column.kind == "category"
                return found, self._features.levels(arrow, column, first_row, self.origin) if is_category else None

            empty = (
                dict.fromkeys(column.encoded, np.full(arrow.num_rows, np.nan)),
                pa.nulls(arrow.num_rows, pa.string()),
            )
            found, texts = self._or_else(column.name, convert, empty, problems)
            features |= found
            if column.kind == "category":
                levels[column.name] = texts
        return features, levels

    def _or_null(
        self, name: str, convert: Callable[[], Any], kind: Any, n_rows: int, problems: dict[str, DataError]
    ) -> Any:
        return self._or_else(name, convert, pa.nulls(n_rows, kind), problems)

    def _or_else(self, name: str, convert: Callable[[], Any], otherwise: Any, problems: dict[str, DataError]) -> Any:
        if name not in problems:
            try:
                if name in self._reader.problems:
                    raise self._reader.problems[name]
                return convert()
            except DataError as error:
                self.tolerate(name, error, problems)
        return otherwise

    def tolerate(self, column: str, problem: DataError, problems: dict[str, DataError]) -> None:
        """Record why a column of the table cannot be read. Raise the problem if the column is needed."""
        if not self.tolerates(column):
            raise problem
        problems.setdefault(column, problem)

    def split_id(self, found: str = "") -> str:
        """Return the id of the split that all rows belong to, for a dataset of shares.

        Args:
            found: id of the first row's split, if it is known.

        Raises:
            DataError: a row belongs to another split than the first row.
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
        """Return the quasi-identifiers of every row, in the order of the rows, for record linkage; a missing one is
        empty.

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
                records[which] += to_fields(column, name=name, first_row=first_row, origin=self.origin).to_pylist()
        return records

    def texts_of(self, column: str) -> Iterator[Any]:
        """Yield the texts of one category, as a snapshot has them."""
        for _, arrow in self._arrow_batches([column]):
            yield arrow.column(0)

    def _list_needed(self, names: Sequence[str]) -> list[str]:
        return list(self._features.columns_needed(names)) if names else []

    def _arrow_batches(self, names: list[str]) -> Iterator[tuple[int, Any]]:
        start = 1 + (self._before or 0)
        first_row, size = start, self.settings.batch_rows
        for batch in in_equal_batches(self._reader.arrow_batches(names, size), size):
            yield first_row, batch
            first_row += batch.num_rows
        if first_row == start:
            raise no_rows(self.origin)

    def _convert(self, arrow: Any, first_row: int, roles: _Roles, names: Sequence[str]) -> RowBatch:
        return RowBatch(
            rows=np.arange(first_row, first_row + arrow.num_rows),
            ids=self._texts(arrow, roles.id, first_row),
            persons=self._texts(arrow, roles.person, first_row) if roles.person else None,
            labels=self._labels(arrow, roles.label, first_row) if roles.label else None,
            features=self._matrix(arrow, first_row, names),
        )

    def _texts(self, arrow: Any, name: str, first_row: int) -> Any:
        return to_texts(arrow.column(name), name=name, first_row=first_row, origin=self.origin)

    def _labels(self, arrow: Any, name: str, first_row: int) -> NDArray[Any]:
        column, settings = arrow.column(name), self.settings
        if settings.label_kind == "share":
            return to_shares(column, name=name, first_row=first_row, origin=self.origin)
        binary = settings.label_kind == "binary"
        return to_labels(
            column, name=name, binary=binary, first_row=first_row, origin=self.origin, positive=settings.positive
        )

    def _matrix(self, arrow: Any, first_row: int, names: Sequence[str]) -> Floats:
        values = np.empty((arrow.num_rows, len(names)))
        found = self._features.of(arrow, names, first_row, self.origin)
        for j, name in enumerate(names):
            values[:, j] = found[name]
        return values

    def _treat_missing(self, batch: RowBatch, names: Sequence[str]) -> RowBatch:
        missing = np.isnan(batch.features)
        if not missing.any():
            return batch
        if self.settings.missing == "drop":
            return take(batch, np.flatnonzero(~missing.any(axis=1)))
        if self.settings.fills:
            means = np.array([self.record.fill.get(name, np.nan) for name in names])
            if not np.isnan(np.where(missing, means, 0.0)).any():
                if not self.keeps_gaps:
                    np.copyto(batch.features, means, where=missing)
                return batch
            np.copyto(batch.features, means, where=missing)
        found = dict(zip(names, batch.features.T, strict=True))
        for column in self.record.select(names):
            refuse_without_value(found, column, batch.rows, self.origin)
        raise LocalProtocolError("a column lacks a value that nobody looked for")

    def _derive(self, batch: RowBatch, names: Sequence[str]) -> RowBatch:
        """Return the batch with the columns of recipes that have their numbers.

        Args:
            names: columns of its features, which are the columns that recipes read.

        Raises:
            DataError: a recipe cannot take a number. This is checked also for a recipe that has no numbers of its own
                yet.
        """
        self.check_recipes(batch, names)
        if not names or names == self.feature_names:
            return batch
        return replace(batch, features=derive_matrix(batch.features, names, self.record, self.feature_names))

    def check_recipes(
        self, batch: RowBatch, names: Sequence[str], problems: dict[str, DataError] | None = None
    ) -> None:
        """Check that recipes can take the numbers of these rows.

        Args:
            names: columns of the batch's features.
            problems: dictionary to which the reason is added, by the table's columns, if a column cannot be read and
                that is tolerated.

        Raises:
            DataError: a recipe cannot take a number; the error names the row and the column.
        """
        found, problems = dict(zip(names, batch.features.T, strict=True)), {} if problems is None else problems
        for recipe in self.record.recipes:
            if any(name not in found or name in problems for name in recipe.of):
                continue
            try:
                recipe.check([found[name] for name in recipe.of])
            except BadInput as error:
                place, advice = int(batch.rows[error.row]), self.origin.advice
                hint = f"correct it, or {advice.without_recipe(recipe.name)}"
                problem = self.origin.error(error.problem, row=place, column=error.column, hint=hint)
                self.tolerate(error.column, problem, problems)

    def _means(self, names: Sequence[str]) -> Floats:
        """Return each column's mean over the rows that have a value. This takes a separate pass."""
        total, count = np.zeros(len(names)), np.zeros(len(names))
        for first_row, arrow in self._arrow_batches(self._list_needed(names)):
            values = self._matrix(arrow, first_row, names)
            total += np.nansum(values, axis=0)
            count += (~np.isnan(values)).sum(axis=0)
        if not count.all():
            raise without_values(self.origin, self.record.behind[names[int(np.argmin(count))]].name)
        means: Floats = total / count
        return means


def no_row_left(source: Source) -> DataError:
    """Return the error of a dataset whose rows all have a missing value, and are left out."""
    hint = f'set {source.origin.advice.table}.missing = "mean"'
    return source.origin.error("every row has a missing value, so none is left", hint=hint)


@dataclass(frozen=True)
class _Roles:
    """The columns to read in one pass."""

    id: str
    person: str | None
    label: str | None

    def names(self) -> list[str]:
        return [name for name in (self.id, self.person, self.label) if name is not None]
