"""Whole jobs: a model makes of a table the same as its training did, with each way of scoring."""

from __future__ import annotations

import csv
import datetime as dt
import json
import subprocess
import sys
import warnings
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from blindfit import load_model
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import real_scores
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.evaluate.consumer import Evaluation, Scored
from blindfit.parties.files.written import write_json
from blindfit.parties.store.database import Store
from tests.certificates import demo_authority
from tests.columns.scorers import SCORER
from tests.interference.systems import CHAIN, SYSTEMS, TRAINED
from tests.interference.world import Case, Rows, begin
from tests.world import World
from tests.world.vertical import bank_and_shops

TYPED = {"categories": ["region"], "dates": ["born", "seen"], "missing": "indicator"}
#: Under differential privacy of rows nothing may depend on what rows hold.
GIVEN = {"categories": {"region": ["north", "NA"]}, "dates": ["born", "seen"], "missing": "refuse"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("authority"))


def typed(rows: Rows, *, whole: bool = False) -> Rows:
    """Return the same rows with a column of every kind.

    Args:
        whole: no value is missing.
    """
    draw = np.random.default_rng(6)
    return {name: {**row, **typed_row(i, draw, whole=whole)} for i, (name, row) in enumerate(rows.items())}


def typed_row(i: int, draw: np.random.Generator, *, whole: bool) -> dict[str, Any]:
    lacks = 1 < i % 9 < 4 and not whole
    return {
        "born": dt.date(1950, 1, 1) + dt.timedelta(days=int(draw.integers(0, 20_000))),
        "seen": dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=int(draw.integers(0, 10**14))),
        "smokes": bool(draw.random() < 0.4),
        "income": Decimal(int(draw.integers(0, 10**6))) / 100,
        "visits": None if lacks else int(draw.integers(0, 9)),
        "region": None if lacks and i % 2 else ("north", "south", "NA")[int(draw.integers(0, 3))],
    }


def frame_of(rows: Rows) -> pd.DataFrame:
    """Return the rows as pandas reads a Parquet file: nullable numbers are floats, dates are datetime64 or objects."""
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("id").reset_index()


def kept(root: Path, name: str) -> list[Path]:
    return sorted(path for path in root.rglob(name) if "state" in path.parts)


def column(path: Path, name: str) -> dict[str, float]:
    with path.open(newline="") as file:
        return {row["id"]: float(row[name]) for row in csv.DictReader(file)}


def case_of(system: str) -> tuple[Case, str]:
    """Return a system whose active party has columns of every kind, and that party's name."""
    case = SYSTEMS[system]()
    party = next(name for name, role in case.roles.items() if role == "active")
    under_dp = system == "dp-lr"
    if under_dp:
        bounds = ["born:-20000:20000", "seen:0:30000", "income:0:20000", "visits:0:10", "*:-4:4"]
        case = case.with_job(dp_lr__feature_bounds=bounds)
    case = case.with_dataset(party, **(GIVEN if under_dp else TYPED)).with_job(split__test_fraction=0.3)
    data = {**case.data, party: typed(case.data[party], whole=under_dp)}
    return replace(case.with_data(data), source="parquet"), party


HELD_OUT = {
    "walr": ("held_out_scores.csv", "probability"),
    "dp-lr": ("held_out_scores.csv", "probability"),
    "label-dp": ("held_out_predictions.csv", "prediction"),
}


@pytest.mark.parametrize("system", HELD_OUT)
def test_a_model_scores_the_rows_that_its_training_held_out_as_the_training_did(
    system: str, tmp_path: Path, authority: Path
) -> None:
    case, party = case_of(system)
    assert begin(case, authority, tmp_path).errors == ("",)
    name, what = HELD_OUT[system]
    (path,) = kept(tmp_path, name)
    expected = column(path, what)
    assert len(expected) > 5
    (stored,) = kept(tmp_path, "model.json")
    model = load_model(stored)
    frame = frame_of(case.data[party])
    tables = {
        "pandas": frame,
        "the file": pd.read_parquet(tmp_path / f"{party}.parquet"),
        "arrow": pq.read_table(tmp_path / f"{party}.parquet"),
        "texts": frame.assign(born=frame["born"].astype(str), seen=frame["seen"].map(lambda at: at.isoformat())),
    }
    for how, table in tables.items():
        found = model.predict(table) if what == "prediction" else model.predict_proba(table)[:, 1]
        by_id = dict(zip(frame["id"], found.tolist(), strict=True))
        assert (how, {i: by_id[i] for i in expected}) == (how, expected)


