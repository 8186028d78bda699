"""Tables of SQLite and PostgreSQL, read forward in one read-only statement."""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects.postgresql import BIT, CIDR, DOMAIN, INET, MACADDR, MACADDR8, OID
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import NullPool
from sqlalchemy.types import NullType

from blindfit.algorithms.columns import objects
from blindfit.algorithms.columns.record import Kind
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.columns import locate_errors
from blindfit.parties.data.local_files import local_path, require_file
from blindfit.parties.data.origin import Origin, Tolerates, near_names, nothing, or_nulls, refuse_duplicate_names
from blindfit.parties.data.urls import without_password

CONNECT_TIMEOUT_S = 5
LOCK_TIMEOUT_S = 30  # without it an administrator's forgotten transaction would stop a job for ever
DEAD_LINK = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"}
SQLITE_HEADER = b"SQLite format 3\0"

# A column whose type SQLAlchemy does not know may be unused. If a dataset uses it, the conversion refuses it.
warnings.filterwarnings("ignore", "Did not recognize type", exc.SAWarning)


@dataclass(frozen=True)
class SqlTable:
    """A table or view. Rows are numbered in the order in which the database returns them.

    Every batch has a column in one Arrow type, although a driver may return several: SQLite keeps texts among numbers.

    Args:
        origin: name of the dataset in errors; the table is added to it.
        texts: columns that are read as text.
        dates: columns that are read as dates. All others are read as numbers.
        tolerates: test of a column's name: True if the column may have a problem.
    """

    engine: Engine
    table: sa.Table
    origin: Origin
    texts: frozenset[str] = frozenset()
    dates: frozenset[str] = frozenset()
    tolerates: Tolerates = nothing
    problems: dict[str, DataError] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.table.columns)

    @property
    def booleans(self) -> frozenset[str]:
        return frozenset(column.name for column in self.table.columns if isinstance(_base(column.type), sa.Boolean))

    def fingerprint(self) -> None:
        """Return None: a table may change at any time, and no cheap check detects it."""

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        asked = [self._select(name) for name in names]
        with connect(self.engine, self.origin) as connection, answering(self.origin):
            streaming = connection.execution_options(yield_per=batch_rows)
            first_row = 1
            for rows in streaming.execute(sa.select(*asked)).partitions():
                columns = zip(names, zip(*rows, strict=True), strict=True)
                arrays = [self._tolerant(name, values, first_row) for name, values in columns]
                yield pa.RecordBatch.from_arrays(arrays, list(names))
                first_row += len(rows)

    def _kind(self, name: str) -> Kind:
        if name in self.texts:
            return "category"
        return "date" if name in self.dates else "boolean" if name in self.booleans else "number"

    def _select(self, name: str) -> Any:
        """Return the expression that selects a column: without a type, so that SQLAlchemy returns the driver's own
        value.
        """
        declared = self.table.c[name].type
        column: Any = sa.type_coerce(self.table.c[name], NullType())
        if self._how(declared, name) == "as text":
            column = sa.type_coerce(sa.cast(column, sa.Text), NullType())
        elif self._how(declared, name) == "refused":
            column = column.is_not(None)
        return column.label(name)

    def _how(self, declared: Any, name: str) -> Literal["as it is", "as text", "refused"]:
        """Return how to read a column. PostgreSQL's dates may lie beyond Python's, so they come as texts."""
        base, kind = _base(declared), self._kind(name)
        if self.engine.dialect.name != "postgresql" or isinstance(base, _TEXTS):
            return "as it is"
        if kind == "date":
            whole = isinstance(base, sa.Integer)  # the conversion refuses it with its own message
            return "as text" if isinstance(base, _MOMENTS) else "as it is" if whole else "refused"
        if isinstance(base, _NUMBERS):
            return "as it is"
        return "as text" if kind == "category" and isinstance(base, _WITH_ONE_TEXT) else "refused"

    def _tolerant(self, name: str, values: Sequence[Any], first_row: int) -> Any:
        nulls = pa.nulls(len(values), objects.arrow_type(self._kind(name)))
        return or_nulls(name, partial(self._to_arrow, name, values, first_row), nulls, self.problems, self.tolerates)

    def _to_arrow(self, name: str, values: Sequence[Any], first_row: int) -> Any:
        kind, declared = self._kind(name), self.table.c[name].type
        if self._how(declared, name) == "refused":
            if True not in values:
                return pa.nulls(len(values), pa.string())
            wanted = {"category": "texts", "date": "dates"}.get(kind, "numbers")
            problem = f"its values are of the type {_describe_type(declared)}, not {wanted}"
            row = first_row + values.index(True)
            hint = _HINTS.get(kind) or self.origin.advice.leave_out(name)
            raise self.origin.error(problem, row=row, column=name, hint=hint)
        with locate_errors(self.origin, name, first_row, hint=_HINTS.get(kind) or self.origin.advice.no_number(name)):
            return objects.MAKERS[kind](values)


