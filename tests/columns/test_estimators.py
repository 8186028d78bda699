"""Estimators take the columns of a table as models do: dates, booleans, nullable numbers, or a refusal by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from blindfit import DPLogisticRegression, WALRClassifier, load_pretrained, pretrain
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from tests.each_case import each_case

ROWS = 200
DRAW = np.random.default_rng(5)
DAYS = DRAW.integers(0, 20_000, ROWS)
SMOKES = DRAW.random(ROWS) < 0.5
VISITS = DRAW.integers(0, 9, ROWS)
NUMBERS = np.column_stack([DAYS, SMOKES, VISITS]).astype(float)
LABELS = (DAYS / 20_000 + SMOKES + DRAW.normal(size=ROWS) > 1).astype(int)
BORN = np.datetime64("1970-01-01") + DAYS.astype("timedelta64[D]")

FITS: dict[str, Callable[[Any], Any]] = {
    "walr": lambda rows: WALRClassifier(8.0, release="columns").fit(rows, LABELS),
    "dp-lr": lambda rows: DPLogisticRegression(8.0, feature_bounds=([0, 0, 0], [20_000, 1, 9]), release="columns").fit(
        rows, LABELS
    ),
    "pretrain": lambda rows: pretrain(rows, LABELS),
}
TABLES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame({"born": BORN, "smokes": SMOKES, "visits": VISITS}),
    "pandas nullable": lambda: pd.DataFrame(
        {
            "born": pd.Series(BORN).dt.tz_localize("UTC"),
            "smokes": pd.Series(SMOKES, dtype="boolean"),
            "visits": pd.Series(VISITS, dtype="Int64"),
        }
    ),
    "objects": lambda: pd.DataFrame(
        {
            "born": pd.Series([day.item() for day in BORN], dtype=object),
            "smokes": pd.Series(SMOKES.tolist(), dtype=object),
            "visits": pd.Series([Decimal(int(n)) for n in VISITS], dtype=object),
        }
    ),
    "arrow": lambda: pa.table({"born": pa.array(BORN), "smokes": SMOKES, "visits": VISITS}),
}


def scores(model: Any, rows: Any) -> list[float]:
    return model.decision_function(rows).tolist()


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_to_a_table_is_a_fit_to_its_numbers(fit: str) -> None:
    reference = scores(FITS[fit](pd.DataFrame(NUMBERS, columns=["born", "smokes", "visits"])), pd.DataFrame(
        NUMBERS, columns=["born", "smokes", "visits"]
    ))  # fmt: skip
    assert len(set(reference)) > ROWS / 2
    for kind, table in TABLES.items():
        model = FITS[fit](table())
        found = {other: scores(model, TABLES[other]()) for other in TABLES}
        assert (kind, found) == (kind, dict.fromkeys(TABLES, reference))


@pytest.mark.parametrize("fit", FITS)
def test_what_is_predicted_is_converted_as_in_the_fit(fit: str) -> None:
    model = FITS[fit](TABLES["pandas"]())
    frame = TABLES["pandas"]()
    expected = scores(model, frame)
    assert scores(model, frame.assign(born=frame["born"].astype(str))) == expected
    assert scores(model, frame.assign(smokes=frame["smokes"].astype(int))) == expected
    for wrong in (DAYS, DAYS.astype(float), ["x"] * ROWS, pd.to_timedelta(DAYS, unit="D")):
        with pytest.raises(DataError, match="column born: "):
            model.decision_function(frame.assign(born=wrong))
    for wrong in (VISITS + 2, BORN):
        with pytest.raises(DataError, match="column smokes: "):
            model.decision_function(frame.assign(smokes=wrong))


@pytest.mark.parametrize("fit", FITS)
@each_case(
    ("column", "said"),
    [
        (pd.Series(["a", "b"] * (ROWS // 2)), "it holds texts"),
        (pd.Series(["a", "b"] * (ROWS // 2), dtype="category"), "it holds texts"),
        (pd.Series(["a", 1] * (ROWS // 2), dtype=object), "it holds texts"),
        (pd.Series(pd.to_timedelta(VISITS, unit="D")), "its values are of the type timedelta64"),
        (pd.Series([1, pd.NA] * (ROWS // 2), dtype="Int64"), "the value is missing"),
        (pd.Series([pd.NaT, dt.datetime(2020, 1, 1)] * (ROWS // 2)), "the value is missing"),
        (pd.Series([True, None] * (ROWS // 2), dtype="boolean"), "the value is missing"),
        (pd.Series(np.full(ROWS, 1j)), "its values are of the type complex128"),
    ],
)
def test_what_a_fit_cannot_learn_from_is_refused_by_name(fit: str, column: pd.Series, said: str) -> None:
    with pytest.raises(DataError, match=f"column extra: {said}"):
        FITS[fit](TABLES["pandas"]().assign(extra=column)[["born", "smokes", "extra"]])


@each_case(
    "rows", [BORN[:, None], BORN[:, None].astype("datetime64[ns]"), BORN[:, None].astype(object), [[d] for d in BORN]]
)
@pytest.mark.parametrize("fit", ["walr", "dp-lr"])
def test_dates_of_an_array_are_refused(fit: str, rows: Any) -> None:
    """NumPy would turn them into days or nanoseconds."""
    with pytest.raises((DataError, TypeError), match=r"rows without names must hold numbers only|float\(\) argument"):
        FITS[fit](rows)


@pytest.mark.parametrize("fit", ["walr", "dp-lr"])
def test_masked_numbers_of_an_array_are_refused(fit: str) -> None:
    """NumPy would drop the mask, and the fit would learn from the values under it."""
    with pytest.raises(ValueError, match="contains NaN"):
        FITS[fit](np.ma.array(NUMBERS, mask=NUMBERS > 10_000))


def test_a_public_models_file_has_the_record(tmp_path: Path) -> None:
    model = pretrain(TABLES["pandas"](), LABELS)
    (tmp_path / "pretrained.json").write_text(model.to_json())
    read = load_pretrained(tmp_path / "pretrained.json")
    assert read == model
    assert [column.kind for column in read.standardiser.record.columns] == ["date", "boolean", "number"]
    assert scores(read, TABLES["arrow"]()) == scores(model, TABLES["pandas"]())


def test_a_start_of_another_kind_is_refused() -> None:
    """Years under the name of a date would silently be a distant start."""
    years = pretrain(pd.DataFrame({"born": 1970 + DAYS // 365, "smokes": SMOKES, "visits": VISITS}), LABELS)
    with pytest.raises(DataError, match="the pre-trained model reads born as a number, and the data have a date"):
        WALRClassifier(8.0, init=years).fit(TABLES["pandas"](), LABELS)
    assert isinstance(years, Pretrained)
