"""csv and parquet files, read forward."""

from __future__ import annotations

import csv
import json
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from blindfit.algorithms.columns.record import MISSING_WORDS
from blindfit.algorithms.columns.values import is_boolean, is_text
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.local_files import reachable, require_file
from blindfit.parties.data.origin import Origin, Reader, Tolerates, no_rows, nothing
from blindfit.parties.data.urls import FileFormat

BLOCK_BYTES = 1 << 20
USE_THREADS = False  # each keeps a reserve of memory, and they save little at this size of block
SNIFFED_BYTES = 1 << 16

#: Of Python's reader, which finds the line of an error: a row that Arrow reads lies within two blocks. The limit is one
#: for the whole process, and by default is so small that a long text beside the columns that are used would pass it.
csv.field_size_limit(2 * BLOCK_BYTES)


@dataclass(frozen=True)
class MissingWords:
    """Which unquoted words of a csv file stand for "no value".

    Args:
        declared: by column, the words that are values there.
    """

    words: frozenset[str] = frozenset(MISSING_WORDS)
    declared: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, column: str) -> frozenset[str]:
        return self.words - self.declared.get(column, frozenset())


def open_file(
    kind: FileFormat,
    path: Path,
    origin: Origin,
    made_by: str | None = None,
    words: MissingWords | None = None,
    tolerates: Tolerates = nothing,
) -> Reader:
    """Return a reader of a file that exists and whose header is sound.

    Args:
        origin: how errors call it.
        words: of a csv file.
        tolerates: which columns may have a problem.
    """
    require_file(path, origin, made_by)
    with _readable(origin):
        if kind == "csv":
            return CsvFile.open(path, origin, words or MissingWords())
        return ParquetFile.open(path, origin, tolerates)


def file_fingerprint(path: Path) -> str:
    """Size, time of change and inode: a file written anew differs in one of them."""
    state = path.stat()
    return json.dumps([str(path), state.st_size, state.st_mtime_ns, state.st_ino])


@contextmanager
def _readable(origin: Origin) -> Iterator[None]:
    """A file that was there when it was found, and may be gone when it is read."""
    try:
        with reachable(origin):
            yield
    except (FileNotFoundError, NotADirectoryError):
        raise origin.error("the file is gone", hint="put it back, and leave it there while it is read") from None


# --- csv ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvFile:
    """A csv file in UTF-8 with a header, read as text and converted later, where rows are known.

    A field is null where it is written without quotes and is empty or, without white space around it, a missing word.
    """

    path: Path
    origin: Origin
    names: tuple[str, ...]
    words: MissingWords = MissingWords()
    booleans: frozenset[str] = frozenset()
    problems: Mapping[str, DataError] = field(default_factory=dict)  # every field is a text, whatever it says

    @classmethod
    def open(cls, path: Path, origin: Origin, words: MissingWords) -> CsvFile:
        origin = replace(origin, locate=lambda row: _place_of_row(path, row))
        _refuse_other_formats(path, origin)
        return cls(path, origin, _header(path, origin), words)

    def fingerprint(self) -> str:
        return file_fingerprint(self.path)

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        del batch_rows  # Arrow reads blocks of bytes
        with _readable(self.origin):
            try:
                yield from self._with_nulls(names)
            except pa.ArrowInvalid as error:
                raise self._diagnose() from error
            self._refuse_an_open_quote()

    def _with_nulls(self, names: Sequence[str]) -> Iterator[Any]:
        """Arrow takes one list of words for all columns: columns of other words are read beside, block by block."""
        groups: dict[frozenset[str], list[str]] = {}
        for name in names:
            groups.setdefault(self.words.of(name), []).append(name)
        readers = [self._of_one_list(group, words) for words, group in groups.items()]
        for batches in zip(*readers, strict=True):
            columns = {name: batch.column(name) for batch in batches for name in batch.schema.names}
            yield pa.RecordBatch.from_arrays([columns[name] for name in names], list(names))

    def _of_one_list(self, names: Sequence[str], words: frozenset[str]) -> Iterator[Any]:
        """Arrow knows whether a field had quotes and takes words only as they are written. So the words with white
        space around them that a block turns out to hold are added to the list, and the block is read again."""
        listed, done = {"", *words}, 0
        while True:
            for number, batch in enumerate(self._open_arrow(names, listed)):
                if number < done:
                    continue
                if more := _pad(batch, words) - listed:
                    listed |= more
                    break
                yield batch
                done += 1
            else:
                return

    def _open_arrow(self, names: Sequence[str], words: Iterable[str]) -> Any:
        return pa.csv.open_csv(
            self.path,
            read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=USE_THREADS),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(names),
                column_types=dict.fromkeys(self.names, pa.string()),
                strings_can_be_null=True,
                null_values=sorted(words),
                quoted_strings_can_be_null=False,
            ),
        )

    def _refuse_an_open_quote(self) -> None:
        """In the last column Arrow takes what follows it for one text: nobody would miss the rows in it."""
        if _quotes_are_even(self.path):
            return
        with suppress(csv.Error):
            ((row, line, _),) = deque(_records(self.path, errors="replace"), maxlen=1)  # the last one
            if _quote_is_left_open(self.path, line):
                raise self._open_quote(row)

    def _open_quote(self, row: int) -> DataError:
        hint = "close it; one that is part of a text is written twice"
        return self.origin.error("a double quote is left open", row=row, hint=hint)

    def _diagnose(self) -> DataError:
        """Arrow could not read the file: a slow second reading finds the exact line."""
        if (line := _line_not_utf8(self.path)) is not None:
            return self.origin.error(f"line {line} is not UTF-8", hint="save the file in UTF-8")
        row, line = 0, 1
        try:
            for row, line, fields in _records(self.path):
                if row > 0 and len(fields) != len(self.names) and not _quote_is_left_open(self.path, line):
                    return self.origin.error(
                        f"{len(fields)} fields, but the header has {len(self.names)}",
                        row=row,
                        hint="a field that holds a comma must stand in double quotes",
                    )
            if _quote_is_left_open(self.path, line):  # up to the file's end: it can be in the last row alone
                return self._open_quote(row)
            if row == 0:
                return no_rows(self.origin)
        except csv.Error:
            pass  # fields beyond this reader's limit: the general message stands
        return self.origin.error(
            "the file cannot be read as csv", hint="is a double quote left open, or a row longer than 1 MiB?"
        )