_HINTS: dict[Kind, str] = {
    "category": "store it as text or as whole numbers",
    "date": "store it as a date, a timestamp, or a text such as 2024-05-31",
}
_TEXTS = (sa.String, sa.Uuid)
_NUMBERS = (sa.Boolean, sa.Integer, sa.Numeric, sa.Float)
_MOMENTS = (sa.Date, sa.DateTime)
_WITH_ONE_TEXT = (sa.Date, sa.Time, INET, CIDR, MACADDR, MACADDR8, BIT, OID)


def _base(declared: Any) -> Any:
    """Return the type that a domain of PostgreSQL is made of."""
    while isinstance(declared, DOMAIN):
        declared = declared.data_type
    return declared


def _describe_type(declared: Any) -> str:
    return "that only the database knows" if isinstance(declared, NullType) else str(declared)


def open_table(
    url: URL,
    base_dir: Path,
    origin: Origin,
    made_by: str | None,
    texts: frozenset[str] = frozenset(),
    dates: frozenset[str] = frozenset(),
    tolerates: Tolerates = nothing,
) -> SqlTable:
    """Return a reader of a table that exists and that this user may read.

    Args:
        origin: name of the dataset in errors; the table is added to it.
        texts: columns that are read as text.
        dates: columns that are read as dates.
        tolerates: test of a column's name: True if the column may have a problem.
    """
    schema, name, origin = find_table(url, origin)
    if url.get_backend_name() == "sqlite":
        engine = _sqlite_engine(url, base_dir, origin, made_by)
    else:
        engine = postgresql_engine(url, origin).execution_options(postgresql_readonly=True)
    with connect(engine, origin) as connection, answering(origin):
        table = _reflect(connection, schema, name, origin)
    refuse_duplicate_names([column.name for column in table.columns], origin)
    return SqlTable(engine, table, origin, texts, dates, tolerates)


def as_declared(table: SqlTable, texts: frozenset[str]) -> SqlTable:
    """Return the same table, with each column read as the type that the database declares.

    A column that cannot be read is recorded as a problem of that column and raises no error.

    Args:
        texts: columns that are read as text, also if they have another type; a problem in one of them is an error.
    """
    types = {column.name: _base(column.type) for column in table.table.columns}
    dates = {name for name, kind in types.items() if isinstance(kind, _MOMENTS)}
    words = {name for name, kind in types.items() if isinstance(kind, (*_TEXTS, *_WITH_ONE_TEXT))}
    words |= _texts_of_no_type(table, [name for name, kind in types.items() if isinstance(kind, NullType)])
    return replace(
        table,
        texts=texts | (words - dates),
        dates=frozenset(dates - texts),
        tolerates=lambda name: name not in texts,
        problems={},
    )


def _texts_of_no_type(table: SqlTable, names: Sequence[str]) -> set[str]:
    """Return those columns in which SQLite, which does not ask for types, has a text."""
    if table.engine.dialect.name != "sqlite":
        return set()
    with connect(table.engine, table.origin) as connection, answering(table.origin):
        found = {name: sa.select(sa.func.typeof(table.table.c[name])).distinct() for name in names}
        return {name for name, asked in found.items() if "text" in connection.execute(asked).scalars()}


def find_table(url: URL, origin: Origin) -> tuple[str | None, str, Origin]:
    """Return the schema (None if the URL has none), the table, and the name of the table in errors.

    Args:
        origin: the name in errors, without the table.
    """
    shown, named = without_password(url.render_as_string(hide_password=False)), url.query.get("table")
    if not isinstance(named, str) or not named:
        raise replace(origin, where=shown).error(
            "the URL does not name one table", hint=f"end `{origin.url}` with ?table=NAME"
        )
    first, dot, rest = named.partition(".")
    schema, name = (first, rest) if dot else (None, named)
    return schema, name, replace(origin, where=f"table {named} of {shown}")


