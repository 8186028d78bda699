"""`blindfit init` finds how a csv file is written, and prints why it omits a column and how to keep it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.coordinator.init.guess import Guessed, guess_table, id_column, open_table
from blindfit.coordinator.init.places import Place
from tests.command import blindfit
from tests.each_case import each_case

N = 400
GERMAN = {"separator": ";", "decimal": ",", "thousands": ".", "encoding": "cp1252", "date_format": "%d.%m.%Y"}


def guess(path: Path, text: str | bytes | None = None, label: str = "") -> Guessed:
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    place = Place(str(path))
    return guess_table(place, open_table(place), "id", label=label)


def rows(**columns: Sequence[Any]) -> str:
    """Return a csv file with commas whose fields are written as they are given."""
    columns = {"id": [f"p{i}" for i in range(N)], **columns}
    lines = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, line)) for line in lines)]) + "\n"


def spoilt(values: Sequence[Any], row: int, value: Any) -> list[Any]:
    """Return the same values, with another value in this row, counted from 1."""
    return [*values[: row - 1], value, *values[row:]]


NUMBERS = [round(float(x), 2) for x in np.random.default_rng(1).normal(50, 20, N)]
DAYS = pd.date_range("1990-01-01", periods=N, freq="37D")


# --- the form of the file


def people() -> pd.DataFrame:
    draw = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "income": draw.normal(30_000, 9_000, N).round(2),
            "age": draw.normal(45, 12, N).round(1),
            "town": [("Köln", "Zürich", "Ulm")[i % 3] for i in range(N)],
            "since": DAYS,
            "y": draw.integers(0, 2, N),
        }
    )


def write_german(frame: pd.DataFrame, path: Path) -> None:
    """Write the table as a German Excel does."""
    marks = str.maketrans({",": ".", ".": ","})
    written = frame.assign(
        income=[f"{x:,.2f}".translate(marks) for x in frame.income],
        age=[f"{x}".translate(marks) for x in frame.age],
        since=frame.since.dt.strftime("%d.%m.%Y"),
    )
    written.to_csv(path, sep=";", index=False, encoding="cp1252", lineterminator="\r\n")


def test_a_german_table_is_read_as_the_plain_one(tmp_path: Path) -> None:
    frame = people()
    frame.to_csv(tmp_path / "plain.csv", index=False)
    write_german(frame, tmp_path / "german.csv")
    plain, german = guess(tmp_path / "plain.csv", label="y"), guess(tmp_path / "german.csv", label="y")
    assert plain.dialect.options() == {}
    assert german.dialect.options() == GERMAN
    for found in (plain, german):
        assert (found.n_features, found.categories, found.dates, found.label) == (4, ("town",), ("since",), "y")
    assert "check how it shows letters with accents" in german.remarks[0]


@each_case(
    ("text", "options"),
    [
        ("id,x\na,1\nb,2\n", {}),
        ("id\na\nb\n", {}),
        ("id;x\na;1,5\nb;2\n", {"separator": ";", "decimal": ","}),
        ("id\tx\na\t1.5\nb\t2\n", {"separator": "\t"}),
        ("id|x\na|1,234.5\nb|2\n", {"separator": "|", "thousands": ","}),
        ("id;x;z\na;0,5;1.234\nb;2;2.345\n", {"separator": ";", "decimal": ",", "thousands": "."}),
        ('id,x\na,"1,234.50"\nb,"2,345.00"\n', {"thousands": ","}),
        ("id;x\na;1\u202f234,5\nb;7\n", {"separator": ";", "decimal": ",", "thousands": " "}),
        ("id;x\na;1'234.5\nb;7\n", {"separator": ";", "thousands": "'"}),
        ("id;x\na;1.234.567\nb;7\n", {"separator": ";", "decimal": ",", "thousands": "."}),
        ("id,x\na,31.12.2003\nb,1.1.2004\n", {"date_format": "%d.%m.%Y"}),
        ("id,x\na,31/12/2003\nb,01/01/2004\n", {"date_format": "%d/%m/%Y"}),
        ("id,x\na,12/31/2003\nb,01/01/2004\n", {"date_format": "%m/%d/%Y"}),
        ("id,x,z\na,02/03/2003,12/31/2003\nb,01/01/2004,1/1/2004\n", {"date_format": "%m/%d/%Y"}),
        ("id,x\na,5/31/2003 9:05 AM\nb,1/1/2004 12:00 PM\n", {"date_format": "%m/%d/%Y %I:%M %p"}),
        ("id,x\na,31-Jan-2003\nb,1-Feb-2004\n", {"date_format": "%d-%b-%Y"}),
        ("id,x\na,2003/12/31\nb,2004/01/01\n", {"date_format": "%Y/%m/%d"}),
        ("id,x\na,2003-12-31\nb,2004-01-01\n", {}),
    ],
)
def test_the_form_of_a_file(tmp_path: Path, text: str, options: dict[str, str]) -> None:
    assert guess(tmp_path / "rows.csv", text).dialect.options() == options


@each_case(
    ("encoding", "options"),
    [
        ("utf-8", {}),
        ("utf-8-sig", {}),
        ("utf-16", {"encoding": "utf-16"}),
        ("cp1252", {"encoding": "cp1252"}),
    ],
)
def test_the_encoding_of_a_file(tmp_path: Path, encoding: str, options: dict[str, str]) -> None:
    text = "id,town\n" + "".join(f"p{i},{('Köln', 'Ulm')[i % 2]}\n" for i in range(N))
    found = guess(tmp_path / "rows.csv", text.encode(encoding))
    assert (found.dialect.options(), found.categories) == (options, ("town",))
    other = guess(tmp_path / "rows.csv", text.replace("K", "\x81").encode("latin-1"))
    assert other.dialect.encoding == "latin-1"


# --- why a column is left out


ROW = "row 17 (line 18) has "
CASES: dict[str, tuple[Sequence[Any], str]] = {
    "a word among numbers": (
        spoilt(NUMBERS, 17, "k.A."),
        f'{ROW}"k.A.", and the other 399 values are numbers; to keep it, correct the values, or read them as missing: '
        'missing_words = ["NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "<NA>", "NaN", "nan", "k.A."]',
    ),
    "a word in many rows": (
        [*NUMBERS[:300], *(["k.A."] * 100)],
        'row 301 (line 302) has "k.A." and 99 more rows, and the other 300 values are numbers',
    ),
    "an infinity": (
        spoilt(NUMBERS, 17, "inf"),
        "row 17 (line 18) is infinite; to keep it, correct the values, or read",
    ),
    "a unit": (spoilt(NUMBERS, 17, "5 kg"), f'{ROW}"5 kg", and the other 399 values are numbers'),
    "a date that does not exist": (
        spoilt([f"{day:%Y-%m-%d}" for day in DAYS], 17, "2003-02-30"),
        f'{ROW}"2003-02-30", and the other 399 values are dates',
    ),
    "a day that may be a month": (
        [f"0{1 + i % 9}/0{1 + i % 7}/20{10 + i % 90}" for i in range(N)],
        'row 1 (line 2) has "01/01/2010", a date that is not ISO 8601, and nothing shows which number is the day; to '
        'keep it, set date_format = "%d/%m/%Y" or date_format = "%m/%d/%Y", name it in dates',
    ),
    "too many levels": (
        [f"free text {i}" for i in range(N)],
        "it has 400 texts, too many to find levels in the rows; to keep it, name the levels that matter, categories = "
        "{ x = "
        '["free text 0", "free text 1", ...] }',
    ),
    "a constant number": ([5] * N, 'every row has the same value, "5"'),
    "a constant text": (["abc"] * N, 'every row has the same value, "abc"'),
    "nothing": ([""] * N, "no row has a value"),
    "only words": (["NA"] * N, "no row has a value"),
    "row numbers": (list(range(1, N + 1)), "it numbers the rows, as the index of a data frame does"),
    "row numbers from 0": (list(range(N)), "it numbers the rows"),
}


@each_case("why", list(CASES))
def test_why_a_column_is_left_out(tmp_path: Path, why: str) -> None:
    column, said = CASES[why]
    found = guess(tmp_path / "rows.csv", rows(x=column, other=[x + 0.5 for x in NUMBERS]))
    assert list(found.left_out) == ["x"]
    assert found.left_out["x"].startswith(said)
    assert found.n_features == 1


def test_a_comma_that_may_be_either_is_left_to_the_owner(tmp_path: Path) -> None:
    """One other number decides: 0,5 has a decimal comma, and 12.5 makes the comma a separator of thousands."""
    column = spoilt([i % 100 for i in range(N)], 17, '"1,234"')
    found = guess(tmp_path / "rows.csv", rows(x=column, z=[7 * i for i in range(N)]))
    assert (found.dialect.options(), found.n_features) == ({}, 1)
    said = f'{ROW}"1,234", and its form is not clear; to keep it, set decimal = "," or thousands = ","'
    assert found.left_out["x"].startswith(said)
    for other, options in ((12.5, {"thousands": ","}), ('"0,5"', {"decimal": ","})):
        found = guess(tmp_path / "rows.csv", rows(x=column, z=spoilt([7 * i for i in range(N)], 3, other)))
        assert (found.dialect.options(), found.n_features) == (options, 2)


def test_columns_that_contradict_each_other(tmp_path: Path) -> None:
    plain, german = NUMBERS, [f'"{x}"'.replace(".", ",") for x in NUMBERS]
    found = guess(tmp_path / "rows.csv", rows(a=plain, b=plain, c=german))
    assert found.dialect.options() == {}
    assert 'it needs decimal = ",", but other columns do not; write all numbers in one form' in found.left_out["c"]
    dates = [[f"{day:{form}}" for day in DAYS] for form in ("%d.%m.%Y", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d")]
    found = guess(tmp_path / "rows.csv", rows(**dict(zip("abcd", dates, strict=True))))
    assert (found.dates, found.dialect.date_format) == (("a", "b"), "%d.%m.%Y")
    assert 'date_format = "%m/%d/%Y", and other dates "%d.%m.%Y"; write all dates in one form' in found.left_out["c"]
    assert "its dates are ISO 8601, but those of other columns are not" in found.left_out["d"]


@each_case("forms", [("%Y-%m-%d", "%d.%m.%Y"), ("%d/%m/%Y", "%m/%d/%Y"), ("%Y%m%d", "%d %b %Y")])
@each_case("days", [DAYS, [DAYS[i % 5] for i in range(N)]])
def test_dates_of_two_forms_are_no_category(tmp_path: Path, forms: tuple[str, str], days: Any) -> None:
    column = [f"{day:{forms[place % 2]}}" for place, day in enumerate(days)]
    found = guess(tmp_path / "rows.csv", rows(a=NUMBERS, d=column))
    assert found.n_features == 1
    assert "dates in several forms; to keep it, write all dates in one form" in found.left_out["d"]


def test_a_sheet_keeps_no_column_that_its_dataset_could_not_read(tmp_path: Path) -> None:
    """A category of fractions and texts has no one spelling; a cell with an error has no value."""
    half = ["1,5" if place % 2 else 1.5 for place in range(N)]
    levels = ["north" if place % 2 else 7 for place in range(N)]
    mixed = {"id": [f"p{place}" for place in range(N)], "a": NUMBERS, "half": half, "level": levels}
    pd.DataFrame({**mixed, "bad": ["#DIV/0!", *NUMBERS[1:]]}).to_excel(tmp_path / "rows.xlsx", index=False)
    place = Place(str(tmp_path / "rows.xlsx"))
    found = guess_table(place, place.as_declared(open_table(place), ["id"]), "id")
    assert found.categories == ("level",)
    assert "neither a text nor a whole number; to keep it, store it as text" in found.left_out["half"]
    assert "an error, #DIV/0!; to keep it, correct it in Excel" in found.left_out["bad"]


@each_case("name", ["Unnamed: 0", "", "index", "rownames"])
def test_an_index_of_a_data_frame_is_no_feature(tmp_path: Path, name: str) -> None:
    frame = people().sample(frac=0.5, random_state=1)
    frame.index.name = name or None
    frame.to_csv(tmp_path / "rows.csv")
    found = guess(tmp_path / "rows.csv", label="y")
    assert found.left_out[name].startswith("it numbers the rows" if name else "often it is the index of a data frame")
    assert found.n_features == 4
    assert found.features == (("income", "age", "town", "since") if name == "" else ())


def test_an_index_is_no_id(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "a.csv")
    people().rename(columns={"age": "old", "income": "pay", "town": "place", "since": "day"}).to_csv(tmp_path / "b.csv")
    tables = {Place(str(tmp_path / name)): open_table(Place(str(tmp_path / name))) for name in ("a.csv", "b.csv")}
    assert id_column(tables, None, "y") == "id"


def test_an_id_that_repeats_is_said(tmp_path: Path) -> None:
    text = rows(x=NUMBERS).replace("p20,", "p10,").replace("p30,", "p10,")
    (remark,) = guess(tmp_path / "rows.csv", text).remarks
    assert (
        "column id repeats: 1 id in more than one row, such as 'p10' in row 11 (line 12) and row 21 (line 22)" in remark
    )


def test_numbers_that_may_be_something_else_are_said(tmp_path: Path) -> None:
    text = "id;x;d\n" + "".join(f"p{i};{1 + i % 9}.{100 + i};{20030101 + i % 28}\n" for i in range(N))
    found = guess(tmp_path / "rows.csv", text)
    assert found.n_features == 2
    assert [remark.partition(":")[0] for remark in found.remarks] == [
        'column x has numbers such as "1.100"',
        'column d has numbers such as "20030101"',
    ]
    assert 'set thousands = "." and decimal = ","' in found.remarks[0]
    assert 'set date_format = "%Y%m%d"' in found.remarks[1]


def test_a_typed_source_is_told_of_no_option_of_csv_files(tmp_path: Path) -> None:
    columns = {
        "id": [f"p{i}" for i in range(N)],
        "comma": [str(x).replace(".", ",") for x in NUMBERS],
        "day": [f"{day:%d.%m.%Y}" for day in DAYS],
        "word": spoilt(list(map(str, NUMBERS)), 17, "k.A."),
        "inf": spoilt(NUMBERS, 17, float("inf")),
        "struct": [{"a": i} for i in range(N)],
        "__index_level_0__": list(range(N)),
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    found = guess(tmp_path / "rows.parquet")
    assert list(found.left_out) == list(columns)[1:]
    assert "to keep it, write numbers as 1234.5" in found.left_out["comma"]
    assert "to keep it, write it as 2024-05-31" in found.left_out["day"]
    assert 'row 17 has "k.A.", and the other 399 values are numbers; to keep it, correct' in found.left_out["word"]
    assert "row 17 is infinite; to keep it, correct" in found.left_out["inf"]
    assert not re.search("missing_words|decimal|date_format", " ".join(found.left_out.values()))


def test_what_a_column_holds_is_printed_in_a_form_that_a_terminal_shows(tmp_path: Path) -> None:
    found = guess(tmp_path / "rows.csv", rows(x=spoilt(NUMBERS, 17, "\x1b[31m" + "x" * 100)))
    assert found.left_out["x"].startswith('row 17 (line 18) has "\\x1b[31mxxxx')
    assert "xxx..." in found.left_out["x"]


# --- through the commands


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    frame = people()
    frame["income"] = [*(x for x in frame.income[:16]), None, *(x for x in frame.income[17:])]
    shop = frame[["id"]].assign(**{f"z{i}": np.random.default_rng(i).normal(size=N).round(3) for i in range(5)})
    for kind in ("plain", "german"):
        (tmp_path / kind).mkdir()
    frame.to_csv(tmp_path / "plain/bank.csv", index=False)
    shop.to_csv(tmp_path / "plain/shop.csv", index=False)
    write_german(frame, tmp_path / "german/bank.csv")
    text = (tmp_path / "german/bank.csv").read_text("cp1252")
    (tmp_path / "german/bank.csv").write_text(text.replace(";nan;", ";;"), "cp1252")
    shop.to_csv(tmp_path / "german/shop.csv", sep="\t", decimal=",", index=False, encoding="utf-16")
    return tmp_path


def run(folder: Path) -> dict[str, bytes]:
    """Run init, check and run as they are printed; return the rows of each party's snapshot."""
    made = blindfit(folder, "init", "--system", "taylor", "bank.csv", "shop.csv", "--label", "y")
    assert made.returncode == 0, made.stderr
    checked = blindfit(folder, "check", "joint/job.toml")
    assert checked.returncode == 0, checked.stdout
    done = blindfit(folder, "run", "joint/job.toml", "--out", "joint/run", "--set", "taylor.epochs=1")
    assert done.returncode == 0, done.stderr
    found = {}
    for party in ("bank", "shop"):
        (path,) = (folder / f"joint/state/{party}").rglob("rows.arrow")
        with pa.OSFile(str(path)) as file:
            found[party] = pa.ipc.open_file(file).read_all()
    return {**found, "checked": checked.stdout}


