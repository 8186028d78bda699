"""A path may have square brackets, and is no markup: a command that did its work does not fail at telling."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from blindfit.coordinator.jobs import run as jobs
from blindfit.coordinator.operator import ledger as ledger_view
from tests.command import Done, blindfit
from tests.falcon.configs import falcon_job
from tests.snapshots.bank import Bank

ODD = "x[/y]"
PARTY = """
name = "clinic"
role = "active"
data_dir = "state"
identity = { certificate = "c", key = "k", authority = "a" }
secrets = { passphrase_file = "x[/y]" }
peers = { coordinator = { role = "coordinator" } }
[datasets.archive]
url = "csv:archive.csv"
id = "id"
label = "ill"
features = "rest"
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "x[").mkdir()
    (tmp_path / "clinic.toml").write_text(PARTY)
    drawn = np.random.default_rng(1).normal(size=(200, 2)).round(3).tolist()
    ids = [f"p{n}" for n in range(200)]
    rows = [f"{name},{a},{int(a + b > 0)}" for name, (a, b) in zip(ids, drawn, strict=True)]
    (tmp_path / "archive.csv").write_text("\n".join(["id,age,ill", *rows]) + "\n")
    others = [f"{name},{b}" for name, (_, b) in zip(ids, drawn, strict=True)]
    (tmp_path / "other.csv").write_text("\n".join(["id,dose", *others]) + "\n")
    (tmp_path / "job.json").write_text(json.dumps(falcon_job(2)))
    for name in ("old", ODD):
        (tmp_path / name).write_text(f"the passphrase {name}\n")
        (tmp_path / name).chmod(0o600)
    blindfit(tmp_path, "lock", "clinic.toml", "--set", "secrets.passphrase_file=old")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("pretrain", "clinic.toml", "--dataset", "archive", "--out", f"{ODD}.json"),
        ("split-labels", "clinic.toml", "--dataset", "archive", "--out", f"{ODD}.one", f"{ODD}.other"),
        ("import-falcon", "job.json", "--out", f"{ODD}.falcon"),
        ("init", "--vertical", "archive.csv", "other.csv", "--label", "ill", "--out", f"{ODD}.init"),
        ("lock", "clinic.toml", "--old-passphrase-file", "old"),
    ],
)
def test_a_path_is_told_as_it_is(directory: Path, words: tuple[str, ...]) -> None:
    done: Done = blindfit(directory, *words)
    assert done.returncode == 0, done.stderr
    assert ODD in done.stdout


def test_a_chain_that_is_exported_and_checked(tmp_path: Path) -> None:
    bank, console = Bank(tmp_path), Console(file=io.StringIO(), width=300, record=True)
    path = tmp_path / f"{ODD}.jsonl"
    ledger_view.export(bank.settings, bank.directory, path).show(console)
    ledger_view.verify(path).show(console)
    assert console.export_text().count(f"{ODD}.jsonl") == 3


def test_a_dataset_that_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=300, record=True)
    snapshot = SimpleNamespace(row=SimpleNamespace(dataset=ODD, number=1))
    monkeypatch.setattr(jobs, "find_changed", lambda _settings, _directory: [snapshot])
    monkeypatch.setattr(jobs, "party_settings", lambda _job, _name, _directory: (Path(f"{ODD}.toml"), None))
    job: Any = SimpleNamespace(parties={"shop": SimpleNamespace(dataset=ODD)})
    jobs._tell_of_changes(job, Path(), console)
    assert f"blindfit snapshot {ODD}.toml {ODD}" in console.export_text()
