"""A simulation refuses wrong requests before it writes a file: one line each, with what to do."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.coordinator.simulate.asked import Asked, read_parties
from blindfit.coordinator.simulate.cut import cut
from blindfit.coordinator.simulate.table import read_table
from tests.simulate.frames import people

Change = Callable[[pd.DataFrame], Any]
SAME: Change = lambda table: table  # noqa: E731

# Options, the change of the table, and a part of the error and of its hint.
REFUSED: list[tuple[dict[str, Any], Change, str, str]] = [
    ({"parties": 9}, SAME, "the table has 8 columns to learn from, fewer than 9 parties", "take --parties 8"),
    ({"parties": 1}, SAME, "at least 2 parties, not 1", "take --parties 2"),
    *(
        ({"parties": {name: ("age",), "bank": ("income",)}}, SAME, "not a name of a party", "at most 40 characters")
        for name in ("Shop", "", "1st", "shop-", "a--b", "my shop", "../shop", "s" * 41, "shöp", "shop\n")
    ),
    ({"parties": {"label-server": ("age",), "bank": ("income",)}}, SAME, "this name is taken", "take none of"),
    ({"parties": {"shop": (), "bank": ("income",)}}, SAME, "shop has no column", "name its columns"),
    ({"parties": {"shop": ("age",), "bank": ("age",)}}, SAME, "the column age is named twice", "name it once"),
    ({"parties": {"shop": ("churned",), "bank": ("age",)}}, SAME, "churned is the label", "leave churned out"),
    ({"parties": {"shop": ("client",), "bank": ("age",)}}, SAME, "client names the rows", "leave client out"),
    ({"parties": {"shop": ("planet",), "bank": ("age",)}}, SAME, "the column planet cannot be learnt", "correct it"),
    ({"parties": {"shop": ("agee",), "bank": ("income",)}}, SAME, "there is no column agee", "did you mean age"),
    ({"label": "churn"}, SAME, "there is no column churn", "did you mean churned"),
    ({"label": ""}, SAME, "no column to learn is named", "--label"),
    ({"row_id": "churned"}, SAME, "both name churned", "two columns"),
    ({"row_id": "clint"}, SAME, "there is no column clint", "did you mean client"),
    ({}, lambda table: table.assign(churned="yes"), "every row has the label 'yes'", "another column"),
    ({"label": "amount"}, lambda table: table.assign(amount=1.5), "every row has the same label", "another column"),
    ({"label": "region"}, SAME, "the label region has 3 values", "--positive"),
    ({"positive": "maybe"}, SAME, "no label is 'maybe'", "no and yes"),
    ({}, lambda table: table.assign(churned=np.where(table.index == 3, None, table.churned)), "no label", "remove"),
    ({"label": "amount"}, lambda t: t.assign(amount=np.where(t.index == 3, np.inf, t.amount)), "infinite", "correct"),
    ({"label": "amount"}, lambda t: t.assign(amount=np.where(t.index == 3, np.nan, t.amount)), "missing", "remove"),
    *(
        ({"label": label}, lambda t, n=name, v=value: t.assign(**{n: np.where(t.index == 3, v, t[n])}), said, "unit")
        for label, name, value, said in (
            ("churned", "age", 1e300, "row 4 has the number 1e+300, which is above 1e+100"),
            ("churned", "spent", -1e101, "row 4 has the number -1e+101"),
            ("amount", "amount", 1e300, "row 4 has the number 1e+300"),
        )
    ),
    ({"label": "amount"}, lambda table: table.assign(amount=table.amount * 1e-300), "less than 1e-100", "unit"),
    ({}, lambda table: table.assign(client=table.client.replace("c00005", "c00004")), "row 5 and row 6", "remove rows"),
    ({}, lambda table: table.iloc[:0], "the table has no rows", "at least one row"),
    ({}, lambda table: table.iloc[:1], "every row has the label", "another column"),
    ({}, lambda table: table.iloc[:100], "fewer than 100 are too few", "more rows"),
    ({"overlap": 0.05}, SAME, "fewer than 100 are too few", "raise --overlap"),
    ({"duplicates": 0.6}, SAME, "fewer than 100 are too few", "lower --duplicates"),
    (
        {},
        lambda table: table.assign(churned=np.where(table.index == 3, "yes", "no")),
        "have the label 0",
        "rarer label",
    ),
    ({}, lambda table: pd.concat([table, table[["age"]]], axis=1), "two columns are called age", "rename"),
    ({}, lambda table: table.assign(age=[1, "x"] * 350), "its values are of several types", "one type"),
    ({}, lambda table: table.set_axis(range(12), axis=1), "which is not a text", "name it by a text"),
    ({}, lambda table: list(table.age), "of the type list", "give a path"),
    ({"bounds": {"ag": (0.0, 9.0)}}, SAME, "there is no column ag", "did you mean age"),
    ({"bounds": {"region": (0.0, 9.0)}}, SAME, "this is not a column of numbers", "these are age, income"),
    ({"bounds": {"age": (9.0, 0.0)}}, SAME, "--bounds age: 9:0 is not LOW:HIGH", "such as"),
    ({"label_range": (1.0, 1.0)}, SAME, "--label-range: 1:1 is not LOW:HIGH", "such as"),
    ({"bounds": {"age": (0.0, 9.0)}, "systems": ("walr",)}, SAME, "--bounds does nothing", "leave --bounds out"),
    ({"label_range": (0.0, 1.0), "systems": ("walr",)}, SAME, "--label-range does nothing", "leave --label-range out"),
    ({"epsilons": (2.0,), "systems": ("falcon",)}, SAME, "--epsilon does nothing", "leave --epsilon out"),
    *(({"overlap": share}, SAME, "it is a share, above 0", "--overlap 0.8") for share in (0.0, -0.5, 1.5, np.nan)),
    *(({"duplicates": share}, SAME, "it is a share", "--duplicates 0.1") for share in (1.0, -0.1, np.nan)),
    *(({"missing": share}, SAME, "it is a share", "--missing 0.1") for share in (1.0, -0.1, np.inf)),
    *(({"test_fraction": share}, SAME, "it is a share", "--test-fraction 0.1") for share in (0.0, 1.0, np.nan)),
    *(({"epsilons": (epsilon,)}, SAME, "an epsilon lies between", "--epsilon 1") for epsilon in (0.0, 51.0, np.nan)),
    ({"epsilons": ()}, SAME, "no epsilon is named", "--epsilon"),
    ({"epsilons": (1.0, 1.0)}, SAME, "the epsilon 1 is named twice", "once"),
    ({"systems": ("walrus",)}, SAME, "'walrus' is not a system", "take some of taylor"),
    ({"systems": ()}, SAME, "no system is named", "take some of taylor"),
    ({"systems": ("walr", "walr")}, SAME, "the system walr is named twice", "once"),
    ({"seed": -1}, SAME, "a seed is not negative", "from 0 up"),
    ({"repeats": 0}, SAME, "at least one repeat", "1 or more"),
]


@pytest.mark.parametrize(("asked", "change", "problem", "hint"), REFUSED)
def test_a_bad_table_or_option_is_refused_in_one_line(
    tmp_path: Path, asked: dict[str, Any], change: Change, problem: str, hint: str
) -> None:
    wanted = Asked(**{"label": "churned", "row_id": "client", **asked})
    with pytest.raises(BlindfitError) as caught:
        cut(read_table(change(people()), wanted), wanted, tmp_path / "cut", 0)
    assert problem in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in f"{caught.value}"
    assert not list(tmp_path.iterdir())


def test_parties_are_named_with_their_columns() -> None:
    assert read_parties(["shop: age, income", "bank:rate,"]) == {"shop": ("age", "income"), "bank": ("rate",)}


@pytest.mark.parametrize(
    ("texts", "problem"), [(["shop"], "is not NAME: COLUMN"), (["shop: age", "shop: rate"], "is named twice")]
)
def test_a_party_without_columns_or_twice_is_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_parties(texts)


def test_a_folder_with_files_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut/mine.txt").write_text("mine")
    asked = Asked("churned", "client")
    with pytest.raises(ConfigError, match="already exists"):
        cut(read_table(people(), asked), asked, tmp_path / "cut", 0)
    assert [path.name for path in tmp_path.rglob("*")] == ["cut", "mine.txt"]


def test_a_folder_that_cannot_be_written_is_one_line_and_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    asked = Asked("churned", "client")
    with pytest.raises(ConfigError, match="cannot be made: "):
        cut(read_table(people(), asked), asked, tmp_path / "file/cut", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_fills_is_one_line_and_nothing_stays(tmp_path: Path) -> None:
    asked = Asked("churned", "client")
    full = OSError(errno.ENOSPC, "No space left on device")
    with mock.patch.object(pq, "write_table", side_effect=full), pytest.raises(ConfigError, match="No space left"):
        cut(read_table(people(), asked), asked, tmp_path / "new/cut", 0)
    assert not list(tmp_path.iterdir())
