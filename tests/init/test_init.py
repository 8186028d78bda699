"""`blindfit init` writes files that run as they are, and asks in one line for what it cannot guess."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from blindfit.coordinator.init.files import Seat, party_text
from blindfit.coordinator.init.guess import Guessed
from blindfit.coordinator.init.places import Place
from blindfit.parties.data import local_files
from tests.command import Done, blindfit

ROWS = 700


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Messy tables: texts, dates, holes, an id with another name, a label that is a word."""
    draw = np.random.default_rng(3)
    ids = np.array([f"c{i}" for i in range(ROWS)])
    age, income = draw.normal(45, 12, ROWS), draw.lognormal(10, 0.5, ROWS)
    churned = age / 12 - np.log(income) + draw.logistic(size=ROWS) > -6.3
    bank = {
        "client": ids,
        "age": [None if i % 17 == 0 else round(a, 1) for i, a in enumerate(age)],
        "region": [("north", "south", "west")[i % 3] for i in range(ROWS)],
        "since": [f"20{i % 20:02d}-0{1 + i % 9}-15" for i in range(ROWS)],
        "churned": ["yes" if c else "no" for c in churned],
    }
    order = draw.permutation(ROWS)
    shop = {"client": ids[order], "income": income[order]}
    shop |= {f"spent_{k}": draw.normal(size=ROWS) for k in range(4)} | {"note": [f"free text {i}" for i in range(ROWS)]}
    pyarrow.csv.write_csv(pa.table(bank), tmp_path / "My Bank.csv")
    pq.write_table(pa.table(shop), tmp_path / "shop.parquet")
    return tmp_path


def init(directory: Path, *words: str) -> Done:
    return blindfit(directory, "init", *words)


def test_two_messy_tables_become_a_joint_calibrated_model(tables: Path) -> None:
    made = init(tables, "--system", "taylor", "My Bank.csv", "shop.parquet", "--label", "churned")
    assert made.returncode == 0, made.stderr
    assert "my-bank         active: My Bank.csv, 700 rows, 3 features; region as levels; since as days" in made.stdout
    assert "learns churned = yes" in made.stdout
    assert "shop            passive: shop.parquet, 700 rows, 5 features; leaves out note" in made.stdout
    assert "rows are named by client" in made.stdout
    assert {path.name for path in (tables / "joint").iterdir()} == {
        "job.toml", "predict.toml", "my-bank.toml", "shop.toml", "notary.toml",
    }  # fmt: skip
    assert blindfit(tables, "check", "joint/job.toml").returncode == 0
    done = blindfit(tables, "run", "joint/job.toml", "--out", "joint/run", "--set", "taylor.epochs=2")
    assert done.returncode == 0, done.stderr
    model = json.loads((tables / "joint/run/my-bank/model.json").read_text())
    assert {"age", "age=", "region=north", "since"} <= model["weights"].keys()
    predicted = blindfit(tables, "predict", "joint/predict.toml", "--model", "joint/run", "--out", "joint/scores")
    assert predicted.returncode == 0, predicted.stderr


def test_a_label_holder_becomes_a_measurement_server(tables: Path) -> None:
    write_features(tables, strangers=0)
    made = init(tables, "--system", "walr", "features.csv", "visits.csv", "--label", "visited", "--out", "w", "--json")
    assert json.loads(made.stdout)["parties"] == {"features": "active", "visits": "measurement"}
    assert "unknown_rows" not in (tables / "w/visits.toml").read_text()
    done = blindfit(tables, "run", "w/job.toml", "--out", "w/run")
    assert done.returncode == 0, done.stderr
    assert "1 of 3 spent on people" in done.stdout


def test_nothing_is_said_of_columns_that_a_measurement_server_does_not_use(tmp_path: Path) -> None:
    rows = range(300)
    (tmp_path / "shop.csv").write_text("id,x\n" + "".join(f"p{i},{i % 13}\n" for i in rows))
    lines = (f"p{i},{int(i % 13 > 6)},{'yes' if i % 2 else 'no'},text {i}\n" for i in rows)
    (tmp_path / "clinic.csv").write_text("id,visited,smokes,note\n" + "".join(lines))
    made = blindfit(tmp_path, "init", "--system", "walr", "shop.csv", "clinic.csv", "--label", "visited")
    assert made.returncode == 0, made.stderr
    assert "measurement: clinic.csv" in made.stdout
    assert not [word for word in ("smokes", "note") if word in made.stdout]


