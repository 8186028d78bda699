"""csv files as other programs and countries write them: each gives the rows of the plain file, or names the place."""

from __future__ import annotations

import csv
import datetime as dt
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from blindfit.algorithms.errors import DataError
from blindfit.parties.data import csv_file
from blindfit.parties.data.dialect import ALIKE, PLAIN, CsvDialect
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import RowBatch
from tests.each_case import each_case

GERMAN = {"separator": ";", "decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y"}
PEOPLE = [
    ("001", 1234.5, "Köln", "2003-05-31", 1),
    ("1.234", -0.25, "a;b", "1969-12-31", 0),
    ("x,y", None, 'say "no"', "2000-02-29", 1),
    ("7", 1234567.0, "Zürich", "0999-01-02", 0),
]
ROLES = {"features": "rest", "categories": ["town"], "dates": ["since"], "label": "y", "missing": "mean"}


def batch(directory: Path, content: str | bytes, **settings: Any) -> RowBatch:
    raw = content if isinstance(content, bytes) else content.encode()
    (directory / "rows.csv").write_bytes(raw)
    described = DatasetSettings(**{"url": "csv:rows.csv", "id": "id", **settings})
    (found,) = open_source(described, directory, "rows").batches()
    return found


def refuse(directory: Path, content: str | bytes, said: str, **settings: Any) -> None:
    with pytest.raises(DataError) as caught:
        batch(directory, content, **settings)
    assert said in str(caught.value).replace(f"{directory}/", "")


def as_plain(rows: list[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "x", "town", "since", "y"])
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    return text.getvalue()


def group(number: float, dialect: CsvDialect) -> str:
    marks = {",": dialect.thousands, ".": dialect.decimal}
    return "".join(marks.get(character, character) for character in f"{number:,}")


def as_german(rows: list[tuple[Any, ...]]) -> str:
    text, dialect = io.StringIO(), CsvDialect(**GERMAN)
    writer = csv.writer(text, delimiter=";", lineterminator="\r\n")
    writer.writerow(["id", "x", "town", "since", "y"])
    for name, x, town, since, y in rows:
        day = ".".join(reversed(since.split("-")))
        writer.writerow([name, "" if x is None else group(x, dialect), town, day, y])
    return text.getvalue()


def of_pandas(rows: list[tuple[Any, ...]], **options: Any) -> str:
    frame = pd.DataFrame(rows, columns=["id", "x", "town", "since", "y"])
    return str(frame.to_csv(index=False, **options))


def of_r(rows: list[tuple[Any, ...]]) -> str:
    """Write as write.csv2 does: every text in quotes, NA without."""
    lines = ['"id";"x";"town";"since";"y"']
    for name, x, town, since, y in rows:
        number = "NA" if x is None else f"{x:.15g}".replace(".", ",")
        doubled = town.replace('"', '""')
        lines.append(f'"{name}";{number};"{doubled}";{since};{y}')
    return "\n".join(lines) + "\n"


BOM = "\ufeff"
WAYS = {
    "pandas": (of_pandas(PEOPLE).encode(), {}),
    "pandas with tabs": (of_pandas(PEOPLE, sep="\t").encode(), {"separator": "\t"}),
    "pandas with bars": (of_pandas(PEOPLE, sep="|", decimal=",").encode(), {"separator": "|", "decimal": ","}),
    "R's write.csv2": (of_r(PEOPLE).encode(), {"separator": ";", "decimal": ","}),
    "German Excel": (as_german(PEOPLE).encode("cp1252"), {**GERMAN, "encoding": "cp1252"}),
    "German Excel's UTF-8": ((BOM + as_german(PEOPLE)).encode(), GERMAN),
    "Latin 1": (as_german(PEOPLE).encode("latin-1"), {**GERMAN, "encoding": "latin-1"}),
    "Excel's Unicode text": (as_german(PEOPLE).encode("utf-16"), {**GERMAN, "encoding": "utf-16"}),
    "UTF-16 of the other order": ((BOM + as_german(PEOPLE)).encode("utf-16-be"), {**GERMAN, "encoding": "utf-16"}),
}  # fmt: skip


@each_case("way", list(WAYS))
def test_every_way_to_write_a_table_is_the_same_rows(tmp_path: Path, way: str) -> None:
    plain = batch(tmp_path, as_plain(PEOPLE), **ROLES)
    content, options = WAYS[way]
    found = batch(tmp_path, content, **ROLES, **options)
    assert found.ids.equals(plain.ids)
    assert found.features.tobytes() == plain.features.tobytes()
    assert np.array_equal(found.labels, plain.labels)
    assert plain.ids.to_pylist()[:2] == ["001", "1.234"]


