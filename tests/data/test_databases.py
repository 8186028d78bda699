from __future__ import annotations

import re
import socket
import sys

import pyarrow as pa
import pytest

from blindfit.algorithms.errors import DataError
from blindfit.parties.data import database
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.sinks import open_sink
from tests.data.tables import read, refused, source_of, write, write_sqlite
from tests.each_case import each_case
from tests.postgres import PASSWORD

SQLITE = "sqlite:///rows.db?table=rows"


def test_sqlite_files(tmp_path):
    refused(
        "visits: table rows of sqlite:///rows.db: the file does not exist",
        "run: make",
        tmp_path,
        SQLITE,
        made_by="make",
    )
    assert not (tmp_path / "rows.db").exists()
    (tmp_path / "rows.db").write_text("id,x\n" * 300)
    message = "visits: table rows of sqlite:///rows.db: this is not an SQLite database, or it is encrypted"
    refused(message, "csv: or parquet:", tmp_path, SQLITE)
    (tmp_path / "rows.db").write_text("")
    refused("visits: table rows of sqlite:///rows.db: there is no such table", "", tmp_path, SQLITE)


def test_sqlite_tables(tmp_path):
    write_sqlite(tmp_path / "rows.db", '"id" TEXT, "age" REAL', [])
    refused("visits: table rows of sqlite:///rows.db: the table has no rows", "", tmp_path, SQLITE)
    message = "visits: table row of sqlite:///rows.db: there is no such table"
    refused(message, r"did you mean rows\? the tables are rows", tmp_path, "sqlite:///rows.db?table=row")
    refused("visits: sqlite:///rows.db: the URL does not name one table", "table=NAME", tmp_path, "sqlite:///rows.db")
    message = "visits: table rows of sqlite:///rows.db: there is no column ages"
    refused(message, "did you mean age", tmp_path, SQLITE, features=["ages"])


@pytest.mark.parametrize("value", ["s3cret", b"s3cret"])
def test_sqlite_keeps_text_in_a_column_of_numbers(tmp_path, value):
    write_sqlite(tmp_path / "rows.db", '"id" INTEGER, "x" NUMERIC', [(1, 1), (2, 1.5), (3, value), (4, None)])
    message = "visits: table rows of sqlite:///rows.db, row 3, column x: not a number"
    refused(message, r"datasets\.visits\.except = ", tmp_path, SQLITE, features="rest")


def test_sqlite_values(tmp_path):
    write_sqlite(tmp_path / "rows.db", '"id" REAL, "key" TEXT, "x"', [(1.5, "a", 1), (2.5, None, 2)])
    floats = "its values are floating-point numbers, so that 7 may be written 7.0"
    message = f"visits: table rows of sqlite:///rows.db, column id: {floats}"
    refused(message, "as text", tmp_path, SQLITE)
    refused(
        "visits: table rows of sqlite:///rows.db, row 2, column key: the value is missing",
        "",
        tmp_path,
        SQLITE,
        id="key",
    )


@each_case(
    "role", [{"id": "x"}, {"person": "x"}, {"categories": ["x"], "features": ["x"]}, {"quasi_identifiers": {"n": "x"}}]
)
@pytest.mark.parametrize("value", [2.0, b"2"])
def test_sqlite_keeps_numbers_in_a_column_of_text(tmp_path, role, value):
    """2.0 and 2 would be two ids."""
    write_sqlite(tmp_path / "rows.db", '"id", "x"', [(1, "x"), (2, 2), (3, value)])
    with pytest.raises(
        DataError, match=r"rows\.db, row 3, column x: neither a text nor a whole number( \(|$)"
    ) as refused:
        list(source_of(tmp_path, SQLITE, **role).canonical())
    assert refused.value.hint == "store it as text or as whole numbers"


def test_sqlite_keeps_whole_numbers_in_a_column_of_text(tmp_path):
    write_sqlite(tmp_path / "rows.db", '"id"', [("x",), (2,)])
    (batch,) = read(tmp_path, SQLITE)
    assert batch.ids.to_pylist() == ["x", "2"]


def test_sqlite_is_opened_read_only_and_names_are_never_code(tmp_path):
    strange = 'r"; DROP TABLE rows; --'
    write_sqlite(tmp_path / "rows.db", '"id" TEXT, "a "" b" REAL', [("a", 1)])
    with pytest.raises(DataError, match="there is no such table"):
        source_of(tmp_path, f"sqlite:///rows.db?table={strange}")
    (batch,) = read(tmp_path, SQLITE, features=['a " b'])
    assert batch.features.tolist() == [[1]]


