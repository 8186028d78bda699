"""docs/scorer.py reads a csv file of any dialect as a dataset with that dialect does."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.columns import values
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.data.dialect import PLAIN, CsvDialect
from blindfit.parties.data.written_values import MONTHS, read_dates, write_plain_numbers
from tests.columns.scorers import SCORER, scorer
from tests.each_case import each_case

MODULE = scorer()
FORMS = [
    CsvDialect(decimal=decimal, thousands=thousands)  # type: ignore[arg-type]
    for decimal in (".", ",")
    for thousands in ("", ".", ",", " ", "'")
    if decimal != thousands
]
DATES = ["%d.%m.%Y", "%m/%d/%y", "%Y%m%d", "%d %b %Y", "%B %d. %Y %I:%M %p", "%d.%m.%Y %H:%M:%S.%f", "%d%m%Y%H%M"]


def form_of(dialect: CsvDialect) -> dict[str, str]:
    return {**MODULE.PLAIN, **dialect.options()}


def numbers(texts: list[str], dialect: CsvDialect) -> list[str | None]:
    """Return a dataset's number for each text; None for a refused text."""
    return [_or_none(lambda t=text: values.to_numbers(write_plain_numbers(pa.array([t]), dialect))) for text in texts]


def _or_none(convert: Any) -> str | None:
    try:
        return repr(float(convert()[0]))
    except DataError:
        return None


@given(
    st.lists(st.text("0123456789.,' \u00a0\u202f\u2019eE+-", min_size=1, max_size=12), min_size=1, max_size=20),
    st.sampled_from(FORMS),
)
def test_texts_are_the_same_numbers_or_refused_by_both(texts: list[str], dialect: CsvDialect) -> None:
    module, form = MODULE, form_of(dialect)
    found: list[str | None] = []
    for text in texts:
        try:
            number = module.number(module.plain_number(text, "x", form), "x")
            found.append("nan" if number is None else repr(number))
        except ValueError:
            found.append(None)
    assert found == numbers(texts, dialect)


@given(
    moment=st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31)),
    dialect=st.sampled_from([CsvDialect(date_format=form) for form in DATES]),
    spoilt=st.one_of(st.just(""), st.sampled_from("0123456789 ./:x")),
    place=st.integers(0, 30),
)
def test_texts_are_the_same_dates_or_refused_by_both(
    moment: dt.datetime, dialect: CsvDialect, spoilt: str, place: int
) -> None:
    text = moment.strftime(str(dialect.date_format))
    text = text[:place] + spoilt + text[place:]
    module = MODULE
    try:
        found: str | None = repr(module.days(module.plain_date(text, "x", form_of(dialect)), "x"))
    except ValueError:
        found = None
    assert found == _or_none(lambda: values.to_days(read_dates(pa.array([text]), dialect)))


def test_the_lists_are_those_of_the_reader() -> None:
    assert [month.lower() for month in MODULE.MONTHS] == list(MONTHS)
    assert asdict(PLAIN) == {**MODULE.PLAIN, "date_format": None}


COLUMNS = (
    TableColumn("age"),
    TableColumn("born", "date"),
    TableColumn("town", "category", ("Köln", "1.5"), ()),
)


def part_of(party: str, role: str) -> VerticalModelPart:
    record = TableRecord(COLUMNS)
    n = len(record.made)
    scale = Standardiser(record.made, tuple(range(n)), (0.25,) * n, (3000.0,) * n, record)
    weights = np.array([3.0**j / n for j in range(n)])
    return VerticalModelPart(party, role, "logistic", ("bank", "shop"), scale, weights)


PLAIN_ROWS = "id,age,born,town\n1.5,1234.5,2003-05-31,1.5\nb,-2,1969-12-31,Köln\n"
GERMAN_ROWS = "id;age;born;town\n1.5;1.234,5;31.05.2003;1.5\nb;-2;31.12.1969;Köln\n"
AMERICAN_ROWS = "id\tage\tborn\ttown\n1.5\t1,234.5\t5/31/2003\t1.5\nb\t-2\t12/31/1969\tKöln\n"
GERMAN = ["--separator", ";", "--decimal", ",", "--thousands", ".", "--encoding", "cp1252", "--date-format", "%d.%m.%Y"]


def score(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCORER), *words], cwd=directory, capture_output=True, text=True)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for party, role in (("bank", "active"), ("shop", "passive")):
        (tmp_path / f"{party}.json").write_text(json.dumps({**part_of(party, role).to_dict(), "session": "s"}))
    (tmp_path / "plain.csv").write_text(PLAIN_ROWS)
    (tmp_path / "german.csv").write_bytes(GERMAN_ROWS.encode("cp1252"))
    (tmp_path / "american.csv").write_bytes(AMERICAN_ROWS.encode("utf-16"))
    return tmp_path


def test_files_of_other_dialects_score_as_plain_ones(files: Path) -> None:
    plain = score(files, "bank.json", "plain.csv", "shop.json", "plain.csv")
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.count("\n") == 3
    for_both = score(files, "bank.json", "german.csv", "shop.json", "german.csv", *GERMAN)
    assert (for_both.stderr, for_both.stdout) == ("", plain.stdout)
    second = ("--separator", r"\t", "--decimal", ".", "--thousands", ",", "--encoding", "utf-16")
    words = (*GERMAN, *second, "--date-format", "%m/%d/%Y")
    for_each = score(files, "bank.json", "german.csv", "shop.json", "american.csv", *words)
    assert (for_each.stderr, for_each.stdout) == ("", plain.stdout)


@each_case(
    ("words", "said"),
    [
        (("--decimal", ",", "--decimal", ".", "--decimal", "."), "give it once, or once for each of the 2 files"),
        (("--separator", "ab"), "is not one character"),
        (("--separator", ";", "--thousands", "."), "--decimal and --thousands are the same character"),
        (("--separator", ";", "--encoding", "cp1252"), "column age: not a finite number"),
        ((*GERMAN, "--date-format", "%Q"), "--date-format: %Q is not supported"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(files: Path, words: tuple[str, ...], said: str) -> None:
    done = score(files, "bank.json", "german.csv", "shop.json", "german.csv", *words)
    assert done.returncode == 1
    assert said in done.stderr