def test_blocks_are_joined_in_every_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 256)
    rows = [(f"ä{i}", i + 0.5, "Köln", "2003-05-31", i % 2) for i in range(500)]
    content = as_german(rows).encode("utf-16")
    found = batch(tmp_path, content, **ROLES, **GERMAN, encoding="utf-16")
    assert found.features.tobytes() == batch(tmp_path, as_plain(rows), **ROLES).features.tobytes()
    broken = as_german([*rows, ("z", None, "x", "32.01.2003", 1)]).encode("utf-16")
    refuse(tmp_path, broken, "row 501 (line 502), column since: not a date", **ROLES, **GERMAN, encoding="utf-16")


FORMS = [
    CsvDialect(separator=";", decimal=decimal, thousands=thousands)  # type: ignore[arg-type]
    for decimal in (".", ",")
    for thousands in ("", ".", ",", " ", "'")
    if decimal != thousands
]


@given(
    numbers=st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=20),
    form=st.sampled_from(FORMS),
    mark=st.integers(0, 2),
)
def test_a_number_that_is_written_in_a_form_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], form: CsvDialect, mark: int
) -> None:
    marks = ALIKE.get(form.thousands, form.thousands)
    alike = marks[mark % len(marks)] if marks else ""
    texts = [f"{n:,.6f}".translate({ord(","): alike, ord("."): form.decimal}) for n in numbers]
    lines = "".join(f"a{i};{text}\n" for i, text in enumerate(texts))
    directory = tmp_path_factory.getbasetemp()
    found = batch(directory, f"id;x\n{lines}", features=["x"], **form.options())
    assert found.features[:, 0].tolist() == [float(f"{n:.6f}") for n in numbers]


@each_case(
    ("text", "options", "number"),
    [
        ("1234,5", GERMAN, 1234.5),
        ("1.234", GERMAN, 1234),
        ("12.345.678,9", GERMAN, 12345678.9),
        (" -1,5e-3 ", GERMAN, -0.0015),
        (",5", GERMAN, 0.5),
        ("5,", GERMAN, 5),
        ("True", GERMAN, 1),
        ("1,234.5", {"separator": ";", "thousands": ","}, 1234.5),
        ("1\u202f234,5", {"separator": ";", "decimal": ",", "thousands": " "}, 1234.5),
        ("1\u2019234.5", {"separator": ";", "thousands": "'"}, 1234.5),
        ('"1,234.5"', {"thousands": ","}, 1234.5),  # among commas, in quotes
    ],
)
def test_a_text_is_a_number(tmp_path: Path, text: str, options: dict[str, Any], number: float) -> None:
    mark = options.get("separator", ",")
    content = f"id{mark}x\na{mark}{text}\n"
    found = batch(tmp_path, content, features=["x"], **{k: v for k, v in options.items() if k != "date_format"})
    assert found.features.tolist() == [[number]]


