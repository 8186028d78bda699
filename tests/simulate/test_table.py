"""Every kind of table is read as `init` reads it: types, gaps, ids and labels are the same from each source."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from blindfit.coordinator.simulate.asked import Asked
from blindfit.coordinator.simulate.table import deal_columns, find_copies, judge_table, read_table
from tests.simulate.frames import people

ASKED = Asked("churned", "client")
NUMBERS = ("age", "income", "spent", "visits", "amount")


def _csv(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_csv(folder / "people.csv", index=False)
    return str(folder / "people.csv")


def _german_csv(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_csv(folder / "people.csv", index=False, sep=";", decimal=",", date_format="%d.%m.%Y", encoding="cp1252")
    return str(folder / "people.csv")


def _parquet(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_parquet(folder / "people.parquet")
    return folder / "people.parquet"


def _excel(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_excel(folder / "people.xlsx", index=False)
    return str(folder / "people.xlsx")


def _sqlite(frame: pd.DataFrame, folder: Path) -> str:
    rows: Any = frame.assign(since=frame.since.dt.strftime("%Y-%m-%d"))
    with sqlite3.connect(folder / "people.db") as connection:
        rows.to_sql("people", connection, index=False)
    return f"sqlite:///{folder}/people.db?table=people"


SOURCES: list[Callable[[pd.DataFrame, Path], Any]] = [
    _csv,
    _german_csv,
    _parquet,
    _excel,
    _sqlite,
    lambda frame, _: frame,
    lambda frame, _: frame.set_index("client"),
    lambda frame, _: frame.astype({"region": "category", "churned": "category", "income": "Float64"}),
    lambda frame, _: {name: frame[name].tolist() for name in frame},
    lambda frame, _: pa.Table.from_pandas(frame, preserve_index=False),
    lambda frame, _: pa.RecordBatch.from_pandas(frame, preserve_index=False),
]


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_gives_the_same_rows(tmp_path: Path, source: Callable[[pd.DataFrame, Path], Any]) -> None:
    frame = people()
    whole = judge_table(read_table(source(frame, tmp_path), ASKED), ASKED)
    assert whole.ids.to_pylist() == frame.client.tolist()
    assert np.array_equal(whole.labels, frame.churned == "yes")
    assert (whole.positive, whole.label_is_number) == ("yes", False)
    assert set(whole.features.column_names) == {*NUMBERS, "region", "since", "smokes"}
    assert (whole.categories, whole.dates, whole.gaps) == (("region",), ("since",), ("age",))
    assert whole.left_out["note"].startswith("it has 700 texts")
    assert 'same value, "earth"' in whole.left_out["planet"]
    for name in NUMBERS:
        got = whole.features.column(name).to_numpy()
        assert np.allclose(got, frame[name].to_numpy(), rtol=1e-14, equal_nan=True), name  # Excel keeps 16 digits
    assert whole.features.column("region").to_pylist() == frame.region.tolist()
    assert whole.features.column("since").to_pandas().tolist() == frame.since.tolist()
    assert np.array_equal(whole.features.column("smokes").to_numpy().astype(bool), frame.smokes)


@pytest.mark.parametrize("source", [_csv, _german_csv])
@pytest.mark.parametrize("form", ["{:05}", "{},5", "1.{:03}", "2024-{:05}"])
def test_ids_stay_as_they_are_written(tmp_path: Path, source: Callable[[pd.DataFrame, Path], str], form: str) -> None:
    ids = [form.format(i) for i in range(700)]
    whole = judge_table(read_table(source(people().assign(client=ids), tmp_path), ASKED), ASKED)
    assert whole.ids.to_pylist() == ids
    assert np.array_equal(whole.features.column("spent").to_numpy(), people().spent)


def test_rows_without_ids_are_numbered_next_to_a_column_called_id() -> None:
    asked = Asked("churned")
    whole = judge_table(read_table(people().rename(columns={"spent": "id"}), asked), asked)
    assert whole.id_name == "row"
    assert whole.ids[:2].to_pylist() == ["r1", "r2"]
    assert "id" in whole.features.column_names


@pytest.mark.parametrize(
    ("labels", "asked", "truth", "is_number"),
    [
        (lambda score: score > 0, {}, lambda score: score > 0, False),
        (lambda score: (score > 0).astype(int), {}, lambda score: score > 0, False),
        (lambda score: (score > 0).astype(float), {}, lambda score: score > 0, False),
        (lambda score: np.where(score > 0, "Yes", "No"), {}, lambda score: score > 0, False),
        (lambda score: np.where(score > 0, "b", "a"), {"positive": "a"}, lambda score: score <= 0, False),
        (lambda score: np.where(score > 9, 3, np.where(score > 0, 2, 1)), {"positive": "2"}, None, False),
        (lambda score: np.maximum(score, 0).round(), {}, lambda score: np.maximum(score, 0).round(), True),
        (lambda score: np.maximum(score, 0).astype(int), {}, lambda score: np.maximum(score, 0).astype(int), True),
        (lambda score: score, {}, lambda score: score, True),
    ],
)
@pytest.mark.parametrize("source", [_csv, _parquet, lambda frame, _: frame])
def test_a_label_of_each_kind(
    tmp_path: Path, source: Any, labels: Any, asked: dict[str, Any], truth: Any, is_number: bool
) -> None:
    frame, wanted = people(), Asked("churned", "client", **asked)
    score = frame.amount.to_numpy()
    truth = truth or (lambda score: (score > 0) & (score <= 9))
    whole = judge_table(read_table(source(frame.assign(churned=labels(score)), tmp_path), wanted), wanted)
    assert np.array_equal(whole.labels, truth(score))
    assert whole.label_is_number == is_number


def test_a_column_that_cannot_be_read_is_left_out_with_the_reason(tmp_path: Path) -> None:
    frame = people()
    frame.loc[3, "spent"] = np.inf
    frame["visits"] = [[number] for number in frame.visits]
    whole = judge_table(read_table(frame, ASKED), ASKED)
    assert whole.left_out["spent"] == "row 4 is infinite"
    assert "of the type list" in whole.left_out["visits"]
    text = people().astype({"income": str})
    text.loc[5, "income"] = "many"
    whole = judge_table(read_table(_csv(text, tmp_path), ASKED), ASKED)
    assert 'row 6 (line 7) has "many"' in whole.left_out["income"]
    assert "to keep it" not in whole.left_out["income"]


def test_columns_are_dealt_by_the_seed_and_all_of_them() -> None:
    whole = judge_table(read_table(people(), ASKED), ASKED)
    dealt = deal_columns(whole, Asked("churned", "client", parties=3, seed=1))
    assert list(dealt) == ["party-1", "party-2", "party-3"]
    assert sorted(name for columns in dealt.values() for name in columns) == sorted(whole.features.column_names)
    assert max(map(len, dealt.values())) - min(map(len, dealt.values())) <= 1
    assert dealt == deal_columns(whole, Asked("churned", "client", parties=3, seed=1))
    assert any(dealt != deal_columns(whole, Asked("churned", "client", parties=3, seed=seed)) for seed in range(2, 9))
    named = {"shop": ("age",), "bank": ("region", "since")}
    assert deal_columns(whole, Asked("churned", "client", parties=named)) == named


@pytest.mark.parametrize(
    "names", [("id",), ("id", "row", "row_id", "row_1"), ("id", "row", "row_id", "row_1", "row_2")]
)
def test_numbered_rows_have_a_name_that_no_column_has(names: tuple[str, ...]) -> None:
    frame = people().rename(columns=dict(zip(("age", "income", "spent", "visits", "region"), names, strict=False)))
    whole = judge_table(read_table(frame, asked := Asked("churned")), asked)
    assert whole.id_name not in frame.columns
    assert set(names) <= set(whole.features.column_names)


@pytest.mark.parametrize("label", ["churned", "amount"])
def test_a_column_that_is_the_label_in_another_form_is_found(label: str) -> None:
    frame = people()
    is_yes, amount = frame.churned == "yes", frame.amount
    if label == "churned":
        copies = {
            "as number": is_yes * 1.0,
            "other unit": 7 - 3.0 * is_yes,
            "as text": np.where(is_yes, "gone", "here"),
            "as boolean": is_yes,
            "with gaps": np.where(frame.index % 9 == 0, np.nan, is_yes),
        }
        others = {"nearly": np.where(frame.index == 5, 1.0 - is_yes, is_yes), "score": amount}
    else:
        copies = {"in cents": amount * 100, "negative": -amount, "with gaps": amount.where(frame.index % 9 > 0)}
        others = {"rounded": amount.round(0), "nearly": amount + frame.spent / 10}
    table = frame.drop(columns="amount" if label == "churned" else "churned").assign(**copies, **others)
    whole = judge_table(read_table(table, asked := Asked(label, "client")), asked)
    assert set(find_copies(whole.features, whole.labels)) == set(copies)
