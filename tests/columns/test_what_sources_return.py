"""Every type that a source can return, in every use of a column: it is read, or refused with its row and column."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import DataError
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import DatasetSettings

# Ways to use a column `x`, with the options of a dataset for each.
USES: dict[str, dict[str, Any]] = {
    "number": {"features": ["x"], "missing": "mean"},
    "date": {"features": ["x"], "dates": ["x"], "missing": "mean"},
    "category": {"features": ["x"], "categories": ["x"], "missing": "indicator"},
    "label": {"label": "x", "label_kind": "number"},
    "positive": {"label": "x", "positive": "yes"},
    "id": {"id": "x"},
    "person": {"person": "x"},
    "field": {"quasi_identifiers": {"name": "x"}},
}
READ = "read"


def outcome(directory: Path, url: str, use: str) -> str | Any:
    """Return the value of the second row, or the refusal, which must name the column and, for a value, the row."""
    settings = {"id": "id", **USES[use], "url": url}
    try:
        source = open_source(DatasetSettings(**settings), directory, "rows")
        ((batch, arrow),) = source.canonical()
    except DataError as error:
        return refusal(error)
    if use in ("number", "date"):
        number = batch.features[1, 0].item()
        return None if np.isnan(number) else number
    if use == "category":
        return arrow.column("x")[1].as_py()
    if use in ("label", "positive"):
        return batch.labels[1].item()
    return {"id": batch.ids, "person": batch.persons, "field": arrow.column("x")}[use][1].as_py()


def refusal(error: DataError) -> str:
    """Return the problem; the error must have its place and a hint."""
    said = error.message
    assert "column x: " in said, said
    assert re.search(r"row [12]\b", said) or "its values are" in said or "no row has" in said, said
    assert error.hint, said
    return said.rpartition("column x: ")[2]


def outcomes(directory: Path, url: str) -> dict[str, Any]:
    return {use: outcome(directory, url, use) for use in USES}


# --- SQLite: any value in any column ----------------------------------------------------------------

NO_TEXT = "neither a text nor a whole number"
SQLITE: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    # name: (a value that is sound in its use, the value tried, what becomes of it)
    "a whole number": (
        1,
        2,
        {"number": 2.0, "date": "its values are whole numbers, not dates", "category": "2", "id": "2"},
    ),
    "a real number": (1.5, 2.5, {"number": 2.5, "label": 2.5}),
    "a real number among texts": ("x", 2.0, {"category": NO_TEXT, "id": NO_TEXT, "person": NO_TEXT, "field": NO_TEXT}),
    "text among numbers": (1, "x", {"number": "not a number", "label": "not a number", "category": "x", "id": "x"}),
    "text of a number": (1, " 2.5 ", {"number": 2.5, "label": 2.5, "id": "2.5"}),
    "a date": ("2020-01-01", "1970-01-03T12:00:00+12:00", {"date": 2.0, "number": "not a number"}),
    "no date": ("2020-01-01", "2020-02-30", {"date": "not a date", "category": "2020-02-30"}),
    "a number among dates": ("2020-01-01", 2458849.5, {"date": "not a date"}),
    "bytes": (
        "2020-01-01",
        b"\x00\xff",
        dict.fromkeys(("category", "id", "person", "field"), NO_TEXT)
        | {"number": "not a number", "date": "not a date"},
    ),
    "bytes that are digits": (1, b"2", {"number": "not a number", "label": "not a number"}),
    "empty text": (1, "", {"number": None, "category": None, "id": "the value is missing", "field": ""}),
    "spaces": (1, "  ", {"number": None, "category": None, "id": "the value is missing"}),
    "null": (1, None, {"number": None, "category": None, "id": "the value is missing", "field": ""}),
    "infinity": (1.0, float("inf"), {"number": "the number is infinite", "label": "the number is infinite"}),
    "a text of infinity": (1.0, "-Infinity", {"number": "the number is infinite"}),
    "the largest whole number": (1, 2**63 - 1, {"number": 2.0**63, "id": str(2**63 - 1)}),
    "a text of a larger one": (1, "1" + "0" * 400, {"number": "the number is infinite"}),
    "the word NA": (1, "NA", {"number": "not a number", "category": "NA", "id": "NA", "field": "NA"}),
    "a zero octet": ("x", "a\0b", {"category": "ab", "id": "ab"}),
    "half a character": ("x", b"CAST", dict.fromkeys(("category", "id", "field", "positive"), "the text is not UTF-8")),
}


@pytest.mark.parametrize("value", SQLITE)
def test_sqlite(tmp_path: Path, value: str) -> None:
    first, second, expected = SQLITE[value]
    with sqlite3.connect(tmp_path / "rows.db") as connection:
        connection.execute("CREATE TABLE rows (id TEXT, x)")
        connection.execute("INSERT INTO rows VALUES ('a', ?)", [first])
        if second == b"CAST":
            connection.execute("INSERT INTO rows VALUES ('b', CAST(x'ff61' AS TEXT))")
        else:
            connection.execute("INSERT INTO rows VALUES ('b', ?)", [second])
    connection.close()
    found = outcomes(tmp_path, "sqlite:///rows.db?table=rows")
    assert {use: found[use] for use in expected} == expected


# --- Parquet: any type of Arrow that a file can have ------------------------------------------------

DAY = dt.date(1970, 1, 3)
AT = dt.datetime(1970, 1, 3, 12)


def of(kind: str, *values: Any) -> Any:
    return pa.array(values, type=getattr(pa, kind)())


WRONG = "its values are of the type"
PARQUET: dict[str, tuple[Any, dict[str, Any]]] = {
    "int8": (
        of("int8", 1, 2),
        {"number": 2.0, "category": "2", "id": "2", "date": "its values are whole numbers, not dates"},
    ),
    "uint64": (of("uint64", 1, 2**64 - 1), {"number": 2.0**64, "id": str(2**64 - 1)}),
    "float16": (pa.array(np.array([1, 2.5], np.float16)), {"number": 2.5}),
    "float32": (of("float32", 1, 2.5), {"number": 2.5, "label": 2.5}),
    "float64 NaN": (
        of("float64", 1, float("nan")),
        {"number": None, "label": "the value is missing (empty, null or NaN)"},
    ),
    "decimal128": (pa.array([Decimal("1.10"), Decimal("2.70")]), {"number": 2.7}),
    "whole decimal128": (
        pa.array([Decimal(1), Decimal(2)], pa.decimal128(30, 0)),
        {"number": 2.0, "id": "2", "category": "2"},
    ),
    "decimal256": (pa.array([Decimal("1.1"), Decimal("2.7")], pa.decimal256(70, 1)), {"number": 2.7}),
    "boolean": (of("bool_", False, True), {"number": 1.0, "category": "true", "label": 1.0, "id": f"{WRONG} bool"}),
    "date32": (
        of("date32", DAY, DAY),
        {"date": 2.0, "category": "1970-01-03", "id": "1970-01-03", "number": f"{WRONG} date32[day], not numbers"},
    ),
    "date64": (of("date64", DAY, DAY), {"date": 2.0}),
    "a date before the year 1": (
        pa.array([0, -800_000], pa.int32()).view(pa.date32()),
        {"date": "the date is outside the years 1 to 9999", "id": "the date is outside the years 1 to 9999"},
    ),
    **{
        f"timestamp[{unit}]": (
            pa.array([AT, AT], pa.timestamp(unit)),
            {"date": 2.5, "number": f"{WRONG} timestamp[{unit}], not numbers"},
        )
        for unit in ("ms", "us", "ns")
    },
    "timestamp of a zone": (
        pa.array([AT, AT], pa.timestamp("us", "Asia/Tokyo")),
        {"date": 2.5, "field": "1970-01-03T12:00:00"},
    ),
    "timestamp of a day": (pa.array([dt.datetime(1970, 1, 3)] * 2), {"date": 2.0, "field": "1970-01-03"}),
    "a timestamp beyond the years": (
        pa.array([0, 2**62], pa.int64()).view(pa.timestamp("us")),
        {"date": "the date is outside the years 1 to 9999"},
    ),
    "time32": (
        pa.array([dt.time(1), dt.time(2)], pa.time32("s")),
        dict.fromkeys(("id", "category", "field"), f"{WRONG} time32[ms]"),
    ),
    "time64": (
        pa.array([dt.time(1), dt.time(2)]),
        {"number": f"{WRONG} time64[us], not numbers", "date": f"{WRONG} time64[us], not dates"},
    ),
    "duration": (
        pa.array([dt.timedelta(1)] * 2),
        {"number": f"{WRONG} duration[us], not numbers", "date": f"{WRONG} duration[us], not dates"},
    ),
    "text": (of("string", "x", " y "), {"category": "y", "id": "y", "positive": 0, "number": "not a number"}),
    "text of numbers": (of("string", "1", "2.5"), {"number": 2.5, "category": "2.5"}),
    "large text": (of("large_string", "x", "y"), {"category": "y", "id": "y", "field": "y", "positive": 0}),
    "text view": (of("string_view", "x", "y"), {"category": "y", "id": "y"}),
    "dictionary of texts": (of("string", "x", "y").dictionary_encode(), {"category": "y", "id": "y", "field": "y"}),
    "dictionary of numbers": (of("float64", 1, 2.5).dictionary_encode(), {"number": 2.5}),
    "dictionary of dates": (of("date32", DAY, DAY).dictionary_encode(), {"date": 2.0}),
    "null": (pa.nulls(2), {"category": "no row has a value", "id": "the value is missing", "field": ""}),
    "binary": (
        of("binary", b"1", b"2"),
        {"number": f"{WRONG} binary, not numbers", "id": f"{WRONG} binary", "category": f"{WRONG} binary"},
    ),
    "binary of a fixed size": (pa.array([b"ab", b"cd"], pa.binary(2)), {"id": f"{WRONG} fixed_size_binary[2]"}),
    "list": (pa.array([[1], [2]]), {"number": f"{WRONG} list<element: int64>, not numbers"}),
    "struct": (pa.array([{"a": 1}, {"a": 2}]), {"number": f"{WRONG} struct<a: int64>, not numbers"}),
    "map": (pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())), {}),
    "uuid": (
        pa.array([uuid.UUID(int=n).bytes for n in (1, 2)], pa.uuid()),
        {"id": str(uuid.UUID(int=2)), "category": str(uuid.UUID(int=2)), "number": "not a number"},
    ),
    "json": (pa.array(["1", '"x"'], pa.json_()) if hasattr(pa, "json_") else pa.array([[1], [2]]), {}),
    "bool8": (
        pa.array([0, 1], pa.int8()).cast(pa.bool8()) if hasattr(pa, "bool8") else of("bool_", False, True),
        {"number": 1.0},
    ),
}


@pytest.mark.parametrize("kind", PARQUET)
def test_parquet(tmp_path: Path, kind: str) -> None:
    values, expected = PARQUET[kind]
    pq.write_table(pa.table({"id": ["a", "b"], "x": values}), tmp_path / "rows.parquet")
    found = outcomes(tmp_path, "rows.parquet")
    assert {use: found[use] for use in expected} == expected


def test_run_end_encoded_columns_are_arrays_like_others() -> None:
    """Parquet does not keep them; a table in memory may."""
    from blindfit.algorithms.columns import values

    encoded = pc.run_end_encode(pa.array([1.5, 1.5, None]))
    assert np.array_equal(values.to_numbers(encoded), [1.5, 1.5, np.nan], equal_nan=True)


# --- PostgreSQL: its own types ----------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A type of PostgreSQL with two of its values, as SQL writes them."""

    sql: str
    first: str
    second: str
    expected: dict[str, Any]