def test_tables_of_other_dialects_are_trained_on_as_they_are(tables: Path) -> None:
    plain, german = run(tables / "plain"), run(tables / "german")
    for party in ("bank", "shop"):
        assert plain[party].equals(german[party])
    written = tomllib.loads((tables / "german/joint/bank.toml").read_text())["datasets"]["rows"]
    assert {name: written[name] for name in GERMAN} == GERMAN
    said = " ".join(german["checked"].split())
    assert "rows is read as a csv file in this form: cp1252, semicolons between fields, numbers as 1.234,5" in said
    assert "rows is read as a csv file in this form: utf-16, tabs between fields, numbers as 1234,5" in said


def test_what_init_leaves_out_is_printed_and_written_with_the_way_to_keep_it(tables: Path) -> None:
    folder = tables / "plain"
    path = folder / "bank.csv"
    frame = pd.read_csv(path).assign(score=spoilt(NUMBERS, 17, "k.A."), none="")
    frame.to_csv(path)
    made = blindfit(folder, "init", "--system", "taylor", "bank.csv", "shop.csv", "--label", "y")
    assert made.returncode == 0, made.stderr
    said = " ".join(made.stdout.split())
    why = 'row 17 (line 18) has "k.A.", and the other 399 values are numbers; to keep it, correct the values, or read'
    assert f"bank: leaves out score: {why}" in said
    assert "bank: leaves out none: no row has a value" in said
    party = folder / "joint/bank.toml"
    assert f"# left out: score: {why}" in party.read_text()
    assert blindfit(folder, "check", "joint/job.toml").returncode == 0
    words = re.search(r"missing_words = \[.*?\]", party.read_text())
    assert words is not None
    text = party.read_text().replace('features = ["income",', f'{words[0]}\nfeatures = ["score", "income",')
    party.write_text(text)
    assert '"score", "income"' in text
    assert blindfit(folder, "check", "joint/job.toml").returncode == 0