def test_people_whom_the_server_does_not_know_never_train_as_label_0_unnoticed(tables: Path) -> None:
    """Init counts them and refuses them, and so do check and run; "zero" counts them if its operator may know."""
    write_features(tables, strangers=40)  # a fifth of the rows are held out: all of these with a chance of 1e-28
    made = init(tables, "--system", "walr", "features.csv", "visits.csv", "--label", "visited", "--out", "w")
    assert "visits does not have the ids of 40 rows of features; the job is refused until" in made.stdout
    party = tables / "w/visits.toml"
    assert 'unknown_rows = "refuse"' in party.read_text()
    checked = blindfit(tables, "check", "w/job.toml")
    assert checked.returncode == 1
    assert (
        "rows does not have the ids of 40 of features's 640 rows: take these rows out of features's" in checked.stdout
    )
    refused = blindfit(tables, "run", "w/job.toml", "--out", "w/run")
    assert refused.returncode != 0
    assert re.search(
        r"row \d+ of the request has an id that the table of labels does not have \(\d+ in all\)", refused.stderr
    )
    assert 'unknown_rows = "zero"' in refused.stderr
    party.write_text(party.read_text().replace('unknown_rows = "refuse"', 'unknown_rows = "zero"'))
    checked = blindfit(tables, "check", "w/job.toml")
    assert checked.returncode == 0, checked.stdout
    assert 'the ids of 40 of features\'s 640 rows: they count as label 0 (unknown_rows = "zero")' in checked.stdout
    done = blindfit(tables, "run", "w/job.toml", "--out", "w/run")
    assert done.returncode == 0, done.stderr
    assert re.search(r"visits: \d+ of \d+ rows of features counted as label 0, because rows does not have", done.stdout)
    assert "Read this first" not in (tables / "w/run/report.html").read_text()  # the rows are not public
    party.write_text(
        party.read_text().replace('unknown_rows = "zero"', 'rows_are_public = true\nunknown_rows = "zero"')
    )
    done = blindfit(tables, "run", "w/job.toml", "--out", "w/run", "--set", "privacy.release=again")
    assert done.returncode == 0, done.stderr
    assert re.search(r"visits does not have the ids of \d+ rows of \d+. Training used label 0 for them", done.stdout)
    assert (
        json.loads((tables / "w/run/report.json").read_text())["parties"]["features"]["summary"]["rows"]["unknown"] > 0
    )


def write_features(tables: Path, strangers: int) -> None:
    """Write tables of 600 people; only the active party has the strangers, whom the server does not know."""
    people = [f"p{i}" for i in range(600)]
    names = people + [f"stranger{i}" for i in range(strangers)]
    rows = "".join(f"{name},{(i * 7) % 13},{(i * 5) % 11}\n" for i, name in enumerate(names))
    (tables / "features.csv").write_text(f"id,x,z\n{rows}")
    (tables / "visits.csv").write_text(
        "id,visited\n" + "".join(f"{p},{int(i % 13 > 6)}\n" for i, p in enumerate(people))
    )


@pytest.mark.parametrize("system", ["taylor", "falcon"])
def test_a_label_of_numbers_is_a_linear_job(tables: Path, system: str) -> None:
    made = init(tables, "--system", system, "My Bank.csv", "shop.parquet", "--label", "income", "--out", "linear")
    assert made.returncode == 0, made.stderr
    job = (tables / "linear/job.toml").read_text()
    assert 'model = "linear"' in job
    assert ("learning_rate = 0.2" in job) == (system == "falcon")
    assert 'label_kind = "number"' in (tables / "linear/shop.toml").read_text()
    assert blindfit(tables, "show", "linear/job.toml").returncode == 0


