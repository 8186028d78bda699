"""Scores go to a file or table whole or not at all, and no message shows a password."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data import table_sink
from blindfit.parties.data.sink import Sink
from blindfit.parties.data.sinks import open_sink
from tests.each_case import each_case

KINDS = ["csv", "parquet", "sqlite", "postgresql"]
NAMES = ["id", "score", "probability"]


def table(first: int = 0, n: int = 5, names: list[str] = NAMES) -> Any:
    numbers = np.random.default_rng(first).normal(size=(n, 2)) * 10.0 ** np.arange(-3, 5, 4)
    ids = pa.array([f"t{i}" for i in range(first, first + n)])
    return pa.table(dict(zip(names, [ids, *numbers.T], strict=True)))


class Place:
    """One file or table, read without a sink."""

    def __init__(self, kind: str, directory: Path, postgres: Any) -> None:
        self.kind, self.directory, self.postgres = kind, directory, postgres
        if kind == "postgresql":
            postgres.run("DROP SCHEMA IF EXISTS kept CASCADE", "CREATE SCHEMA kept")
        self.url = {
            "csv": "csv:sub/scores.csv",
            "parquet": "sub/scores.parquet",
            "sqlite": "sqlite:///scores.db?table=scores",
            "postgresql": postgres.url("kept.scores") if postgres else "",
        }[kind]

    def sink(self, if_exists: Any = "refuse") -> Sink:
        return open_sink(self.url, if_exists, self.directory)

    def rows(self) -> list[tuple[Any, ...]]:
        if self.kind == "csv":
            read = pa.csv.read_csv(self.directory / "sub/scores.csv")
            assert read.column_names == NAMES
            return [tuple(row.values()) for row in read.to_pylist()]
        if self.kind == "parquet":
            return [tuple(row.values()) for row in pq.read_table(self.directory / "sub/scores.parquet").to_pylist()]
        return self.run('SELECT id, score, probability FROM "scores" ORDER BY length(CAST(id AS TEXT)), id')

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement on a database; the table is `scores`."""
        if self.kind == "sqlite":
            with sqlite3.connect(self.directory / "scores.db") as connection:
                rows = connection.execute(statement).fetchall()
            connection.close()
            return rows
        with self.postgres.connect() as connection:
            connection.execute("SET search_path = kept")
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def exists(self) -> bool:
        if self.kind in ("csv", "parquet"):
            return any((self.directory / "sub").glob("*")) if (self.directory / "sub").exists() else False
        if self.kind == "sqlite" and not (self.directory / "scores.db").exists():
            return False
        catalogue = (
            "sqlite_master WHERE type = 'table'" if self.kind == "sqlite" else "pg_tables WHERE schemaname = 'kept'"
        )
        return bool(self.run(f"SELECT * FROM {catalogue}"))


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    return Place(
        request.param, tmp_path, request.getfixturevalue("postgres") if request.param == "postgresql" else None
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    return Place(
        request.param, tmp_path, request.getfixturevalue("postgres") if request.param == "postgresql" else None
    )


def rows_of(*tables: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for one in tables for row in one.to_pylist()]


def refused(sink: Sink, given: Any, *words: str) -> DataError:
    with pytest.raises(DataError) as caught:
        sink.write(given)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("scores: ")
    assert all(word in str(caught.value) for word in words), caught.value
    assert "s3cret" not in str(caught.value) + caught.value.hint
    return caught.value


# --- what is written ---------------------------------------------------------------------------------------


def test_what_was_written_is_read_back_to_the_last_bit(place):
    written = table(n=30_000)
    sink = place.sink()
    sink.check(NAMES)
    sink.write(written)
    assert place.rows() == rows_of(written)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text(min_size=1).filter(str.isprintable), st.floats(allow_nan=False, allow_infinity=False)))
)
def test_any_number_and_id_survive_a_csv_file(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("any")
    ids, numbers = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    given = pa.table({"id": pa.array(ids, pa.string()), "score": pa.array(numbers, pa.float64())})
    open_sink("csv:s.csv", "refuse", path).write(given)
    types = pa.csv.ConvertOptions(column_types={"id": pa.string(), "score": pa.float64()})
    assert pa.csv.read_csv(path / "s.csv", convert_options=types).to_pylist() == given.to_pylist()


def test_no_rows_are_a_table_too(place):
    place.sink().write(table(n=0))
    assert place.exists()
    assert place.rows() == []


def test_what_is_there_is_not_touched_by_default(place):
    place.sink().write(table())
    for attempt in (place.sink().write, lambda given: place.sink().check(given.column_names)):
        with pytest.raises(DataError, match="exists already") as caught:
            attempt(table(100))
        assert "if_exists" in caught.value.hint
    assert place.rows() == rows_of(table())


def test_append_adds_and_replace_replaces(place):
    for if_exists, expected in [
        ("append", [table(0)]),
        ("append", [table(0), table(50)]),
        ("replace", [table(90)]),
        ("append", [table(90), table(95)]),
    ]:
        place.sink(if_exists).check(NAMES)
        place.sink(if_exists).write(expected[-1])
        assert place.rows() == rows_of(*expected)


def test_a_csv_file_without_its_last_newline_is_appended_to(tmp_path):
    (tmp_path / "s.csv").write_text("id,score,probability\nold,1.5,0.5")
    open_sink("s.csv", "append", tmp_path).write(table(n=1))
    read = pa.csv.read_csv(tmp_path / "s.csv").to_pylist()
    assert read[0] == {"id": "old", "score": 1.5, "probability": 0.5}
    assert read[1:] == table(n=1).to_pylist()


@pytest.mark.parametrize("if_exists", ["append", "replace"])
def test_a_table_with_other_columns_is_refused(place, if_exists):
    place.sink().write(table())
    other = table(7, names=["id", "score", "value"])
    if place.kind in ("csv", "parquet") and if_exists == "replace":
        return  # a file is replaced as a whole
    refused(place.sink(if_exists), other, "probability", "value")
    with pytest.raises(DataError):
        place.sink(if_exists).check(other.column_names)
    assert place.rows() == rows_of(table())


@pytest.mark.parametrize(
    ("declared", "column"),
    [
        ("id TEXT, score INTEGER, probability DOUBLE PRECISION", "score"),
        ("id TEXT, score DOUBLE PRECISION, probability NUMERIC(4, 2)", "probability"),
        ("id INTEGER, score DOUBLE PRECISION, probability DOUBLE PRECISION", "id"),
        ("id TEXT, score DOUBLE PRECISION, probability TEXT", "probability"),
    ],
)
def test_a_column_that_would_round_is_refused(database, declared, column):
    database.run(f"CREATE TABLE scores ({declared})")
    refused(database.sink("append"), table(), f"column {column}")
    assert database.rows() == []


def test_half_precision_is_refused_where_it_is_half(postgres, tmp_path):
    place = Place("postgresql", tmp_path, postgres)
    place.run("CREATE TABLE scores (id TEXT, score REAL, probability DOUBLE PRECISION)")
    refused(place.sink("append"), table(), "column score")


def test_a_table_that_the_operator_made_is_appended_to(database):
    database.run(
        "CREATE TABLE scores (probability DOUBLE PRECISION, id VARCHAR(40) PRIMARY KEY, score DOUBLE PRECISION)"
    )
    database.sink("append").write(table())
    assert database.rows() == rows_of(table())


def test_a_parquet_file_of_other_types_is_refused(tmp_path):
    pq.write_table(pa.table({"id": [1], "score": [2], "probability": [3]}), tmp_path / "s.parquet")
    before = (tmp_path / "s.parquet").read_bytes()
    refused(open_sink("s.parquet", "append", tmp_path), table(), "other types")
    assert (tmp_path / "s.parquet").read_bytes() == before


# --- whole or not at all -----------------------------------------------------------------------------------


def broken(n: int) -> Any:
    """Return this many rows, of which the last has no score: a table refuses it."""
    whole = table(500, n)
    return whole.set_column(1, "score", pa.array([*whole["score"].to_pylist()[:-1], None], pa.float64()))


@pytest.mark.parametrize("if_exists", ["refuse", "append", "replace"])
def test_a_table_whose_last_row_fails_leaves_nothing(database, if_exists, monkeypatch):
    monkeypatch.setattr(table_sink, "ROWS_AT_ONCE", 10)
    refused(
        database.sink(if_exists),
        broken(35),
        "could not take the scores",
        "NotNullViolation" if database.postgres else "",
    )
    assert not database.exists()


@pytest.mark.parametrize("if_exists", ["append", "replace"])
def test_a_table_whose_last_row_fails_is_as_it_was(database, if_exists, monkeypatch):
    database.sink().write(table())
    monkeypatch.setattr(table_sink, "ROWS_AT_ONCE", 10)
    refused(database.sink(if_exists), broken(35))
    assert database.rows() == rows_of(table())


@pytest.mark.parametrize("if_exists", ["refuse", "append", "replace"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_disk_that_is_full_leaves_the_old_file(tmp_path, kind, if_exists, monkeypatch):
    place = Place(kind, tmp_path, None)
    if if_exists != "refuse":
        place.sink().write(table())
    files = sorted(tmp_path.rglob("*"))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused(place.sink(if_exists), table(50), "cannot be written: No space left on device")
    left = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert left == [path for path in files if path.is_file()]
    if left:
        assert place.rows() == rows_of(table())


def test_only_the_owner_reads_a_file_of_scores(tmp_path):
    for kind in ("csv", "parquet"):
        for if_exists in ("refuse", "append", "replace"):
            place = Place(kind, tmp_path / if_exists, None)
            place.sink(if_exists).write(table())
            (path,) = (tmp_path / if_exists / "sub").glob(f"*.{kind}")
            assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_two_sessions_that_append_at_once_both_stay(tmp_path, kind):
    place = Place(kind, tmp_path, None)
    place.sink().write(table(0, 1))
    threads = [threading.Thread(target=place.sink("append").write, args=[table(10 * i, 10)]) for i in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(row[0] for row in place.rows()) == sorted(["t0", *(f"t{i}" for i in range(10, 70))])


def test_of_two_that_make_one_file_at_once_one_is_refused(tmp_path):
    """Both looked before either wrote, and one is refused."""
    one, other = (open_sink("s.csv", "refuse", tmp_path) for _ in range(2))
    one.write(table())
    object.__setattr__(other, "check", lambda names: None)
    refused(other, table(9), "exists already")
    assert pa.csv.read_csv(tmp_path / "s.csv").num_rows == 5


# --- errors -------------------------------------------------------------------------------------------------


@each_case("url", ["mysql://u:s3cret@h/db?table=t", "scores", "csv:", "sqlite://?table=t", "postgresql+x://h"])
def test_a_url_that_is_not_known_is_refused_at_once(tmp_path, url):
    with pytest.raises(ConfigError, match=r"^scores\.url: .*not known( \(|$)") as caught:
        open_sink(url, "refuse", tmp_path)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite:///scores.db", "postgresql://u:s3cret@h/db"])
def test_a_database_without_a_table_is_refused_at_once(tmp_path, url):
    with pytest.raises(DataError, match="does not name one table") as caught:
        open_sink(url, "refuse", tmp_path)
    assert "s3cret" not in str(caught.value)


def test_a_database_that_is_not_there(tmp_path):
    url = "postgresql://u:s3cret@127.0.0.1:1/db?table=t&password=s3cret"
    refused(open_sink(url, "refuse", tmp_path), table(), "no connection to the database at 127.0.0.1, port 1")


def test_a_wrong_password_is_not_shown(postgres, tmp_path):
    sink = open_sink(postgres.url("scores", password="s3cret-but-wrong"), "refuse", tmp_path)
    refused(sink, table(), "no connection")
    assert "s3cret" not in repr(sink) + sink.origin.where


def test_a_schema_that_is_not_there(postgres, tmp_path):
    refused(open_sink(postgres.url("nowhere.scores"), "refuse", tmp_path), table(), "could not take the scores")


def test_a_user_who_may_not_write(postgres, tmp_path):
    place = Place("postgresql", tmp_path, postgres)
    place.run("DROP ROLE IF EXISTS reader")
    place.run("CREATE ROLE reader LOGIN PASSWORD 's3cret'")
    place.run("GRANT USAGE ON SCHEMA kept TO reader")
    sink = open_sink(postgres.url("kept.scores", user="reader", password="s3cret"), "append", tmp_path)
    error = refused(sink, table(), "InsufficientPrivilege")
    assert "CREATE" in error.hint
    assert not place.exists()


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "scores.db").write_text("not a database at all, but long enough to be looked at " * 40)
    refused(open_sink("sqlite:///scores.db?table=t", "refuse", tmp_path), table())


@each_case("if_exists", ["refuse", "append", "replace"])
def test_places_that_are_no_files(tmp_path, if_exists):
    (tmp_path / "s.csv").mkdir()
    refused(open_sink("s.csv", if_exists, tmp_path), table(), "s.csv")
    (tmp_path / "file").write_text("")
    refused(open_sink("file/s.csv", if_exists, tmp_path), table(), "cannot be written")
    refused(open_sink("sqlite:///nowhere/s.db?table=t", if_exists, tmp_path), table(), "cannot be opened")


def test_a_file_that_is_no_csv_is_not_appended_to(tmp_path):
    (tmp_path / "s.csv").write_bytes(b"PAR1")
    refused(open_sink("s.csv", "append", tmp_path), table(), "parquet file, not csv")