def _sqlite_engine(url: URL, base_dir: Path, origin: Origin, made_by: str | None) -> Engine:
    path = local_path(Path(url.database or ""), base_dir, origin.dataset)
    require_file(path, origin, made_by)  # SQLite itself would create it
    _refuse_other_files(path, origin)
    read_only = path.as_uri() + "?mode=ro"
    return sa.create_engine("sqlite://", creator=partial(_sqlite_connection, read_only), poolclass=NullPool)


def _sqlite_connection(uri: str) -> sqlite3.Connection:
    """Return a connection that reads bytes that are not UTF-8 as surrogates, which the conversion refuses by row and
    column.
    """
    connection = sqlite3.connect(uri, uri=True)
    connection.text_factory = lambda octets: octets.decode("utf-8", "surrogateescape")
    return connection


def _refuse_other_files(path: Path, origin: Origin) -> None:
    with suppress(OSError), path.open("rb") as file:  # SQLite itself reports a file that cannot be read
        head = file.read(len(SQLITE_HEADER))
        if head and head != SQLITE_HEADER:  # an empty file is a database without tables
            hint = f"name another in `{origin.url}`; for a csv or parquet file write csv: or parquet: before its path"
            raise origin.error("this is not an SQLite database, or it is encrypted", hint=hint)


def postgresql_engine(url: URL, origin: Origin) -> Engine:
    options = {key: value for key, value in url.query.items() if key != "table"}
    options = {"connect_timeout": str(CONNECT_TIMEOUT_S), **DEAD_LINK, **options}
    try:
        engine = sa.create_engine(url.set(drivername="postgresql+psycopg", query=options), poolclass=NullPool)
    except ImportError as error:
        raise origin.error(
            "the PostgreSQL driver is not installed", hint="run `pip install 'psycopg[binary]>=3.2.1'`"
        ) from error
    sa.event.listen(engine, "connect", _prepare_session)
    return engine


def _prepare_session(connection: Any, _record: object) -> None:
    """Set the session so that each run reads a large table in the same order: by default a scan may start in its
    middle.
    """
    connection.execute("SET synchronize_seqscans = off")
    connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'")
    connection.execute("SET datestyle = 'ISO, YMD'")  # dates come as texts
    connection.execute("SET timezone = 'UTC'")
    connection.execute("SET extra_float_digits = 1")
    connection.commit()


def _reflect(connection: Connection, schema: str | None, name: str, origin: Origin) -> sa.Table:
    try:
        return sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection, resolve_fks=False)
    except exc.NoSuchTableError:
        inspector = sa.inspect(connection)
        present = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
        raise origin.error("there is no such table", hint=near_names(name, present, "tables")) from None


# --- errors of the database -------------------------------------------------------------------------


@contextmanager
def connect(engine: Engine, origin: Origin) -> Iterator[Connection]:
    try:
        connection = engine.connect()
    except exc.DBAPIError as error:
        raise _unreachable(engine.url, origin, error) from None  # the cause's text may hold the password
    with connection:
        yield connection


def _unreachable(url: URL, origin: Origin, error: exc.DBAPIError) -> DataError:
    if url.get_backend_name() == "sqlite":
        return origin.error("this file cannot be opened as an SQLite database")
    reason = _reason(url, str(error.orig))
    return origin.error(
        f"no connection to the database at {_address(url)}: {reason}",
        hint="is it running, and may this user connect? PGPASSWORD or ~/.pgpass may hold the password",
    )


def _address(url: URL) -> str:
    host = url.host or url.query.get("host") or os.environ.get("PGHOST") or "the local socket"
    port = url.port or url.query.get("port") or os.environ.get("PGPORT") or 5432
    return f"{host}, port {port}"


def _reason(url: URL, text: str) -> str:
    """Return the last clause of the driver's first line, such as `Connection refused`."""
    reason = (text.strip().splitlines() or ["no reason given"])[0].rpartition("failed: ")[2]
    for secret in (url.password, url.query.get("password")):
        if secret:
            reason = reason.replace(str(secret), "***")
    return reason


LOCKED = (
    f"another session has locked the table for more than {LOCK_TIMEOUT_S} s: find it in pg_locks, and try again later"
)


@contextmanager
def answering(
    origin: Origin, doing: str = "return the rows", grant: str = "let this user SELECT from it"
) -> Iterator[None]:
    """Report errors of the database only by their class: their text may quote a value."""
    try:
        yield
    except exc.DBAPIError as error:
        kind = type(error.orig).__name__
        hints = {"InsufficientPrivilege": grant, "LockNotAvailable": LOCKED}
        hint = hints.get(kind, "see the database's own log for the reason")
        raise origin.error(f"the database could not {doing} ({kind})", hint=hint) from None
