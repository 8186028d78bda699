"""A joint prediction reads its dataset by the record of the model, and the columns of the model only."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.parties.snapshots.rows_file import FILE
from blindfit.parties.training.rows import read_rows, tell_of_unseen
from tests.columns.new_rows import NewRows
from tests.each_case import each_case

Make = Callable[..., NewRows]


def part_of(*columns: TableColumn, fill: dict[str, float] | None = None) -> VerticalModelPart:
    record = TableRecord(columns, fill or {})
    n = len(record.made)
    scale = Standardiser(record.made, tuple(range(n)), (0.5,) * n, (2.0,) * n, record)
    return VerticalModelPart("bank", "active", "logistic", ("bank", "shop"), scale, np.ones(n))


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Make]:
    made: list[NewRows] = []

    def make(part: VerticalModelPart, text: str | None = None, **options: Any) -> NewRows:
        if text is not None:
            (tmp_path / "rows.csv").write_text(text, "utf-8")
        made.append(NewRows(tmp_path, part, **options))
        return made[-1]

    yield make
    for rows in made:
        rows.close()


BORN = part_of(TableColumn("born", "date"))
REGION = part_of(TableColumn("region", "category", ("north", "south"), ("west",)))
SMOKES = part_of(TableColumn("smokes", "boolean"))
AGE = part_of(TableColumn("age"))


# --- another description than in training -----------------------------------------------------------


def test_a_date_is_the_same_number_from_every_source(tmp_path: Path, new: Make) -> None:
    days = [dt.date(1990, 5, 31), dt.date(1969, 12, 31)]
    expected = [[7455.0], [-1.0]]
    assert new(BORN, "id,born\na,1990-05-31\nb,1969-12-31\n", dataset={"dates": ["born"]}).numbers() == expected
    moments = pa.array([dt.datetime(1990, 5, 31, 2), dt.datetime(1969, 12, 31, 2)]).cast(pa.timestamp("ms"))
    zone = (
        pa.array([dt.datetime(1990, 5, 31), dt.datetime(1969, 12, 31)])
        .cast(pa.timestamp("ns"))
        .cast(pa.timestamp("ns", "Asia/Tokyo"))
    )
    for number, array in enumerate((pa.array(days), pa.array(days).cast(pa.date64()), zone)):
        (tmp_path / str(number)).mkdir()
        pq.write_table(pa.table({"id": ["a", "b"], "born": array}), tmp_path / str(number) / "rows.parquet")
        rows = NewRows(tmp_path / str(number), BORN, "rows.parquet", {"dates": ["born"]})
        assert rows.numbers() == expected
        rows.close()
    assert moments.type == pa.timestamp("ms")


@each_case(
    ("part", "column", "dataset", "said"),
    [
        (BORN, "7455", {}, "column born: the model reads it as a date, and the dataset describes a number"),
        (BORN, "1990-05-31", {"categories": ["born"]}, "column born: the model reads it as a date"),
        (BORN, "7455", {"dates": ["born"]}, "row 1 .*column born: not a date"),
        (REGION, "north", {}, "column region: the model reads it as a category, and the dataset describes a number"),
        (REGION, "2020-01-01", {"dates": ["region"]}, "column region: the model reads it as a category"),
        (AGE, "30", {"categories": ["age"]}, "column age: the model reads it as a number, and the dataset describes a"),
        (AGE, "2020-01-01", {"dates": ["age"]}, "column age: the model reads it as a number"),
        (AGE, "thirty", {}, "row 1 .*column age: not a number"),
        (AGE, "", {}, "row 1 .*column age: the value is missing"),
    ],
)
def test_what_the_model_cannot_read_is_refused_by_its_name(
    tmp_path: Path, part: VerticalModelPart, column: str, dataset: dict[str, Any], said: str
) -> None:
    (tmp_path / "rows.csv").write_text(f"id,{part.standardiser.record.names[0]}\na,{column}\n")
    rows = NewRows(tmp_path, part, dataset=dataset)
    with closing(rows), pytest.raises(DataError, match=said) as refused:
        rows.source()
    assert refused.value.hint


def test_levels_are_those_of_the_model_whichever_the_dataset_declares(new: Make) -> None:
    text = "id,region\na,south\nb,east\nc, north\nd,west\n"
    expected = [[0, 1], [0, 0], [1, 0], [0, 0]]
    assert new(REGION, text, dataset={"categories": ["region"]}).numbers() == expected
    assert new(REGION, text, dataset={"categories": {"region": ["east", "west"]}}).numbers() == expected


def test_booleans_and_numbers_serve_each_other(tmp_path: Path, new: Make) -> None:
    assert new(SMOKES, "id,smokes\na,1\nb,0\n").numbers() == [[1], [0]]
    pq.write_table(pa.table({"id": ["a", "b"], "smokes": [True, False]}), tmp_path / "rows.parquet")
    assert new(SMOKES, url="rows.parquet").numbers() == [[1], [0]]
    part = part_of(TableColumn("smokes"))
    assert new(part, url="rows.parquet").numbers() == [[1], [0]]


@each_case("missing", ["mean", "indicator"])
def test_a_missing_value_is_what_it_was_in_training(tmp_path: Path, missing: str) -> None:
    """These rows may have missing values or not; a mark is 1 even if the dataset makes no mark itself."""
    part = part_of(
        TableColumn("age", missing="indicator"), TableColumn("region", "category", ("north",), (), "mean"),
        fill={"age": 40.0, "region=north": 0.25},
    )  # fmt: skip
    (tmp_path / "rows.csv").write_text('id,age,region\na,30,north\nb,,south\nc,NA,""\n')
    rows = NewRows(tmp_path, part, dataset={"categories": ["region"], "missing": missing})
    with closing(rows):
        assert rows.part.standardiser.columns == ("age", "age=", "region=north")
        assert rows.numbers() == [[30, 0, 1], [40, 1, 0], [40, 1, 0.25]]


def test_a_snapshot_without_the_texts_of_a_category_is_published_again(new: Make) -> None:
    rows = new(REGION, "id,region\na,north\nb,west\n", dataset={"categories": ["region"]})
    rows.source()
    file = rows.snapshots.require_current("new").directory / FILE
    with pa.ipc.open_file(file) as kept:
        table = kept.read_all()
    file.chmod(0o600)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.drop_columns("region").schema) as without:
        without.write_table(table.drop_columns("region"))
    with pytest.raises(DataError, match=r"column region: .*keeps no texts") as refused:
        rows.source()
    assert refused.value.hint == "publish the dataset again"


# --- columns that the model does not need -----------------------------------------------------------

UNNEEDED = {
    "text": "id,age,note\na,30,x\nb,40,y\n",
    "one bad number": "id,note,age\na,1,30\nb,1e999,40\n",
    "too many levels": "id,age,note\n" + "".join(f"r{i},{(30, 40)[i % 2]},{i}x\n" for i in range(2)),
    "missing": "id,age,note\na,30,\nb,40,NA\n",
    "two of one name": "id,note,age,note\na,1,30,2\nb,1,40,2\n",
    "no name": ",id,age,\n0,a,30,x\n1,b,40,x\n",
    "another case of a name": "id,AGE,age\na,x,30\nb,y,40\n",
    "called as a level": "id,age,age=x\na,30,1\nb,40,2\n",
}


@pytest.mark.parametrize("how", UNNEEDED)
@pytest.mark.parametrize("missing", ["refuse", "drop", "mean", "indicator"])
def test_a_column_that_the_model_does_not_need_may_hold_anything(how: str, missing: str, new: Make) -> None:
    rows = new(AGE, UNNEEDED[how], dataset={"missing": missing}).read()
    assert (rows.features.tolist(), len(rows.ids)) == ([[30], [40]], 2)


@each_case(
    "dataset",
    [
        {"label": "y"},
        {"label": "y", "label_kind": "number"},
        {"label": "y", "positive": "yes"},
        {"person": "y"},
        {"quasi_identifiers": {"name": "y"}},
        {"categories": ["y"]},
        {"categories": {"y": ["1"]}},
        {"dates": ["y"]},
    ],
)
@pytest.mark.parametrize("values", [None, ("", ""), ("x", ""), ("2", "2")])
def test_a_label_a_person_and_fields_of_a_linkage_are_not_needed(
    tmp_path: Path, dataset: dict[str, Any], values: tuple[str, str] | None
) -> None:
    text = "id,age\na,30\nb,40\n" if values is None else f"id,age,y\na,30,{values[0]}\nb,40,{values[1]}\n"
    (tmp_path / "rows.csv").write_text(text)
    rows = NewRows(tmp_path, AGE, dataset=dataset)
    with closing(rows):
        assert rows.numbers() == [[30], [40]]


def test_types_that_nothing_can_be_made_of_are_not_read(tmp_path: Path, new: Make) -> None:
    odd = {
        "list": [[1], [2]],
        "struct": [{"a": 1}, {"a": 2}],
        "bytes": [b"1", b"\xff"],
        "time": [dt.time(1), dt.time(2)],
    }
    pq.write_table(pa.table({"id": ["a", "b"], "age": [30, 40], **odd}), tmp_path / "rows.parquet")
    assert new(AGE, url="rows.parquet").numbers() == [[30], [40]]
    with sqlite3.connect(tmp_path / "rows.db") as connection:
        connection.execute("CREATE TABLE rows (id, age, odd)")
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", [("a", 30, b"\xff"), ("b", 40, "x")])
    connection.close()
    assert new(AGE, url="sqlite:///rows.db?table=rows").numbers() == [[30], [40]]


def test_a_column_that_cannot_be_read_is_refused_to_whoever_needs_it(new: Make) -> None:
    """A training needs all of a dataset's columns, and none is dropped silently. The owner learns which
    one, and why.
    """
    rows = new(AGE, "id,age,note\na,30,5\nb,40,s3cret\n")
    assert rows.numbers() == [[30], [40]]
    said = list(rows.snapshots.cautions(rows.snapshots.require_current("new")))
    problem = f"new: {rows.root / 'rows.csv'}, row 2 (line 3), column note: not a number"
    assert said == [f"a job that needs the column note is refused: {problem}"]
    snapshot = rows.snapshots.require_current("new")
    with pytest.raises(DataError, match="column note: not a number") as refused:
        snapshot.source()
    assert refused.value.hint == "correct it, and publish the dataset again: snapshot 1 has no column note"
    with pytest.raises(DataError, match="column note: not a number"):
        rows.snapshots.source("new")
    note = part_of(TableColumn("note"))
    with pytest.raises(DataError, match="column note: not a number"):
        new(note).source()
    (rows.root / "rows.csv").write_text("id,age,note\na,30,5\nb,40,6\n")
    rows.snapshots.publish("new")
    assert new(note).numbers() == [[5], [6]]
    assert rows.snapshots.require_current("new").source().feature_names == ("age", "note")


def test_a_snapshot_has_all_columns_unless_its_owner_skips_what_cannot_be_read(new: Make) -> None:
    rows = new(AGE, "id,age,note\na,30,5\nb,40,x\n")
    with pytest.raises(DataError, match="column note: not a number"):
        rows.snapshots.publish("new")
    assert rows.snapshots.current("new") is None


def test_whoever_publishes_again_needs_the_columns_that_could_be_read(new: Make) -> None:
    """A bad cell does not take a column out of the next snapshot, and a column that never served stays out."""
    rows = new(AGE, "id,age,note,visits\na,30,x,1\nb,40,y,2\n")
    rows.source()
    (rows.root / "rows.csv").write_text("id,age,note,visits\na,31,z,1\nb,41,,2\n")
    assert rows.snapshots.publish("new").row.number == 2
    assert rows.numbers() == [[31], [41]]
    (rows.root / "rows.csv").write_text("id,age,note,visits\na,32,z,1\nb,42,y,many\n")
    with pytest.raises(DataError, match="column visits: not a number"):
        rows.snapshots.publish("new")
    assert rows.numbers() == [[31], [41]]


def test_only_rows_that_lack_what_the_model_needs_are_dropped_and_their_places_are_the_snapshots(new: Make) -> None:
    """Scored rows are counted by place in the snapshot: another model that drops other rows must count
    the right ones.
    """
    text = "id,age,visits,note\na,30,,\nb,,2,\nc,50,3,\nd,60,4,x\n"
    rows = new(AGE, text, dataset={"missing": "drop"})
    read = rows.read()
    assert (read.ids.to_pylist(), read.in_snapshot.tolist()) == (["a", "c", "d"], [0, 2, 3])
    assert read.take(np.array([2, -1, 0])).in_snapshot.tolist() == [3, -1, 0]
    other = new(part_of(TableColumn("visits")), dataset={"missing": "drop"}).read()
    assert (other.ids.to_pylist(), other.in_snapshot.tolist()) == (["b", "c", "d"], [1, 2, 3])
    assert rows.snapshots.require_current("new").row.rows == 4


def test_rows_that_are_dropped_are_counted_for_their_owner(new: Make) -> None:
    text = "id,age,visits\na,30,\nb,,2\nc,,\nd,60,4\n"
    rows = new(AGE, text, dataset={"missing": "drop"})
    made = rows.snapshots.publish("new")
    said = [line for line in rows.snapshots.cautions(made) if "leaves out" in line]
    assert said == ['missing = "drop" leaves out 3 rows: values are missing, 2 in age, 2 in visits']
    with capture_logs() as logged:
        (rows.root / "rows.csv").write_text("id,age,visits\na,30,1\nb,31,2\nc,32,3\nd,60,4\n")
        assert not list(rows.snapshots.publish("new").remarks)
    assert logged == []


def test_a_model_without_a_column_of_the_dataset_is_refused_by_the_column(new: Make) -> None:
    rows = new(part_of(TableColumn("income")), "id,age\na,30\n")
    with pytest.raises(DataError, match="there is no column income"):
        rows.source()
    named = new(part_of(TableColumn("income")), "id,age,income\na,30,1\n", dataset={"features": ["age"]})
    with pytest.raises(ConfigError, match=r"datasets\.new\.features does not have income, which the model has"):
        named.source()


@pytest.mark.parametrize("how", UNNEEDED)
def test_the_pre_flight_reads_what_the_prediction_reads(how: str, new: Make) -> None:
    """They agree before anything is published, and after."""
    rows = new(AGE, UNNEEDED[how], dataset={"missing": "drop"})
    here = PartyHere("bank", "new", rows.party.settings, rows.root / "bank.toml")
    for _ in range(2):
        source = here.read_scaled(rows.part.standardiser)
        assert read_rows(source, labels=False, report=lambda *_: None).features.tolist() == [[30], [40]]
        rows.source()


@each_case(
    ("part", "dataset", "said"),
    [
        (BORN, {}, "column age|there is no column born"),
        (REGION, {}, "there is no column region"),
        (part_of(TableColumn("age", "date")), {}, "column age: the model reads it as a date"),
        (AGE, {"features": ["visits"]}, r"datasets\.new\.features does not have age"),
    ],
)
def test_the_pre_flight_refuses_what_the_prediction_refuses(
    tmp_path: Path, part: VerticalModelPart, dataset: dict[str, Any], said: str
) -> None:
    (tmp_path / "rows.csv").write_text("id,age,visits\na,30,1\n")
    rows = NewRows(tmp_path, part, dataset=dataset)
    with closing(rows), pytest.raises(BlindfitError, match=said) as here:
        PartyHere("bank", "new", rows.party.settings, rows.root / "bank.toml").read_scaled(part.standardiser)
    other = NewRows(tmp_path, part, dataset=dataset)
    with closing(other), pytest.raises(type(here.value), match=said):
        other.source()


# --- levels that training did not meet --------------------------------------------------------------


def test_levels_that_training_did_not_meet_are_counted_for_the_columns_owner(new: Make) -> None:
    """The log has the numbers, but no value of a row. `west` has no column, and training met it."""
    text = "id,region\n" + "".join(
        f"r{i},{level}\n" for i, level in enumerate(("east", "east", "NORTH", "west", "south"))
    )
    rows = new(REGION, text, dataset={"categories": ["region"]})
    with capture_logs() as logged:
        tell_of_unseen(rows.source())
    (line,) = [line for line in logged if line["log_level"] == "warning"]
    assert line == {
        "event": "column region: rows with a level that training did not have: 3; such levels: 2 (1 of them "
        "differ from a known level only in spelling); they are scored as 0 in each of its columns",
        "log_level": "warning",
        "dataset": "new",
    }
    assert "east" not in str(logged)


def test_nothing_is_said_where_training_met_every_level(new: Make) -> None:
    rows = new(REGION, "id,region\na,north\nb,west\n", dataset={"categories": ["region"]})
    source = rows.source()
    with capture_logs() as logged:
        tell_of_unseen(source)
    assert logged == []


def test_a_refusal_is_of_our_own_tree(new: Make) -> None:
    with pytest.raises(BlindfitError):
        new(AGE, "id,age\na,x\n").source()
