"""Text, dates and missing values through whole jobs: a training, a prediction with other levels, and the scorer."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart, real_scores
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.snapshots.snapshot import content_of
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party
from tests.world import World
from tests.world.vertical import bank_and_shops

SCORER = Path(__file__).parents[2] / "docs" / "scorer.py"
REGIONS = ("north", "south", "west")
DATA = ("bank", "shop-a", "shop-b")


def with_texts(project: World, *, more: str = 'categories = ["region"]\nmissing = "indicator"\n') -> None:
    """Make the bank's label a word; shop-a gets a region for everybody, and an age for most."""
    bank = pyarrow.csv.read_csv(project.root / "bank.csv")
    said = pa.array(["yes" if bought else "no" for bought in bank["bought"].to_pylist()])
    by_id = dict(zip(bank["id"].to_pylist(), bank["bought"].to_pylist(), strict=True))
    pyarrow.csv.write_csv(bank.set_column(2, "bought", said), project.root / "bank.csv")
    project.edit("bank.toml", 'label = "bought"\n', 'label = "bought"\npositive = "yes"\n')
    shop = pyarrow.csv.read_csv(project.root / "shop-a.csv")
    draw = np.random.default_rng(4)
    bought = np.array([by_id[name] for name in shop["id"].to_pylist()])
    regions = np.array(REGIONS)[
        np.where(bought == 1, draw.integers(0, 2, len(bought)), draw.integers(1, 3, len(bought)))
    ]
    ages = [None if draw.random() < 0.1 else float(age) for age in draw.normal(50, 9, len(bought))]
    shop = shop.append_column("region", pa.array(regions.tolist())).append_column("age", pa.array(ages))
    pyarrow.csv.write_csv(shop, project.root / "shop-a.csv")
    project.edit("shop-a.toml", 'features = "rest"\n', f'features = "rest"\n{more}')


@pytest.fixture(scope="module")
def first_job(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, JobSession]:
    project = bank_and_shops(tmp_path_factory.mktemp("texts"), rows=400, epochs=4)
    with_texts(project)
    return project, project.run("split.test_fraction=0.3")


@pytest.fixture(scope="module")
def trained(first_job: tuple[World, JobSession]) -> tuple[World, str]:
    project, session = first_job
    return project, session.id


def test_levels_have_weights_of_their_own(trained: tuple[World, str]) -> None:
    project, session = trained
    weights = project.written("shop-a", session)["weights"]
    assert {"region=north", "region=south", "region=west", "age", "age="} <= weights.keys()
    assert weights["region=north"] > 0.05 > -0.05 > weights["region=west"]


def test_the_coordinator_is_told_of_no_level(first_job: tuple[World, JobSession]) -> None:
    """All tests share this first job: its session stays valid, although one test changes the tables."""
    _, session = first_job
    told = json.dumps([session.summaries, session.id], default=str)
    assert not re.search("north|south|west|region", told)


def test_new_rows_with_other_levels_are_scored_alike_by_the_job_and_the_scorer(trained: tuple[World, str]) -> None:
    """A level that nobody had is 0 in all columns; a missing age is the mean in training, for any other rows."""
    project, session = trained
    shop = pyarrow.csv.read_csv(project.root / "shop-a.csv").slice(0, 60)
    at = shop.column_names.index("region")
    strange = [("east", "north")[i % 2] for i in range(60)]
    shop = shop.set_column(at, "region", pa.array(strange))
    pyarrow.csv.write_csv(shop, project.root / "new.csv")
    project.edit("shop-a.toml", "csv:shop-a.csv", "csv:new.csv")
    predicted = project.run(f"predict.session={session}", job="predict.toml")
    table = pyarrow.csv.read_csv(project.root / "state/bank/predictions" / predicted.id / "scores.csv")
    assert len(table) == 60
    files = {"bank": "bank.csv", "shop-a": "new.csv", "shop-b": "shop-b.csv"}
    arguments = [
        str(project.root / path)
        for name, file in files.items()
        for path in (f"state/{name}/models/{session}/model.json", file)
    ]
    done = subprocess.run([sys.executable, str(SCORER), *arguments], capture_output=True, text=True, check=True)
    lines = [line.split(",") for line in done.stdout.splitlines()[1:]]
    alone = {row[0]: float(row[1]) for row in lines}
    assert alone == dict(zip(table["id"].to_pylist(), table["score"].to_pylist(), strict=True))


def test_a_part_takes_a_table_with_the_texts_in_it(trained: tuple[World, str]) -> None:
    project, session = trained
    part = VerticalModelPart.from_dict(project.written("shop-a", session))
    shop = pyarrow.csv.read_csv(project.root / "shop-a.csv")
    rows = {name: shop[name].to_pylist() for name in shop.column_names}
    by_hand = {f"region={level}": [float(r == level) for r in rows["region"]] for level in REGIONS}
    by_hand |= {"age=": [float(age is None) for age in rows["age"]]}
    mean = float(np.mean([age for age in rows["age"] if age is not None]))
    by_hand |= {"age": [mean if age is None else age for age in rows["age"]]}
    columns = part.standardiser.columns
    scores = part.score_parts(rows)
    array = np.column_stack([by_hand.get(name, rows.get(name)) for name in columns])
    assert scores.tolist() == part.score_parts(array).tolist()
    assert real_scores(scores).std() > 0


def test_levels_of_one_category_are_one_column_of_what_scores_may_tell(tmp_path: Path) -> None:
    """Twenty columns of which one is 1 have 4.4 bits, not 20; otherwise scores could reveal each row's level."""
    project = bank_and_shops(tmp_path, rows=400)
    shop = pyarrow.csv.read_csv(tmp_path / "shop-a.csv")
    levels = pa.array([f"level {i % 20}" for i in range(400)])
    pyarrow.csv.write_csv(shop.append_column("region", levels), tmp_path / "shop-a.csv")
    project.edit("shop-a.toml", 'features = "rest"\n', 'features = "rest"\ncategories = ["region"]\n')
    settings = load_party(tmp_path / "shop-a.toml")
    with contextlib.closing(Store.of(settings, tmp_path)) as store:
        made = Snapshots(settings, tmp_path, store).publish("rows")
    columns = made.source().feature_names
    assert len([name for name in columns if "=" in name]) == 20
    assert made.table_columns == 4
    assert content_of(made.row).columns == 4
    assert content_of(made.row).bits == pytest.approx(3 * np.log2(400) + np.log2(21))
