"""Places for the active party's scores, by URL: csv, parquet, SQLite and PostgreSQL. All scores are written, or none.

A new file replaces the old one; a table (table_sink.py) is written in one transaction. Every error is a `DataError` of
one line that names the file or table, and never shows a password or a value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data.files import open_file
from blindfit.parties.data.local_files import is_there, local_path
from blindfit.parties.data.origin import Origin
from blindfit.parties.data.settings import IfExists
from blindfit.parties.data.sink import CHOOSE, OPTION, SCORES, Sink, require_columns
from blindfit.parties.data.urls import KINDS_OF_SINK, FileFormat, database_of, file_of, without_password
from blindfit.parties.files import written
from blindfit.parties.files.private_files import make_private, write_new

_one_file_at_a_time = threading.Lock()  # two sessions may append to the same file


def open_sink(url: str, if_exists: IfExists, base_dir: Path) -> Sink:
    """Return a sink, without reading or writing anything yet.

    Raises:
        ConfigError: such a URL is not known.
    """
    if found := file_of(url):
        kind, path = found
        if kind == "excel":
            raise ConfigError(f"scores.url: {url}: scores are not written to Excel files", hint=f"use {KINDS_OF_SINK}")
        return FileSink(kind, local_path(path, base_dir, SCORES), if_exists)
    database = database_of(url)
    if database is None or (database.drivername == "sqlite" and not database.database):
        raise ConfigError(
            f"scores.url: {without_password(url)}: this kind of URL is not known", hint=f"use {KINDS_OF_SINK}"
        )
    from blindfit.parties.data.table_sink import TableSink  # here: a file needs no SQLAlchemy

    return TableSink(database, base_dir, if_exists)


@dataclass(frozen=True)
class FileSink:
    """A csv or parquet file.

    Args:
        replace: function that puts a new file in the place of the old one.
    """

    kind: FileFormat
    path: Path
    if_exists: IfExists
    replace: Callable[[Path, bytes], None] = written.write_file

    @property
    def origin(self) -> Origin:
        return Origin(SCORES, str(self.path), option=OPTION)

    def check(self, names: Sequence[str]) -> None:
        if not is_there(self.path, self.origin):
            return
        if self.if_exists == "refuse":
            raise self.origin.error("the file exists already", hint=CHOOSE)
        if self.if_exists == "append":
            require_columns(open_file(self.kind, self.path, self.origin).names, names, self.origin)

    def write(self, table: Any) -> None:
        with _one_file_at_a_time, _writable(self.origin):
            self.check(table.column_names)
            if self.if_exists == "refuse":
                make_private(self.path.parent)
                write_new(self.path, self._encode(table), mode=0o600)
            else:
                self.replace(self.path, self._encode(table))

    def _encode(self, table: Any) -> bytes:
        appends = self.if_exists == "append" and self.path.exists()
        if self.kind == "csv":
            return (self._lines() if appends else b"") + written.csv_of(table, header=not appends)
        return _parquet(self._append(table) if appends else table)

    def _lines(self) -> bytes:
        content = self.path.read_bytes()
        return content if content.endswith(b"\n") else content + b"\n"

    def _append(self, table: Any) -> Any:
        before = pq.read_table(self.path)
        if before.schema.types != table.schema.types:
            raise self.origin.error("its columns are of other types than scores")
        return pa.concat_tables([before.replace_schema_metadata(None), table])


def _parquet(table: Any) -> bytes:
    encoded = pa.BufferOutputStream()
    pq.write_table(table, encoded)
    return bytes(encoded.getvalue().to_pybytes())


@contextmanager
def _writable(origin: Origin) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise origin.error(f"it cannot be written: {error.strerror or 'damaged'}") from None
    except ConfigError as error:
        raise DataError(f"{SCORES}: {error.message}", hint=error.hint) from None