def test_driver_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = "visits: table t of postgresql://u@h/db: the PostgreSQL driver is not installed"
    hint = r"^run `pip install 'psycopg\[binary\]>=3\.2\.1'`$"
    refused(message, hint, tmp_path, "postgresql://u@h/db?table=t")


def test_nobody_listens(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        message = (
            f"visits: table t of postgresql://u:***@127.0.0.1:{port}/db: "
            f"no connection to the database at 127.0.0.1, port {port}: Connection refused"
        )
        refused(message, "is it running", tmp_path, f"postgresql://u:s3cret@127.0.0.1:{port}/db?table=t")


def test_a_server_that_does_not_answer(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = f"postgresql://u@127.0.0.1:{port}/db?table=t&connect_timeout=2"
        with pytest.raises(DataError, match=f"no connection to the database at 127.0.0.1, port {port}: "):
            source_of(tmp_path, url)


@pytest.mark.postgresql
class TestPostgresql:
    TABLE = {"id": ["a", "b"], "age": [1, 2], "y": [0, 1]}

    def refused(self, postgres, message, hint, url, tmp_path, **settings):
        shown = f"postgresql://tester:***@127.0.0.1:{postgres.port}/postgres"
        refused(f"visits: {message.replace('SERVER', shown)}", hint, tmp_path, url, **settings)

    def test_wrong_password_is_not_shown(self, postgres, tmp_path):
        url = postgres.url("t", password="wr0ng")
        message = (
            f"table t of SERVER: no connection to the database at 127.0.0.1, port {postgres.port}: "
            'FATAL:  password authentication failed for user "tester"'
        )
        self.refused(postgres, message, "PGPASSWORD", url, tmp_path)

    def test_password_from_the_environment(self, postgres, tmp_path, monkeypatch):
        write(tmp_path, "postgresql", self.TABLE, postgres)
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        url = f"postgresql://tester@127.0.0.1:{postgres.port}/postgres?table=shop.rows"
        assert len(read(tmp_path, url)) == 1

    def test_tables_and_columns(self, postgres, tmp_path):
        url = write(tmp_path, "postgresql", self.TABLE, postgres)
        message = "table shop.row of SERVER: there is no such table"
        self.refused(postgres, message, "did you mean rows", postgres.url("shop.row"), tmp_path)
        message = "table shop.rows of SERVER: there is no column ages"
        self.refused(postgres, message, "did you mean age", url, tmp_path, features=["ages"])
        postgres.run("DELETE FROM shop.rows")
        self.refused(postgres, "table shop.rows of SERVER: the table has no rows", "", url, tmp_path)

    def test_values(self, postgres, tmp_path):
        url = write(tmp_path, "postgresql", {"id": ["a", "b"], "x": [1.0, None], "y": [0, 2]}, postgres)
        message = "table shop.rows of SERVER, row 2, column x: the value is missing (empty, null or NaN)"
        self.refused(postgres, message, "", url, tmp_path, features=["x"])
        message = "table shop.rows of SERVER, row 2, column y: the label is neither 0 nor 1"
        self.refused(postgres, message, "", url, tmp_path, label="y")
        message = (
            "table shop.rows of SERVER, column x: its values are floating-point numbers, so that 7 may be written 7.0"
        )
        self.refused(postgres, message, "", url, tmp_path, id="x")

    def test_types_of_its_own(self, postgres, tmp_path):
        postgres.run(
            "DROP TABLE IF EXISTS own",
            "CREATE TABLE own (id numeric(20), price numeric(10, 2), ok boolean, at date)",
            "INSERT INTO own VALUES (12345678901234567890, 1.25, true, now()), (7, NULL, false, now())",
        )
        source = source_of(tmp_path, postgres.url("own"), label="ok", features=["price"], missing="mean")
        assert source.feature_names == ("price",)
        (batch,) = source.batches()
        assert batch.ids.to_pylist() == ["12345678901234567890", "7"]
        assert batch.labels.tolist() == [1, 0]
        assert batch.features.tolist() == [[1.25], [1.25]]
        self.refused(
            postgres,
            "table own of SERVER, row 1, column at: its values are of the type DATE, not numbers",
            'remove "at" from datasets.visits.features',
            postgres.url("own"),
            tmp_path,
            features=["at"],
        )

    def test_numbers_of_its_own_that_are_no_keys(self, postgres, tmp_path):
        postgres.run(
            "DROP TABLE IF EXISTS keys", "CREATE TABLE keys (id numeric)", "INSERT INTO keys VALUES (1), ('NaN')"
        )
        message = "table keys of SERVER, row 2, column id: neither a text nor a whole number"
        self.refused(postgres, message, "as text", postgres.url("keys"), tmp_path)

    def test_uuids_are_their_texts(self, postgres, tmp_path):
        key = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
        postgres.run(
            "DROP TABLE IF EXISTS keys", "CREATE TABLE keys (id uuid)", f"INSERT INTO keys VALUES ('{key.upper()}')"
        )
        (batch,) = read(tmp_path, postgres.url("keys"))
        assert batch.ids.to_pylist() == [key]

    def test_views_are_tables(self, postgres, tmp_path):
        write(tmp_path, "postgresql", self.TABLE, postgres)
        postgres.run("CREATE OR REPLACE VIEW adults AS SELECT id, age FROM shop.rows WHERE age > 1")
        try:
            (batch,) = read(tmp_path, postgres.url("adults"), features=["age"])
            assert batch.ids.to_pylist() == ["b"]
        finally:
            postgres.run("DROP VIEW adults")

    def test_no_right_to_read(self, postgres, tmp_path):
        postgres.run(
            "DROP TABLE IF EXISTS hidden",
            "CREATE TABLE hidden (id text)",
            "DROP ROLE IF EXISTS guest",
            "CREATE ROLE guest LOGIN PASSWORD 'g'",
        )
        refused(
            f"visits: table hidden of postgresql://guest:***@127.0.0.1:{postgres.port}/postgres: "
            "the database could not return the rows (InsufficientPrivilege)",
            "SELECT",
            tmp_path,
            postgres.url("hidden", user="guest", password="g"),
        )

    def test_a_lock_of_somebody_else_is_not_waited_for_without_end(self, postgres, tmp_path, monkeypatch):
        url = write(tmp_path, "postgresql", self.TABLE, postgres)
        monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 1)
        scores = pa.table({"id": ["a"], "score": [1.0], "probability": [0.5]})
        sink = open_sink(postgres.url("locked_scores"), "replace", tmp_path)
        sink.write(scores)
        with postgres.connect() as administrator:
            administrator.autocommit = False
            administrator.execute("LOCK TABLE shop.rows, locked_scores IN ACCESS EXCLUSIVE MODE")
            message = "table shop.rows of SERVER: the database could not return the rows (LockNotAvailable)"
            self.refused(postgres, message, "^another session has locked the table", url, tmp_path)
            with pytest.raises(DataError, match=r"could not take the scores \(LockNotAvailable\)"):
                sink.write(scores)
            administrator.rollback()
        sink.write(scores)

    def test_an_error_of_the_database_does_not_show_a_value(self, postgres, tmp_path):
        postgres.run(
            "DROP TABLE IF EXISTS raw CASCADE",
            "CREATE TABLE raw (id text, x text)",
            "INSERT INTO raw VALUES ('a', 's3cret')",
            "CREATE VIEW cooked AS SELECT id, x::integer AS x FROM raw",
        )
        message = "table cooked of SERVER: the database could not return the rows (InvalidTextRepresentation)"
        self.refused(postgres, message, "log", postgres.url("cooked"), tmp_path, features=["x"])

    def test_rows_are_streamed_read_only_and_the_connection_dies_politely(self, postgres, tmp_path):
        postgres.run(
            "DROP TABLE IF EXISTS many", "CREATE TABLE many AS SELECT g AS id FROM generate_series(1, 50000) g"
        )
        batches = source_of(tmp_path, postgres.url("many"), batch_rows=1000).batches()
        assert len(next(batches)) == 1000
        with postgres.connect() as observer:
            query = "SELECT pid, query FROM pg_stat_activity WHERE query LIKE '%CURSOR%many%' OR query LIKE 'FETCH%'"
            rows = [row for row in observer.execute(query).fetchall() if "pg_stat_activity" not in row[1]]
            assert len(rows) == 1, "a server-side cursor is open"
            observer.execute("SELECT pg_terminate_backend(%s)", [rows[0][0]])
        with pytest.raises(DataError, match=re.escape("the database could not return the rows (")):
            list(batches)

    def test_abandoned_reading_closes_its_connection(self, postgres, tmp_path):
        postgres.run("DROP TABLE IF EXISTS few", "CREATE TABLE few AS SELECT g AS id FROM generate_series(1, 5000) g")
        batches = source_of(tmp_path, postgres.url("few"), batch_rows=10).batches()
        next(batches)
        batches.close()
        with postgres.connect() as observer:
            query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
            assert observer.execute(query).fetchone() == (0,)

    def test_repr_of_settings_and_source(self, postgres, tmp_path):
        settings = DatasetSettings(url=write(tmp_path, "postgresql", self.TABLE, postgres), id="id")
        source = open_source(settings, tmp_path, "visits")
        assert PASSWORD not in repr(source) + repr(settings) + repr(source.origin)
        assert source.fingerprint() is None
