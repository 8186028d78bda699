"""Sheets of real Excel workbooks: typed cells, and one line about each wrong file or cell."""

from __future__ import annotations

import datetime as dt
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.init.guess import guess_table, open_table
from blindfit.coordinator.init.places import Place
from blindfit.parties.data.opening import fingerprint_of, open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.sinks import open_sink
from blindfit.parties.data.source import RowBatch, Source
from tests.command import blindfit
from tests.each_case import each_case

HEADER = ("id", "age", "town", "since", "smokes", "y")
PEOPLE: list[tuple[Any, ...]] = [
    ("00123", 41, "Köln", dt.date(2003, 5, 31), True, 1),
    ("x,y", 2.5, "a;b", dt.datetime(1969, 12, 31, 12), False, 0),
    (7, None, "NA", None, None, 1),
    ("abc", "1.5", "Köln", "2000-02-29", "true", 0),
]
ROLES = {"features": "rest", "categories": ["town"], "dates": ["since"], "label": "y", "missing": "mean"}


def write(path: Path, *rows: tuple[Any, ...], sheet: str = "Data", more: tuple[str, ...] = ()) -> Path:
    book = openpyxl.Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    for name in more:
        book.create_sheet(name).append(["x"])
    book.save(path)
    return path


def source(directory: Path, url: str = "rows.xlsx", **settings: Any) -> Source:
    return open_source(DatasetSettings(**{"url": url, "id": "id", **settings}), directory, "rows")


def batch(directory: Path, url: str = "rows.xlsx", **settings: Any) -> RowBatch:
    (found,) = source(directory, url, **settings).batches()
    return found


def refuse(directory: Path, said: str, **settings: Any) -> None:
    with pytest.raises(DataError) as caught:
        batch(directory, **settings)
    assert said in str(caught.value).replace(f"{directory}/", "")


def test_cells_are_read_by_their_types(tmp_path: Path) -> None:
    """A csv file with the same values gives the same: text stays text, and only an empty cell is a missing value."""
    write(tmp_path / "rows.xlsx", HEADER, *PEOPLE)
    lines = ["00123,41,Köln,2003-05-31,1,1", '"x,y",2.5,a;b,1969-12-31T12:00,0,0', '7,,"NA",,,1']
    lines += ["abc,1.5,Köln,2000-02-29,true,0"]
    (tmp_path / "rows.csv").write_text("\n".join([",".join(HEADER), *lines]) + "\n")
    found, plain = batch(tmp_path, **ROLES), batch(tmp_path, "rows.csv", **ROLES)
    assert found.ids.to_pylist() == plain.ids.to_pylist() == ["00123", "x,y", "7", "abc"]
    assert found.features.tobytes() == plain.features.tobytes()
    assert np.array_equal(found.labels, plain.labels)
    assert source(tmp_path, **ROLES).record.by_name["town"].levels == ("Köln", "NA", "a;b")


@each_case("url", ["rows.xlsx?sheet=Two words", "excel:rows.xlsx?sheet=Two words", "excel:ROWS?sheet=Two words"])
def test_a_url_names_a_sheet(tmp_path: Path, url: str) -> None:
    name = "ROWS" if "ROWS" in url else "rows.xlsx"
    write(tmp_path / name, ("id", "x"), ("a", 1), sheet="Two words", more=("other",))
    assert batch(tmp_path, url, features=["x"]).features.tolist() == [[1.0]]
    assert fingerprint_of(DatasetSettings(url=url, id="id", features=("x",)), tmp_path, "rows") is not None


def test_batches_are_joined_and_rows_are_numbered(tmp_path: Path) -> None:
    rows = [(f"p{i}", None if i < 50 else i, i if i < 90 else "k.A.") for i in range(100)]
    blank = [(None, None, None), ("", " ", None)]
    write(tmp_path / "rows.xlsx", ("id", "x", "z"), *rows[:20], *blank, *rows[20:])
    found = list(source(tmp_path, features=["x"], missing="drop", batch_rows=16).batches())
    assert [row for part in found for row in part.rows.tolist()] == list(range(51, 101))
    refuse(tmp_path, "rows.xlsx, row 91 (row 94 of the sheet), column z: not a number", features=["z"])


