"""`blindfit run examples/taylor/job.toml`: four processes, keys of 2048 bits, and the files on the disk."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.systems import load_model
from tests.command import blindfit
from tests.fork_server import full_size_keys
from tests.readme.terminal import script
from tests.world import World

EXAMPLE = Path(__file__).parents[2] / "examples" / "taylor"
CHAIN = ("hospital", "archive", "laboratory")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One run, with two epochs: the tests look at it from several sides."""
    directory = tmp_path_factory.mktemp("taylor")
    for path in EXAMPLE.glob("*.toml"):
        shutil.copy(path, directory)
    made = blindfit(directory, "--out", "data", main=lambda: script(EXAMPLE / "prepare.py"))
    assert made.returncode == 0, made.stderr
    project = World(directory)
    with full_size_keys():
        done = project.blindfit("run", "job.toml", "--out", "out", "--set", "taylor.epochs=2")
    assert done.returncode == 0, done.stderr
    project.path("said").write_text(done.stdout)
    return project


def report_of(project: World, where: str = "out") -> dict:
    return json.loads(project.path(f"{where}/report.json").read_text())


@pytest.mark.timeout(300)
def test_the_jobs_report(trained: World) -> None:
    report = report_of(trained)
    assert report["state"] == "DONE"
    assert set(report["models"]) == set(CHAIN)
    for name in CHAIN:
        rows = report["parties"][name]["summary"]["rows"]
        assert (rows["common"], rows["trained"], rows["validation"], rows["test"]) == (569, 313, 85, 171)
        assert report["parties"][name]["summary"]["bytes_sent"] > 313 * 512
    key_node = report["parties"]["notary"]["summary"]
    losses = [float(loss) for loss in key_node["fit"]["losses"]]
    assert len(losses) == 2
    assert 0 < losses[1] < losses[0] < 0.6931  # log 2: a model that knows nothing
    assert report["parties"]["hospital"]["summary"]["evaluation"]["auc"] > 0.9
    assert "evaluation" not in report["parties"]["archive"]["summary"]
    assert {"promise", "defences", "collusion", "out-of-model"} <= {s["topic"] for s in report["privacy_statement"]}


def test_the_page_and_the_terminal(trained: World) -> None:
    page, said = trained.path("out/report.html").read_text(), trained.path("said").read_text()
    for shown in ("Weights of laboratory", "Hold-out loss", "Calibration", "Defences", "Privacy statement"):
        assert shown in page
    assert "569 in common: 313 trained on, 85 hold-out, 171 test" in said
    assert "No differential privacy" in said


def test_every_party_has_its_own_part_alone(trained: World) -> None:
    for name in CHAIN:
        part = load_model(trained.path(f"out/{name}/model.json"))
        assert isinstance(part, VerticalModelPart)
        assert part.party == name
        assert len(part.weights) == 10
        assert (part.intercept is not None) == (name == "hospital")
        assert report_of(trained, f"out/{name}")["timing"]["train_s"] > 0
    assert not trained.path("out/notary/model.json").exists()


def test_the_active_party_alone_has_scores(trained: World) -> None:
    path = trained.path("out/hospital/test_scores.csv")
    header, *lines = path.read_text().replace('"', "").splitlines()
    assert header == "id,label,score,probability,probability_out_of_fold"
    scores = {line.split(",")[0]: float(line.split(",")[3]) for line in lines}
    assert len(scores) == 171
    assert all(0 < probability < 1 for probability in scores.values())
    known = {line.split(",")[0] for line in trained.path("data/hospital.csv").read_text().replace('"', "").splitlines()}
    assert set(scores) <= known
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for name in ("archive", "laboratory", "notary"):
        assert not trained.path(f"out/{name}/test_scores.csv").exists()


@pytest.mark.parametrize("party", ["hospital", "archive"])
def test_a_partys_own_page(trained: World, party: str) -> None:
    done = trained.blindfit("report", f"out/{party}")
    assert done.returncode == 0, done.stderr
    page = trained.path(f"out/{party}/report.html").read_text()
    assert f"Weights of {party}" in page
    assert ("Calibration" in page) == (party == "hospital")


@pytest.mark.timeout(120)
def test_check_of_the_example(trained: World) -> None:
    checked = trained.blindfit("check", "job.toml", "--set", "privacy.epsilon=2")
    assert checked.returncode == 0, checked.stdout
    assert "budget of patients: epsilon 0 of 8 is spent" in checked.stdout
    refused = trained.blindfit("check", "job.toml", "--set", "taylor.jitter=0")
    assert refused.returncode == 1
    assert "refuses" in refused.stdout