KINDS = {
    use: f"{WRONG} {{}}, not {what}"
    for use, what in (
        ("number", "numbers"),
        ("date", "dates"),
        ("category", "texts"),
        ("id", "texts"),
        ("label", "numbers"),
        ("field", "texts"),
    )
}


def refused_as(shown: str, *uses: str) -> dict[str, str]:
    return {use: KINDS[use].format(shown) for use in uses or KINDS}


POSTGRESQL = {
    "smallint": Column("smallint", "1", "2", {"number": 2.0, "id": "2", "category": "2", "label": 2.0}),
    "bigint": Column("bigint", "1", "9223372036854775807", {"number": 2.0**63, "id": "9223372036854775807"}),
    "numeric": Column("numeric", "1.1", "2.7", {"number": 2.7, "label": 2.7, "id": NO_TEXT, "category": NO_TEXT}),
    "whole numeric": Column(
        "numeric(30)",
        "1",
        "12345678901234567890123",
        {"number": 12345678901234567890123.0, "id": "12345678901234567890123"},
    ),
    "numeric NaN": Column("numeric", "1", "'NaN'", {"number": None, "id": NO_TEXT}),
    "numeric Infinity": Column("numeric", "1", "'Infinity'", {"number": "the number is infinite"}),
    "double NaN": Column("double precision", "1", "'NaN'", {"number": None}),
    "double -Infinity": Column("double precision", "1", "'-Infinity'", {"number": "the number is infinite"}),
    "real": Column("real", "0.5", "2.5", {"number": 2.5}),
    "boolean": Column("boolean", "false", "true", {"number": 1.0, "category": "true", "label": 1.0, "id": "true"}),
    "text": Column(
        "text", "'x'", "' y '", {"category": "y", "id": "y", "number": "not a number", "date": "not a date"}
    ),
    "char(n)": Column("char(9)", "'x'", "'y'", {"category": "y", "id": "y", "positive": 0}),
    "char(n) yes": Column("char(9)", "'no'", "'yes'", {"positive": 1}),
    "varchar": Column("varchar(9)", "'1'", "'2.5'", {"number": 2.5, "category": "2.5"}),
    "name": Column("name", "'x'", "'y'", {"category": "y", "id": "y"}),
    "enum": Column("mood", "'sad'", "'ok'", {"category": "ok", "id": "ok", "field": "ok"}),
    "domain": Column("positive_int", "1", "2", {"number": 2.0, "id": "2"}),
    "domain of an enum": Column("some_mood", "'sad'", "'ok'", {"category": "ok"}),
    "date": Column(
        "date",
        "'1970-01-02'",
        "'1970-01-03'",
        {
            "date": 2.0,
            "category": "1970-01-03",
            "id": "1970-01-03",
            "field": "1970-01-03",
            **refused_as("DATE", "number", "label"),
        },
    ),
    "date infinity": Column("date", "'1970-01-02'", "'infinity'", {"date": "not a date"}),
    "date BC": Column("date", "'1970-01-02'", "'0044-03-15 BC'", {"date": "not a date"}),
    "date after 9999": Column("date", "'1970-01-02'", "'10000-01-01'", {"date": "not a date"}),
    "timestamp": Column(
        "timestamp",
        "'1970-01-02'",
        "'1970-01-03 12:00'",
        {"date": 2.5, **refused_as("TIMESTAMP", "number", "id", "category")},
    ),
    "timestamp -infinity": Column("timestamp", "'1970-01-02'", "'-infinity'", {"date": "not a date"}),
    "timestamptz": Column("timestamptz", "'1970-01-02Z'", "'1970-01-03 00:00-12'", {"date": 2.5}),
    "timestamptz BC": Column("timestamptz", "'1970-01-02Z'", "'0044-03-15 BC'", {"date": "not a date"}),
    "time": Column(
        "time", "'01:00'", "'02:00'", {"category": "02:00:00", "id": "02:00:00", **refused_as("TIME", "number", "date")}
    ),
    "interval": Column("interval", "'1 day'", "'2 days'", refused_as("INTERVAL")),
    "money": Column("money", "1.5", "2.5", refused_as("MONEY")),
    "uuid": Column(
        "uuid",
        "'00000000-0000-0000-0000-000000000001'",
        "'00000000-0000-0000-0000-000000000002'",
        {"id": str(uuid.UUID(int=2)), "category": str(uuid.UUID(int=2))},
    ),
    "bytea": Column("bytea", r"'\x01'", r"'\xff'", refused_as("BYTEA")),
    "bit": Column(
        "bit(3)", "B'101'", "B'110'", {"category": "110", "id": "110", **refused_as("BIT", "number", "date")}
    ),
    "inet": Column(
        "inet",
        "'10.0.0.1'",
        "'10.0.0.2'",
        {"category": "10.0.0.2/32", "id": "10.0.0.2/32", **refused_as("INET", "number", "date")},
    ),
    "macaddr": Column("macaddr", "'08:00:2b:01:02:03'", "'08:00:2b:01:02:04'", {"id": "08:00:2b:01:02:04"}),
    "json": Column("json", "'1'", "'2'", refused_as("JSON")),
    "jsonb": Column("jsonb", "'1'", "'2'", refused_as("JSONB")),
    "array": Column("integer[]", "'{1}'", "'{2}'", refused_as("ARRAY")),
    "range": Column("int4range", "'[1,2)'", "'[2,3)'", refused_as("INT4RANGE")),
    "multirange": Column("int4multirange", "'{[1,2)}'", "'{[2,3)}'", refused_as("INT4MULTIRANGE")),
    "composite": Column("pair", "ROW(1, 2)", "ROW(2, 3)", refused_as("that only the database knows")),
    "xml": Column("xml", "'<a/>'", "'<b/>'", refused_as("that only the database knows")),
    "point": Column("point", "'(1,2)'", "'(2,3)'", refused_as("that only the database knows")),
    "tsvector": Column("tsvector", "'a'", "'b'", refused_as("TSVECTOR")),
}