def test_an_unused_column_may_hold_anything(tmp_path: Path) -> None:
    write(tmp_path / "rows.xlsx", ("id", "x", "odd", None), ("a", 1, dt.time(12), 5), ("b", 2, "=1/0", None))
    assert batch(tmp_path, features=["x"]).features.tolist() == [[1.0], [2.0]]


@each_case(
    ("cell", "settings", "said"),
    [
        ("k.A.", {}, "column x: not a number"),
        (dt.date(2003, 5, 31), {}, "column x: not a number"),
        (5, {"dates": ["x"]}, "column x: not a date"),
        ("31.05.2003", {"dates": ["x"]}, "column x: not a date"),
        (1.5, {"categories": ["x"]}, "column x: neither a text nor a whole number"),
        ("#DIV/0!", {}, "column x: the cell holds an error, #DIV/0! (correct it in Excel, and save the file there)"),
        ("#N/A", {"categories": ["x"]}, "column x: the cell holds an error, #N/A"),
        ("=1+1", {}, "column x: the formula has no value (correct it in Excel, and save the file there)"),
        ("=1+1", {"categories": ["x"]}, "column x: the formula has no value"),
        (None, {}, "column x: the value is missing"),
    ],
)
def test_a_cell_of_another_kind_is_refused_by_row_and_column(
    tmp_path: Path, cell: Any, settings: dict[str, Any], said: str
) -> None:
    known = {"dates": dt.date(2001, 1, 1)}.get(next(iter(settings), ""), 1)
    write(tmp_path / "rows.xlsx", ("id", "x"), ("a", known), ("b", cell))
    refuse(tmp_path, f"rows.xlsx, row 2 (row 3 of the sheet), {said}", features=["x"], **settings)


def test_the_value_of_a_formula_is_the_one_that_excel_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.xlsx", ("id", "x"), ("a", "=6*7"), ("b", 1))
    with zipfile.ZipFile(path) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b"<f>6*7</f><v />" in content[sheet] or b"<f>6*7</f><v></v>" in content[sheet]
    for empty in (b"<v />", b"<v></v>"):
        content[sheet] = content[sheet].replace(b"<f>6*7</f>" + empty, b"<f>6*7</f><v>42</v>")
    with zipfile.ZipFile(path, "w") as parts:
        for name, data in content.items():
            parts.writestr(name, data)
    assert batch(tmp_path, features=["x"]).features.tolist() == [[42.0], [1.0]]


def not_excel(path: Path) -> None:
    path.write_text("id,x\na,1\n")


def old(path: Path) -> None:
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


def damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def another_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as parts:
        parts.writestr("a.txt", "a")


def cut_sheet(path: Path) -> None:
    with zipfile.ZipFile(path) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    with zipfile.ZipFile(path, "w") as parts:
        for name, data in content.items():
            parts.writestr(name, data[:-40] if "worksheets/" in name else data)


@each_case(
    ("spoil", "said"),
    [
        (not_excel, "this is not an Excel workbook (save it as .xlsx, or correct `datasets.rows.url`)"),
        (old, "this is an old .xls workbook, or one with a password (save it as .xlsx without a password)"),
        (damaged, "this is not an Excel workbook, or it is damaged (open it in Excel and save it again)"),
        (another_zip, "this is not an Excel workbook, or it is damaged"),
        (cut_sheet, "this is not an Excel workbook, or it is damaged"),
        (lambda path: write(path), "the sheet is empty"),
        (lambda path: write(path, ("id", "x")), "the table has no rows"),
        (lambda path: write(path, ("id", "x", "x"), ("a", 1, 2)), "two columns are called x"),
        (lambda path: write(path, ("id", "z"), ("a", 1)), "there is no column x"),
        (lambda path: write(path, ("id", "x"), ("a", 1), more=("b",)), "it has 2 sheets (end `datasets.rows.url` with"),
        (lambda path: path.unlink(), "the file does not exist"),
    ],
)
def test_what_is_wrong_with_a_workbook(tmp_path: Path, spoil: Any, said: str) -> None:
    write(tmp_path / "rows.xlsx", ("id", "x"), ("a", 1))
    spoil(tmp_path / "rows.xlsx")
    refuse(tmp_path, said, features=["x"])


