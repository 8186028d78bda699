"""csv files of any dialect, read forward."""

from __future__ import annotations

import codecs
import csv
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from blindfit.algorithms.columns.record import MISSING_WORDS
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.columns import locate_errors
from blindfit.parties.data.dialect import PLAIN, SEPARATORS, CsvDialect
from blindfit.parties.data.local_files import BLOCK_BYTES, USE_THREADS, file_fingerprint, readable
from blindfit.parties.data.origin import PLAIN_KINDS, ColumnKinds, Origin, Tolerates, no_rows, nothing, or_nulls
from blindfit.parties.data.written_values import read_dates, write_plain_numbers
from blindfit.parties.tables import toml_of

SNIFFED_BYTES = 1 << 16
SNIFFED_SEPARATORS = (";", "\t", "|", ",")
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# Python's reader finds the line of an error. A row that Arrow can read lies within two blocks. The limit holds for the
# whole process, and the default is too small: a long text in a column that is not used would exceed it.
csv.field_size_limit(2 * BLOCK_BYTES)


@dataclass(frozen=True)
class MissingWords:
    """Unquoted words of a csv file that stand for "no value".

    Args:
        declared: words that are values in a column, by column.
    """

    words: frozenset[str] = frozenset(MISSING_WORDS)
    declared: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, column: str) -> frozenset[str]:
        return self.words - self.declared.get(column, frozenset())