@each_case(
    ("text", "options"),
    [
        ("1.23", GERMAN),  # no group of three
        ("1.2345", GERMAN),
        ("1234.567,8", GERMAN),
        (".234", GERMAN),
        ("0.234", GERMAN),  # nobody groups the digits of 234 so: it is a plain number
        ("1.234.", GERMAN),
        ("1..234", GERMAN),
        ("1,234,5", GERMAN),
        ("1,234.5", GERMAN),
        ("1 234", GERMAN),
        ("0x10", GERMAN),
        ("1,5 EUR", GERMAN),
        ("1.5", {"separator": ";", "decimal": ","}),  # the plain form is another number's
        ("1'234 567", {"separator": ";", "thousands": "'"}),
        ("\u0661,5", GERMAN),  # digits of another script
    ],
)
def test_a_text_of_another_form_is_refused_by_row_and_column(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    form = {name: value for name, value in options.items() if name != "date_format"}
    said = "rows.csv, row 2 (line 3), column x: not a number"
    refuse(tmp_path, f"id;x\na;1\nb;{text}\n", said, features=["x"], **form)


@each_case(
    ("text", "date_format", "moment"),
    [
        ("31.05.2003", "%d.%m.%Y", dt.datetime(2003, 5, 31)),
        ("1.2.2003", "%d.%m.%Y", dt.datetime(2003, 2, 1)),
        ("05/31/2003", "%m/%d/%Y", dt.datetime(2003, 5, 31)),
        ("20030531", "%Y%m%d", dt.datetime(2003, 5, 31)),
        ("31May2003", "%d%b%Y", dt.datetime(2003, 5, 31)),
        ("31. may 03", "%d. %B %y", dt.datetime(2003, 5, 31)),
        ("1 September 69", "%d %B %y", dt.datetime(1969, 9, 1)),
        ("5/31/2003 12:05 AM", "%m/%d/%Y %I:%M %p", dt.datetime(2003, 5, 31, 0, 5)),
        ("5/31/2003 12:05 pm", "%m/%d/%Y %I:%M %p", dt.datetime(2003, 5, 31, 12, 5)),
        ("31.5.2003 9:05:07.25", "%d.%m.%Y %H:%M:%S.%f", dt.datetime(2003, 5, 31, 9, 5, 7, 250_000)),
        ("100% 31-5-2003", "100%% %d-%m-%Y", dt.datetime(2003, 5, 31)),
    ],
)
def test_a_text_is_a_date(tmp_path: Path, text: str, date_format: str, moment: dt.datetime) -> None:
    options = {"features": ["x"], "dates": ["x"], "missing": "mean"}
    found = batch(tmp_path, f"id,x\na,{text}\nb,\n", **options, date_format=date_format)
    plain = batch(tmp_path, f"id,x\na,{moment.isoformat()}\nb,\n", **options)
    assert found.features.tobytes() == plain.features.tobytes()


@each_case(
    ("text", "date_format"),
    [
        ("30.02.2003", "%d.%m.%Y"),
        ("2003-05-31", "%d.%m.%Y"),
        ("31.05.03", "%d.%m.%Y"),
        ("31.05.2003 12:00", "%d.%m.%Y"),
        ("05/31/2003", "%d/%m/%Y"),
        ("2003131", "%Y%m%d"),
        ("31 Mai 2003", "%d %b %Y"),
        ("31.05.2003 24:00", "%d.%m.%Y %H:%M"),
        ("31.05.2003 13:00 PM", "%d.%m.%Y %I:%M %p"),
        ("31.05.2003 0:00 AM", "%d.%m.%Y %I:%M %p"),
        ("01.01.0000", "%d.%m.%Y"),
    ],
)
def test_a_date_of_another_form_is_refused_by_row_and_column(tmp_path: Path, text: str, date_format: str) -> None:
    said = f"rows.csv, row 2 (line 3), column x: not a date in the form {date_format}"
    known = dt.datetime(2001, 1, 1).strftime(date_format)
    options = {"features": ["x"], "dates": ["x"], "date_format": date_format}
    refuse(tmp_path, f"id,x\na,{known}\nb,{text}\n", said, **options)


@given(st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31)))
def test_python_writes_the_dates_that_are_read(tmp_path_factory: pytest.TempPathFactory, moment: dt.datetime) -> None:
    form = "%d.%m.%Y %H:%M:%S.%f"
    options = {"features": ["x"], "dates": ["x"]}
    directory = tmp_path_factory.getbasetemp()
    found = batch(directory, f"id,x\na,{moment.strftime(form)}\n", **options, date_format=form)
    assert found.features.tolist() == batch(directory, f"id,x\na,{moment.isoformat()}\n", **options).features.tolist()


def test_a_word_for_no_value_has_no_form(tmp_path: Path) -> None:
    options = {"features": ["x", "d"], "dates": ["d"], "missing": "mean", "missing_words": ["k.A.", "1,x"]}
    found = batch(tmp_path, "id;x;d\na;k.A.;k.A.\nb;1,5; \nc;1,x;31.12.2003\n", **GERMAN, **options)
    assert found.features.tolist() == [[1.5, 12417.0]] * 3


