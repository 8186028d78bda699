"""A file belongs to the session that has written it, wherever the writing ends."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import ConfigError, LedgerUnavailable
from blindfit.parties.files.written import encode_json
from blindfit.parties.sessions import kept_files
from blindfit.parties.store.database import Writes
from tests.keeping.bank import Bank, resolved
from tests.world.vertical import bank_and_shops


class Killed(BaseException):
    """Ends the process: nothing of it runs afterwards."""


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    """The operator has every job write to one place; job A has done so."""
    bank_and_shops(tmp_path, rows=4)
    made = Bank(tmp_path, f"output_dir={tmp_path / 'runs'}")
    for session in ("A", "B"):
        made.session(session)
    made.writes("A", "model.json", "held_out_rows.csv")
    yield made
    made.store.close()


def killed_at(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, place: str, content: bytes, name: str = "model.json"
) -> Path:
    """Kill B before or after its file takes the place of A's."""
    replace = os.replace

    def kill(source: Any, target: Any) -> None:
        if place == "after":
            replace(source, target)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", kill)
        patch.setattr(os, "unlink", lambda _: None)  # neighbouring files stay
        patch.setattr(kept_files, "_settle", lambda *_: None)
        with pytest.raises(Killed):
            bank.party.write("B", name, content)
    return bank.root / "runs" / name


def owners(bank: Bank, path: Path) -> list[str]:
    return [session for session in ("A", "B") if path in bank.party.files_of(session)]


NEW = encode_json({"session": "B"})


@pytest.mark.parametrize("name", ["model.json", "held_out_rows.csv"])
def test_a_job_whose_disk_is_full_takes_nothing_over(bank: Bank, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    bank.session("B", "RUNNING")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(ConfigError, match="No space left"):
            bank.party.write("B", name, NEW)
    path = bank.root / "runs" / name
    assert bank.store.reader().list_begun_files() == []
    assert owners(bank, path) == ["A"]
    bank.session("B", "FAILED")
    assert bank.removed("B") == set()
    assert path in bank.removed("A")


@pytest.mark.parametrize("name", ["model.json", "held_out_rows.csv"])
@pytest.mark.parametrize(("place", "owner"), [("before", "A"), ("after", "B")])
def test_whoever_is_killed_has_what_it_wrote_and_no_more(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, place: str, owner: str, name: str
) -> None:
    path = killed_at(bank, monkeypatch, place, NEW, name)
    bank.session("B", "FAILED")
    other = {"A": "B", "B": "A"}[owner]
    assert path not in bank.removed(other)
    assert owners(bank, path) == [owner]
    assert path in bank.removed(owner)
    assert bank.store.reader().list_begun_files() == []


def test_killed_over_a_new_file_it_is_found(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    path = killed_at(bank, monkeypatch, "after", NEW, "transcript.jsonl")
    assert bank.removed("B") == resolved(path)


def test_the_same_bytes_stay_the_earlier_sessions_until_they_are_noted(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trainings with the same split hold out the same rows."""
    path = bank.root / "runs/held_out_rows.csv"
    killed_at(bank, monkeypatch, "before", path.read_bytes(), "held_out_rows.csv")
    assert owners(bank, path) == ["A"]
    bank.party.write("B", "held_out_rows.csv", path.read_bytes())
    assert owners(bank, path) == ["B"]


def test_a_database_that_is_full_after_the_file_was_replaced(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Writes, path: str, session: str) -> None:
        raise LedgerUnavailable("full")

    with monkeypatch.context() as patch:
        patch.setattr(Writes, "note_file", full)
        with pytest.raises(LedgerUnavailable):
            bank.party.write("B", "model.json", NEW)
    assert owners(bank, bank.root / "runs/model.json") == ["B"]


def test_what_a_running_session_is_about_to_replace_is_not_purged(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment before, nobody knows whose file it will be."""
    bank.session("B", "RUNNING")
    path = killed_at(bank, monkeypatch, "after", NEW)
    assert bank.removed("A") == resolved(bank.root / "runs/held_out_rows.csv")
    assert json.loads(path.read_text()) == {"session": "B"}


def test_a_later_session_that_writes_the_same_bytes_has_them(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.session("B", "FAILED")
    path = killed_at(bank, monkeypatch, "after", NEW)
    bank.party.write("A", "model.json", NEW)
    assert owners(bank, path) == ["A"]