@dataclass(frozen=True)
class CsvFile:
    """A csv file with a header. It is read as text, and converted later, where row numbers are known.

    A field is null if it has no quotes and is empty or, without the white space around it, a missing word. Numbers and
    dates come in the plain form, in any dialect of the file.

    Args:
        kinds: kinds in which the columns are read; only numbers and dates have another form in some dialects.
        tolerates: test of a column's name: True if the column may have a problem.
    """

    path: Path
    origin: Origin
    names: tuple[str, ...]
    words: MissingWords = MissingWords()
    dialect: CsvDialect = PLAIN
    kinds: ColumnKinds = PLAIN_KINDS
    tolerates: Tolerates = nothing
    booleans: frozenset[str] = frozenset()
    problems: dict[str, DataError] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        path: Path,
        origin: Origin,
        words: MissingWords,
        dialect: CsvDialect = PLAIN,
        kinds: ColumnKinds = PLAIN_KINDS,
        tolerates: Tolerates = nothing,
    ) -> CsvFile:
        text = _Text(path, dialect)
        origin = replace(origin, locate=text.place_of_row)
        _refuse_other_formats(text, origin)
        return cls(path, origin, _header(text, origin), words, dialect, kinds, tolerates)

    @property
    def _text(self) -> _Text:
        return _Text(self.path, self.dialect)

    def fingerprint(self) -> str:
        return file_fingerprint(self.path)

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        del batch_rows  # Arrow reads blocks of bytes
        first_row = 1
        with readable(self.origin):
            try:
                for batch in self._with_nulls(names):
                    columns = [self._in_plain_form(batch.column(name), name, first_row) for name in names]
                    yield pa.RecordBatch.from_arrays(columns, list(names))
                    first_row += batch.num_rows
            except (pa.ArrowInvalid, UnicodeError) as error:
                raise self._diagnose() from error
            self._refuse_an_open_quote()

    def _in_plain_form(self, column: Any, name: str, first_row: int) -> Any:
        kind, dialect = self.kinds.of(name), self.dialect
        if kind == "date" and dialect.date_format is not None:
            to_plain, made = read_dates, pa.timestamp("us")
        elif kind == "number" and dialect.converts_numbers:
            to_plain, made = write_plain_numbers, pa.string()
        else:
            return column

        def convert() -> Any:
            with locate_errors(self.origin, name, first_row, hint=self.origin.advice.no_number(name)):
                return to_plain(column, dialect)

        return or_nulls(name, convert, pa.nulls(len(column), made), self.problems, self.tolerates)

    def _with_nulls(self, names: Sequence[str]) -> Iterator[Any]:
        """Read columns that have different words for "no value" separately, block by block: Arrow takes one list of
        words for all columns.
        """
        groups: dict[frozenset[str], list[str]] = {}
        for name in names:
            groups.setdefault(self.words.of(name), []).append(name)
        readers = [self._of_one_list(group, words) for words, group in groups.items()]
        for batches in zip(*readers, strict=True):
            columns = {name: batch.column(name) for batch in batches for name in batch.schema.names}
            yield pa.RecordBatch.from_arrays([columns[name] for name in names], list(names))

    def _of_one_list(self, names: Sequence[str], words: frozenset[str]) -> Iterator[Any]:
        """Read a block again until its list of words is complete.

        Arrow knows whether a field had quotes, and recognises words only in the spelling of its list. So each word that
        a block holds with white space around it is added to the list.
        """
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
            read_options=pa.csv.ReadOptions(
                block_size=BLOCK_BYTES, use_threads=USE_THREADS, encoding=self.dialect.encoding
            ),
            parse_options=pa.csv.ParseOptions(delimiter=self.dialect.separator, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(names),
                column_types=dict.fromkeys(self.names, pa.string()),
                strings_can_be_null=True,
                null_values=sorted(words),
                quoted_strings_can_be_null=False,
            ),
        )

    def _refuse_an_open_quote(self) -> None:
        """Refuse a file whose last quote is open: Arrow would take all rows after it as one text of the last column,
        without an error.
        """
        text = self._text
        if text.has_even_quotes():
            return
        with suppress(csv.Error):
            ((row, line, _),) = deque(text.records(errors="replace"), maxlen=1)  # the last one
            if text.leaves_quote_open(line):
                raise self._open_quote(row)

    def _open_quote(self, row: int) -> DataError:
        hint = "close it; write a quote that is part of a text twice"
        return self.origin.error("a double quote is left open", row=row, hint=hint)

    def _diagnose(self) -> DataError:
        """Find the exact line that Arrow could not read, in a second, slow reading."""
        text = self._text
        if (line := text.undecodable_line()) is not None:
            return _not_decoded(line, self.dialect, self.origin)
        row, line = 0, 1
        try:
            for row, line, fields in text.records():
                if row > 0 and len(fields) != len(self.names) and not text.leaves_quote_open(line):
                    between = SEPARATORS.get(self.dialect.separator, f"the character {self.dialect.separator!a}")
                    return self.origin.error(
                        f"{len(fields)} fields, but the header has {len(self.names)}",
                        row=row,
                        hint=f"a field that holds {between} must stand in double quotes",
                    )
            if text.leaves_quote_open(line):  # only the last row can reach to the end of the file
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


# --- the file as text, to find the place of an error ------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """A csv file as Python reads it."""

    path: Path
    dialect: CsvDialect

    @property
    def codec(self) -> str:
        """The encoding, without a byte order mark."""
        return "utf-8-sig" if self.dialect.encoding == "utf-8" else self.dialect.encoding

    def open(self, errors: str = "strict") -> TextIO:
        return self.path.open(encoding=self.codec, errors=errors, newline="")

    def records(self, errors: str = "strict") -> Iterator[tuple[int, int, list[str]]]:
        """Yield (row, physical line at its start, fields). The header is row 0; empty lines do not count, as in
        Arrow.
        """
        with self.open(errors) as file:
            reader = csv.reader(file, delimiter=self.dialect.separator)
            row, line = 0, 1
            for fields in reader:
                if fields:
                    yield row, line, fields
                    row += 1
                line = reader.line_num + 1

    def place_of_row(self, row: int) -> str:
        """Return the place of a row, with its line if this reader finds it. Arrow does not check columns that are not
        used.
        """
        with suppress(OSError, csv.Error, UnicodeError):
            for number, line, _ in self.records(errors="replace"):
                if number == row:
                    return f"row {row} (line {line})"
        return f"row {row}"

    def has_even_quotes(self) -> bool:
        """Return True if the number of quotes is even. Nearly every file has an even number, and then the last quote is
        closed.
        """
        with self.open(errors="replace") as file:
            return sum(block.count('"') for block in iter(partial(file.read, BLOCK_BYTES), "")) % 2 == 0

    def leaves_quote_open(self, line: int) -> bool:
        """Return True if the record that begins in this line has an open quote."""
        with self.open(errors="replace") as file:
            lines = islice(file, line - 1, None)
            try:
                next(csv.reader(lines, delimiter=self.dialect.separator, strict=True), None)
            except csv.Error as error:
                return "unexpected end of data" in str(error)
        return False

    def undecodable_line(self) -> int | None:
        """Return the first line that is not in the file's encoding."""
        decoder, line = codecs.getincrementaldecoder(self.codec)(), 1
        with self.path.open("rb") as file:
            for block in (*iter(partial(file.read, BLOCK_BYTES), b""), b""):
                before = decoder.getstate()
                try:
                    line += decoder.decode(block, final=not block).count("\n")
                except UnicodeDecodeError as error:
                    decoder.setstate(before)
                    return line + decoder.decode(error.object[len(before[0]) : error.start]).count("\n")
        return None


