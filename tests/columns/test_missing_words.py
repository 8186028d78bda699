"""Words for "no value" are the same for every reader and every use of a column."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from blindfit.algorithms.alignment.clk import Encoding, Field, encode
from blindfit.algorithms.columns.record import MISSING_WORDS, TableColumn, TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.data import csv_file
from blindfit.parties.data.opening import open_for_model, open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source
from tests.columns.cases import CASES
from tests.columns.new_rows import NewRows
from tests.columns.scorers import model_of
from tests.data.tables import write_sqlite
from tests.each_case import each_case

WORDS = [*MISSING_WORDS, "", "   "]


def opened(directory: Path, text: str, **settings: Any) -> Source:
    (directory / "rows.csv").write_text(text, "utf-8")
    return open_source(DatasetSettings(**{"url": "rows.csv", "id": "id", **settings}), directory, "rows")


def read(directory: Path, text: str, **settings: Any) -> Any:
    """Return the only batch, and the snapshot's columns by name."""
    ((batch, arrow),) = opened(directory, text, **settings).canonical()
    return batch, arrow


def levels(directory: Path, *fields: str, **settings: Any) -> list[str | None]:
    """Return the levels of a column of these fields, as a csv file has them."""
    text = "id,x\n" + "".join(f"r{row},{field}\n" for row, field in enumerate(fields))
    chosen = {"features": ["x"], "categories": ["x"], "missing": "indicator", **settings}
    found: list[str | None] = read(directory, text, **chosen)[1].column("x").to_pylist()
    return found


# --- words in csv files -----------------------------------------------------------------------------


@each_case("word", WORDS)
def test_an_unquoted_word_is_no_value_and_a_quoted_one_is_a_text(tmp_path: Path, word: str) -> None:
    found = levels(tmp_path, word, f" {word}  ", f'"{word}"', "x")
    assert found == [None, None, word.strip() or None, "x"]


@each_case(
    ("use", "said"),
    [
        ({"id": "x"}, "row 2 .*column x: the value is missing"),
        ({"person": "x"}, "row 2 .*column x: the value is missing"),
        ({"label": "x", "positive": "yes"}, "row 2 .*column x: the label is missing"),
        ({"label": "x"}, "row 2 .*column x: the value is missing"),
        ({"features": ["x"]}, "row 2 .*column x: the value is missing"),
        ({"features": ["x"], "dates": ["x"]}, "row 2 .*column x: the value is missing"),
        ({"features": ["x"], "categories": ["x"]}, "row 2 .*column x: the value is missing"),
    ],
)
@pytest.mark.parametrize("word", ["NA", " null ", ""])
def test_it_is_so_in_every_use_of_a_column(tmp_path: Path, use: dict[str, Any], said: str, word: str) -> None:
    with pytest.raises(DataError, match=said):
        read(tmp_path, f"id,x\na,{'2020-01-01' if 'dates' in use else '1'}\nb,{word}\n", **use)


def test_a_quoted_id_and_a_quoted_name_may_be_called_so(tmp_path: Path) -> None:
    """Namibia is a country, and a person may be called Null."""
    batch, arrow = read(
        tmp_path,
        'id,who,y,name\n"NA","null",1,"Null"\n"N/A","None",0,NA\n',
        person="who",
        label="y",
        quasi_identifiers={"name": "name"},
    )
    assert batch.ids.to_pylist() == ["NA", "N/A"]
    assert batch.persons.to_pylist() == ["null", "None"]
    assert arrow.column("name").to_pylist() == ["Null", ""]


def test_a_declared_level_and_a_declared_positive_text_are_never_missing(tmp_path: Path) -> None:
    """The word keeps its meaning in their own columns; in the other columns of the file it stands for a
    missing value.
    """
    text = "id,y,x,z\na,NA,NA,NA\nb,no, NA ,2\nc,no,DE,3\n"
    settings = {"label": "y", "positive": "NA", "features": ["x", "z"], "categories": {"x": ["NA", "DE"]}}
    source = opened(tmp_path, text, missing="indicator", **settings)
    ((batch, arrow),) = source.canonical()
    assert batch.labels.tolist() == [1, 0, 0]
    assert arrow.column("x").to_pylist() == ["NA", "NA", "DE"]
    assert np.isnan(batch.features[:, source.feature_names.index("z")]).tolist() == [True, False, False]
    assert [row.rows.tolist() for row in opened(tmp_path, text, missing="drop", **settings).batches()] == [[2, 3]]


