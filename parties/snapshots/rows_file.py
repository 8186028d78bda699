"""A data party's rows as a snapshot keeps them: one Arrow file, every column of the type in which it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.score_leaks import MOST_DISTINCT
from blindfit.parties.data.content_digest import ContentDigest
from blindfit.parties.data.origin import Origin, without_values
from blindfit.parties.data.source import DuplicateSearch, RowBatch, Source, no_row_left
from blindfit.parties.files.private_files import new_private

FILE = "rows.arrow"
LARGEST = 1e100  # of a number: its square, and sums of squares over all rows, are numbers too


@dataclass(frozen=True, slots=True)
class Written:
    """What was written of a source.

    Args:
        content_sha256: of ids and labels.
        distinct: how many values each feature has, counted up to `MOST_DISTINCT`.
        remarks: on how it was written, for its operator.
    """

    rows: int
    content_sha256: str
    distinct: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def write_rows(source: Source, directory: Path) -> Written:
    """Checks every row and writes all into an empty directory.

    Raises:
        DataError: names the row and the column; or ids repeat, there are no rows, a feature has no value in any, or all
            labels are the same.
    """
    content, seen, labels, distinct = ContentDigest(), DuplicateSearch(), _Spread(), _Distinct(source.feature_names)
    writer: Any = None
    with new_private(directory / FILE) as file:
        for batch, arrow in source.canonical():
            writer = writer or pa.ipc.new_file(file, arrow.schema)
            writer.write_batch(arrow)
            content.add(batch)
            _check_size(source, batch)
            if len(batch):
                seen.add(batch)
            labels.add(batch.labels)
            distinct.add(batch.features)
        if not content.n_rows:
            raise no_row_left(source)
        writer.close()
    seen.refuse_duplicates(source)
    counts = distinct.counts()
    if empty := [name for name, count in counts.items() if not count]:
        name = source.encoding.column_of(empty[0])[0]
        raise without_values(source.origin, name, source.advice.leave_out(name))
    if labels.is_flat:
        raise source.origin.error(
            "the label is the same in every row: there is nothing to learn",
            column=source.settings.label,
            hint=labels.reason(source.name, source.settings.positive),
        )
    return Written(content.n_rows, content.hexdigest(), counts)


class _Distinct:
    """Values of each feature; a missing one is none."""

    def __init__(self, names: Sequence[str]) -> None:
        self._seen = {name: np.empty(0) for name in names}

    def add(self, features: NDArray[np.float64]) -> None:
        for (name, seen), column in zip(self._seen.items(), features.T, strict=True):
            if len(seen) < MOST_DISTINCT:
                self._seen[name] = np.union1d(seen, column[~np.isnan(column)])

    def counts(self) -> dict[str, int]:
        return {name: min(len(seen), MOST_DISTINCT) for name, seen in self._seen.items()}


def _check_size(source: Source, batch: RowBatch) -> None:
    """Here, for the operator alone: a job that ended by a number would tell of it.

    Raises:
        DataError: a feature or label is too large to compute with.
    """
    names, columns = source.feature_names, batch.features
    if batch.labels is not None:
        names, columns = (*names, str(source.settings.label)), np.column_stack([columns, batch.labels])
    found = np.argwhere(np.abs(columns) > LARGEST)
    if len(found):
        row, column = found[0]
        raise source.origin.error(
            f"the number is beyond {LARGEST:g}, and too large to compute with",
            row=int(batch.rows[row]),
            column=names[column],
            hint="divide the column by its largest number",
        )


class _Spread:
    """Of all labels."""

    def __init__(self) -> None:
        self._lo, self._hi = np.inf, -np.inf

    def add(self, labels: NDArray[Any] | None) -> None:
        if labels is not None and len(labels):
            self._lo, self._hi = min(self._lo, float(labels.min())), max(self._hi, float(labels.max()))

    @property
    def is_flat(self) -> bool:
        return self._lo == self._hi

    def reason(self, dataset: str, positive: str | None) -> str:
        """Return why labels are all the same; empty where there is nothing to say."""
        if positive is None:
            return ""
        if self._lo:
            return f"every row has the text {positive!r}, which stands for label 1"
        return without_positive(dataset, positive)


def without_positive(dataset: str, positive: str) -> str:
    """Return what to do about a text of label 1 that no row has."""
    option = f"datasets.{dataset}.positive"
    return f"no row has the text {positive!r}, which stands for label 1: correct {option}; capitals count"


@dataclass(frozen=True)
class RowsFile:
    """Reads what `write_rows` wrote, or some of its rows.

    Args:
        rows: from the first up to before the last, counted from 0; None: all.
    """

    path: Path
    origin: Origin
    rows: tuple[int, int] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        with self._open() as file:
            return tuple(file.schema.names)

    def fingerprint(self) -> None:
        """It never changes."""

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

    def part(self, first: int, last: int) -> RowsFile:
        """These rows alone, to be read wherever the file is."""
        return replace(self, path=self.path.absolute(), rows=(first, last))

    def _open(self, columns: Sequence[int] | None = None) -> Any:
        """Read, not mapped: pages of a mapped file stay in memory until the last row is read."""
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        try:
            return pa.ipc.open_file(pa.OSFile(str(self.path)), options=options)
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"{self.path} cannot be read, which has a snapshot of {self.origin.dataset}",
                hint="restore it from a backup, or publish the dataset again",
            ) from error
