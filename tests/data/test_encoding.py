"""Text, dates and missing values become columns of numbers: the same from every kind of source, and from a snapshot."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data.opening import open_for_model, open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.training.unit import refuse_dependent_rows
from tests.data.tables import write
from tests.each_case import each_case

ROWS: dict[str, list[Any]] = {
    "id": ["a", "b", "c", "d"],
    "region": ["north", " south", "north", "east"],
    "age": [30.0, None, 50.0, 40.0],
    "born": ["1990-01-01", "1970-01-02", "1970-01-01T12:00:00", "2000-02-29"],
    "smokes": ["yes", "no", "no", "yes"],
}


def opened(directory: Path, columns: dict[str, list[Any]] = ROWS, kind: str = "csv", **settings: Any) -> Source:
    chosen = {"features": "rest", "categories": ["region", "smokes"], "dates": ["born"], "missing": "mean", **settings}
    url = write(directory, kind, columns)
    return open_source(DatasetSettings(**{"url": url, "id": "id", **chosen}), directory, "people")


def table(source: Source, **roles: Any) -> dict[str, list[float]]:
    batches = list(source.batches(labels=False, **roles))
    return dict(zip(source.feature_names, np.concatenate([b.features for b in batches]).T.tolist(), strict=True))


@each_case("kind", ["csv", "parquet", "sqlite"])
def test_each_level_is_a_column_and_a_date_a_number_of_days(tmp_path: Path, kind: str) -> None:
    source = opened(tmp_path, kind=kind)
    assert source.feature_names == (
        "region=east", "region=north", "region=south", "age", "born", "smokes=no", "smokes=yes",
    )  # fmt: skip
    assert table(source) == {
        "region=east": [0, 0, 0, 1],
        "region=north": [1, 0, 1, 0],
        "region=south": [0, 1, 0, 0],
        "age": [30, 40, 50, 40],
        "born": [7305, 1, 0.5, 11016],
        "smokes=no": [0, 1, 1, 0],
        "smokes=yes": [1, 0, 0, 1],
    }


def test_columns_of_a_date_type_need_no_text(tmp_path: Path) -> None:
    days = [dt.date(1970, 1, 2), None]
    moments = [dt.datetime(1970, 1, 1, 6), dt.datetime(1969, 12, 31)]
    pq.write_table(pa.table({"id": ["a", "b"], "day": days, "moment": moments}), tmp_path / "rows.parquet")
    settings = DatasetSettings(url="rows.parquet", id="id", features="rest", dates=("day", "moment"), missing="mean")
    assert table(open_source(settings, tmp_path, "people")) == {"day": [1, 1], "moment": [0.25, -1]}


def test_whole_numbers_are_no_dates(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "day": [20200101, 20200102]}), tmp_path / "rows.parquet")
    settings = DatasetSettings(url="rows.parquet", id="id", features="rest", dates=("day",))
    with pytest.raises(DataError, match=r"column day: its values are whole numbers, not dates( \(|$)") as refused:
        table(open_source(settings, tmp_path, "people"))
    assert "write dates as text such as 2024-05-31" in refused.value.hint


def test_of_given_levels_no_row_is_read_and_every_other_is_zero_in_all(tmp_path: Path) -> None:
    categories = {"region": ["north ", "west"], "smokes": ["yes"]}
    source = opened(tmp_path, categories=categories)
    assert source.feature_names == ("region=north", "region=west", "age", "born", "smokes=yes")
    assert table(source)["region=north"] == [1, 0, 1, 0]
    assert table(source)["region=west"] == [0, 0, 0, 0]


def test_whole_numbers_and_truth_values_are_levels_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "code": [7, 10], "is": [True, False]}), tmp_path / "rows.parquet")
    settings = DatasetSettings(url="rows.parquet", id="id", features="rest", categories=("code", "is"))
    found = table(open_source(settings, tmp_path, "people"))
    assert found == {"code=10": [0, 1], "code=7": [1, 0], "is=false": [0, 1], "is=true": [1, 0]}


HOLES = {**ROWS, "region": ["north", "", "south", None]}


def test_an_indicator_says_where_a_mean_was_put_and_no_value_is_a_level(tmp_path: Path) -> None:
    source = opened(tmp_path, HOLES, missing="indicator")
    assert source.feature_names[:5] == ("region=north", "region=south", "region=", "age", "age=")
    found = table(source)
    assert found["region=north"] == [1, 0, 0, 0]
    assert found["region="] == [0, 1, 0, 1]
    assert found["age="] == [0, 1, 0, 0]
    assert found["age"] == [30, 40, 50, 40]
    assert "born=" not in found  # it has a value in every row
    assert source.with_means().record.fill == pytest.approx(
        {"age": 40.0, "born": np.mean([7305, 1, 0.5, 11016])} | {f"smokes={level}": 0.5 for level in ("yes", "no")}
    )


def test_a_missing_category_is_missing_in_each_of_its_columns(tmp_path: Path) -> None:
    assert table(opened(tmp_path, HOLES))["region=north"] == [1, 0.5, 0, 0.5]
    (kept,) = opened(tmp_path, HOLES, missing="drop").batches(labels=False)
    assert kept.ids.to_pylist() == ["a", "c"]
    full = {**HOLES, "age": [1.0, 2.0, 3.0, 4.0]}
    with pytest.raises(DataError, match=r"row 2 \(line 3\), column region: the value is missing"):
        table(opened(tmp_path, full, missing="refuse"))


def test_labels_by_their_text(tmp_path: Path) -> None:
    settings = {"label": "smokes", "positive": "yes", "categories": ["region"]}
    (batch,) = opened(tmp_path, **settings).batches()
    assert batch.labels is not None
    assert batch.labels.tolist() == [1, 0, 0, 1]
    (again,) = opened(tmp_path, **{**settings, "positive": " yes\u200b"}).batches()
    assert again.labels is not None
    assert again.labels.tolist() == [1, 0, 0, 1]
    with pytest.raises(DataError, match=r"row 2 .*column smokes: the label is missing"):
        list(opened(tmp_path, {**ROWS, "smokes": ["yes", "", "no", "no"]}, **settings).batches())


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("born", ["1990-01-01", "1990-02-30", "", ""], r"row 2 .*column born: not a date"),
        ("region", [f"r{i}" for i in range(101)], "column region: it has more than 100 levels"),
    ],
)
def test_what_cannot_be_encoded_is_said(tmp_path: Path, column: str, values: list[str], said: str) -> None:
    n = len(values)
    rows = {name: (column_ * n)[:n] for name, column_ in ROWS.items()} | {"id": [str(i) for i in range(n)]}
    with pytest.raises(DataError, match=said):
        table(opened(tmp_path, {**rows, column: values}))


@each_case(
    ("settings", "said"),
    [
        ({"categories": ["colour"]}, "there is no column colour"),
        ({"dates": ["smokes"]}, "named twice in categories and dates"),
        ({"features": ["age"]}, "region of categories or dates is none of the features"),
        ({"categories": {"region": ["a", "a"]}}, "categories.region names a level twice"),
        ({"categories": {"region": ["a", " a"]}}, "categories.region names a level twice"),
        ({"categories": {"region": ["a", "\u200b"]}}, r"'\\u200b' is a text without any visible character"),
        ({"positive": " ", "label": "smokes"}, "' ' is a text without any visible character"),
        ({"categories": {"region": []}}, "at least 1"),
        ({"positive": "yes"}, "it needs a label"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises((DataError, ValidationError), match=said):
        opened(tmp_path, **settings)


@each_case(
    ("name", "settings"),
    [
        ("region=north", {}),
        ("region=ratio", {}),
        ("region=ratio", {"categories": {"region": ["north"]}}),
        ("region=ratio", {"features": ["region"], "categories": ["region"], "dates": [], "label": "region=ratio"}),
    ],
)
def test_a_column_that_is_called_as_a_level_is_refused(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"column {name}: its name is that of a level of region"):
        opened(tmp_path, {**ROWS, name: [1.0, 2.0, 3.0, 4.0]}, **settings)


def test_a_column_that_is_called_as_an_indicator_is_refused_and_one_that_looks_like_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"two columns are called age=( \(|$)"):
        opened(tmp_path, {**ROWS, "age=": [1.0, 2.0, 3.0, 4.0]}, missing="indicator")
    found = table(opened(tmp_path, {**ROWS, "age=years": [1.0, 2.0, 3.0, 4.0]}, missing="indicator"))
    assert found["age=years"] == [1, 2, 3, 4]
    assert found["age="] == [0, 1, 0, 0]


def test_levels_that_rows_tell_are_no_part_of_a_promise_about_rows(tmp_path: Path) -> None:
    """Under differential privacy of rows even the number of columns would be of the rows."""
    with pytest.raises(ConfigError, match="levels from the rows would reveal something of them"):
        refuse_dependent_rows(opened(tmp_path, ROWS, missing="refuse"))
    refuse_dependent_rows(opened(tmp_path, ROWS, missing="refuse", categories={"region": ["north"]}))


def test_a_table_is_read_as_a_model_has_its_columns(tmp_path: Path) -> None:
    """Levels that the table lacks are 0, and the record replaces missing values; a column named like a level is not
    read.
    """
    table_columns = (
        TableColumn("age", missing="indicator"),
        TableColumn("region", "category", ("west", "north"), (), "mean"),
        TableColumn("smokes", "category", ("yes",), (), "mean"),
    )
    fill = {"age": 7.0, "region=west": 0.25, "region=north": 0.5, "smokes=yes": 0.1}
    record = TableRecord(table_columns, fill)
    columns = ("age=", "region=west", "age", "region=north", "smokes=yes")
    holes = {**HOLES, "region=west": [1.5, 2.5, 3.5, 4.5]}
    settings = DatasetSettings(url=write(tmp_path, "csv", holes), id="id")
    source = open_for_model(settings, record, columns, tmp_path, "people")
    assert source.feature_names == columns
    assert table(source) == {
        "age=": [0, 1, 0, 0],
        "age": [30, 7, 50, 40],
        "region=west": [0, 0.25, 0, 0.25],
        "region=north": [1, 0.5, 0, 0.5],
        "smokes=yes": [1, 0, 0, 1],
    }
    with pytest.raises(DataError, match="there is no column colour"):
        open_for_model(settings, TableRecord.of_numbers(["colour"]), ("colour",), tmp_path, "people")