def test_the_dataset_can_change_the_words(tmp_path: Path) -> None:
    assert levels(tmp_path, "-", "NA", "x", missing_words=["-", "unknown "]) == [None, "NA", "x"]
    assert levels(tmp_path, "unknown", '"-"', missing_words=["-", "unknown "]) == [None, "-"]
    assert levels(tmp_path, "NA", "", missing_words=[]) == ["NA", None]


@each_case("url", ["rows.parquet", "sqlite:///rows.db?table=rows", "postgresql://u@h/db?table=t"])
def test_words_are_an_option_of_csv_files(url: str) -> None:
    with pytest.raises(ValidationError, match="missing_words is for csv files"):
        DatasetSettings(url=url, id="id", missing_words=["-"])


def test_words_with_spaces_are_found_in_any_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any block may have them first: no row comes twice or is lost."""
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 256)
    draw = np.random.default_rng(7)
    fields = ["x", "NA", '"NA"', " NA", "NA  ", '" NA"', "null\t", "\u00a0null", '"null "', ""]
    chosen = [fields[i] for i in draw.integers(0, len(fields), 500)]
    expected = {'"NA"': "NA", '" NA"': "NA", '"null "': "null", "x": "x"}
    assert levels(tmp_path, *chosen) == [expected.get(field) for field in chosen]


def test_columns_of_other_words_are_read_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 256)
    rows = [(f"r{i}", ("NA", "DE", " NA")[i % 3], ("NA", "7")[i % 2]) for i in range(300)]
    text = "id,x,z\n" + "".join(f"{','.join(row)}\n" for row in rows)
    settings = {"features": ["x", "z"], "categories": {"x": ["NA", "DE"]}, "missing": "mean"}
    batches = list(opened(tmp_path, text, **settings).batches())
    features = np.concatenate([batch.features for batch in batches])
    assert features[:, 0].tolist() == [float(country != "DE") for _, country, _ in rows]
    assert features[:, 2].tolist() == [7.0] * 300


# --- typed sources ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
def test_in_a_typed_source_only_nulls_are_missing(tmp_path: Path, kind: str) -> None:
    texts = [*MISSING_WORDS, None, "", "x"]
    ids = [f"r{i}" for i in range(len(texts))]
    if kind == "parquet":
        pq.write_table(pa.table({"id": ids, "x": texts}), tmp_path / "rows.parquet")
        url = "rows.parquet"
    else:
        write_sqlite(tmp_path / "rows.db", "id TEXT, x TEXT", list(zip(ids, texts, strict=True)))
        url = "sqlite:///rows.db?table=rows"
    settings = DatasetSettings(url=url, id="id", features=["x"], categories=["x"], missing="indicator")
    ((_, arrow),) = open_source(settings, tmp_path, "rows").canonical()
    assert arrow.column("x").to_pylist() == [*MISSING_WORDS, None, None, "x"]


def test_a_word_among_the_numbers_of_a_typed_source_is_refused(tmp_path: Path) -> None:
    write_sqlite(tmp_path / "rows.db", "id TEXT, x", [("a", 1), ("b", "NA")])
    settings = DatasetSettings(url="sqlite:///rows.db?table=rows", id="id", features=["x"], missing="mean")
    with pytest.raises(DataError, match="row 2, column x: not a number"):
        list(open_source(settings, tmp_path, "rows").canonical())


# --- linkage ----------------------------------------------------------------------------------------


def test_what_is_missing_or_impossible_is_like_nothing_in_a_linkage(tmp_path: Path) -> None:
    """Two records that share only such values are not alike, and a record with only such values has no filter."""
    text = "id,name,born\n" + "".join(
        f"r{i},{name},{born}\n"
        for i, (name, born) in enumerate(
            [
                ("NA", "0000-00-00"),
                ("", "1900-02-30"),
                (" null ", ""),
                ('""', "NA"),
                ("-", "unknown"),
                ("Ann", "1987-03-14"),
            ]
        )
    )
    source = opened(tmp_path, text, quasi_identifiers={"name": "name", "born": "born"})
    records = source.records(["name", "born"])
    filters = encode(records, Encoding((Field("name"), Field("born", "date"))), b"s" * 32)
    assert filters[:5].any(axis=1).tolist() == [False] * 5
    assert filters[5].any()


# --- what a snapshot was made by --------------------------------------------------------------------


def test_a_dataset_that_was_published_before_there_were_words_is_not_described_anew(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,age\na,30\nb,40\n")
    part = model_of(CASES["number"].column)
    rows = NewRows(tmp_path, part)
    made = rows.snapshots.publish("new")
    meaning = {name: value for name, value in json.loads(made.row.meaning).items() if name in BEFORE}
    with contextlib.closing(sqlite3.connect(rows.party.data_dir / "party.sqlite")) as database, database:
        database.execute("UPDATE snapshots SET meaning = ?", [json.dumps(meaning)])
    current = rows.snapshots.current("new")
    assert current is not None
    assert current.id == made.id
    assert current.source().feature_names == ("age",)
    assert rows.numbers() == [[30.0], [40.0]]
    rows.close()
    other = NewRows(tmp_path, part, dataset={"missing_words": ["-"]})
    assert other.snapshots.current("new") is None
    assert other.snapshots.publish("new").row.number == 2
    other.close()
    back = NewRows(tmp_path, part)
    assert back.snapshots.current("new") is None
    back.close()


@each_case("words", [[], ["-"]])
def test_a_model_remembers_the_words_of_its_training(tmp_path: Path, words: list[str]) -> None:
    """Without such words NA is a level; scorer.py once took it for a missing value."""
    (tmp_path / "rows.csv").write_text("id,age\na,30\nb,40\n")
    rows = NewRows(tmp_path, model_of(CASES["number"].column), dataset={"missing_words": words})
    assert list(rows.snapshots.publish("new").source().record.missing_words) == words
    rows.close()


BEFORE = {
    "url", "id", "person", "label", "label_kind", "split", "features", "quasi_identifiers", "missing", "positive",
    "categories", "dates", "population", "columns", "levels", "indicators", "distinct",
}  # fmt: skip


# --- from a typed source to a csv file ----------------------------------------------------------------


def test_a_level_of_a_typed_source_is_none_of_the_models_words(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b", "c"], "x": ["NA", "DE", None]}), tmp_path / "rows.parquet")
    settings = {"features": ["x"], "categories": ["x"], "missing": "indicator"}
    typed = open_source(DatasetSettings(url="parquet:rows.parquet", id="id", **settings), tmp_path, "rows").record
    assert typed.behind["x=NA"].levels == ("DE", "NA")
    assert set(MISSING_WORDS) - set(typed.missing_words) == {"NA"}
    (tmp_path / "new.csv").write_text("id,x\na,NA\nb,DE\nc,\nd,null\n")
    new = open_for_model(
        DatasetSettings(url="csv:new.csv", id="id"),
        typed.with_fill({"x=DE": 0.5, "x=NA": 0.5}),
        typed.made,
        tmp_path,
        "new",
    )
    (batch,) = new.batches()
    assert batch.features[:, typed.made.index("x=NA")].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert batch.features[:, typed.made.index("x=")].tolist() == [0.0, 0.0, 1.0, 1.0]
    written = opened(tmp_path, 'id,x\na,"NA"\nb,DE\nc,NA\n', **settings).record
    assert written.missing_words == MISSING_WORDS  # quotes distinguish them there


@each_case("level", ["NA", "ZZ"])
@each_case("way", ["as it was", "words", "categories"])
def test_a_level_that_a_csv_dataset_takes_for_a_missing_value_is_said_to_its_operator_only(
    tmp_path: Path, way: str, level: str
) -> None:
    """One row may decide whether a training met NA or ZZ, so no refusal of a prediction may reveal it."""
    words = tuple(word for word in MISSING_WORDS if word != level)
    record = TableRecord((TableColumn("x", "category", ("DE", level), ()),), {"x=DE": 0.5, f"x={level}": 0.5}, words)
    scale = Standardiser(record.made, (0, 1), (0.0, 0.0), (1.0, 1.0), record)
    part = VerticalModelPart("bank", "active", "logistic", ("bank", "shop"), scale, np.ones(2))
    (tmp_path / "rows.csv").write_text(f"id,x\na,DE\nb,{level}\nc,DE\n")
    dataset: dict[str, Any] = {"categories": ["x"], "missing": "mean"}
    others = [word for word in MISSING_WORDS if word != "NA"]
    dataset |= {"words": {"missing_words": others}, "categories": {"categories": {"x": ["DE", level]}}}.get(way, {})
    with capture_logs() as logs, closing(NewRows(tmp_path, part, dataset=dataset)) as new:
        numbers = new.numbers()
    said = [log["event"] for log in logs if "a level of the model is one of" in log["event"]]
    lost = (way, level) == ("as it was", "NA")
    assert len(said) >= 1 if lost else not said
    assert numbers == [[1.0, 0.0], [0.5, 0.5] if lost else [0.0, 1.0], [1.0, 0.0]]
