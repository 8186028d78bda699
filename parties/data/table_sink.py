"""Scores into a table of SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.pool import NullPool

from blindfit.parties.data.database import answering, connect, find_table, postgresql_engine
from blindfit.parties.data.local_files import is_there, local_path
from blindfit.parties.data.origin import Origin
from blindfit.parties.data.settings import IfExists
from blindfit.parties.data.sink import CHOOSE, OPTION, SCORES, require_columns

ROWS_AT_ONCE = 10_000


class TableSink:
    """Sink that writes rows into a table of its own, and creates the table if it does not exist."""

    def __init__(self, url: URL, base_dir: Path, if_exists: IfExists) -> None:
        self._schema, self._name, self.origin = find_table(url, Origin(SCORES, "", option=OPTION))
        self._if_exists = if_exists
        self._file = local_path(Path(str(url.database)), base_dir, SCORES) if url.drivername == "sqlite" else None
        self._engine = postgresql_engine(url, self.origin) if self._file is None else _sqlite_engine(self._file)

    def check(self, names: Sequence[str]) -> None:
        if self._file is not None and not is_there(self._file, self.origin):
            return  # a look would create the file
        with self._connect() as connection:
            self._check(connection, names)

    def write(self, table: Any) -> None:
        if self._file is not None:
            is_there(self._file, self.origin)  # or there is nothing yet: a pipe or a device is never opened
        with self._connect() as connection, connection.begin():
            target = self._table(table.column_names)
            if not self._check(connection, table.column_names):
                target.create(connection)
            elif self._if_exists == "replace":
                connection.execute(target.delete())
            for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
                connection.execute(target.insert(), batch.to_pylist())

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        grant = "let this user CREATE the table, or SELECT, INSERT and DELETE in it"
        with connect(self._engine, self.origin) as connection, answering(self.origin, "take the scores", grant):
            yield connection

    def _check(self, connection: Connection, names: Sequence[str]) -> bool:
        """Return True if the table exists."""
        inspector = sa.inspect(connection)
        if not inspector.has_table(self._name, schema=self._schema):
            return False
        if self._if_exists == "refuse":
            raise self.origin.error("the table exists already", hint=CHOOSE)
        columns = {column["name"]: column["type"] for column in inspector.get_columns(self._name, self._schema)}
        require_columns(sorted(columns), sorted(names), self.origin)
        for name in names:
            if not _holds(columns[name], text=name == "id", backend=self._engine.dialect.name):
                kind = "text" if name == "id" else "of double precision"
                raise self.origin.error(
                    "the column has another type than scores", column=name, hint=f"it must be {kind}"
                )
        return True

    def _table(self, names: Sequence[str]) -> sa.Table:
        columns = [sa.Column(name, sa.Text if name == "id" else sa.Double, nullable=False) for name in names]
        return sa.Table(self._name, sa.MetaData(), *columns, schema=self._schema)


def _holds(kind: object, *, text: bool, backend: str) -> bool:
    """Return True if a column holds values without rounding: integers would hold 0.7 as 1, a PostgreSQL real has 24
    bits.
    """
    if text:
        return isinstance(kind, sa.String)
    return isinstance(kind, sa.Float) and not (backend == "postgresql" and isinstance(kind, sa.REAL))


def _sqlite_engine(path: Path) -> Engine:
    engine = sa.create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)
    # The driver begins a transaction at the first INSERT only: a table made before would stay when that fails.
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine
