"""Training, then joint prediction, between real processes: what a user sees in success and failure."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.processes.reading import error_line
from tests.world import World
from tests.world.files import write_csv

ROLES = {"bank": "active", "post": "passive", "shop": "passive", "keys": "key-node"}
DATA_PARTIES = ("bank", "post", "shop")
N_ROWS, N_NEW = 300, 30
SCORER = Path(__file__).parents[2] / "docs" / "scorer.py"


def write_rows(directory: Path) -> None:
    """Write old rows with labels and new rows without; each file has its own order and its own rows."""
    rng = np.random.default_rng(1)
    for suffix, count in (("", N_ROWS), ("_new", N_NEW)):
        x = rng.normal(size=(count, 6)) * 10
        y = rng.random(count) < 1 / (1 + np.exp(-(x[:, 0] - x[:, 3]) / 5))
        for place, name in enumerate(DATA_PARTIES):
            labelled = name == "bank" and not suffix
            ids = [*(f"r{i}" for i in range(count)), *(f"{name}{i}" for i in range(3))]
            labels = {"label": [*y.astype(int), 1, 1, 1]} if labelled else {}
            first, second = ([*x[:, 2 * place + j], *more] for j, more in enumerate(([0.0, 0.5, 1.0], [-1.0] * 3)))
            columns = {"id": ids, **labels, f"{name}0": first, f"{name}1": second}
            order, path = rng.permutation(len(ids)), directory / f"{name}{suffix}.csv"
            write_csv(path, {key: np.array(value)[order] for key, value in columns.items()})


@pytest.fixture
def project(tmp_path):
    write_rows(tmp_path)
    world, settings = (
        World(tmp_path),
        {"compute": {"backend": "serial"}, "policy": {"systems": ["taylor", "predict"]}},
    )
    for name, add in (("bank", world.active), ("post", world.passive), ("shop", world.passive)):
        solved = {"models_per_row": "unlimited"} if ROLES[name] == "passive" else {}  # two columns
        new = {"url": f"csv:{name}_new.csv", "id": "id", "features": "rest", **solved}
        about = solved or {"label": "label"}
        add(name, dataset="old", about=about, datasets={"new": new}, **settings)
    world.key_node("keys", policy=settings["policy"]).at_addresses()
    world.job("taylor", file="train.toml", taylor={"epochs": 1})
    least = {"align": {"min_common": N_NEW}}
    world.job("predict", file="predict.toml", dataset="new", **least)
    world.job("predict", file="fewer.toml", parties=("bank", "post", "keys"), dataset="new", **least)
    yield world
    world.stop()


def scores_in(path: Path) -> list[tuple[str, float, float]]:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["id", "score", "probability"]
    return [(row[0], float(row[1]), float(row[2])) for row in rows[1:]]


def scored_alone(project: World, session: str) -> list[tuple[str, float, float]]:
    """Score by the script that needs no library, from the parts that the parties kept and their files."""
    files = [(f"state/{name}/models/{session}/model.json", f"{name}_new.csv") for name in DATA_PARTIES]
    command = [sys.executable, "-I", "-S", SCORER, *(project.path(file) for pair in files for file in pair)]
    project.path("alone.csv").write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    return scores_in(project.path("alone.csv"))


def submit(project: World, session: str, job: str = "predict.toml") -> subprocess.CompletedProcess[str]:
    return project.blindfit("submit", job, "--out", "out", "--set", f"predict.session={session}")


@pytest.mark.timeout(400)
def test_a_training_and_what_is_predicted_with_it(project):
    project.start(*ROLES)
    trained = project.blindfit("submit", "train.toml", "--out", "train")
    assert trained.returncode == 0, trained.stderr
    session = json.loads(project.path("train/report.json").read_text())["session"]

    done = submit(project, session)
    assert done.returncode == 0, done.stderr
    assert "30 rows scored" in done.stdout
    assert "kept by bank, with its own report" in done.stdout
    (scores,) = project.path("state/bank/predictions").glob("*/scores.csv")
    expected = scored_alone(project, session)
    assert scores_in(scores) == expected
    assert [row[0] for row in expected] == [i for i in ids(project.path("bank_new.csv")) if i.startswith("r")]
    assert len(expected) == N_NEW
    report = project.path("out/report.json").read_text()
    assert json.loads(report)["parties"]["bank"]["summary"]["rows"] == {"common": N_NEW}
    for text in (report, project.path("out/report.html").read_text()):
        assert not any(repr(score)[:8] in text for _, score, _ in expected)
    assert "The coordinator sees no score" in project.path("out/report.html").read_text()
    its_own_page(project, scores.parent, expected)

    assert error_line(submit(project, "taylor-99999999")).endswith(
        "refuses the job: predict.session: it has no model of that session"
    )
    fewer = error_line(submit(project, session, "fewer.toml"))
    assert fewer.endswith("refuses the job: parties: they are not those of the training, in the same roles")

    project.stop()
    run_on_this_machine(project, session, expected)


def its_own_page(project: World, directory: Path, expected: list[tuple[str, float, float]]) -> None:
    """Check the active party's page, with how its rows scored and where the scores are."""
    made = project.blindfit("report", str(directory))
    assert made.returncode == 0, made.stderr
    page, told = (directory / "report.html").read_text(), json.loads((directory / "report.json").read_text())
    probabilities = [probability for _, _, probability in expected]
    assert told["scores"]["mean"] == pytest.approx(np.mean(probabilities), abs=1e-12)
    assert sum(part["rows"] for part in told["scores"]["histogram"]) == N_NEW
    for shown in ("Mean probability", f"{np.median(probabilities):.4g}", "scores.csv", "What post learnt"):
        assert shown in page
    assert page.count("<svg") == 1


def run_on_this_machine(project: World, session: str, expected: list[tuple[str, float, float]]) -> None:
    """`blindfit predict`, into a table; then with a part that somebody has changed."""
    with project.path("bank.toml").open("a") as file:
        file.write('[scores]\nurl = "sqlite:///kept.db?table=scores"\n')
    command = ("predict", "predict.toml", "--model", "train", "--out", "here")
    done = project.blindfit(*command)
    assert done.returncode == 0, done.stderr
    assert "table scores of sqlite:///kept.db" in done.stdout
    assert "probability  mean " in done.stdout
    assert project.path("here/report.html").read_text().count("<svg") == 1
    assert read_table(project.path("kept.db")) == expected
    assert json.loads(project.path("here/post/report.json").read_text())["rows"] == {"read": 33, "common": 30}

    project.path("kept.db").unlink()
    part = project.path(f"state/post/models/{session}/model.json")
    project.edit(str(part), '"feature_bound": 8.0', '"feature_bound": 9.0')
    line = error_line(project.blindfit(*command))
    assert line.startswith(f"error: {part.relative_to(project.root)} does not have this party's signature")
    assert not project.path("kept.db").exists()


def ids(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [row["id"] for row in csv.DictReader(file)]


def read_table(path: Path) -> list[tuple[str, float, float]]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT id, score, probability FROM scores ORDER BY rowid").fetchall()
    connection.close()
    return rows
