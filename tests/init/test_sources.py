"""`blindfit init` takes every kind of table that a dataset can have, and no password reaches a file or the terminal."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.init.asked import Asked
from blindfit.coordinator.init.places import Place
from tests.command import Done, blindfit
from tests.postgres import PASSWORD, PostgresServer

ROWS = 300


def init(folder: Path, *tables: str, label: str = "ill") -> Done:
    return blindfit(folder, "init", "--system", "taylor", *tables, "--label", label)


def _values(i: int) -> tuple[object, ...]:
    return (
        f"p{i}",
        i % 17,
        i / 7,
        (i * 7919) % 1009,
        (i * 104729) % 997,
        ("north", "south")[i % 2],
        f"2024-0{1 + i % 9}-11",
        f"note {i}",
        i % 5,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of SQLite with types of several kinds, columns without a type, and a csv file of the same people."""
    rows = "".join(f"p{i},{i % 13},{(i * 7) % 11},{i % 19},{i % 23},{'yes' if i % 3 else 'no'}\n" for i in range(ROWS))
    (tmp_path / "clinic.csv").write_text(f"id,a,b,c,d,ill\n{rows}")
    connection = sqlite3.connect(tmp_path / "my shop.db")
    connection.execute(
        "CREATE TABLE people (id TEXT, n INTEGER, x REAL, y REAL, z INTEGER, region TEXT, since DATE, note TEXT, loose)"
    )
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [_values(i) for i in range(ROWS)])
    connection.commit()
    connection.close()
    return tmp_path


def trained(folder: Path) -> None:
    """Check and run the job as it was written."""
    for words in (
        ("check", "joint/job.toml"),
        ("run", "joint/job.toml", "--out", "joint/run", "--set", "taylor.epochs=1"),
    ):
        done = blindfit(folder, *words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_table_of_sqlite(folder: Path) -> None:
    made = init(folder, "clinic.csv", "sqlite:///my shop.db?table=people")
    assert made.returncode == 0, made.stderr
    assert "people" in made.stdout
    assert "region as levels; since as days; leaves out note" in made.stdout
    assert "joint/people.toml, joint/certificates/people and 'my shop.db' go to people" in made.stdout
    written = (folder / "joint/people.toml").read_text()
    assert 'url = "sqlite:///../my shop.db?table=people"' in written
    trained(folder)


def test_a_column_that_cannot_be_read_is_left_out_with_the_reason(folder: Path) -> None:
    with sqlite3.connect(folder / "my shop.db") as connection:
        connection.execute("UPDATE people SET n = 'many' WHERE id = 'p7'")
        connection.execute("UPDATE people SET since = 'May' WHERE id = 'p9'")
    made = init(folder, "clinic.csv", "sqlite:///my shop.db?table=people")
    assert made.returncode == 0, made.stderr
    written = (folder / "joint/people.toml").read_text()
    assert "row 8, column n" in written
    assert "row 10, column since" in written
    assert "except = [" in written


@pytest.mark.parametrize(
    "bad", ["sqlite:///none.db?table=people", "sqlite:///my shop.db?table=none", "sqlite:///my shop.db"]
)
def test_a_table_that_is_not_there(folder: Path, bad: str) -> None:
    refused = init(folder, "clinic.csv", bad)
    assert refused.returncode in (1, 2)
    assert "bug" not in refused.stderr
    assert not (folder / "joint").exists()


def test_a_table_of_postgresql(folder: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.run(
        "CREATE TABLE visits (id text, n integer, x numeric, y real, z integer, region text, since date, seen boolean, "
        "j jsonb)",
        "INSERT INTO visits SELECT 'p' || i, i % 17, i / 7.0, (i * 7919) % 1009, (i * 104729) % 997, "
        "CASE i % 2 WHEN 0 THEN 'north' ELSE 'south' END, "
        f"date '2024-01-01' + (i % 90)::int, i % 4 = 0, '{{}}' FROM generate_series(0, {ROWS - 1}) AS i",
    )
    made = init(folder, "clinic.csv", postgres.url("visits"))
    assert made.returncode == 0, made.stderr
    assert "set PGPASSWORD" in made.stdout
    written = "".join(path.read_text() for path in (folder / "joint").iterdir())
    assert PASSWORD not in made.stdout + made.stderr + written
    assert "region as levels; since as days; leaves out j" in made.stdout
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    trained(folder)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hidden1@nowhere.invalid/db?table=t",
        "postgresql://u@nowhere.invalid/db?table=t&password=hidden1",
        "postgresql://u:hidden1@nowhere.invalid/db?table=t&sslpassword=hidden1",
        "mysql://u:hidden1@nowhere.invalid/db?table=t",
        "postgresql://u:hidden1@nowhere.invalid:port/db?table=t",
    ],
)
def test_no_password_is_shown_or_written(folder: Path, url: str) -> None:
    refused = init(folder, "clinic.csv", url)
    assert refused.returncode in (1, 2)
    assert "hidden1" not in refused.stdout + refused.stderr
    try:
        place = Place(url)
    except ConfigError:
        return
    assert "hidden1" not in place.url_from(folder) + repr(place) + str(place)
    assert place.hides_password
    assert "hidden1" not in repr(Asked("dp-lr", (url,), public=url))


def test_the_same_table_in_two_spellings_is_one(folder: Path) -> None:
    assert "named twice" in init(folder, "clinic.csv", "csv:./clinic.csv").stderr
