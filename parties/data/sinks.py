"""Where the active party puts scores: csv, parquet, SQLite and PostgreSQL by URL, whole or not at all.

A file is written anew and put in the place of the old one; a table is written in one transaction. Whatever is wrong is
a `DataError` of one line that names the file or table, and never shows a password or a value.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import NullPool

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data.database import answering, connected, named_table, postgresql_engine
from blindfit.parties.data.files import open_file
from blindfit.parties.data.local_files import is_there, local_path
from blindfit.parties.data.origin import Origin
from blindfit.parties.data.settings import IfExists
from blindfit.parties.data.urls import KINDS_OF_URL, FileFormat, database_of, file_of, without_password
from blindfit.parties.files import written
from blindfit.parties.files.private_files import make_private, write_new

CHOOSE = 'set scores.if_exists = "append" or "replace", or name another'
ROWS_AT_ONCE = 10_000
SCORES = "scores"  # what errors call it
_one_file_at_a_time = threading.Lock()  # two sessions may append to one


class Sink(Protocol):
    """Where a table of ids (text) and numbers goes; no number is missing."""

    @property
    def origin(self) -> Origin: ...

    def check(self, names: Sequence[str]) -> None:
        """Raises DataError: a table with these columns would be refused."""

    def write(self, table: Any) -> None:
        """Raises DataError: it was refused, or could not be written; then nothing has changed."""


def open_sink(url: str, if_exists: IfExists, base_dir: Path) -> Sink:
    """Reads and writes nothing yet.

    Raises:
        ConfigError: such a URL is not known.
    """
    if found := file_of(url):
        kind, path = found
        return FileSink(kind, local_path(path, base_dir, SCORES), if_exists)
    database = database_of(url)
    if database is None or (database.drivername == "sqlite" and not database.database):
        raise ConfigError(f"scores.url: {without_password(url)}: this kind of URL is not known", hint=KINDS_OF_URL)
    return TableSink(database, base_dir, if_exists)


# --- files -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileSink:
    kind: FileFormat
    path: Path
    if_exists: IfExists

    @property
    def origin(self) -> Origin:
        return Origin(SCORES, str(self.path))

    def check(self, names: Sequence[str]) -> None:
        if not is_there(self.path, self.origin, "scores.url"):
            return
        if self.if_exists == "refuse":
            raise self.origin.error("the file exists already", hint=CHOOSE)
        if self.if_exists == "append":
            _require_columns(open_file(self.kind, self.path, SCORES, None).names, names, self.origin)

    def write(self, table: Any) -> None:
        with _one_file_at_a_time, _writable(self.origin):
            self.check(table.column_names)
            if self.if_exists == "refuse":
                make_private(self.path.parent)
                write_new(self.path, self._encoded(table), mode=0o600)
            else:
                written.write_file(self.path, self._encoded(table))

    def _encoded(self, table: Any) -> bytes:
        appends = self.if_exists == "append" and self.path.exists()
        if self.kind == "csv":
            return (self._lines() if appends else b"") + written.csv_of(table, header=not appends)
        return _parquet(self._appended(table) if appends else table)

    def _lines(self) -> bytes:
        content = self.path.read_bytes()
        return content if content.endswith(b"\n") else content + b"\n"

    def _appended(self, table: Any) -> Any:
        before = pq.read_table(self.path)
        if before.schema.types != table.schema.types:
            raise self.origin.error("its columns are of other types than scores")
        return pa.concat_tables([before.replace_schema_metadata(None), table])


def _parquet(table: Any) -> bytes:
    encoded = pa.BufferOutputStream()
    pq.write_table(table, encoded)
    return bytes(encoded.getvalue().to_pybytes())


def _require_columns(present: Sequence[str], names: Sequence[str], origin: Origin) -> None:
    if list(present) != list(names):
        raise origin.error(f"its columns are {', '.join(present)}, not {', '.join(names)}", hint="name another")


@contextmanager
def _writable(origin: Origin) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise origin.error(f"it cannot be written: {error.strerror or 'damaged'}") from None
    except ConfigError as error:
        raise DataError(f"{SCORES}: {error}", hint=error.hint) from None


# --- tables ----------------------------------------------------------------------------------------


class TableSink:
    """Rows go into a table of their own, which is made where there is none."""

    def __init__(self, url: URL, base_dir: Path, if_exists: IfExists) -> None:
        self._schema, self._name, self.origin = named_table(url, SCORES)
        self._if_exists = if_exists
        self._file = local_path(Path(str(url.database)), base_dir, SCORES) if url.drivername == "sqlite" else None
        self._engine = postgresql_engine(url, self.origin) if self._file is None else _sqlite_engine(self._file)

    def check(self, names: Sequence[str]) -> None:
        if self._file is not None and not is_there(self._file, self.origin, "scores.url"):
            return  # to look would make it
        with self._connected() as connection:
            self._check(connection, names)

    def write(self, table: Any) -> None:
        if self._file is not None:
            is_there(self._file, self.origin, "scores.url")  # or nothing: no pipe and no device is opened
        with self._connected() as connection, connection.begin():
            target = self._table(table.column_names)
            if not self._check(connection, table.column_names):
                target.create(connection)
            elif self._if_exists == "replace":
                connection.execute(target.delete())
            for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
                connection.execute(target.insert(), batch.to_pylist())

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        grant = "let this user CREATE the table, or SELECT, INSERT and DELETE in it"
        with connected(self._engine, self.origin) as connection, answering(self.origin, "take the scores", grant):
            yield connection

    def _check(self, connection: Connection, names: Sequence[str]) -> bool:
        """Whether the table exists."""
        inspector = sa.inspect(connection)
        if not inspector.has_table(self._name, schema=self._schema):
            return False
        if self._if_exists == "refuse":
            raise self.origin.error("the table exists already", hint=CHOOSE)
        columns = {column["name"]: column["type"] for column in inspector.get_columns(self._name, self._schema)}
        _require_columns(sorted(columns), sorted(names), self.origin)
        for name in names:
            if not _holds(columns[name], text=name == "id", backend=self._engine.dialect.name):
                kind = "text" if name == "id" else "of double precision"
                raise self.origin.error("another type than scores have", column=name, hint=f"it must be {kind}")
        return True

    def _table(self, names: Sequence[str]) -> sa.Table:
        columns = [sa.Column(name, sa.Text if name == "id" else sa.Double, nullable=False) for name in names]
        return sa.Table(self._name, sa.MetaData(), *columns, schema=self._schema)


def _holds(kind: object, *, text: bool, backend: str) -> bool:
    """Without rounding: a column of integers would take .7 for 1, a real of PostgreSQL has 24 bits."""
    if text:
        return isinstance(kind, sa.String)
    return isinstance(kind, sa.Float) and not (backend == "postgresql" and isinstance(kind, sa.REAL))


def _sqlite_engine(path: Path) -> Engine:
    engine = sa.create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)
    # The driver begins a transaction at the first INSERT only: a table made before would stay when that fails.
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine
