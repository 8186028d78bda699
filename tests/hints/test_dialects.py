"""The message about a csv file in another dialect than its dataset describes leads to a file that is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.each_case import each_case
from tests.hints.following import refused, says
from tests.hints.test_data import Party

PLAIN = "id,age,y\na,1.5,0\nb,2,1\n"
GERMAN = "id;age;y\na;1,5;0\nb;2;1\n"
DATES = {"features": ["age", "born"], "dates": ["born"]}
BORN = "id,age,born,y\na,1,31.12.2003,0\nb,2,1.1.2004,1\n"


def write(directory: Path, content: str, encoding: str = "utf-8") -> None:
    (directory / "rows.csv").write_bytes(content.encode(encoding))


@each_case(
    ("text", "content", "encoding", "options"),
    [
        (says("set {}.separator = {}"), "id;age;y\na;1.5;0\nb;2;1\n", "utf-8", {}),
        (says("set {}.separator = {}"), "id\tage\ty\na\t1.5\t0\nb\t2\t1\n", "utf-8", {"separator": ";"}),
        (says(', or set {}.encoding = "cp1252"'), "id,age,y\nä,1.5,0\nb,2,1\n", "cp1252", {}),
        (says('set {}.encoding = "utf-16"'), PLAIN, "utf-16", {}),
    ],
)
def test_a_file_of_another_dialect(
    tmp_path: Path, text: str, content: str, encoding: str, options: dict[str, Any]
) -> None:
    party = Party.of(tmp_path, **options)
    write(tmp_path, content, encoding)
    with refused(text) as told:
        party.publish()
    party.follow(told)


@each_case(
    ("text", "content", "encoding", "named"),
    [
        (says("save the file in UTF-8, and remove {}.encoding"), b"id,age,y\n\x81,1,0\n", "cp1252", "x,1"),
        (says("save the file in UTF-8, and remove {}.encoding"), PLAIN.encode("utf-16-le"), "utf-16", "a,1.5"),
        (says("remove {}.encoding"), b"\xef\xbb\xbf" + PLAIN.encode(), "cp1252", ""),
    ],
)
def test_an_encoding_that_the_file_does_not_have(
    tmp_path: Path, text: str, content: bytes, encoding: str, named: str
) -> None:
    party = Party.of(tmp_path, encoding=encoding)
    (tmp_path / "rows.csv").write_bytes(content)
    with refused(text) as told:
        party.publish()
    assert "datasets.rows.encoding" in told.text
    if named:
        write(tmp_path, PLAIN)
    party.set(encoding=None)


def test_a_field_that_holds_the_separator(tmp_path: Path) -> None:
    party = Party.of(tmp_path, "id;age;y\na;b;1,5;0\nc;2;1\n", separator=";", decimal=",")
    with refused("a field that holds {} must stand in double quotes") as told:
        party.publish()
    assert told.parts == ("semicolons",)
    party.rewrite("a;b", '"a;b"')


def test_numbers_with_a_decimal_comma(tmp_path: Path) -> None:
    party = Party.of(tmp_path, GERMAN, separator=";")
    with refused("or set {}.decimal and {}.thousands as the file has them"):
        party.publish()
    party.set(decimal=",")


@each_case(
    ("text", "wrong", "mended"),
    [
        (says(r'take "," or ";" or "|" or "\t"'), {"separator": "a"}, {"separator": ","}),
        (
            says("name the one that stands before the fraction as decimal, and remove or correct thousands"),
            {"thousands": "."},
            {"thousands": None},
        ),
        (says("remove it: other sources have typed values"), {"url": "parquet:x.parquet", "decimal": ","}, {}),
    ],
)
def test_options_that_contradict_each_other(
    tmp_path: Path, text: str, wrong: dict[str, Any], mended: dict[str, Any]
) -> None:
    party = Party.of(tmp_path, PLAIN)
    pq.write_table(pa.table({"id": ["a", "b"], "age": [1.0, 2.0], "y": [0, 1]}), tmp_path / "x.parquet")
    with refused(text):
        party.set(**wrong)
    party.set(**(mended or {"decimal": None}))


@each_case(
    ("text", "wrong"),
    [
        (says("it may hold {} and %%"), "%d.%m.%G"),
        (says('write it such as "%d.%m.%Y"'), "%d.%m"),
        (says('write it such as "%d.%m.%Y"'), "%d.%m.%Y.%Y"),
    ],
)
def test_a_form_of_dates_that_is_none(tmp_path: Path, text: str, wrong: str) -> None:
    party = Party.of(tmp_path, BORN, **DATES)
    with refused(text):
        party.set(date_format=wrong)
    party.set(date_format="%d.%m.%Y")


@each_case(
    ("text", "wrong", "right"),
    [
        (says("write %H, or %I with %p, before minutes"), "%d.%m.%Y %I:%M", "%d.%m.%Y %H:%M"),
        (says("write %H:%M, %H:%M:%S or %H:%M:%S.%f"), "%d.%m.%Y %H:%S", "%d.%m.%Y %H:%M"),
    ],
)
def test_a_clock_that_is_none(tmp_path: Path, text: str, wrong: str, right: str) -> None:
    party = Party.of(tmp_path, BORN.replace("2003", "2003 9:30").replace("2004", "2004 19:30"), **DATES)
    with refused(text):
        party.set(date_format=wrong)
    party.set(date_format=right)


def test_a_date_that_is_not_in_the_form(tmp_path: Path) -> None:
    party = Party.of(tmp_path, BORN, **DATES)
    with refused("or set {}.date_format to the form that it has"):
        party.publish()
    party.set(date_format="%d.%m.%Y")
    with refused("correct it, or correct date_format"):
        party.rewrite("1.1.2004", "2004-01-01")
    party.rewrite("2004-01-01", "1.1.2004")


def test_a_form_of_dates_without_dates(tmp_path: Path) -> None:
    party = Party.of(tmp_path, BORN)
    with refused("date_format does nothing without dates, remove it or name the columns: dates = [...]"):
        party.set(date_format="%d.%m.%Y")
    party.set(dates=["born"])