@each_case("label, first", [(label, first) for label in ("", "y") for first in ("row numbers", "values")])
def test_a_column_without_a_name_is_left_out_of_every_table(tmp_path: Path, label: str, first: str) -> None:
    """A party refuses `features = "rest"` where a column has no name, so the features are listed."""
    columns = {"": list(range(N)) if first == "row numbers" else NUMBERS, "age": NUMBERS}
    columns |= {"y": [i % 2 for i in range(N)]} if label else {}
    found = guess(tmp_path / "rows.csv", rows(**columns), label=label)
    assert found.left_out == {"": "often it is the index of a data frame; to keep it, give it a name in the table"}
    assert found.features == ("age",)


@each_case("first", ["a", ""])
def test_the_hint_to_keep_a_column_names_the_option_that_the_party_file_has(tmp_path: Path, first: str) -> None:
    expected = {"a": "take the column out of except", "": "add the column to features"}[first]
    spoilt_columns = {
        "words": spoilt(NUMBERS, 17, "k.A."),
        "texts": [f"free text {i}" for i in range(N)],
        "days": [f"0{1 + i % 9}/0{1 + i % 7}/20{10 + i % 90}" for i in range(N)],
        "numbers": list(range(N)),
    }
    found = guess(tmp_path / "rows.csv", rows(**{first: NUMBERS, "age": NUMBERS, **spoilt_columns}))
    assert all(found.left_out[name].endswith(expected) for name in spoilt_columns)
