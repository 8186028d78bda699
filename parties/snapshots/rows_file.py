"""A data party's rows in a snapshot: one Arrow file, with every column in the type of its use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.vertical.score_leaks import MOST_DISTINCT
from blindfit.parties.data.content_digest import ContentDigest
from blindfit.parties.data.duplicates import DuplicateSearch
from blindfit.parties.data.encoding import MOST_LEVELS
from blindfit.parties.data.origin import Origin, without_values
from blindfit.parties.data.row_batch import RowBatch, take
from blindfit.parties.data.source import Source, no_row_left
from blindfit.parties.files.private_files import new_private

FILE = "rows.arrow"
LARGEST = 1e100  # limit of a number: its square, and sums of squares over all rows, are numbers too


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing a source.

    Args:
        content_sha256: digest of ids and labels.
        distinct: number of values of each feature, counted up to `MOST_DISTINCT`.
        reference: levels that rows have and that have no column, by category; None if there are many.
        problems: reasons why columns cannot be read, by the table's columns.
        remarks: remarks for the operator.
        ids: function that reads the ids of all rows again, in order; the persons' ids if the dataset names persons.
    """

    rows: int
    content_sha256: str
    distinct: Mapping[str, int] = field(default_factory=dict)
    reference: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    problems: Mapping[str, DataError] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    ids: Callable[[], Iterator[Any]] = field(default=lambda: iter(()), compare=False)


def write_rows(source: Source, directory: Path) -> Written:
    """Check every row and write all into an empty directory.

    Rows that `missing = "drop"` leaves out are written too: which rows these are depends on the columns that are read.

    Raises:
        DataError: a value is wrong, and the error names the row and the column. Or ids repeat, the table has no rows, a
            feature has no value in any row, or all labels are the same.
    """
    content, seen, labels, distinct = ContentDigest(), DuplicateSearch(), _Spread(), _Distinct(source.feature_names)
    others, dropped, problems = _Others(source), _Dropped(source), dict(source.problems)
    writer: Any = None
    n_rows, has_value = 0, np.zeros(len(source.feature_names), np.bool_)
    with new_private(directory / FILE) as file:
        for batch, arrow in source.canonical(problems):
            writer = writer or pa.ipc.new_file(file, arrow.schema)
            writer.write_batch(arrow)
            n_rows += len(batch)
            seen.add(batch)
            _check_size(source, batch, problems)
            source.check_recipes(batch, source.feature_names, problems)
            others.add(arrow)
            has_value |= (~np.isnan(batch.features)).any(axis=0)
            used, whole = dropped.remaining(batch, problems)
            content.add(used)
            labels.add(used.labels)
            distinct.add(whole.features)
        if not content.n_rows:
            raise no_row_left(source)
        writer.close()
    seen.refuse_duplicates(source)
    for name, has_one in zip(source.feature_names, has_value, strict=True):
        column = source.record.behind[name].name
        if not has_one and column not in problems:
            source.tolerate(column, without_values(source.origin, column), problems)
    if labels.is_flat and (label := source.settings.label) is not None and label not in problems:
        problem = "the label is the same in every row: there is nothing to learn"
        error = source.origin.error(problem, column=label, hint=labels.reason(source.name, source.settings.positive))
        source.tolerate(label, error, problems)
    written = RowsFile(directory / FILE, source.origin)
    return Written(
        n_rows,
        content.hexdigest(),
        distinct.counts(),
        others.levels(),
        problems,
        (*dropped.remarks(), *others.remarks()),
        lambda: written.ids(source.settings.id),
    )


class _Others:
    """Levels of categories without a column."""

    def __init__(self, source: Source) -> None:
        self._columns = [column for column in source.record.columns if column.kind == "category"]
        self._found: dict[str, set[str]] = {column.name: set() for column in self._columns}

    def add(self, arrow: Any) -> None:
        for column in self._columns:
            found = self._found[column.name]
            if len(found) <= MOST_LEVELS:
                found.update(pc.unique(arrow.column(column.name).drop_null()).to_pylist())
                found.difference_update(column.levels)

    def remarks(self) -> Iterator[str]:
        for column in self._columns:
            found = self._found[column.name]
            if column.base is not None and column.base not in found and len(found) <= MOST_LEVELS:
                yield f"column {column.name}: no row has its reference level"

    def levels(self) -> dict[str, Sequence[str] | None]:
        return {name: sorted(levels) if len(levels) <= MOST_LEVELS else None for name, levels in self._found.items()}


