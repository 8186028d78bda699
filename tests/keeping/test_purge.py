"""`blindfit purge` removes all files of a session, wherever they are; what was paid for stays proven."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from blindfit.parties.files.written import write_json
from blindfit.parties.sessions.purge import forget
from blindfit.parties.store.answers import StoredAnswer
from tests.keeping.bank import Bank, resolved
from tests.world.vertical import bank_and_shops

STAYS = "names of sessions, the ledger, receipts and remembered answers"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    bank_and_shops(tmp_path, rows=4)
    made = Bank(tmp_path)
    yield made
    made.store.close()


def test_everything_of_a_session_goes_and_is_named_with_its_size(bank: Bank) -> None:
    bank.session("s1")
    bank.session("s2")
    mine = [*bank.writes("s1", "model.json", "report.json", "test_scores.csv", "transcript.jsonl")]
    mine += [*bank.writes("s1", "report.json", "scores.csv", kind="predictions"), *bank.stops("s1", "s1")]
    (bank.state / "models/s1/.model.json-x1").write_text("half a file, of a process that was killed")
    others = bank.writes("s2", "model.json", "report.json")
    sizes = {path.resolve(): path.stat().st_size for path in mine}
    said = bank.purge("s1", "--yes").output
    told = {Path(p).resolve(): int(n) for p, n in re.findall(r"^removed (.*) \((\d+) bytes\)$", said, re.M)}
    assert {path: told[path] for path in sizes} == sizes
    assert len(told) == len(mine) + 1
    assert f"Removed 9 files of {sum(told.values())} bytes." in said
    assert STAYS in said.replace("\n", " ")
    assert not any(path.exists() for path in mine)
    assert not list(bank.state.rglob("s1"))
    assert all(path.exists() for path in others)
    assert "keeps no files of s1" in bank.purge("s1").output


def test_what_was_paid_stays(bank: Bank) -> None:
    bank.session("s1")
    bank.writes("s1", "model.json")
    with bank.store.transaction() as transaction:
        transaction._all("PRAGMA defer_foreign_keys = ON")
        transaction.add_answer("bank", "r1", StoredAnswer("digest", b"answer", 1, "s1"))
        transaction.hold_receipt("meter", "people", (b"statement", b"signature"))
    before = {name: bank.store._db.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}
    assert bank.removed("s1")
    assert {name: bank.store._db.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES} == before
    assert bank.store.reader().session("s1") is not None  # nobody can take its name again


TABLES = ("sessions", "ledger", "answers", "kept_rows", "label_releases", "receipts_held", "rollbacks")


# --- wherever it is ----------------------------------------------------------------------------------


def test_files_in_a_directory_of_the_operators_are_found_without_its_name(bank: Bank) -> None:
    """The command `blindfit run` puts them there: the party's file does not name the place."""
    bank.session("s1")
    elsewhere = Bank(bank.root, f"output_dir={bank.root / 'runs' / 'bank'}")
    written = elsewhere.writes("s1", "model.json", "report.json", "transcript.jsonl")
    mine = bank.root / "runs/bank/notes.txt"
    mine.write_text("the operator's")
    assert bank.removed("s1") == resolved(*written)
    assert mine.exists()


def test_a_file_that_a_later_session_replaced_is_that_ones(bank: Bank) -> None:
    for session in ("s1", "s2"):
        bank.session(session)
    elsewhere = Bank(bank.root, f"output_dir={bank.root / 'runs'}")
    *_, scores = elsewhere.writes("s1", "model.json", "report.json", "test_scores.csv")
    later = elsewhere.writes("s2", "model.json", "report.json")
    assert bank.removed("s1") == resolved(scores)
    assert bank.removed("s2") == resolved(*later)


def test_what_another_partys_job_wrote_to_the_same_place_stays(bank: Bank) -> None:
    bank.session("s1")
    elsewhere = Bank(bank.root, f"output_dir={bank.root / 'runs'}")
    model, report = elsewhere.writes("s1", "model.json", "report.json")
    write_json(report, {"session": "of-another-project"})
    assert bank.removed("s1") == set()
    assert model.exists()


def test_scores_in_a_table_of_the_operators_are_named_and_stay(bank: Bank) -> None:
    bank.session("s1")
    (report,) = bank.writes("s1", "report.json", kind="predictions")
    write_json(report, {"session": "s1", "scores": {"where": "postgresql://db/scores"}})
    said = bank.purge("s1", "--yes").output.replace("\n", " ")
    assert "Scores of s1 in postgresql://db/scores stay" in said


def test_links_are_removed_and_not_followed(bank: Bank) -> None:
    bank.session("s1")
    bank.writes("s1", "model.json")
    outside = bank.root / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (bank.state / "models/s1/link").symlink_to(outside)
    bank.removed("s1")
    assert (outside / "precious").exists()


# --- what is asked, and refused ------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["HELD", "ACCEPTED", "RUNNING"])
def test_a_session_that_has_not_ended_is_refused(bank: Bank, state: str) -> None:
    bank.session("s1", state)
    written = bank.writes("s1", "model.json")
    assert bank.refused("s1", "--yes") == f"s1 is {state.lower()}: its files are in use"
    assert bank.removed("--all-ended") == set()
    assert all(path.exists() for path in written)


