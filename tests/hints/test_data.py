"""Mistakes in a party's table, and the mend that the error proposes: in its file, or in the table."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy.exc import DBAPIError

from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.parties.data.database import answering
from blindfit.parties.data.opening import open_for_model, open_source
from blindfit.parties.data.origin import Origin
from blindfit.parties.data.sinks import open_sink
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.rows_file import write_rows
from blindfit.parties.tables import validate
from blindfit.parties.training.rows import read_rows
from tests.each_case import each_case
from tests.hints.following import Told, led_past, refused, says, with_changes
from tests.hints.parties import PARTIES

AGE = TableRecord.of_numbers(["age"])
ROWS = "id,age,note,y\na,1,likes tea,0\nb,2,,1\n"


@dataclass
class Party:
    """A party with a dataset `rows`, whose file and description are mended."""

    directory: Path
    values: dict[str, Any]

    @classmethod
    def of(cls, directory: Path, text: str = ROWS, role: str = "active", **dataset: Any) -> Party:
        (directory / "rows.csv").write_text(text)
        described = {"url": "csv:rows.csv", "features": "rest", "label": "y", **dataset}
        given = {f"datasets.rows.{name}": value for name, value in described.items()}
        return cls(directory, with_changes(PARTIES[role], given))

    def publish(self) -> tuple[str, ...]:
        """Read and check every row, as a snapshot does; return the names of the features."""
        settings = validate(self.values, PartySettings, source="party.toml")
        source = open_source(settings.datasets["rows"], self.directory, "rows")
        snapshot = self.directory / "snapshot"
        shutil.rmtree(snapshot, ignore_errors=True)
        snapshot.mkdir()
        write_rows(source, snapshot)
        read_rows(source, labels=source.settings.label is not None, report=lambda *_: None)
        return source.feature_names

    def set(self, **options: Any) -> tuple[str, ...]:
        self.values = with_changes(self.values, {f"datasets.rows.{name}": value for name, value in options.items()})
        return self.publish()

    def follow(self, told: Told, *options: str) -> tuple[str, ...]:
        """Set what the hint sets; if it offers several ways, set only these options."""
        chosen = {name: value for name, value in told.options.items() if not options or name.endswith(options)}
        assert chosen, told.text
        self.values = with_changes(self.values, chosen)
        return self.publish()

    def rewrite(self, before: str, after: str) -> tuple[str, ...]:
        path = self.directory / "rows.csv"
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))
        return self.publish()


# --- a column that is no feature -------------------------------------------------------------------------------


def test_a_column_of_texts_is_left_out_of_the_rest(tmp_path: Path) -> None:
    party = Party.of(tmp_path, missing="mean")
    with refused("set {}.except = {}") as told:
        party.publish()
    assert party.follow(told) == ("age",)


def test_one_more_column_is_left_out(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,age,note,old,y\na,1,x,x,0\nb,2,x,x,1\n", **{"except": ["old"]})
    with refused("set {}.except = {}") as told:
        party.publish()
    assert party.follow(told) == ("age",)


def test_a_column_of_texts_is_taken_out_of_a_list(tmp_path: Path) -> None:
    party = Party.of(tmp_path, features=["age", "note"])
    with refused("remove {} from {}") as told:
        party.publish()
    assert 'remove "note" from datasets.rows.features' in told.text
    assert party.set(features=["age"]) == ("age",)


def test_a_column_of_texts_becomes_a_category_or_a_date(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,note,born,y\na,x,1990-01-01,0\nb,z,1991-01-01,1\n")
    with refused("add {} to {}.categories or {}.dates") as told:
        party.publish()
    assert 'add "note" to datasets.rows.categories' in told.text
    with refused("add {} to {}.categories or {}.dates") as told:
        party.set(categories=["note"])
    assert 'add "born" to datasets.rows.categories or datasets.rows.dates' in told.text
    assert party.set(dates=["born"]) == ("note=x", "note=z", "born")


@each_case("features", ["rest", ["age", "born"]])
@each_case("encoded", ["categories", "dates"])
def test_a_column_without_values_is_left_out_wherever_it_is_named(
    tmp_path: Path, encoded: str, features: str | list[str]
) -> None:
    party = Party.of(
        tmp_path, "id,age,born,y\na,1,,0\nb,2,,1\n", features=features, missing="mean", **{encoded: ["born"]}
    )
    with refused("remove {} from {}") as told:
        party.publish()
    assert f"datasets.rows.{encoded}" in told.text
    left = {"except": ["born"]} if features == "rest" else {"features": ["age"]}
    assert party.set(**left, **{encoded: None}) == ("age",)


def test_days_that_are_numbers_are_no_dates(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "born": [1, 2], "y": [0, 1]}), tmp_path / "rows.parquet")
    party = Party.of(tmp_path, url="parquet:rows.parquet", dates=["born"])
    with refused("write dates as text such as 2024-05-31, or as a type of dates; leave numbers of days out of `dates`"):
        party.publish()
    assert party.set(dates=None) == ("born",)
    for born in (["2024-05-31", "2024-06-01"], [date(2024, 5, 31), date(2024, 6, 1)]):
        pq.write_table(pa.table({"id": ["a", "b"], "born": born, "y": [0, 1]}), tmp_path / "rows.parquet")
        assert party.set(dates=["born"]) == ("born",)


def test_a_date_is_written_as_the_error_shows(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,born,y\na,31.5.24,0\nb,2024-06-01,1\n", dates=["born"])
    with refused("write it as 2024-05-31"):
        party.publish()
    party.rewrite("31.5.24", "2024-05-31")


def test_a_column_with_the_name_of_a_level(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,town,town=x,y\na,x,1,0\nb,z,2,1\n", categories=["town"])
    with refused("set {}.except = {}") as told:
        party.publish()
    assert party.follow(told) == ("town=x", "town=z")


def test_a_category_of_many_levels(tmp_path: Path) -> None:
    rows = "".join(f"p{i},t{i},{i % 2}\n" for i in range(101))
    party = Party.of(tmp_path, f"id,town,y\n{rows}", categories=["town"])
    with refused("name the levels that matter: {}; a row with another level is then 0 in all of them") as told:
        party.publish()
    assert Told(says("{}.categories = { {} }")).is_in(told.text)
    assert Told(says("{} = [...]")).is_in(told.text)
    assert 'datasets.rows.categories = { "town" = [...] }' in told.text
    assert party.set(categories={"town": ["t1", "t2"]}) == ("town=t1", "town=t2")


def test_a_column_without_a_name(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,age,,y\na,1,2,0\nb,2,3,1\n")
    with refused("give it a name in the table, or list the other columns: {}.features = [...]"):
        party.publish()
    assert party.set(features=["age"]) == ("age",)
    party.rewrite("age,,y", "age,wage,y")
    assert party.set(features="rest") == ("age", "wage")


@each_case("option", ["features", "except"])
def test_a_table_without_features(tmp_path: Path, option: str) -> None:
    party = Party.of(tmp_path, "id,y,age\na,0,1\nb,1,2\n", **{"except": ["age"]})
    with refused("remove {}.features or {}.except") as told:
        party.publish()
    assert Told(says(" or {}.except")).is_in(told.text)
    party.set(**{"except": None, option: None})
    party = Party.of(tmp_path, "id,y\na,0\nb,1\n")
    with refused("remove {}.features"):
        party.publish()
    assert party.set(features=None) == ()


# --- values --------------------------------------------------------------------------------------------------


@each_case("way", ["drop", "mean"])
def test_a_missing_value(tmp_path: Path, way: str) -> None:
    party = Party.of(tmp_path, "id,age,y\na,1,0\nb,2,1\nc,,1\n")
    with refused('set {}.missing = "drop" to leave such rows out'):
        party.publish()
    party.set(missing=way)
    with refused('set {}.missing = "mean" to put the column\'s mean in their place'):
        party.set(missing=None)
    party.rewrite("c,,1", "c,3,1")


def test_a_missing_category(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,town,y\na,x,0\nb,x,1\nc,,1\n", categories=["town"])
    with refused('set {}.missing = "indicator" to make a level of it') as told:
        party.publish()
    assert '"drop" to leave such rows out' in told.text
    assert party.set(missing="indicator") == ("town=x", "town=")
    assert party.set(missing="drop") == ("town=x",)


def test_a_missing_value_of_records_that_are_linked(tmp_path: Path) -> None:
    """Linked records keep their rows: dropping some is not possible."""
    party = Party.of(tmp_path, "id,age,name,y\na,1,x,0\nb,2,z,1\nc,,w,1\n", quasi_identifiers={"name": "name"})
    with refused('set {}.missing = "mean" to put the column\'s mean in their place') as told:
        party.publish()
    assert "drop" not in told.text
    party.follow(told)


def test_rows_of_which_none_is_left(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,age,pay,y\na,1,,0\nb,,2,1\n", missing="drop")
    with refused('set {}.missing = "mean"') as told:
        party.publish()
    party.follow(told)


def test_a_table_for_a_model_is_told_of_no_option_of_a_party_file(tmp_path: Path) -> None:
    """No party's file describes the tables of `blindfit attack` and `verify`."""
    settings = validate(PARTIES["active"], PartySettings, source="party.toml").datasets["rows"]
    for text, mended in [("id,age,y\na,x,0\n", "id,age,y\na,1,0\n"), ("id,age,y\na,,0\n", "id,age,y\na,2,0\n")]:
        (tmp_path / "rows.csv").write_text(text)
        with refused("the model needs") as told:
            list(open_for_model(settings, AGE, ("age",), tmp_path, "members", "--members").batches())
        assert "datasets." not in told.text
        (tmp_path / "rows.csv").write_text(mended)
        list(open_for_model(settings, AGE, ("age",), tmp_path, "members", "--members").batches())


