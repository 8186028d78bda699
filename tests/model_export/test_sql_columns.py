"""A column of a database, of any type, gives in SQL the same numbers as in a scorer of the model."""

from __future__ import annotations

import datetime as dt
import importlib.util
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.model_export.formula import formula_of
from blindfit.algorithms.model_export.sql import write_sql
from tests.columns.cases import CASES
from tests.columns.scorers import SCORER, model_of
from tests.each_case import each_case
from tests.model_export import models as make
from tests.model_export import runtimes
from tests.postgres import PostgresServer

spec = importlib.util.spec_from_file_location("scorer", SCORER)
assert spec is not None
assert spec.loader is not None
scorer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scorer)


@pytest.fixture(scope="module")
def connection(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    with postgres.connect() as opened:
        yield opened


def scores(models: Sequence[Any], rows: Sequence[make.Row]) -> list[float | None]:
    return [make.answer(models, row).get("score") for row in rows]


def agree(found: Sequence[Any], expected: Sequence[float | None], values: Sequence[Any]) -> None:
    for one, other, value in zip(found, expected, values, strict=True):
        assert one["score"] == (None if other is None else pytest.approx(other, rel=1e-12)), value


def check(model: Any, values: Sequence[Any], connection: psycopg.Connection, kind: str = "text") -> None:
    (name,) = model.standardiser.record.names
    rows, formula = [{name: value} for value in values], formula_of([model])
    expected = scores([model], rows)
    agree(runtimes.run_sqlite(write_sql(formula, "sqlite"), rows), expected, values)
    statement = write_sql(formula, "postgresql")
    agree(runtimes.run_postgresql(connection, statement, rows, {name: kind}), expected, values)


def unquote(text: str) -> str:
    return next(scorer.fields_of(text, "", ","), [("", False)])[0][0]


NUMBERS = """1|+1.5|-.5|5.|1e3|1E-3| 7\t|TRUE|false|nan|-NaN|| |12 a|0x10|1_0|--1|1.2.3|1e|e5|1e5.5|inf|-Infinity|1e999
1e-999|1e12345678901|1e-12345678901|1e0003|.|+|1,5|\u0661|\u00a03\u2003|9007199254740993|1.7976931348623157e308|5e-324"""
WORDS = {
    "number": NUMBERS.replace("\n", "|").split("|"),
    "boolean": ["true", "False", "1", "0", "0.0", "2", "yes", "", "1e0"],
    "category": ["a", "A", " a ", "b\u200b", "e\u0301", "1", "1.0", "NA", "", "  ", "x'; --", "\x01a"],
}


@each_case("name", CASES)
def test_texts_of_every_kind_of_column(name: str, connection: psycopg.Connection) -> None:
    case = CASES[name]
    model = model_of(case.column, case.fill)
    texts = [unquote(text) for group in case.texts.values() for text in group]
    texts += [unquote(text) for text in case.refused_texts] + WORDS.get(case.column.kind, [])
    if case.column.kind == "category":  # the test after this one has these: SQLite does not know Unicode's spellings
        texts = [text for text in texts if text.isascii() and text.isprintable()]
    check(model, [*texts, None], connection)


LEVELS = TableColumn("c", "category", ("a", "é", "1"), ("b",), "mean")
FILL = {"c=a": 0.25, "c=é": 0.5, "c=1": 0.75}


def test_postgresql_compares_levels_in_one_spelling(connection: psycopg.Connection) -> None:
    model, values = model_of(LEVELS, FILL), [*WORDS["category"], "é", "e\u0301 ", "\u2003a\u00a0", "a\u00ad", "ö", None]
    rows = [{"c": value} for value in values]
    found = runtimes.run_postgresql(connection, write_sql(formula_of([model]), "postgresql"), rows)
    agree(found, scores([model], rows), values)
    assert [row["unseen_levels"] for row in found][:3] == [0, 1, 0]


def test_sqlite_has_no_score_where_a_level_may_have_another_spelling() -> None:
    model = model_of(LEVELS, FILL)
    rows = [{"c": value} for value in ("é", "ö", "e\u0301", "b\u200b", "b", "new")]
    found = runtimes.run_sqlite(write_sql(formula_of([model]), "sqlite"), rows)
    assert [row["score"] is None for row in found] == [False, True, True, True, False, False]
    assert [row["unseen_levels"] for row in found][4:] == [0, 1]


@each_case("name", ["AGE", "Score", "Unseen_Levels", "Blindfit row", "BLINDFIT column 1"])
def test_sqlite_takes_no_two_names_that_differ_in_case(name: str) -> None:
    """SQLite reads one column in the place of the other, without an error."""
    columns = (TableColumn("age"), TableColumn(name), LEVELS)
    record = TableRecord(columns).with_fill(FILL)
    formula = formula_of([make.walr(record, np.random.default_rng(1))])
    with pytest.raises(DataError, match=f"column '{name}' cannot be exported to sqlite"):
        write_sql(formula, "sqlite")
    assert f'"{name}"' in write_sql(formula, "postgresql")


@each_case(
    "kind, column, values",
    [
        ("integer", TableColumn("x", missing="mean"), [3, -4, None]),
        ("numeric", TableColumn("x"), [Decimal("0.1"), Decimal("-12345.678900"), Decimal("1e3")]),
        ("double precision", TableColumn("x", missing="mean"), [0.1, math.nan, math.inf, 5e-324, 1e308, None]),
        ("boolean", TableColumn("x"), [True, False]),
        ("boolean", TableColumn("x", "boolean"), [True, False]),
        ("smallint", TableColumn("x", "boolean"), [1, 0, 2]),
        ("date", TableColumn("x", "date"), [dt.date(1990, 5, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        (
            "timestamp",
            TableColumn("x", "date"),
            [dt.datetime(2021, 7, 1, 12, 30, 15, 250_001), dt.datetime(1582, 10, 4)],
        ),
        ("timestamptz", TableColumn("x", "date"), [dt.datetime(1885, 1, 1, 23, 59, tzinfo=dt.UTC), None]),
        ("bigint", TableColumn("x", "date"), [7455]),
        ("integer", TableColumn("x", "category", ("1", "02", "x"), ()), [1, 2, 3]),
        ("double precision", TableColumn("x", "category", ("1", "2.50"), (), "indicator"), [1.0, 2.5, math.nan, 7.25]),
        ("boolean", TableColumn("x", "category", ("TRUE", "false"), ()), [True, False, True]),
        ("date", TableColumn("x", "category", ("2024-05-31",), ()), [dt.date(2024, 5, 31), dt.date(2024, 6, 1)]),
        ("char(5)", TableColumn("x", "category", ("a", "b"), ()), ["a", "b    ", "c"]),
    ],
)
def test_types_of_postgresql(kind: str, column: TableColumn, values: list[Any], connection: psycopg.Connection) -> None:
    model = model_of(column, {"x": 2.5})
    rows = [{"x": value} for value in values]
    connection.execute("SET TIME ZONE 'Europe/Amsterdam'")  # its offset once had seconds
    found = runtimes.run_postgresql(connection, write_sql(formula_of([model]), "postgresql"), rows, {"x": kind})
    agree(found, scores([model], rows), values)


@each_case(
    "column, values",
    [
        (TableColumn("x", missing="mean"), [3, -4.5, "7", True, math.inf, b"1", None]),
        (TableColumn("x", "boolean"), [True, 0, 1.0, "true", 2, b"1"]),
        (TableColumn("x", "date", missing="mean"), ["2024-05-31", 7455, 7455.5, b"2024-05-31", None]),
        (TableColumn("x", "category", ("1", "02", "x"), (), "indicator"), [1, 2, 3, 1.0, "x", None]),
    ],
)
def test_types_of_sqlite(column: TableColumn, values: list[Any]) -> None:
    model = model_of(column, {"x": 2.5})
    rows = [{"x": value} for value in values]
    expected = [
        None if column.kind == "date" and isinstance(value, int | float) else score
        for value, score in zip(values, scores([model], rows), strict=True)
    ]
    agree(runtimes.run_sqlite(write_sql(formula_of([model]), "sqlite"), rows), expected, values)


MOMENTS = st.from_regex(
    r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]([T ][0-2][0-9](:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?)?"
    r"(Z|[+-][0-2][0-9](:?[0-6][0-9])?)?)?",
    fullmatch=True,
)


@settings(deadline=None, max_examples=150)
@given(st.lists(MOMENTS | MOMENTS.map(lambda text: text.replace("-0", "-")), min_size=8, max_size=8))
@example(
    ["2024-02-30", "2023-02-29", "2000-02-29", "1900-02-29", "0000-01-01", "2024-04-31", "9999-12-31T23:59-01", "now"]
)
def test_dates_in_texts(connection: psycopg.Connection, texts: list[str]) -> None:
    check(model_of(TableColumn("born", "date")), texts, connection)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.text("0123456789.eE+- naitrufls", max_size=8), min_size=8, max_size=8))
def test_numbers_in_texts(connection: psycopg.Connection, texts: list[str]) -> None:
    check(model_of(TableColumn("n", missing="mean"), {"n": 1.5}), texts, connection)