def test_checkpoints_that_a_running_session_resumed_are_in_use(bank: Bank) -> None:
    bank.session("s1", "FAILED")
    bank.stops("s1", "s1")
    bank.session("s2", "RUNNING")
    kept = bank.stops("s2", "s1")
    assert bank.refused("s1", "--yes") == "s2 is running: its files are in use"
    assert bank.removed("--all-ended") == set()
    bank.session("s2", "FAILED")
    assert bank.removed("s2") == resolved(*kept)  # they are what is kept of it


@pytest.mark.parametrize("name", ["nobody", "../models", "..", "", "/etc"])
def test_a_session_that_never_was_is_refused(bank: Bank, name: str) -> None:
    assert "is not a session of this party" in bank.refused(name)


@pytest.mark.parametrize(
    "arguments",
    [(), ("s1", "--all-ended"), ("--all-ended", "--ended-before", "2026-01-01"), ("s1", "--ended-before", "x")],
)
def test_what_to_purge_is_said_once(bank: Bank, arguments: tuple[str, ...]) -> None:
    assert bank.refused(*arguments) == "no session to purge is named"


def test_a_day_that_is_none_is_refused(bank: Bank) -> None:
    assert bank.refused("--ended-before", "yesterday") == "--ended-before yesterday is not a valid date"


def test_all_that_ended_before_a_day(bank: Bank) -> None:
    paths = {}
    for session, changed in (
        ("s1", "2026-02-28T23:59:59"),
        ("s2", "2026-03-01T00:00:00"),
        ("s3", "2026-03-02T00:00:00"),
    ):
        bank.session(session, changed=f"{changed}+00:00")
        paths[session] = bank.writes(session, "model.json")
    assert bank.removed("--ended-before", "2026-03-01") == resolved(*paths["s1"])
    assert bank.removed("--all-ended") == resolved(*paths["s2"], *paths["s3"])


@pytest.mark.parametrize(
    ("arguments", "answer"), [(("--dry-run",), ""), (("--dry-run", "--yes"), ""), ((), "n\n"), ((), "")]
)
def test_nothing_goes_before_the_operator_says_so(bank: Bank, arguments: tuple[str, ...], answer: str) -> None:
    bank.session("s1")
    written = bank.writes("s1", "model.json", "report.json")
    said = bank.purge("s1", *arguments, answer=answer).output
    assert all(path.exists() and str(path) in said for path in written)
    assert "removed " not in said


def test_it_asks_and_does(bank: Bank) -> None:
    bank.session("s1")
    (model,) = bank.writes("s1", "model.json")
    assert "Remove 1 file of" in bank.purge("s1", answer="y\n").output
    assert not model.exists()


def test_it_says_what_ends(bank: Bank) -> None:
    bank.session("s1")
    bank.writes("s1", "model.json")
    bank.stops("s1", "s1")
    said = bank.purge("s1", "--dry-run").output.replace("\n", " ")
    assert "is a training with a model for predictions: they end, at all parties" in said
    assert "cannot be resumed without its checkpoints" in said
    bank.session("s2")
    (model,) = bank.writes("s2", "model.json")
    write_json(model, {"format": "blindfit-walr-model-1"})  # no other party's predictions need it
    assert "is a training with a model for predictions: they end" not in bank.purge("s2", "--dry-run").output


# --- stopped in the middle -----------------------------------------------------------------------------


@pytest.mark.parametrize("gone", range(1, 8))
def test_stopped_after_any_file_it_finds_the_rest(bank: Bank, monkeypatch: pytest.MonkeyPatch, gone: int) -> None:
    bank.session("s1", "FAILED")
    elsewhere = Bank(bank.root, f"output_dir={bank.root / 'runs'}")
    kept = [*bank.stops("s1", "s1"), *bank.writes("s1", "model.json", "report.json")]
    kept += elsewhere.writes("s1", "model.json", "report.json", "transcript.jsonl")
    unlink, left = Path.unlink, iter(range(gone))

    def until_killed(path: Path, missing_ok: bool = False) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", until_killed)
        bank.purge("s1", "--yes")
    rest = resolved(*(path for path in kept if path.exists()))
    assert len(rest) == len(kept) - gone
    assert not (bank.state / "checkpoints/s1/base.json").exists()  # nobody can resume a training without all its parts
    assert bank.removed("s1") == rest
    assert bank.store.reader().files_of("s1") == []


def test_a_file_that_is_still_there_is_not_forgotten(bank: Bank) -> None:
    """The file came back while the others were being removed."""
    bank.session("s1")
    elsewhere = Bank(bank.root, f"output_dir={bank.root / 'runs'}")
    (model,) = elsewhere.writes("s1", "model.json")
    forget(bank.store, bank.state, "s1")
    assert bank.removed("s1") == resolved(model)


def test_a_file_that_cannot_go_is_one_line(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.session("s1")
    bank.writes("s1", "model.json")

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    result = bank.purge("s1", "--yes")
    assert "model.json cannot be removed: Permission denied" in str(result.exception)
    assert json.loads((bank.state / "models/s1/model.json").read_text())
    assert os.listdir(bank.state / "models/s1") == ["model.json"]


def test_a_damaged_file_goes_like_any_other(bank: Bank) -> None:
    bank.session("s1")
    (model,) = bank.writes("s1", "model.json")
    model.write_text("{")
    assert "is a training whose model" not in bank.purge("s1", "--dry-run").output
    assert bank.removed("s1") == {model.resolve()}