@each_case("way", ["true", "1"])
def test_a_boolean_that_is_neither_true_nor_false(tmp_path: Path, way: str) -> None:
    settings = validate(PARTIES["active"], PartySettings, source="party.toml").datasets["rows"]
    record = TableRecord((TableColumn("smokes", "boolean"),))
    for value in ("sometimes", way):
        (tmp_path / "rows.csv").write_text(f"id,smokes,y\na,{value},0\nb,0,1\n")
        source = open_for_model(settings, record, ("smokes",), tmp_path, "members", "--members")
        if value == "sometimes":
            with refused("write it as true or false, or as 1 or 0"):
                list(source.batches())
    (batch,) = source.batches()
    assert batch.features.tolist() == [[1.0], [0.0]]


@each_case("way", ["quoted", "other words"])
def test_an_id_that_is_a_missing_word(tmp_path: Path, way: str) -> None:
    party = Party.of(tmp_path, "id,age,y\nNA,1,0\nb,2,1\n")
    with refused('give every row its value; in a csv file, quote a text such as "NA", or set missing_words'):
        party.publish()
    if way == "quoted":
        party.rewrite("NA,1", '"NA",1')
    else:
        party.set(missing_words=["-"])


def test_missing_words_of_a_typed_source(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "age": [1.0, None], "y": [0, 1]}), tmp_path / "rows.parquet")
    party = Party.of(tmp_path, url="parquet:rows.parquet", missing="mean", missing_words=["-"])
    with refused("missing_words is for csv files, remove it: in other sources a missing value is a null"):
        party.publish()
    party.set(missing_words=None)