def test_labels_that_pandas_writes_as_1_0_are_labels_0_and_1(tables: Path) -> None:
    text = (tables / "My Bank.csv").read_text()
    (tables / "My Bank.csv").write_text(text.replace('"yes"', "1.0").replace('"no"', "0.0"))
    made = init(tables, "--system", "taylor", "My Bank.csv", "shop.parquet", "--label", "churned")
    assert made.returncode == 0, made.stderr
    assert "positive" not in (tables / "joint/my-bank.toml").read_text()
    assert "linear" not in (tables / "joint/job.toml").read_text()
    assert blindfit(tables, "check", "joint/job.toml").returncode == 0


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_word_that_may_be_a_level_is_said_where_it_is_taken_for_a_missing_value(tables: Path, quote: str) -> None:
    text = (tables / "My Bank.csv").read_text()
    (tables / "My Bank.csv").write_text(text.replace('"west"', f"{quote}NA{quote}"))
    made = init(tables, "--system", "taylor", "My Bank.csv", "shop.parquet", "--label", "churned")
    assert made.returncode == 0, made.stderr
    said = "my-bank: column region has NA in 233 rows, which is read as a missing value"
    assert (said in made.stdout) == (not quote)


def test_few_columns_are_said_before_a_job_is_refused(tables: Path) -> None:
    (tables / "thin.csv").write_text("client,x\n" + "".join(f"c{i},{i % 29}\n" for i in range(ROWS)))
    made = init(tables, "--system", "taylor", "My Bank.csv", "thin.csv", "--label", "churned")
    assert "thin: scores could reveal its 1 column" in made.stdout
    assert '# models_per_row = "unlimited"' in (tables / "joint/thin.toml").read_text()


def test_a_table_without_a_column_to_learn_from_is_refused(tables: Path) -> None:
    """Every job refused its party file before, and the hint led back to an earlier refusal."""
    (tables / "notes.csv").write_text("client,note\n" + "".join(f"c{i},text {i}\n" for i in range(ROWS)))
    refused = init(tables, "--system", "taylor", "My Bank.csv", "notes.csv", "--label", "churned")
    assert refused.returncode != 0
    assert "notes.csv has no column to learn from: it leaves out note" in refused.stderr
    assert not (tables / "joint").exists()


def test_names_of_any_characters_are_read_as_they_were_written() -> None:
    strange = '\U0001d4b3 \u00e9\x7f"'
    guessed = Guessed(
        Place(f"{strange}.csv"),
        frozenset(),
        (strange,),
        (),
        False,
        1,
        left_out={strange: strange},
        label=strange,
        positive="yes",
    )
    text = party_text(Seat("bank", "active", guessed), [], strange, Path(), ["taylor"])
    dataset = tomllib.loads(text)["datasets"]["rows"]
    assert dataset["url"] == f"csv:{strange}.csv"
    assert [dataset["id"], dataset["label"], *dataset["except"], *dataset["categories"]] == [strange] * 4


# --- what it cannot guess ----------------------------------------------------------------------------------

_PATCHES = contextlib.ExitStack()  # patches for changes without another way
BOTH = ("--system", "taylor", "My Bank.csv", "shop.parquet", "--label", "churned")


def _third_value(tables: Path) -> None:
    text = (tables / "My Bank.csv").read_text()
    (tables / "My Bank.csv").write_text(text.replace('"no"', '"perhaps"', 5))


def _one_value(tables: Path) -> None:
    text = (tables / "My Bank.csv").read_text()
    (tables / "My Bank.csv").write_text(text.replace('"no"', '"yes"'))


def _two_words(tables: Path) -> None:
    text = (tables / "My Bank.csv").read_text()
    (tables / "My Bank.csv").write_text(text.replace('"no"', '"stay"').replace('"yes"', '"go"'))


def _two_common(tables: Path) -> None:
    shop = pq.read_table(tables / "shop.parquet")
    pq.write_table(shop.append_column("age", pa.array([1.0] * ROWS)), tables / "shop.parquet")


def _label_in_both(tables: Path) -> None:
    shop = pq.read_table(tables / "shop.parquet")
    pq.write_table(shop.append_column("churned", pa.array(["no"] * ROWS)), tables / "shop.parquet")


def _one_row(tables: Path) -> None:
    pq.write_table(pq.read_table(tables / "shop.parquet").slice(0, 1), tables / "shop.parquet")


def _no_row(tables: Path) -> None:
    pq.write_table(pq.read_table(tables / "shop.parquet").slice(0, 0), tables / "shop.parquet")


