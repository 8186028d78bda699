"""Columns of every kind, with their values."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from blindfit.algorithms.columns.record import TableColumn
from tests.columns.scorers import (
    quoted,
)

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


BORN = [dt.date(1990, 5, 31), dt.date(1969, 12, 31), dt.date(2000, 2, 29)]


DAYS = [[7455.0], [-1.0], [11016.0]]


AT = [
    dt.datetime(2021, 7, 1, 12, 30, 15, 250_000),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1),
]


MOMENTS = [[(m - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) / 86_400e6] for m in AT]


UTC = [moment.replace(tzinfo=dt.UTC) for moment in AT]


@dataclass(frozen=True)
class Case:
    """
    Args:
        numbers: values of the model's columns, row by row, which every way of scoring must compute.
        tables: the same values in the types that a table may have.
        texts: the same values as csv files write them.
        refused: values and texts that must be refused by the column's name.
    """

    column: TableColumn
    numbers: list[list[float]]
    tables: dict[str, Any]
    texts: dict[str, list[str]] = field(default_factory=dict)
    refused: dict[str, Any] = field(default_factory=dict)
    refused_texts: list[str] = field(default_factory=list)
    fill: dict[str, float] = field(default_factory=dict)


def written(values: list[Any], form: str) -> list[str]:
    return [value.strftime(form) for value in values]


CASES = {
    "date": Case(
        TableColumn("born", "date"),
        DAYS,
        {
            **{f"datetime64[{u}]": np.array(BORN, f"datetime64[{u}]") for u in ("D", "h", "m", "s", "ms", "us", "ns")},
            **{f"pandas {u}": pd.Series(np.array(BORN, f"datetime64[{u}]")) for u in ("s", "ms", "us", "ns")},
            "pandas with a zone": pd.Series(pd.to_datetime(BORN)).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "pandas dates as objects": pd.Series(BORN, dtype=object),
            "pandas texts": pd.Series([str(day) for day in BORN]),
            "pandas timestamps as objects": pd.Series([pd.Timestamp(day) for day in BORN], dtype=object),
            "pandas category of dates": pd.Series(pd.to_datetime(BORN)).astype("category"),
            "pandas arrow dates": pd.Series(BORN, dtype=pd.ArrowDtype(pa.date32())),
            "list of dates": BORN,
            "list of texts": [str(day) for day in BORN],
            "list of mixed": [BORN[0], str(BORN[1]), dt.datetime(2000, 2, 29)],
            "date32": pa.array(BORN, pa.date32()),
            "date64": pa.array(BORN, pa.date64()),
            "timestamp[s]": pa.array(BORN).cast(pa.timestamp("s")),
            "timestamp[ns, zone]": pa.array(BORN).cast(pa.timestamp("ns", "Europe/Berlin")),
            "dictionary": pa.array(BORN).dictionary_encode(),
            "chunked": pa.chunked_array([pa.array(BORN[:1]), pa.array(BORN[1:])]),
            "run-end encoded": pc.run_end_encode(pa.array(BORN)),
            "large texts": pa.array([str(day) for day in BORN], pa.large_string()),
            "texts as a view": pa.array([str(day) for day in BORN], pa.string_view()),
        },
        {
            "plain": [str(day) for day in BORN],
            "quoted": [quoted(str(day)) for day in BORN],
            "spaces": [f" {day} " for day in BORN],
            "moments": written(BORN, "%Y-%m-%dT00:00:00"),
            "with a zone": ["1990-05-31T02:00:00+02:00", "1969-12-31 00:00Z", "2000-02-28T18:30-05:30"],
        },
        {
            "whole numbers": np.array([7455, -1, 11016]),
            "floats": np.array([7455.0, -1.0, 11016.0]),
            "nanoseconds": np.array([644_112_000_000_000_000, -86_400_000_000_000, 951_782_400_000_000_000]),
            "YYYYMMDD": [19900531, 19691231, 20000229],
            "durations": pd.Series(pd.to_timedelta([1, 2, 3], unit="D")),
            "booleans": [True, False, True],
            "other texts": ["31.5.1990", "1.1.1970", "x"],
            "beyond the years": np.array(["-0044-03-15", "10000-01-01", "2000-01-01"], "datetime64[D]"),
            "times": pa.array([dt.time(1), dt.time(2), dt.time(3)]),
            "periods": pd.Series(pd.period_range("2020-01", periods=3, freq="M")),
            "missing": pd.Series([pd.NaT, pd.Timestamp(2000, 1, 1), pd.Timestamp(2000, 1, 1)]),
        },
        [
            "19900531",
            "1990-5-31",
            "31.05.1990",
            "1990-02-30",
            "0000-00-00",
            "7455",
            "now",
            "",
            "NA",
            "2020-01-01T25:00",
        ],
    ),
    "moment": Case(
        TableColumn("seen", "date"),
        MOMENTS,
        {
            "datetime64[us]": np.array(AT, "datetime64[us]"),
            "datetime64[ns]": np.array(AT, "datetime64[ns]"),
            "pandas": pd.Series(AT),
            "pandas with a zone": pd.Series(UTC).dt.tz_convert("America/New_York"),
            "objects with a zone": pd.Series([moment.astimezone(BERLIN) for moment in UTC], dtype=object),
            "objects with and without": [UTC[0].astimezone(BERLIN), AT[1], UTC[2]],
            "texts": [moment.isoformat() for moment in AT],
            "texts with a zone": [moment.astimezone(BERLIN).isoformat() for moment in UTC],
            "timestamp[us, zone]": pa.array(UTC, pa.timestamp("us", "Europe/Berlin")),
        },
        {
            "no zone": [moment.isoformat(" ") for moment in AT],
            "Z": [moment.isoformat() + "Z" for moment in AT],
            "another zone": [moment.astimezone(BERLIN).isoformat() for moment in UTC],
            "finer than a microsecond": [moment.isoformat(timespec="microseconds") + "999" for moment in AT],
        },
    ),
    "boolean": Case(
        TableColumn("smokes", "boolean"),
        [[1.0], [0.0], [1.0]],
        {
            "numpy": np.array([True, False, True]),
            "objects": np.array([True, False, True], dtype=object),
            "pandas boolean": pd.Series([True, False, True], dtype="boolean"),
            "whole numbers": np.array([1, 0, 1], np.int8),
            "floats": [1.0, 0.0, 1.0],
            "texts": ["True", "FALSE", "true"],
            "arrow": pa.array([True, False, True]),
            "bool8": pa.array([1, 0, 1], pa.int8()).cast(pa.bool_()).dictionary_encode(),
        },
        {"pandas": ["True", "False", "True"], "arrow": ["true", "false", "true"], "numbers": ["1", "0", "1.0"]},
        {
            "others": [2, 0, 1],
            "words": ["yes", "no", "yes"],
            "missing": pd.Series([pd.NA, True, True], dtype="boolean"),
        },
        ["yes", "2", "t", "", "NA"],
    ),
    "number": Case(
        TableColumn("age"),
        [[30.0], [0.1], [-4e5]],
        {
            "float64": np.array([30.0, 0.1, -4e5]),
            "pandas Float64": pd.Series([30.0, 0.1, -4e5], dtype="Float64"),
            "decimals": [Decimal("30"), Decimal("0.1"), Decimal("-4E5")],
            "arrow decimals": pa.array([Decimal("30.0"), Decimal("0.1"), Decimal("-400000.0")]),
            "decimal256": pa.array([Decimal("30.0"), Decimal("0.1"), Decimal("-400000.0")], pa.decimal256(60, 1)),
            "texts": [" 30 ", "0.1", "-4e5"],
            "mixed": [30, "0.1", Decimal("-4E5")],
            "dictionary": pa.array([30.0, 0.1, -4e5]).dictionary_encode(),
            "pandas category": pd.Series([30.0, 0.1, -4e5]).astype("category"),
            "sparse": pd.Series(pd.arrays.SparseArray([30.0, 0.1, -4e5])),
        },
        {
            "plain": ["30", ".1", "-4e5"],
            "quoted": ['"30"', '"0.10"', '"-400000."'],
            "spaces": [" +30", "1e-1 ", "-4E+5"],
        },
        {
            "texts": ["old", "1", "1"],
            "a decimal comma": ["1,5", "1", "1"],
            "underscores": ["1_000", "1", "1"],
            "other digits": ["\u0661", "1", "1"],
            "dates": pd.Series(pd.to_datetime(BORN)),
            "python dates": BORN,
            "durations": pd.Series(pd.to_timedelta([1, 2, 3])),
            "complex": np.array([1 + 1j, 1, 1]),
            "bytes": [b"1", b"1", b"1"],
            "arrow bytes": pa.array([b"1", b"1", b"1"]),
            "lists": pa.array([[1], [2], [3]]),
            "missing": pd.Series([pd.NA, 1, 2], dtype="Int64"),
            "NaN": [float("nan"), 1.0, 2.0],
            "infinite": [float("inf"), 1.0, 2.0],
        },
        ["old", '"1,5"', "1_000", "\u0661", "0x10", "inf", "1e999", "", "NA", "nan", "2020-01-01"],
    ),
    "whole number": Case(
        TableColumn("visits"),
        [[3.0], [0.0], [9007199254740992.0]],
        {
            "int64": np.array([3, 0, 2**53]),
            "uint64": np.array([3, 0, 2**53], np.uint64),
            "pandas Int64": pd.Series([3, 0, 2**53], dtype="Int64"),
            "objects": pd.Series([3, 0, 2**53], dtype=object),
            "beyond 2^53": [3, 0, 2**53 + 1],
            "more than 64 bits": pa.array([Decimal(3), Decimal(0), Decimal(2**53)], pa.decimal128(38, 0)),
        },
        {"plain": ["3", "0", "9007199254740993"]},
    ),
    "category": Case(
        TableColumn("region", "category", ("north", "süd"), ("west",)),
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        {
            "list": ["north", "süd", "west"],
            "pandas str": pd.Series(["north", "süd", "west"]),
            "pandas category": pd.Series(["north", "süd", "west"], dtype="category"),
            "pandas category with others": pd.Series(
                pd.Categorical(["north", "süd", "west"], ["x", "west", "süd", "north"])
            ),
            "dictionary": pa.array(["north", "süd", "west"]).dictionary_encode(),
            "large dictionary": pa.array(["north", "süd", "west"], pa.large_string()).dictionary_encode(),
            "combining accent": ["north", "su\u0308d", "west"],
            "spaces and unseen characters": [" north\u200b", "süd ", "\ufeffwest"],
        },
        {"plain": ["north", "süd", "west"], "quoted": ['"north"', '" su\u0308d"', "west\u00ad"]},
        {
            "missing": ["north", None, "west"],
            "empty": ["north", "", "west"],
            "lists": pa.array([["north"], ["süd"], ["west"]]),
            "lists of several lengths": [["north"], ["süd", "west"], []],
            "bytes": pa.array([b"north", b"x", b"y"]),
            "days of NumPy": [np.datetime64("1990-05-31", "D")] * 3,
        },
        ["", "NA", " null ", '""'],
    ),
    "category with a reference level": Case(
        TableColumn("region", "category", ("north", "süd"), (), declared=True, base="NA"),
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        {"list": ["north", "süd", "NA"], "spaces": [" north", "süd ", "NA "]},
        {"plain": ["north", "süd", "NA"], "quoted": ['"north"', '"süd"', '"NA"']},
        {"missing": ["north", None, "NA"]},
        ["", "null"],
    ),
    "category of whole numbers": Case(
        TableColumn("code", "category", ("1", "2"), ("30",)),
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        {
            "texts": ["1", "2", "30"],
            "int64": np.array([1, 2, 30]),
            "floats, as where pandas has a missing value": np.array([1.0, 2.0, 30.0]),
            "pandas Int64": pd.Series([1, 2, 30], dtype="Int64"),
            "decimals": pa.array([Decimal("1.0"), Decimal("2.0"), Decimal("30.0")]),
            "pandas category": pd.Series([1, 2, 30]).astype("category"),
        },
        {"plain": ["1", "2", "30"]},
    ),
    "category of keys that are one float": Case(
        TableColumn("code", "category", ("9007199254740992", "1"), ("9007199254740994",)),
        [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]],
        {
            "texts": ["9007199254740992", "9007199254740993", "1"],
            "int64": np.array([2**53, 2**53 + 1, 1]),
            "objects": [2**53, 2**53 + 1, 1],
            "decimals": pa.array([Decimal(2**53), Decimal("9007199254740993.0"), Decimal(1)]),
            "fine decimals": pa.array([Decimal(2**53), Decimal("1.00000000000000000001"), Decimal(1)]),
        },
        {"plain": ["9007199254740992", "9007199254740993", "1"]},
    ),
    "category of booleans": Case(
        TableColumn("is", "category", ("False", "True"), ()),
        [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
        {
            "numpy": np.array([True, False, True]),
            "objects": [True, False, True],
            "pandas boolean": pd.Series([True, False, True], dtype="boolean"),
            "texts": ["True", "False", "True"],
        },
        {"plain": ["True", "False", "True"]},
    ),
    "category that has the word NA": Case(
        TableColumn("country", "category", ("DE", "NA"), (), declared=True),
        [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
        {"list": ["NA", "DE", "NA"]},
        {"plain": ["NA", "DE", " NA"], "quoted": ['"NA"', '"DE"', '"NA "']},
    ),
    "number with a mean": Case(
        TableColumn("age", missing="mean"),
        [[30.0], [7.5], [7.5]],
        {
            "NaN": [30.0, float("nan"), np.nan],
            "None": [30.0, None, None],
            "pandas Int64": pd.Series([30, pd.NA, pd.NA], dtype="Int64"),
            "masked": np.ma.array([30, 8, 9], mask=[False, True, True]),
            "masked objects": np.ma.array([30, 8, 9], mask=[False, True, True], dtype=object),
            "objects": pd.Series([30, pd.NA, None], dtype=object),
            "decimals": [Decimal(30), None, Decimal("NaN")],
            "texts": ["30", None, ""],
        },
        {"empty": ["30", "", " "], "words": ["30", "NA", " null "], "quoted": ["30", '""', '"nan"']},
        {"words in a typed table": ["30", "NA", "NA"]},
        ['"NA"'],
        {"age": 7.5},
    ),
    "date with a mark where it is missing": Case(
        TableColumn("born", "date", missing="indicator"),
        [[7455.0, 0.0], [100.5, 1.0], [100.5, 1.0]],
        {
            "NaT": pd.Series([pd.Timestamp(1990, 5, 31), pd.NaT, pd.NaT]),
            "masked": np.ma.array(np.array(["1990-05-31"] * 3, "datetime64[D]"), mask=[False, True, True]),
            "None": [BORN[0], None, None],
            "days of NumPy": [np.datetime64("1990-05-31", "D"), np.datetime64("NaT", "D"), None],
            "nanoseconds of NumPy": [np.datetime64("1990-05-31", "ns"), None, np.datetime64("NaT")],
            "datetime64": np.array(["1990-05-31", "NaT", "NaT"], "datetime64[ns]"),
            "texts": ["1990-05-31", None, ""],
        },
        {"plain": ["1990-05-31", "", "NA"]},
        fill={"born": 100.5},
    ),
    "category with a mark where it is missing": Case(
        TableColumn("region", "category", ("north", "south"), (), "indicator"),
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
        {"None": ["north", None, ""], "NaN": np.array(["north", np.nan, None], dtype=object)},
        {"plain": ["north", "", "NA"], "quoted": ['"north"', '""', "NULL"]},
    ),
    "category with a mean": Case(
        TableColumn("region", "category", ("north", "south"), (), "mean"),
        [[1.0, 0.0], [0.25, 0.5], [0.25, 0.5]],
        {"None": ["north", None, ""], "pandas category": pd.Series(["north", None, None], dtype="category")},
        {"plain": ["north", "", "NA"]},
        fill={"region=north": 0.25, "region=south": 0.5},
    ),
}
