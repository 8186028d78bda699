"""The message about an Excel workbook, or about the URL that names it, leads to a sheet that is read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from blindfit.parties.data.sinks import open_sink
from tests.hints.following import refused
from tests.hints.test_data import Party, as_sqlite


def test_a_kind_of_url_that_is_not_known(tmp_path: Path) -> None:
    as_sqlite(tmp_path)
    as_excel(tmp_path)
    party = Party.of(tmp_path, **{"except": ["note"]})
    with refused("excel:PATH?sheet=NAME, {}"):
        party.set(url="rows.txt")
    party.set(url="csv:rows.csv")
    party.set(url="sqlite:///rows.db?table=people", **{"except": None})
    party.set(url="excel:rows.xlsx?sheet=People")


def as_excel(directory: Path) -> None:
    rows = {"id": ["a", "b"], "age": [1, 2], "y": [0, 1]}
    with pd.ExcelWriter(directory / "rows.xlsx") as book:
        pd.DataFrame(rows).to_excel(book, sheet_name="People", index=False)
        pd.DataFrame(rows).to_excel(book, sheet_name="Notes", index=False)


def test_a_sheet_that_is_not_named(tmp_path: Path) -> None:
    as_excel(tmp_path)
    party = Party.of(tmp_path, url="rows.xlsx")
    with refused("end `{}` with ?sheet=NAME: {}") as told:
        party.publish()
    assert told.parts == ("datasets.rows.url", "the sheets are People, Notes")
    party.set(url="rows.xlsx?sheet=People")


def test_the_package_of_excel_files_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_excel(tmp_path)
    party = Party.of(tmp_path, url="rows.xlsx?sheet=People")
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "openpyxl", None)
        with refused("run `pip install 'openpyxl>=3.1.2'`"):
            party.publish()
    party.publish()


def test_scores_in_excel(tmp_path: Path) -> None:
    with refused("csv:PATH, parquet:PATH, sqlite:///PATH?table=NAME or postgresql://USER@HOST/DATABASE?table=NAME"):
        open_sink("scores.xlsx", "refuse", tmp_path)
    for url in ("csv:scores.xlsx", "parquet:scores", "sqlite:///scores.db?table=scores"):
        open_sink(url, "refuse", tmp_path)