def test_a_sheet_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "rows.xlsx", ("id", "x"), ("a", 1), more=("Notes",))
    refuse(tmp_path, "there is no sheet Note (end `", url="rows.xlsx?sheet=Note", features=["x"])
    refuse(tmp_path, "did you mean Notes? the sheets are Data, Notes", url="rows.xlsx?sheet=Note", features=["x"])


def test_without_the_package_one_line_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "rows.xlsx", ("id", "x"), ("a", 1))
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    refuse(tmp_path, "is not installed (run `pip install 'openpyxl>=3.1.2'`)", features=["x"])


def test_scores_are_not_written_to_excel(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not written to Excel files \(use csv:PATH, parquet:PATH, sqlite"):
        open_sink("scores.xlsx", "refuse", tmp_path)


def test_options_of_csv_files_are_none_of_excel() -> None:
    for options in ({"missing_words": ["-"]}, {"decimal": ","}, {"separator": ";"}):
        with pytest.raises(ValueError, match="is for csv files, remove it"):
            DatasetSettings(url="excel:rows", id="id", **options)


# --- init


def test_init_finds_what_columns_hold(tmp_path: Path) -> None:
    n = 120
    rows = [
        (
            i,
            f"p{i:03}",
            i * 1.5,
            dt.date(2000, 1, 1) + dt.timedelta(i * 7),
            ("north", "south")[i % 2],
            "k.A." if i == 16 else i / 7,
            None if i == 3 else i % 3,
            f"free text {i}",
            dt.time(i % 24),
            i % 2 == 0,
            "#DIV/0!" if i == 5 else i,
            i % 2,
        )
        for i in range(n)
    ]
    names = (None, "id", "pay", "since", "region", "few", "gaps", "note", "clock", "yes", "error", "y")
    path = write(tmp_path / "rows.xlsx", names, *rows, more=("Notes",))
    place = Place(f"{path}?sheet=Data")
    assert place.url_from(tmp_path) == "excel:rows.xlsx?sheet=Data"
    found = guess_table(place, place.as_declared(open_table(place), ["id"]), "id", label="y")
    assert found.ids == {f"p{i:03}" for i in range(n)}
    assert (found.categories, found.dates, found.gaps) == (("region", "clock"), ("since",), ("gaps",))
    assert found.features == ("pay", "since", "region", "gaps", "clock", "yes")
    assert list(found.left_out) == ["", "few", "note", "error"]
    assert found.left_out[""].startswith("often it is the index of a data frame")
    assert 'row 17 (row 18 of the sheet) has "k.A.", and the other 119 values are numbers' in found.left_out["few"]
    assert "the cell holds an error, #DIV/0!" in found.left_out["error"]
    assert found.dialect.options() == {}


def test_a_workbook_is_trained_on_as_the_csv_file_is(tmp_path: Path) -> None:
    draw, n = np.random.default_rng(3), 300
    ids = [f"{i:05}" for i in range(n)]
    bank = pd.DataFrame({"id": ids, "age": draw.normal(size=n).round(3), "y": draw.integers(0, 2, n)})
    bank["since"] = pd.date_range("1990-01-01", periods=n, freq="19D")
    shop = pd.DataFrame({"id": ids, **{f"z{i}": draw.normal(size=n).round(3) for i in range(5)}})
    bank.to_excel(tmp_path / "bank.xlsx", index=False, sheet_name="People")
    shop.to_csv(tmp_path / "shop.csv", index=False)
    made = blindfit(tmp_path, "init", "--system", "taylor", "bank.xlsx", "shop.csv", "--label", "y")
    assert made.returncode == 0, made.stderr
    assert 'url = "excel:../bank.xlsx"' in (tmp_path / "joint/bank.toml").read_text()
    assert blindfit(tmp_path, "check", "joint/job.toml").returncode == 0
    done = blindfit(tmp_path, "run", "joint/job.toml", "--out", "joint/run", "--set", "taylor.epochs=1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "joint/run/bank/model.json").exists()
