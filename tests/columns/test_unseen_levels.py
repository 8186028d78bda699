"""A level that training did not meet is never scored silently."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from blindfit import UnseenLevelWarning
from blindfit.algorithms.columns.levels import find_unseen_levels, loosely, merge_unseen
from blindfit.algorithms.columns.record import TableColumn
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.files import written
from tests.columns.scorers import SCORER, model_of, write_csv
from tests.each_case import each_case

REGION = TableColumn("region", "category", ("north", "south"), ("west",))
AGAINST = TableColumn("region", "category", ("south",), None, base="north")
CODE = TableColumn("code", "category", ("1", "2"), ())


@each_case(
    ("column", "levels", "said"),
    [
        (
            REGION,
            ["north", "east", "east"],
            r"column region: 2 rows have a level that training did not meet \('east'\)",
        ),
        (REGION, ["NORTH", "south", "north"], r"\('NORTH'\).*'NORTH' differs from 'north' only in spelling"),
        (AGAINST, ["north", "south", "west"], r"1 row has a level that has no column in the model \('west'\)"),
        (AGAINST, ["North", "south"], r"1 row has .*'North' differs from 'north' only in spelling"),
        (REGION, ["no rth", "south", "west"], r"'no rth' differs from 'north' only in spelling"),
        (REGION, ["a", "b", "c", "d", "\u202ea"], r"5 rows have a level .*\('a', 'b', 'c', \.\.\.\)"),
        (REGION, ["\x1b[31m", "north", "south"], r"\('\[31m'\)"),
        (CODE, ["1.0", "2", "1"], r"'1\.0' differs from '1' only in spelling"),
        (CODE, ["3", "02", "1"], r"2 rows .*'02' differs from '2' only in spelling"),
        (
            TableColumn("is", "category", ("yes",)),
            ["yes", "no"],
            r"1 row has a level that has no column in the model",
        ),
    ],
)
def test_a_local_scorer_warns_of_its_column_with_a_class_of_its_own(
    column: TableColumn, levels: list[str], said: str
) -> None:
    part = model_of(column)
    with pytest.warns(UnseenLevelWarning, match=said) as warned:
        scores = part.score_parts({column.name: levels})
    assert len(warned) == 1
    assert str(warned[0].message).isprintable()
    known = [level if level in column.known else "?" for level in levels]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scores.tolist() == part.score_parts({column.name: known}).tolist()


def walr_model() -> WALRModel:
    scale = model_of(REGION).standardiser
    return WALRModel(scale, np.ones(len(scale.columns) + 1), True, 2.0)


@each_case(
    "score",
    [
        lambda rows: model_of(REGION).score_parts(rows),
        lambda rows: model_of(REGION).standardiser.transform(rows),
        lambda rows: walr_model().probabilities(rows),
        lambda rows: walr_model().predict(rows),
    ],
)
def test_a_warning_names_the_line_of_whoever_scores(score: Callable[[Any], Any]) -> None:
    with pytest.warns(UnseenLevelWarning) as warned:
        score({"region": ["east"]})
    assert [(each.filename, each.lineno) for each in warned] == [(__file__, score.__code__.co_firstlineno)]


@each_case("levels", [["north", "south", "west"], [" north", "south\u200b", "west"]])
def test_it_says_nothing_of_levels_that_training_met(levels: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model_of(REGION).score_parts(pd.DataFrame({"region": levels}))


def test_a_warning_can_be_made_a_refusal() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenLevelWarning)
        with pytest.raises(UnseenLevelWarning, match="column region"):
            model_of(REGION).score_parts({"region": ["east"]})


def test_counts_of_batches_are_added() -> None:
    counts = [
        find_unseen_levels(pa.array(levels), REGION) for levels in (["east", "north"], ["east", "SOUTH"], ["north"])
    ]
    (found,) = merge_unseen([count for count in counts if count is not None]).values()
    assert found.rows == {"east": 2, "SOUTH": 1}
    assert found.near == {"SOUTH": "south"}


@each_case(("one", "other"), [("1", "1.0"), ("1e0", "01"), ("New York", "new  york"), ("ß", "SS")])
def test_spellings_of_one_level(one: str, other: str) -> None:
    assert loosely(one) == loosely(other)


@each_case(("one", "other"), [("1", "2"), ("north", "south"), ("é", "e")])
def test_other_levels(one: str, other: str) -> None:
    assert loosely(one) != loosely(other)


# --- docs/scorer.py ---------------------------------------------------------------------------------


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    written.write_json(directory / "model.json", {**model_of(REGION).to_dict(), "session": "s"})
    rows = write_csv(directory / "rows.csv", "region", ["north", "east", "NORTH", "west", "east"])
    arguments = [*options, directory / "model.json", rows]
    return subprocess.run([sys.executable, "-I", "-S", SCORER, *arguments], capture_output=True, text=True)


def test_the_scorer_prints_them_to_standard_error(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 6
    about = f"warning: {tmp_path / 'rows.csv'}, column region: training did not meet the level"
    assert done.stderr.splitlines() == [
        f"{about} 'east' of 2 rows: it is scored as 0 in each of its columns",
        f"{about} 'NORTH' of 1 row, which differs from 'north' only in spelling: it is scored as 0 in each of its "
        "columns",
    ]


def test_the_scorer_can_refuse_them(tmp_path: Path) -> None:
    done = run(tmp_path, "--refuse-unseen")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {tmp_path / 'rows.csv'}, column region: training did not meet the level 'east' of 2 rows\n"
    )