class _Dropped:
    """Rows that `missing = "drop"` leaves out of a training on all columns."""

    def __init__(self, source: Source) -> None:
        self._source, self._rows, self._lacking = source, 0, Counter[str]()

    def remaining(self, batch: RowBatch, problems: Mapping[str, DataError]) -> tuple[RowBatch, RowBatch]:
        """Return the rows that stay if a job reads only the columns that it needs, and the rows that stay if it reads
        all.
        """
        source = self._source
        if source.settings.missing != "drop":
            return batch, batch
        lacks_one, lacks_any = np.zeros(len(batch), np.bool_), np.zeros(len(batch), np.bool_)
        for place, name in enumerate(source.feature_names):
            column = source.record.behind[name]
            if column.name not in problems and name == column.valued[0]:
                missing = np.isnan(batch.features[:, place])
                self._lacking[column.name] += int(missing.sum())
                lacks_any |= missing
                if not source.tolerates(column.name):
                    lacks_one |= missing
        self._rows += int(lacks_any.sum())
        return take(batch, np.flatnonzero(~lacks_one)), take(batch, np.flatnonzero(~lacks_any))

    def remarks(self) -> Iterator[str]:
        if self._rows:
            each = ", ".join(f"{count} in {name}" for name, count in self._lacking.most_common() if count)
            yield f'missing = "drop" leaves out {self._rows} rows: values are missing, {each}'


class _Distinct:
    """Values of each feature; a missing value does not count."""

    def __init__(self, names: Sequence[str]) -> None:
        self._seen = {name: np.empty(0) for name in names}

    def add(self, features: NDArray[np.float64]) -> None:
        for (name, seen), column in zip(self._seen.items(), features.T, strict=True):
            if len(seen) < MOST_DISTINCT:
                self._seen[name] = np.union1d(seen, column[~np.isnan(column)])

    def counts(self) -> dict[str, int]:
        return {name: min(len(seen), MOST_DISTINCT) for name, seen in self._seen.items()}


def _check_size(source: Source, batch: RowBatch, problems: dict[str, DataError]) -> None:
    """Check sizes here, where only the operator sees the error. A job that ended because of a number would reveal it to
    others.

    Raises:
        DataError: a feature or label is too large to compute with.
    """
    columns = dict(zip(source.feature_names, batch.features.T, strict=True))
    if batch.labels is not None:
        columns[str(source.settings.label)] = batch.labels
    for name, numbers in columns.items():
        beyond = np.flatnonzero(np.abs(numbers) > LARGEST)
        if beyond.size:
            error = source.origin.error(
                f"the number is beyond {LARGEST:g}, and too large to compute with",
                row=int(batch.rows[beyond[0]]),
                column=name,
                hint="divide the column by its largest number",
            )
            source.tolerate(name, error, problems)


class _Spread:
    def __init__(self) -> None:
        self._lo, self._hi = np.inf, -np.inf

    def add(self, labels: NDArray[Any] | None) -> None:
        if labels is not None and len(labels):
            self._lo, self._hi = min(self._lo, float(labels.min())), max(self._hi, float(labels.max()))

    @property
    def is_flat(self) -> bool:
        return self._lo == self._hi

    def reason(self, dataset: str, positive: str | None) -> str:
        """Return why labels are all the same; empty if there is no special reason."""
        if positive is None:
            return ""
        if self._lo:
            return f"every row has the text {positive!r}, which stands for label 1"
        return without_positive(dataset, positive)


def without_positive(dataset: str, positive: str) -> str:
    """Return the advice about a text of label 1 that no row has."""
    option = f"datasets.{dataset}.positive"
    return f"no row has the text {positive!r}, which stands for label 1: correct {option}; capitals count"


@dataclass(frozen=True)
class RowsFile:
    """Reads the files of `write_rows`, or some of their rows.

    Args:
        rows: range of rows, [first, last), counted from 0; None for all.
    """

    path: Path
    origin: Origin
    rows: tuple[int, int] | None = None

    @property
    def booleans(self) -> frozenset[str]:
        """Columns of booleans: a snapshot has numbers in their place."""
        return frozenset()

    @property
    def problems(self) -> Mapping[str, DataError]:
        """Problems of columns: a snapshot was checked when it was made."""
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        with self._open() as file:
            return tuple(file.schema.names)

    def fingerprint(self) -> None:
        """Return None: a snapshot never changes."""

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        del batch_rows  # the reader's caller cuts batches to size
        with self._open() as file:
            wanted = [file.schema.get_field_index(name) for name in names]
        first, last = self.rows or (0, None)
        with self._open(wanted) as file:
            begins = 0
            for i in range(file.num_record_batches):
                if last is not None and begins >= last:
                    break
                batch = file.get_batch(i)
                begins += batch.num_rows
                if begins > first:
                    low = max(0, first - begins + batch.num_rows)
                    high = batch.num_rows if last is None else min(batch.num_rows, last - begins + batch.num_rows)
                    yield batch.slice(low, high - low).select(list(names))

    def ids(self, column: str) -> Iterator[Any]:
        """Yield the ids of all rows, as `pyarrow.StringArray`s."""
        for batch in self.arrow_batches([column], 0):
            yield batch.column(0)

    def part(self, first: int, last: int) -> RowsFile:
        """Return only these rows, for any process that sees the file."""
        return replace(self, path=self.path.absolute(), rows=(first, last))

    def _open(self, columns: Sequence[int] | None = None) -> Any:
        """Read the file without a memory map: pages of a mapped file stay in memory until the last row is read."""
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        try:
            return pa.ipc.open_file(pa.OSFile(str(self.path)), options=options)
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"{self.path}, which holds a snapshot of {self.origin.dataset}, cannot be read",
                hint="restore it from a backup, or publish the dataset again",
            ) from error
