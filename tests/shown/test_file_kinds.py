"""An error about a file of the wrong kind names the kind, and what to type instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import blindfit
from tests.world.measured import files_of_shop_and_meter


@pytest.fixture
def files(tmp_path: Path) -> Path:
    files_of_shop_and_meter(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["run", "submit", "check", "plan", "show", "predict", "evaluate"])
def test_a_party_file_where_a_job_belongs(files: Path, command: str) -> None:
    done = blindfit(files, command, "shop.toml")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: shop.toml is a party file, and this command takes a job file",
        "hint: `blindfit party shop.toml` starts that party; a job file has `protocol` and [parties]",
    ]


@pytest.mark.parametrize("command", ["party", "ledger", "approve", "snapshot", "health", "lock"])
def test_a_job_file_where_a_party_belongs(files: Path, command: str) -> None:
    done = blindfit(files, command, "job.toml")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: job.toml is a job file, and this command takes a party file",
        "hint: `blindfit run job.toml` runs the job; a party file has `role`, [identity] and [peers]",
    ]


def test_a_file_of_neither_kind_is_read_as_what_was_asked_for(files: Path) -> None:
    (files / "empty.toml").write_text("")
    assert "protocol is missing" in blindfit(files, "run", "empty.toml").stderr
    assert "role is missing" in blindfit(files, "party", "empty.toml").stderr
    assert "none.toml does not exist" in blindfit(files, "run", "none.toml").stderr