# --- labels --------------------------------------------------------------------------------------------------


def test_labels_that_are_texts(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,age,y\na,1,no\nb,2,yes\n")
    with refused('write labels as 0 and 1, or name the text of label 1: {}.positive = "yes"') as told:
        party.publish()
    party.follow(told)
    party = Party.of(tmp_path, "id,age,y\na,1,no\nb,2,yes\n")
    (tmp_path / "rows.csv").write_text("id,age,y\na,1,0\nb,2,1\n")
    party.publish()


@each_case("way", ["rows", "option"])
@each_case("spelling", ["YES", " Yes ", "y es"])
def test_a_label_that_differs_only_in_spelling(tmp_path: Path, way: str, spelling: str) -> None:
    """The label would be 0."""
    party = Party.of(tmp_path, f"id,age,y\na,1,yes\nb,2,no\nc,2,{spelling}\n", positive="yes")
    with refused("write this label in one way in all rows") as told:
        party.publish()
    assert "row 3 (line 4), column y: the label differs only in spelling from 'yes'" in told.text
    if way == "rows":
        party.rewrite(spelling, "yes")
    else:
        rows = tmp_path / "rows.csv"
        rows.write_text(rows.read_text().replace(",yes", f",{spelling}"))
        Told(says(", or correct {}.positive")).hear(told.text)
        party.set(positive=spelling.strip())


def test_labels_that_are_other_numbers(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,age,y\na,1,1\nb,2,2\n")
    with refused("write labels as 0 and 1"):
        party.publish()
    (tmp_path / "rows.csv").write_text("id,age,y\na,1,0\nb,2,1\n")
    party.publish()


def test_labels_of_a_table_for_a_model(tmp_path: Path) -> None:
    settings = validate(PARTIES["active"], PartySettings, source="party.toml").datasets["rows"]
    (tmp_path / "rows.csv").write_text("id,age,y\na,1,no\n")
    with refused("write labels as 0 and 1"):
        list(open_for_model(settings, AGE, ("age",), tmp_path, "members", "--members").batches())
    (tmp_path / "rows.csv").write_text("id,age,y\na,1,0\n")
    list(open_for_model(settings, AGE, ("age",), tmp_path, "members", "--members").batches())


@each_case("text", ["id,age,y\na,1,yes\nb,2,yes\n", "id,age,y\na,1,no\nb,2,no\n"])
def test_labels_that_are_all_the_same(tmp_path: Path, text: str) -> None:
    party = Party.of(tmp_path, text, positive="yes")
    with refused("text {}, which stands for label 1"):
        party.publish()


def test_a_text_of_label_1_that_no_row_has(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,age,y\na,1,yes\nb,2,no\n", positive="true")
    with refused("no row has the text {}, which stands for label 1: correct {}; capitals count") as told:
        party.publish()
    assert "datasets.rows.positive" in told.text
    party.set(positive="yes")


def test_shares_of_labels_that_something_has_rewritten(tmp_path: Path) -> None:
    text = "id,y,split\na,1.5,s\nb,2.5,s\n"
    party = Party.of(tmp_path, text, role="server", label_kind="share", split="split", features=None)
    with refused("take the column as `blindfit split-labels` wrote it"):
        party.publish()
    party.rewrite("1.5,s\nb,2.5", "15,s\nb,25")
    with refused("all rows are split again each time: take a table as `blindfit split-labels` wrote it"):
        party.rewrite("25,s", "25,t")
        settings = validate(party.values, PartySettings, source="party.toml")
        open_source(settings.datasets["rows"], tmp_path, "rows").split_id()


# --- files ---------------------------------------------------------------------------------------------------


def as_binary(path: Path) -> None:
    path.write_bytes(b"\x7fELF\0\0")


def in_latin(path: Path, place: str) -> None:
    path.write_bytes(path.read_text().replace(place, "ä").encode("latin-1"))


@each_case(
    ("text", "spoil"),
    [
        (says("save it as csv in UTF-8"), as_binary),
        (says("save the file in UTF-8"), lambda path: in_latin(path, "age")),
        (says("save the file in UTF-8"), lambda path: in_latin(path, "tea")),
        (says("correct `{}`"), lambda path: path.unlink()),
    ],
)
def test_a_file_that_is_no_csv_file(tmp_path: Path, text: str, spoil: Callable[[Path], None]) -> None:
    rows = "id,age,town,y\na,1,tea,0\nb,2,tea,1\n"
    party = Party.of(tmp_path, rows, categories=["town"])
    spoil(tmp_path / "rows.csv")
    with refused(text) as told:
        party.publish()
    if "correct" in told.text:
        (tmp_path / "others.csv").write_text(rows)
        assert "`datasets.rows.url`" in told.text
        party.set(url="csv:others.csv")
    else:
        (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
        party.publish()


def test_a_parquet_file_that_is_called_csv(tmp_path: Path) -> None:
    party = Party.of(tmp_path)
    pq.write_table(pa.table({"id": ["a", "b"], "age": [1.0, 2.0], "y": [1, 0]}), tmp_path / "rows.csv")
    with refused("write `parquet:` before the path in `{}`") as told:
        party.publish()
    assert "`datasets.rows.url`" in told.text
    party.set(url="parquet:rows.csv")


def test_texts_of_a_parquet_file(tmp_path: Path) -> None:
    wrong = pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    for names in (wrong, pa.array(["a", "b"])):
        pq.write_table(pa.table({"id": names, "age": [1.0, 2.0], "y": [1, 0]}), tmp_path / "rows.parquet")
        party = Party.of(tmp_path, url="parquet:rows.parquet")
        if names is wrong:
            with refused("write the file again, with its texts in UTF-8"):
                party.publish()
    party.publish()


def test_a_row_that_is_too_long(tmp_path: Path) -> None:
    party = Party.of(tmp_path, f'id,age,note,y\na,1,"{"x" * (3 << 20)}",0\nb,2,z,1\n', **{"except": ["note"]})
    with refused("is a double quote left open, or a row longer than 1 MiB?"):
        party.publish()
    party.rewrite("x" * (3 << 20), "x")


@each_case("kind", ["folder", "pipe"])
def test_something_that_is_no_file(tmp_path: Path, kind: str) -> None:
    party = Party.of(tmp_path)
    (tmp_path / "here").mkdir() if kind == "folder" else os.mkfifo(tmp_path / "here")
    with refused("name one file in `{}`") as told:
        party.set(url="csv:here")
    assert "`datasets.rows.url`" in told.text
    party.set(url="csv:rows.csv", **{"except": ["note"]})


def test_a_path_that_leads_in_a_circle(tmp_path: Path) -> None:
    party = Party.of(tmp_path, **{"except": ["note"]})
    (tmp_path / "loop").symlink_to("loop")
    with refused("correct `{}`, or the permissions and links on its path"):
        party.set(url="csv:loop")
    (tmp_path / "loop").unlink()
    (tmp_path / "loop").symlink_to("rows.csv")
    party.publish()


def test_a_home_directory_that_nobody_has(tmp_path: Path) -> None:
    party = Party.of(tmp_path, **{"except": ["note"]})
    with refused("write the whole path instead of `~`"):
        party.set(url="csv:~nobody-of-this-name/rows.csv")
    party.set(url=f"csv:{tmp_path / 'rows.csv'}")


# --- databases -----------------------------------------------------------------------------------------------


def as_sqlite(directory: Path) -> None:
    with sqlite3.connect(directory / "rows.db") as connection:
        connection.execute("CREATE TABLE people (id TEXT, age REAL, y INTEGER)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", [("a", 1.0, 0), ("b", 2.0, 1)])
    connection.close()


def test_a_database_and_its_table(tmp_path: Path) -> None:
    as_sqlite(tmp_path)
    party = Party.of(tmp_path, url="sqlite:///rows.db")
    with refused("end `{}` with ?table=NAME") as told:
        party.publish()
    assert "`datasets.rows.url`" in told.text
    party.set(url="sqlite:///rows.db?table=people")


def test_texts_of_a_database_that_are_not_utf8(tmp_path: Path) -> None:
    as_sqlite(tmp_path)
    party = Party.of(tmp_path, url="sqlite:///rows.db?table=people")
    for name in ("CAST(x'6bff' AS TEXT)", "'kä'"):
        with sqlite3.connect(tmp_path / "rows.db") as connection:
            connection.execute(f"UPDATE people SET id = {name} WHERE y = 0")
        connection.close()
        if "ff" in name:
            with refused("write the text again in UTF-8"):
                party.publish()
    party.publish()


def test_a_csv_file_that_is_called_a_database(tmp_path: Path) -> None:
    party = Party.of(tmp_path, url="sqlite:///rows.csv?table=people", **{"except": ["note"]})
    with refused("name another in `{}`; for a csv or parquet file write csv: or parquet: before its path"):
        party.publish()
    party.set(url="csv:rows.csv")
    as_sqlite(tmp_path)
    party.set(url="sqlite:///rows.db?table=people", **{"except": None})


@pytest.mark.postgresql
def test_a_type_that_is_no_date(tmp_path: Path, postgres: Any) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS spans",
        "CREATE TABLE spans (id text, at interval, y integer)",
        "INSERT INTO spans VALUES ('a', '1 day', 0), ('b', '2 days', 1)",
    )
    party = Party.of(tmp_path, url=postgres.url("spans"), dates=["at"])
    with refused("store it as a date, a timestamp, or a text such as 2024-05-31"):
        party.publish()
    for stored in ("date '2024-05-31' + at", "timestamp '2024-05-31' + at", "(date '2024-05-31' + at)::text"):
        postgres.run("DROP TABLE IF EXISTS days", f"CREATE TABLE days AS SELECT id, {stored} AS at, y FROM spans")
        assert party.set(url=postgres.url("days")) == ("at",)


def test_the_driver_of_a_database_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package with this name has the driver, and so has the test's environment."""
    party = Party.of(tmp_path, url="postgresql://u@localhost:1/db?table=t")
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "psycopg", None)
        with refused("run `pip install 'psycopg[binary]>=3.2.1'`"):
            party.publish()
    led_past(Told("run `pip install 'psycopg[binary]>=3.2.1'`"), party.publish)


def test_a_field_of_a_linkage_that_no_column_has(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id,age,surname,y\na,1,x,0\nb,2,z,1\n", **{"except": ["surname"]})
    settings = validate(party.values, PartySettings, source="party.toml")
    with refused('name the column that has it: datasets.{}.quasi_identifiers.{} = "..."'):
        open_source(settings.datasets["rows"], tmp_path, "rows").records(["name"])
    party.set(**{"except": None, "quasi_identifiers.name": "surname"})
    settings = validate(party.values, PartySettings, source="party.toml")
    assert open_source(settings.datasets["rows"], tmp_path, "rows").records(["name"]) == {"name": ["x", "z"]}


# --- scores --------------------------------------------------------------------------------------------------

SCORES = pa.table({"id": ["a", "b"], "probability": [0.25, 0.5]})


@each_case("url", ["csv:scores.csv", "parquet:scores.parquet", "sqlite:///scores.db?table=scores"])
@each_case("way", ["append", "replace", "another"])
def test_scores_that_are_there_already(tmp_path: Path, way: str, url: str) -> None:
    open_sink(url, "refuse", tmp_path).write(SCORES)
    with refused('set scores.if_exists = "append" or "replace", or name another in scores.url'):
        open_sink(url, "refuse", tmp_path).write(SCORES)
    if way == "another":
        open_sink(url.replace("scores.", "others."), "refuse", tmp_path).write(SCORES)
    else:
        open_sink(url, way, tmp_path).write(SCORES)  # type: ignore[arg-type]


@each_case("url", ["csv:scores.csv", "parquet:scores.parquet", "sqlite:///scores.db?table=scores"])
def test_scores_beside_others_of_other_columns(tmp_path: Path, url: str) -> None:
    open_sink(url, "append", tmp_path).write(SCORES.rename_columns(["id", "score"]))
    with refused("name another in `scores.url`"):
        open_sink(url, "append", tmp_path).write(SCORES)
    open_sink(url.replace("scores.", "others."), "append", tmp_path).write(SCORES)


class LockNotAvailable(Exception):
    """Stand-in with the name that PostgreSQL's driver gives."""


def test_a_table_that_somebody_else_has_locked() -> None:
    origin = Origin("rows", "table visits of postgresql://db")
    with refused("another session has locked the table for more than {} s: find it in pg_locks, and try again later"):
        with answering(origin):
            raise DBAPIError("", {}, LockNotAvailable())
    with answering(origin):
        pass