@each_case(
    ("options", "said"),
    [
        ({"decimal": ",", "thousands": ","}, 'decimal and thousands are both ","'),
        ({"thousands": "."}, 'decimal and thousands are both "."'),
        ({"separator": '"'}, "is not one character that can stand between fields"),
        ({"separator": "5"}, "is not one character that can stand between fields"),
        ({"separator": "ß"}, "is not one character that can stand between fields"),
        ({"separator": ";;"}, "at most 1 character"),
        ({"decimal": ";"}, "decimal"),
        ({"encoding": "ebcdic"}, "encoding"),
        ({"date_format": "%d.%m.%Y"}, "date_format does nothing without dates"),
        ({"dates": ["d"], "date_format": "%d.%m.%Q"}, "%Q is not supported"),
        ({"dates": ["d"], "date_format": "%d.%m.%"}, "% is not supported"),
        ({"dates": ["d"], "date_format": "%d.%m"}, "needs a year: %Y"),
        ({"dates": ["d"], "date_format": "%m.%Y"}, "needs a day: %d"),
        ({"dates": ["d"], "date_format": "%d %Y"}, "needs a month: %m"),
        ({"dates": ["d"], "date_format": "%d %m %b %Y"}, "needs a month: %m"),
        ({"dates": ["d"], "date_format": "%d.%m.%Y %d"}, "has one part of a date twice"),
        ({"dates": ["d"], "date_format": "%d.%m.%Y %M"}, "has minutes without a clear hour"),
        ({"dates": ["d"], "date_format": "%d.%m.%Y %I"}, "has minutes without a clear hour"),
        ({"dates": ["d"], "date_format": "%d.%m.%Y %H:%M %p"}, "has minutes without a clear hour"),
        ({"dates": ["d"], "date_format": "%d.%m.%Y %H %S"}, "leaves out minutes or seconds"),
        ({"url": "parquet:rows.parquet", "decimal": ","}, "decimal is for csv files, remove it"),
        ({"url": "sqlite:///rows.db?table=x", "separator": ";"}, "separator is for csv files, remove it"),
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        DatasetSettings(**{"url": "rows.csv", "id": "id", "features": "rest", **options})
    assert said in str(caught.value)


@each_case(
    ("content", "options", "said"),
    [
        ("id;x\na;1\n", {}, "the fields are not separated by commas (set datasets.rows.separator = "),
        ("id,x\na,1\n", {"separator": ";"}, "the fields are not separated by semicolons"),
        ("id;x\na;1,5;2\n", {"separator": ";"}, "row 1 (line 2): 3 fields, but the header has 2 (a field that holds"),
        ("id;x\nä;1\n".encode("cp1252"), {"separator": ";"}, 'line 2 is not UTF-8 (save the file in UTF-8, or set'),
        (b"id,x\n\x81,1\n", {"encoding": "cp1252"}, "line 2 is not in the encoding cp1252"),
        ("id,x\na,1\n".encode("utf-16")[:-1], {"encoding": "utf-16"}, "line 2 is not in the encoding utf-16"),
        ("id,x\na,1\n".encode("utf-16"), {}, "the file is UTF-16, not utf-8"),
        ("id,x\na,1\n".encode("utf-16-le"), {"encoding": "utf-16"}, "does not begin with the byte order mark"),
        ("\ufeffid,x\na,1\n".encode(), {"encoding": "cp1252"}, "the file is UTF-8, not cp1252"),
        ('id;x\na;"1\n', {"separator": ";"}, "row 1 (line 2): a double quote is left open"),
        ('id,x\n"ä\n",1\nb,"1\n'.encode("utf-16"), {"encoding": "utf-16"}, "row 2 (line 4): a double quote is left"),
    ],
)  # fmt: skip
def test_a_file_of_another_dialect_is_refused(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], said: str
) -> None:
    refuse(tmp_path, content, said, features=["x"], **options)


def test_a_long_file_names_the_line_that_is_not_in_its_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 64)
    rows = "".join(f"ä{i},1\n" for i in range(200))
    for encoding, broken in (("utf-8", b"\xff"), ("cp1252", b"\x81"), ("utf-16", b"\x00\xd8")):
        content = f"id,x\n{rows}".encode(encoding) + broken + "\n".encode(encoding)[-2 if encoding == "utf-16" else 0 :]
        refuse(tmp_path, content, "line 202 is not", features=["x"], encoding=encoding)


def test_a_column_that_nobody_needs_may_have_any_form(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id;x;z;d\na;1,5;1.5;2003-01-01\n")
    options = {"url": "rows.csv", "id": "id", "features": "rest", "dates": ["d"], **GERMAN}
    source = open_source(DatasetSettings(**options), tmp_path, "rows", lambda name: name != "x")
    problems: dict[str, DataError] = {}
    ((_, arrow),) = source.canonical(problems)
    assert arrow.column("x").to_pylist() == [1.5]
    assert arrow.column("z").null_count == arrow.column("d").null_count == 1
    assert "not a number in the form 1.234,5" in str(problems["z"])
    assert "not a date in the form %d.%m.%Y" in str(problems["d"])


def test_a_plain_dialect_has_no_options() -> None:
    assert PLAIN.options() == {}
    assert CsvDialect(**GERMAN).options() == GERMAN