@pytest.fixture(scope="module")
def types(postgres: Any) -> Any:
    postgres.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN positive_int AS integer CHECK (VALUE > 0)",
        "CREATE DOMAIN some_mood AS mood",
        "CREATE TYPE pair AS (a int, b int)",
    )
    return postgres


@pytest.mark.postgresql
@pytest.mark.parametrize("kind", POSTGRESQL)
def test_postgresql(tmp_path: Path, types: Any, kind: str) -> None:
    column = POSTGRESQL[kind]
    types.run(
        "DROP TABLE IF EXISTS walked",
        f"CREATE TABLE walked (id text, x {column.sql})",
        f"INSERT INTO walked VALUES ('a', {column.first}), ('b', {column.second})",
    )
    assert {use: outcome(tmp_path, types.url("walked"), use) for use in column.expected} == column.expected


@pytest.mark.postgresql
def test_a_column_of_an_unreadable_type_that_is_empty_has_no_values(tmp_path: Path, types: Any) -> None:
    types.run(
        "DROP TABLE IF EXISTS walked",
        "CREATE TABLE walked (id text, x interval, y integer)",
        "INSERT INTO walked VALUES ('a', NULL, 1)",
    )
    settings = DatasetSettings(url=types.url("walked"), id="id", features=("x", "y"), missing="indicator")
    ((batch, _),) = open_source(settings, tmp_path, "rows").canonical()
    assert np.array_equal(batch.features, [[np.nan, 1.0, 1.0]], equal_nan=True)
