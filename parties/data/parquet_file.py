"""parquet files, read forward; pages are read as they are needed."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from blindfit.algorithms.columns.values import is_boolean, is_text
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.local_files import BLOCK_BYTES, USE_THREADS, file_fingerprint, reachable, readable
from blindfit.parties.data.origin import Origin, Tolerates, nothing


@dataclass(frozen=True)
class ParquetFile:
    """A parquet file. Pages are read when they are needed, so a large row group does not fill the memory.

    Args:
        n_rows: number of rows to read.
        state: state of the file when it was opened (`_state`).
        rows: range of the rows to read, [first, last), counted from 0; None for all.
        tolerates: test of a column's name: True if the column may have a problem.
    """

    path: Path
    origin: Origin
    schema: Any
    n_rows: int
    state: tuple[int, int]
    rows: tuple[int, int] | None = None
    tolerates: Tolerates = nothing
    problems: dict[str, DataError] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, origin: Origin, tolerates: Tolerates = nothing) -> ParquetFile:
        state = _state(path)
        if state[0] == 0:
            raise origin.error("the file is empty", hint="it needs columns and rows")
        with _sound_parquet(origin), pq.ParquetFile(path) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
        return cls(path, origin, schema, n_rows, state, tolerates=tolerates)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def booleans(self) -> frozenset[str]:
        return frozenset(field.name for field in self.schema if is_boolean(field.type))

    def fingerprint(self) -> str:
        return file_fingerprint(self.path)

    def part(self, first: int, last: int) -> ParquetFile:
        """Return the file with only these rows, for any process that sees the file at the same path."""
        last = min(last, self.n_rows)
        return replace(self, rows=(first, last), n_rows=max(last - first, 0))

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        if self.rows is None:
            yield from self._of_groups(None, 0, names, batch_rows)
        else:
            self._refuse_another_file()
            yield from self._of_rows(*self.rows, names, batch_rows)
            self._refuse_another_file()

    def _of_groups(
        self, groups: Sequence[int] | None, begins: int, names: Sequence[str], batch_rows: int
    ) -> Iterator[Any]:
        """Yield these columns of some row groups.

        Args:
            begins: number of rows before the first of these groups.
        """
        with (
            _sound_parquet(self.origin),
            pq.ParquetFile(self.path, buffer_size=BLOCK_BYTES, pre_buffer=False) as file,
        ):
            for batch in file.iter_batches(batch_rows, groups, list(names), use_threads=USE_THREADS):
                columns = [self._sound(batch.column(name), name, begins + 1) for name in names]
                yield pa.RecordBatch.from_arrays(columns, list(names))
                begins += batch.num_rows

    def _sound(self, column: Any, name: str, first_row: int) -> Any:
        """Return the column; return nulls instead where its texts are not UTF-8 and that is tolerated."""
        try:
            _refuse_other_bytes(column, name, first_row, self.origin)
        except DataError as error:
            if not self.tolerates(name):
                raise
            self.problems.setdefault(name, error)
        return pa.nulls(len(column), column.type) if name in self.problems else column

    def _of_rows(self, first: int, last: int, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        with _sound_parquet(self.origin), pq.ParquetFile(self.path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = list(accumulate(sizes))
        groups = [i for i, end in enumerate(ends) if end > first and end - sizes[i] < last]
        begins = ends[groups[0]] - sizes[groups[0]] if groups else last
        for batch in self._of_groups(groups, begins, names, batch_rows):
            low, high = max(first - begins, 0), min(last - begins, batch.num_rows)
            begins += batch.num_rows
            if low < high:
                yield batch.slice(low, high - low)
            if begins >= last:
                break

    def _refuse_another_file(self) -> None:
        """Refuse a file that changed: parts of two files are not one table, and another machine may read a part."""
        with reachable(self.origin), suppress(FileNotFoundError, NotADirectoryError):
            if _state(self.path) == self.state:
                return
        raise self.origin.error(
            f"on {socket.gethostname()} this is not the file that was opened to be read in parts, or the file changed",
            hint="it must be on a disk that all workers of the cluster share, at the same path, and left as it is "
            "while it is read",
        )


def _state(path: Path) -> tuple[int, int]:
    """Return size and time of change. The inode may differ between machines on some network disks."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _refuse_other_bytes(column: Any, name: str, first_row: int, origin: Origin) -> None:
    """Refuse texts that are not UTF-8: no writer checks them, and Arrow's functions on text need UTF-8."""
    if pa.types.is_dictionary(column.type):
        if _is_utf8(column.dictionary):
            return
        column = column.dictionary_decode()
    if not _is_utf8(column):
        row = next(i for i in range(len(column)) if not _is_utf8(column.slice(i, 1)))
        hint = "write the file again, with its texts in UTF-8"
        raise origin.error("the text is not UTF-8", row=first_row + row, column=name, hint=hint)


def _is_utf8(column: Any) -> bool:
    """Return True if all texts are UTF-8; other values count as UTF-8."""
    if not is_text(column.type):
        return True
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@contextmanager
def _sound_parquet(origin: Origin) -> Iterator[None]:
    try:
        with readable(origin):
            yield
    except (pa.ArrowException, OSError) as error:
        raise origin.error("this is not a parquet file, or it is damaged", hint="write the file again") from error
