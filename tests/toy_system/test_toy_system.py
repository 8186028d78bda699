"""A system is one package and two entries: with them the toy runs between processes, as every other system does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import tomli_w

from tests import toy
from tests.command import ENVIRONMENT, Done, Piped
from tests.command import blindfit as released

PARTIES = {"p0": "active", "p1": "passive", "dealer": "key-node"}
X, Y = [3, 5, -2, 11], [7, -1, 4, 1000]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("toy")
    for name, column in (("p0", X), ("p1", Y)):
        rows = "".join(f"u{i},{value}\n" for i, value in enumerate(column))
        (directory / f"{name}.csv").write_text(f"id,value\n{rows}")
    for name, role in PARTIES.items():
        (directory / f"{name}.toml").write_text(tomli_w.dumps(party(name, role)))
    parties = {
        name: {"role": role, "config": f"{name}.toml", **({} if name == "dealer" else {"dataset": "column"})}
        for name, role in PARTIES.items()
    }
    (directory / "job.toml").write_text(tomli_w.dumps({"protocol": "toy", "parties": parties}))
    return directory


def party(name: str, role: str) -> dict[str, object]:
    files = {kind: f"{kind}.pem" for kind in ("certificate", "key", "authority")}
    peers = {peer: {"role": other} for peer, other in PARTIES.items() if peer != name}
    about = {"name": name, "role": role, "data_dir": f"state/{name}", "identity": files}
    dataset = {"url": f"csv:{name}.csv", "id": "id", "features": "rest"}
    return {
        **about,
        "policy": {"systems": ["toy"]},
        "peers": {**peers, "coordinator": {"role": "coordinator"}},
        **({} if name == "dealer" else {"datasets": {"column": dataset}}),
    }


def forked(project: Path, *arguments: str) -> Done:
    """Run in a process forked from one that has imported the rest of Blindfit, and does not know the toy."""
    process = Piped([sys.executable, "-m", "tests.toy_system", *arguments], cwd=project)
    said, errors = process.communicate(90)
    return Done(arguments, process.wait(), said, errors)


def test_it_runs_with_report_and_transcript(project):
    done = forked(project, "run", "job.toml", "--out", "out")  # its parties start from nothing
    assert done.returncode == 0, done.stderr
    assert "4 products, each in two shares" in done.stdout
    assert json.loads((project / "out" / "report.json").read_text())["parties_here"] == list(PARTIES)
    shares = [json.loads((project / "out" / name / "report.json").read_text())["share"] for name in ("p0", "p1")]
    found = [(int(a) + int(b)) % toy.MODULUS for a, b in zip(*shares, strict=True)]
    assert found == [x * y % toy.MODULUS for x, y in zip(X, Y, strict=True)]
    lines = [json.loads(line) for line in (project / "out" / "p0" / "transcript.jsonl").read_text().splitlines()]
    assert {(line["from"], line["kind"]) for line in lines if line["kind"] != "Hello"} == {
        ("dealer", "TripleShare"),
        ("p1", "Masked"),
    }


def test_its_pre_flight_and_its_options(project, monkeypatch):
    monkeypatch.setenv("COLUMNS", ENVIRONMENT["COLUMNS"])
    checked = forked(project, "check", "job.toml")
    assert checked.returncode == 0, checked.stderr
    assert "nobody learns any of the 4 products" in checked.stdout
    assert "2 holders are here" in checked.stdout
    assert "[toy]\nrows = 9" in forked(project, "show", "job.toml", "--set", "toy.rows=9").stdout
    refused = forked(project, "show", "job.toml", "--set", "toy.row=9")
    assert (refused.returncode, "toy.row is not an option; did you mean rows?" in refused.stderr) == (2, True)
    strange = forked(project, "show", "job.toml", "--set", "taylor.epochs=3")
    assert "[taylor] does nothing in a toy job, remove it" in strange.stderr


def test_a_released_blindfit_does_not_know_it(project):
    refused = released(project, "check", "job.toml")
    assert refused.returncode == 2
    assert "protocol: 'toy' is not one of walr, label-dp, dp-lr, taylor, falcon, predict" in refused.stderr