def test_an_evaluation_scores_rows_by_the_record_too(
    tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is another column, which the model does not need and which has no usable values."""
    case, party = case_of("walr")
    rows = {name: {**row, "note": "free text"} for name, row in case.data[party].items()}
    record = TableRecord(
        (
            TableColumn("born", "date"),
            TableColumn("smokes", "boolean"),
            TableColumn("region", "category", ("north", "NA"), (), "indicator"),
            TableColumn("visits", missing="indicator"),
        ),
        {"visits": 4.0},
    )
    n = len(record.made)
    scale = Standardiser(record.made, tuple(range(n)), (0.5,) * n, (1.0, *[0.5] * (n - 1)), record)
    model = WALRModel(scale, np.linspace(-1, 1, n + 1), True, 1e9)

    def keep(root: Path) -> None:
        path = root / "state" / party / "models" / TRAINED / "model.json"
        write_json(path, model.to_dict())
        store = Store(root / "state" / party / "party.sqlite")
        with store.transaction() as transaction:
            transaction.note_file(f"models/{TRAINED}/model.json", TRAINED)
        store.close()

    seen: list[Scored] = []
    scored = Evaluation.score

    def watched(self: Evaluation, session: Any) -> Scored:
        seen.append(scored(self, session))
        return seen[-1]

    monkeypatch.setattr(Evaluation, "score", watched)
    evaluated = replace(
        SYSTEMS["evaluate"](), data={**case.data, party: rows}, datasets=case.datasets, prepare=keep, source="parquet"
    )
    assert begin(evaluated, authority, tmp_path).errors == ("",)
    (found,) = seen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about the south
        expected = model.scores(frame_of(rows))
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == dict(zip(rows, expected.tolist(), strict=True))


# --- several parties --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str]:
    """A bank, and two shops of which one has a Parquet file of every kind of column."""
    project = bank_and_shops(tmp_path_factory.mktemp("typed"), rows=500, epochs=2)
    shop = pyarrow.csv.read_csv(project.root / "shop-a.csv")
    rows = {row["id"]: {k: v for k, v in row.items() if k != "id"} for row in shop.to_pylist()}
    write(project.root, "shop-a", typed(rows))
    options = "".join(f"{name} = {json.dumps(value)}\n" for name, value in TYPED.items())
    project.edit("shop-a.toml", 'url = "csv:shop-a.csv"', 'url = "parquet:shop-a.parquet"')
    project.edit("shop-a.toml", 'features = "rest"\n', f'features = "rest"\n{options}')
    return project, project.run("split.test_fraction=0.3", "taylor.batch_rows=128").id


def write(root: Path, name: str, rows: Rows) -> None:
    """Write Parquet, and csv files for the scorer in plain Python: quoted texts, unquoted missing values."""
    table = pa.table({"id": list(rows)} | {c: [row[c] for row in rows.values()] for c in next(iter(rows.values()))})
    pq.write_table(table, root / f"{name}.parquet")
    pyarrow.csv.write_csv(table, root / f"{name}.csv")


def model_files(project: World, session: str) -> dict[str, Path]:
    return {name: project.root / "state" / name / "models" / session / "model.json" for name in CHAIN}


def test_joint_local_and_plain_scores_are_the_same_numbers(trained: tuple[World, str]) -> None:
    """Some new rows lack values or have levels that training did not meet, and there are additional columns."""
    project, session = trained
    draw = np.random.default_rng(8)
    shop = pq.read_table(project.root / "shop-a.parquet").slice(0, 80).to_pylist()
    rows = {}
    for i, row in enumerate(shop):
        new = {**row, **typed_row(i, draw, whole=False), "note": f"note {i}", "weight": None}
        rows[new.pop("id")] = {**new, "region": "east" if i % 7 == 0 else new["region"]}
    write(project.root, "new", rows)
    project.edit("shop-a.toml", "shop-a.parquet", "new.parquet")
    predicted = project.run(f"predict.session={session}", job="predict.toml")
    joint = column(project.root / "state/bank/predictions" / predicted.id / "scores.csv", "score")
    assert len(joint) == 80
    files = model_files(project, session)
    tables = {"bank": "bank.csv", "shop-a": "new.csv", "shop-b": "shop-b.csv"}
    arguments = [argument for name in CHAIN for argument in (files[name], project.root / tables[name])]
    done = subprocess.run([sys.executable, "-I", "-S", SCORER, *arguments], capture_output=True, text=True, check=True)
    assert {row["id"]: float(row["score"]) for row in csv.DictReader(done.stdout.splitlines())} == joint
    assert "column region: training did not meet the level 'east' of 12 rows" in done.stderr
    read = {
        "bank": pd.read_csv(project.root / "bank.csv"),
        "shop-a": pd.read_parquet(project.root / "new.parquet"),
        "shop-b": pd.read_csv(project.root / "shop-b.csv"),
    }
    total: dict[str, int] = dict.fromkeys(joint, 0)
    for name, table in read.items():
        with pytest.warns(UserWarning, match="column region: 12 rows") if name == "shop-a" else _nothing():
            parts = load_model(files[name]).score_parts(table)
        for row, part in zip(table["id"], parts.tolist(), strict=True):
            if row in total:
                total[row] += part
    assert {row: real_scores(np.array([part]))[0] for row, part in total.items()} == joint


def test_a_part_of_a_model_says_what_its_columns_are_made_of(trained: tuple[World, str]) -> None:
    project, session = trained
    scaling = json.loads(model_files(project, session)["shop-a"].read_text())["standardiser"]
    kinds = {column["name"]: (column["kind"], column["missing"]) for column in scaling["table"]["columns"]}
    assert kinds == {
        **{f"x{j}": ("number", "mean") for j in range(3)},
        "born": ("date", "mean"),
        "seen": ("date", "mean"),
        "smokes": ("boolean", "mean"),
        "income": ("number", "mean"),
        "visits": ("number", "indicator"),
        "region": ("category", "indicator"),
    }
    assert set(scaling["columns"]) > {"region=NA", "region=north", "region=south", "region=", "visits", "visits="}
    assert "table" not in json.loads(model_files(project, session)["shop-b"].read_text())["standardiser"]


class _nothing:  # noqa: N801 - a context like those of pytest
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...