def _pad(batch: Any, words: frozenset[str]) -> set[str]:
    """Return the texts of a batch that are one of these words with white space around it."""
    found: set[str] = set()
    listed = pa.array(sorted(words), pa.string())
    for column in batch.columns:
        trimmed = pc.utf8_trim_whitespace(column)
        if _octets(trimmed) < _octets(column):  # rarely: most files have no white space around a field
            is_padded = pc.and_(pc.is_in(trimmed, value_set=listed), pc.not_equal(trimmed, column))
            found.update(pc.unique(column.filter(pc.fill_null(is_padded, False))).to_pylist())
    return found


def _octets(texts: Any) -> int:
    return pc.sum(pc.binary_length(texts)).as_py() or 0


def _refuse_other_formats(path: Path, origin: Origin) -> None:
    with path.open("rb") as file:
        head = file.read(SNIFFED_BYTES)
    if not head.strip():
        raise origin.error("the file is empty", hint="it needs a header and rows")
    if head.startswith(b"PAR1"):
        hint = "save it as csv" if origin.option else f"write `parquet:` before the path in `{origin.url}`"
        raise origin.error("this is a parquet file, not csv", hint=hint)
    if b"\0" in head:
        raise origin.error("this is not a csv file: it holds binary data, or UTF-16", hint="save it as csv in UTF-8")


def _header(path: Path, origin: Origin) -> tuple[str, ...]:
    try:
        names = next(fields for _, _, fields in _records(path))
    except UnicodeDecodeError:
        raise origin.error(f"line {_line_not_utf8(path)} is not UTF-8", hint="save the file in UTF-8") from None
    except (csv.Error, StopIteration):
        raise origin.error("this is not a csv file: it has no readable header") from None
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise origin.error(
            "the fields are not separated by commas", hint="save the file with commas between its fields"
        )
    return tuple(names)


def _records(path: Path, errors: str = "strict") -> Iterator[tuple[int, int, list[str]]]:
    """(row, physical line at its start, fields). The header is row 0; empty lines are none, as in Arrow."""
    with path.open(encoding="utf-8-sig", errors=errors, newline="") as file:
        reader = csv.reader(file)
        row, line = 0, 1
        for fields in reader:
            if fields:
                yield row, line, fields
                row += 1
            line = reader.line_num + 1


def _place_of_row(path: Path, row: int) -> str:
    """With its line, where this reader finds it: Arrow minds neither what columns hold that are not used, nor how."""
    with suppress(OSError, csv.Error):
        for number, line, _ in _records(path, errors="replace"):
            if number == row:
                return f"row {row} (line {line})"
    return f"row {row}"


def _quotes_are_even(path: Path) -> bool:
    """Nearly always, and then none is left open at the file's end."""
    with path.open("rb") as file:
        return sum(block.count(b'"') for block in iter(partial(file.read, BLOCK_BYTES), b"")) % 2 == 0


def _quote_is_left_open(path: Path, line: int) -> bool:
    """In the record that begins in this line."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            next(csv.reader(islice(file, line - 1, None), strict=True), None)
        except csv.Error as error:
            return "unexpected end of data" in str(error)
    return False


def _line_not_utf8(path: Path) -> int | None:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


# --- parquet --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParquetFile:
    """A parquet file; pages are read as they are needed, so a large row group does not fill the memory.

    Args:
        n_rows: that are read.
        state: of the file when it was opened (`_state`).
        rows: those that are read, from the first up to before the last, counted from 0; None: all.
        tolerates: which columns may have a problem.
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
        """These rows alone, to be read by any process that sees the file at the same path."""
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
        """Args:
        begins: how many rows come before them.
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
        """The column, or nulls where its texts are not UTF-8 and that is tolerated."""
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
        """Parts of two files are no table, and whoever reads parts may be on another machine."""
        with reachable(self.origin), suppress(FileNotFoundError, NotADirectoryError):
            if _state(self.path) == self.state:
                return
        raise self.origin.error(
            f"on {socket.gethostname()} it is not, or no longer, the file that was opened to be read in parts",
            hint="it must be on a disk that all workers of the cluster share, at the same path, and left as it is "
            "while it is read",
        )


def _state(path: Path) -> tuple[int, int]:
    """Size and time of change; some network disks number files otherwise on each machine."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _refuse_other_bytes(column: Any, name: str, first_row: int, origin: Origin) -> None:
    """Nothing checks what a writer calls text, and none of Arrow's functions on text takes what is none."""
    if pa.types.is_dictionary(column.type):
        if _is_utf8(column.dictionary):
            return
        column = column.dictionary_decode()
    if not _is_utf8(column):
        row = next(i for i in range(len(column)) if not _is_utf8(column.slice(i, 1)))
        hint = "write the file again, with its texts in UTF-8"
        raise origin.error("the text is not UTF-8", row=first_row + row, column=name, hint=hint)


def _is_utf8(column: Any) -> bool:
    """Of texts; what is none passes."""
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
        with _readable(origin):
            yield
    except (pa.ArrowException, OSError) as error:
        raise origin.error("this is not a parquet file, or it is damaged", hint="write the file again") from error
