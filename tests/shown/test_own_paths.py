"""A path may have square brackets, which are not markup: a command that did its work does not fail when
it prints it.
"""

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
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.summary_table import places
from blindfit.coordinator.terminal.terminal import line
from tests.command import Done, blindfit
from tests.falcon.configs import falcon_job
from tests.snapshots.bank import Bank
from tests.world import World

ODD = "x[/y]"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "x[").mkdir()
    age, dose = np.random.default_rng(1).normal(size=(2, 200)).round(3)
    rows = {"id": [f"p{n}" for n in range(200)], "age": age, "ill": (age + dose > 0).astype(int)}
    about, secrets = (
        {"dataset": "archive", "file": "archive.csv", "about": {"label": "ill", "public": True}},
        {"passphrase_file": ODD},
    )
    world = World(tmp_path).active("clinic", rows, secrets=secrets, **about)
    world.write_table("other", {"id": rows["id"], "dose": dose})
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
        ("init", "--system", "taylor", "archive.csv", "other.csv", "--label", "ill", "--out", f"{ODD}.init"),
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
    ledger_view.export(bank.settings("bank"), bank.root, path).show(console)
    ledger_view.verify(path).show(console)
    assert console.export_text().count(f"{ODD}.jsonl") == 3


def test_a_line_stays_on_one_line_of_a_narrow_terminal() -> None:
    screen = io.StringIO()
    shown = (line("[bold]clinic:[/] " + "many words " * 20), *places([("report", "a path with spaces " * 10)]))
    Found({}, shown).show(Console(file=screen, width=40))
    assert len(screen.getvalue().splitlines()) == 2


def test_a_dataset_that_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=300, record=True)
    snapshot = SimpleNamespace(row=SimpleNamespace(dataset=ODD, number=1))
    monkeypatch.setattr(jobs, "find_changed", lambda _settings, _directory: [snapshot])
    monkeypatch.setattr(jobs, "party_settings", lambda _job, _name: (Path(f"{ODD}.toml"), None))
    job: Any = SimpleNamespace(parties={"shop": SimpleNamespace(dataset=ODD)})
    jobs._tell_of_changes(job, console)
    assert f"blindfit snapshot '{ODD}.toml' '{ODD}'" in console.export_text()