def _not_decoded(line: int | None, dialect: CsvDialect, origin: Origin) -> DataError:
    if dialect.encoding == "utf-8":
        other = "" if origin.option else f', or set {origin.advice.table}.encoding = "cp1252"'
        return origin.error(f"line {line} is not UTF-8", hint=f"save the file in UTF-8{other}")
    return origin.error(
        f"line {line} is not in the encoding {dialect.encoding}",
        hint=f"save the file in UTF-8, and remove {origin.advice.table}.encoding",
    )


def _refuse_other_formats(text: _Text, origin: Origin) -> None:
    with text.path.open("rb") as file:
        head = file.read(SNIFFED_BYTES)
    if not head.strip():
        raise origin.error("the file is empty", hint="it needs a header and rows")
    if head.startswith(b"PAR1"):
        hint = "save it as csv" if origin.option else f"write `parquet:` before the path in `{origin.url}`"
        raise origin.error("this is a parquet file, not csv", hint=hint)
    has_mark, wanted = head.startswith(UTF_16_MARKS), text.dialect.encoding
    if has_mark and wanted != "utf-16" and not origin.option:
        hint = f'set {origin.advice.table}.encoding = "utf-16"'
        raise origin.error(f"the file is UTF-16, not {wanted}", hint=hint)
    if b"\0" in head and wanted != "utf-16":
        raise origin.error("this is not a csv file: it holds binary data", hint="save it as csv in UTF-8")
    if wanted == "utf-16" and not has_mark:
        hint = f"save the file in UTF-8, and remove {origin.advice.table}.encoding"
        raise origin.error("the file does not begin with the byte order mark of UTF-16", hint=hint)
    if wanted not in ("utf-8", "utf-16") and head.startswith(codecs.BOM_UTF8):
        hint = f"remove {origin.advice.table}.encoding"
        raise origin.error(f"the file is UTF-8, not {wanted}: it begins with the byte order mark of UTF-8", hint=hint)


def _header(text: _Text, origin: Origin) -> tuple[str, ...]:
    try:
        names = next(fields for _, _, fields in text.records())
    except UnicodeError:
        raise _not_decoded(text.undecodable_line(), text.dialect, origin) from None
    except (csv.Error, StopIteration):
        raise origin.error("this is not a csv file: it has no readable header") from None
    others = [mark for mark in SNIFFED_SEPARATORS if mark != text.dialect.separator and mark in names[0]]
    if len(names) == 1 and others:
        between = SEPARATORS.get(text.dialect.separator, f"the character {text.dialect.separator!a}")
        hint = f"set {origin.advice.table}.separator = {toml_of(others[0])}"
        if origin.option:
            hint = "save the file with commas between its fields"
        raise origin.error(f"the fields are not separated by {between}", hint=hint)
    return tuple(names)