def _a_folder(tables: Path) -> None:
    (tables / "shop.parquet").unlink()
    (tables / "shop.parquet").mkdir()


def _unreadable(tables: Path) -> None:
    """Raise the system's error for a user who may not read a file; a test may run as root."""
    refuse = mock.patch.object(local_files, "other_kind", side_effect=PermissionError(13, "Permission denied"))
    _PATCHES.enter_context(refuse)


def _no_common_rows(tables: Path) -> None:
    shop = pq.read_table(tables / "shop.parquet")
    pq.write_table(shop.set_column(0, "client", pa.array([f"x{i}" for i in range(ROWS)])), tables / "shop.parquet")


def _there_already(tables: Path) -> None:
    (tables / "joint").mkdir()
    (tables / "joint/mine").write_text("mine")


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (None, ("--system", "taylor", "My Bank.csv", "none.csv", "--label", "churned"), "none.csv"),
        (None, ("--system", "taylor", "My Bank.csv", "--label", "churned"), "takes 2 to 17 tables, not 1"),
        (None, ("--system", "taylor", "My Bank.csv", "My Bank.csv", "--label", "churned"), "named twice"),
        (None, (*BOTH[:-1], "chruned"), "no table has a column chruned: the nearest name is churned"),
        (None, (*BOTH, "--id", "number"), "there is no column number"),
        (None, (*BOTH, "--positive", "maybe"), "no label is 'maybe'"),
        (None, ("--system", "vertical", *BOTH[2:]), "vertical is not a system"),
        (None, ("My Bank.csv", "shop.parquet"), "which system computes the model?"),
        (None, ("--system", "walr", "My Bank.csv", "shop.parquet", "--label", "income"), "walr needs labels 0 and 1"),
        (_third_value, BOTH, "has 3 values: no, perhaps and yes"),
        (_one_value, BOTH, "every row has the label 'yes', so there is nothing to learn"),
        (_one_value, (*BOTH, "--positive", "yes"), "every row has the label 'yes', so there is nothing to learn"),
        (_two_words, BOTH, "which label is 1, go or stay?"),
        (_label_in_both, BOTH, "both have a column churned"),
        (_one_row, BOTH, "have 1 row in common"),
        (_no_row, BOTH, "shop.parquet: the table has no rows"),
        (
            None,
            ("--system", "taylor", "My Bank.csv", ".", "--label", "churned"),
            ".: Blindfit cannot read this kind of table",
        ),
        (_a_folder, BOTH, "this is a directory"),
        (None, ("--system", "dp-lr", *BOTH[2:]), "--system dp-lr takes 1 table, not 2"),
        (None, (*BOTH, "--label-range", "0:8"), "--label-range does nothing with --system taylor"),
        (None, (*BOTH, "--bounds", "age:0:110"), "--bounds does nothing with --system taylor"),
        (None, (*BOTH, "--host", "shop=some host"), "'some host:7102' is not an address"),
        (None, (*BOTH, "--host", "shop=localhost:7101"), "two parties are at localhost:7101"),
        (_unreadable, BOTH, "cannot be read: Permission denied"),
        (_two_common, BOTH, "which column names a row? their common columns are age, client"),
        (_no_common_rows, BOTH, "have 0 rows in common"),
        (_there_already, BOTH, "joint already exists"),
    ],
)
def test_one_line_says_what_is_wrong_and_nothing_is_left(
    tables: Path, change: Callable[[Path], Any] | None, words: tuple[str, ...], said: str
) -> None:
    with _PATCHES:
        if change is not None:
            change(tables)
        before = sorted(path.name for path in tables.rglob("*"))
        refused = init(tables, *words)
    assert refused.returncode in (1, 2)
    assert said in refused.stderr
    assert "bug" not in refused.stderr
    assert sorted(path.name for path in tables.rglob("*")) == before


def test_two_columns_of_one_name_are_said(tmp_path: Path) -> None:
    rows = "".join(f"r{i},1,2,{i % 2}\n" for i in range(20))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"id,x,x,{name[0]}\n{rows}")
    done = init(tmp_path, "--system", "taylor", "a.csv", "b.csv", "--label", "a")
    assert done.returncode == 1
    assert "a.csv: two columns are called x" in done.stderr
