"""A model scores the same everywhere: every kind of column, in every type that a table may have it in.

The table of cases is the promise. Each case names the numbers of a column's values. A local scorer gets the values in
any of the types, and the scorer in plain Python gets any of the texts: both must compute exactly these numbers. What
cannot be converted is refused by name, never scored as something else.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from blindfit.algorithms.errors import DataError
from tests.columns.cases import BORN, CASES, DAYS
from tests.columns.scorers import (
    Refused,
    model_of,
    numbers_of_csv,
    numbers_of_table,
    score_csv,
    scores,
    write_csv,
)
from tests.each_case import each_case


@pytest.mark.parametrize("kind", CASES)
def test_every_type_of_a_table_is_the_same_numbers(kind: str) -> None:
    case, name = CASES[kind], CASES[kind].column.name
    part = model_of(case.column, case.fill)
    found = {how: numbers_of_table(part, {name: values}) for how, values in case.tables.items()}
    assert found == dict.fromkeys(case.tables, case.numbers)


@pytest.mark.parametrize("kind", CASES)
def test_data_frames_and_arrow_tables_are_the_same_numbers(kind: str) -> None:
    """The column stands among others, in any order, in each library that has the type."""
    case, name = CASES[kind], CASES[kind].column.name
    part = model_of(case.column, case.fill)
    for how, values in case.tables.items():
        is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
        table = (pa.table if is_arrow else pd.DataFrame)({"note": ["x", "y", "z"], name: values})
        assert (how, numbers_of_table(part, table)) == (how, case.numbers)


@pytest.mark.parametrize("kind", CASES)
def test_every_text_of_a_csv_file_is_the_same_numbers(tmp_path: Path, kind: str) -> None:
    """The scorer in plain Python agrees to the last bit, and so do the scores."""
    case, name = CASES[kind], CASES[kind].column.name
    part = model_of(case.column, case.fill)
    for how, texts in case.texts.items():
        path = write_csv(tmp_path / "rows.csv", name, texts)
        assert (how, numbers_of_csv(part, path)) == (how, case.numbers)
        assert (how, score_csv(part, path)) == (how, part.score_parts(np.array(case.numbers)).tolist())


@pytest.mark.parametrize("kind", [kind for kind, case in CASES.items() if case.refused])
def test_what_a_column_cannot_be_is_refused_by_its_name(kind: str) -> None:
    case, name = CASES[kind], CASES[kind].column.name
    part = model_of(case.column, case.fill)
    found = {how: numbers_of_table(part, {name: values}) for how, values in case.refused.items()}
    assert found == dict.fromkeys(case.refused, Refused())


@pytest.mark.parametrize("kind", [kind for kind, case in CASES.items() if case.refused_texts])
def test_a_text_that_a_column_cannot_be_is_refused_by_its_name(tmp_path: Path, kind: str) -> None:
    case, name = CASES[kind], CASES[kind].column.name
    part = model_of(case.column, case.fill)
    for text in case.refused_texts:
        assert (text, score_csv(part, write_csv(tmp_path / "rows.csv", name, [text]))) == (text, Refused())


@each_case(
    "rows",
    [
        np.array([["2020-01-01"]], "datetime64[ns]"),
        [[np.datetime64("2020-01-01")]],
        np.array([[np.datetime64("2020-01-01")]], dtype=object),
        [[dt.date(2020, 1, 1)]],
        [["1.5"]],
        np.array([["1.5"]]),
        [[1 + 0j]],
        pd.DataFrame({0: pd.to_datetime(["2020-01-01"])}),
        pd.DataFrame({0: pd.to_timedelta([1])}),
        pd.DataFrame({0: ["1.5"]}),
    ],
)
@pytest.mark.parametrize("kind", ["date", "number"])
def test_an_array_holds_numbers_and_nothing_that_numpy_would_make_one_of(kind: str, rows: Any) -> None:
    """NumPy silently turns dates into nanoseconds, and texts into numbers."""
    with pytest.raises(DataError, match="rows without names must hold numbers only"):
        model_of(CASES[kind].column).score_parts(rows)


def test_an_array_has_the_models_own_numbers() -> None:
    part = model_of(CASES["date"].column)
    assert part.score_parts(np.array(DAYS)).tolist() == part.score_parts({"born": BORN}).tolist()
    assert part.score_parts([[Decimal("7455")], [True]]).tolist() == scores(part, [[7455.0], [1.0]])


def test_a_masked_number_of_an_array_is_no_value() -> None:
    part = model_of(CASES["number"].column)
    with pytest.raises(DataError, match="row 1, column age: nan is not a finite number"):
        part.score_parts(np.ma.array([[30.0], [40.0]], mask=[[False], [True]]))
