"""The same small table as a file or table of every kind."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import DataError
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.row_batch import RowBatch
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source

SQL_TYPES = {pa.string(): "TEXT", pa.int64(): "BIGINT", pa.float64(): "DOUBLE PRECISION", pa.bool_(): "BOOLEAN"}

Columns = dict[str, list[Any]]


def write(directory: Path, kind: str, columns: Columns, postgres: Any = None) -> str:
    """Return the URL."""
    table = pa.table(columns)
    if kind == "csv":
        pyarrow.csv.write_csv(table, directory / "rows.csv")
        return "csv:rows.csv"
    if kind == "parquet":
        pq.write_table(table, directory / "rows.parquet", row_group_size=7)
        return "parquet:rows.parquet"
    declared = ", ".join(f'"{field.name}" {SQL_TYPES[field.type]}' for field in table.schema)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    if kind == "sqlite":
        write_sqlite(directory / "rows.db", declared, rows)
        return "sqlite:///rows.db?table=rows"
    marks = ", ".join(["%s"] * table.num_columns)
    postgres.run(
        "CREATE SCHEMA IF NOT EXISTS shop", "DROP TABLE IF EXISTS shop.rows", f"CREATE TABLE shop.rows ({declared})"
    )
    with postgres.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO shop.rows VALUES ({marks})", rows)
    return postgres.url("shop.rows")


def write_sqlite(path: Path, declared: str, rows: list[tuple[Any, ...]]) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE rows ({declared})")
        if rows:
            connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(rows[0]))})", rows)
    connection.close()


def write_text(directory: Path, text: str | bytes, name: str = "rows.csv") -> Path:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def source_of(directory: Path, url: str, **settings: Any) -> Source:
    return open_source(DatasetSettings(url=url, **{"id": "id", **settings}), directory, "visits")


def read(directory: Path, url: str, **settings: Any) -> list[RowBatch]:
    return list(source_of(directory, url, **settings).batches())


def refused(message: str, hint: str, directory: Path, url: str, **settings: Any) -> None:
    """Check that reading fails with exactly this line, where DIR stands for the directory, and a hint like this."""
    with pytest.raises(DataError) as caught:
        read(directory, url, **settings)
    text = caught.value.message.replace(str(directory.resolve()), "DIR")
    assert text == message
    assert "\n" not in text
    assert re.search(hint, caught.value.hint), caught.value.hint
