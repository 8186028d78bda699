"""Jobs read what a dataset's owner published: numbered, immutable, with a random id."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import ConfigError, DataError, PolicyRefused
from blindfit.parties.data.csv_file import CsvFile
from blindfit.parties.measurement.label_index import open_index
from blindfit.parties.snapshots import directories
from blindfit.parties.snapshots.directories import only_publisher
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.training.rows import read_rows
from tests.data.tables import write_sqlite
from tests.hints.following import refused
from tests.published import published
from tests.snapshots.bank import ROWS, UNKNOWN, Bank

SILENT = {"labels": True, "report": lambda *_: None}


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)


def ages(bank: Bank) -> list[float]:
    return read_rows(published(bank.snapshots, "loans").source(), **SILENT).features[:, 0].tolist()


# --- what a job reads -----------------------------------------------------------------------------------


def test_jobs_read_the_same_until_its_owner_publishes_again(bank):
    with pytest.raises(PolicyRefused, match=r"loans is not published: .* `blindfit snapshot PARTY\.TOML loans`"):
        bank.snapshots.require_current("loans")
    assert bank.snapshots.all_of("loans") == []
    first = bank.snapshots.publish("loans")
    bank.write(ROWS.replace("44,", "99,11"))
    again = bank.snapshots.require_current("loans")
    assert (again.id, again.row.number) == (first.id, 1)
    assert ages(bank) == [31, 44, 27]
    assert bank.snapshots.publish("loans").row.number == 2
    assert ages(bank) == [31, 99, 27]


def test_ids_are_random_and_say_nothing_of_rows(tmp_path):
    ids = set()
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        bank = Bank(tmp_path / place)
        ids |= {bank.snapshots.publish("loans").id for _ in range(2)}
    assert len(ids) == 4
    assert all(re.fullmatch("[0-9a-f]{32}", i) for i in ids)


def test_rows_are_what_the_source_has(bank):
    source = published(bank.snapshots, "loans").source()
    rows = read_rows(source, **SILENT)
    assert source.feature_names == ("age", "income")
    assert rows.ids.to_pylist() == ["a", "b", "c"]
    np.testing.assert_array_equal(rows.features, [[31, 10], [44, 11], [27, 12.5]])
    np.testing.assert_array_equal(rows.labels, [0, 1, 1])


MEAN = [[31, 10], [44, 11.25], [27, 12.5]]


@pytest.mark.parametrize(("missing", "expected"), [("drop", MEAN[::2]), ("mean", MEAN)])
def test_missing_values_are_treated_as_the_settings_say(bank, missing, expected):
    bank.write(ROWS)
    with pytest.raises(DataError, match="column income: the value is missing"):
        published(bank.snapshots, "loans")
    bank.describe("missing", missing)
    np.testing.assert_array_equal(read_rows(published(bank.snapshots, "loans").source(), **SILENT).features, expected)


def test_as_many_rows_are_held_at_a_time_as_the_file_says_now(bank):
    made = published(bank.snapshots, "loans")
    bank.describe("batch_rows", 2)
    current = bank.snapshots.current("loans")
    assert current is not None
    assert current.id == made.id
    assert [len(batch) for batch in current.source().batches()] == [2, 1]


def test_a_database_is_kept_as_it_was(bank):
    write_sqlite(bank.root / "rows.db", '"id" TEXT, "label" INTEGER, "age" REAL', [("a", 0, 1.5), ("b", 1, None)])
    bank.describe("url", "sqlite:///rows.db?table=rows")
    bank.describe("missing", "mean")
    first = published(bank.snapshots, "loans")
    (bank.root / "rows.db").unlink()
    assert read_rows(first.source(), **SILENT).features.tolist() == [[1.5], [1.5]]
    assert bank.snapshots.has_changed_since(first) is None


def test_a_dataset_in_other_words_is_another_one(bank):
    first = published(bank.snapshots, "loans")
    bank.describe("features", ["age"])
    second = published(bank.snapshots, "loans")
    assert (second.row.number, second.source().feature_names) == (2, ("age",))
    assert first.source().feature_names == ("age", "income")


def test_a_dataset_that_leaves_other_columns_out_is_another_one(bank):
    """A snapshot from before `except` was an option has the same meaning, although it lacks the option."""
    first = published(bank.snapshots, "loans")
    assert "except" not in json.loads(first.row.meaning)
    assert published(bank.snapshots, "loans").id == first.id
    bank.describe("except", ["income"])
    second = published(bank.snapshots, "loans")
    assert (second.row.number, second.source().feature_names) == (2, ("age",))
    assert published(bank.snapshots, "loans").id == second.id
    bank.describe("except")
    third = published(bank.snapshots, "loans")
    assert (third.row.number, third.source().feature_names) == (3, ("age", "income"))


def test_what_a_session_read_it_reads_when_it_goes_on(bank):
    first = published(bank.snapshots, "loans")
    with bank.kept.transaction() as transaction:
        transaction.put_session_snapshot("monday", first.id)
    bank.snapshots.publish("loans")
    assert bank.snapshots.of_session("monday").id == first.id
    with pytest.raises(DataError, match="the snapshot that tuesday read no longer exists here"):
        bank.snapshots.of_session("tuesday")


# --- what is wrong is found when it is made --------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (ROWS.replace("c,1", "a,1").replace("44,", "44,1"), r"row 3 \(line 4\), column id: the id is that of row 1"),
        (ROWS.replace("44,", "many,1"), r"row 2 \(line 3\), column age: not a number"),
        (ROWS.replace("b,1", "b,2").replace("44,", "44,1"), "column label: the label is neither 0 nor 1"),
        (ROWS.replace(",1,", ",0,").replace("44,", "44,1"), "column label: the label is the same in every row"),
        ("id,label,age\n", "the table has no rows"),
        ("id,label,age\na,1,3\nb,0,-2e100\n", r"row 2 \(line 3\), column age: the number is beyond 1e\+100"),
        ("id,label\na,1\nb,0\n", "no column is left for the features"),
    ],
)
def test_bad_rows_make_no_snapshot_and_leave_the_old_one(bank, rows, expected):
    first = published(bank.snapshots, "loans")
    bank.write(rows)
    with pytest.raises(DataError, match=expected):
        bank.snapshots.publish("loans")
    assert bank.directories() == [first.id]
    assert published(bank.snapshots, "loans").id == first.id


def test_rows_that_all_have_a_missing_value_make_no_snapshot(bank):
    bank.describe("missing", "drop")
    bank.write("id,label,age\na,1,\nb,0,\n")
    with pytest.raises(DataError, match="every row has a missing value, so none is left") as refused:
        bank.snapshots.publish("loans")
    assert refused.value.hint == 'set datasets.loans.missing = "mean"'
    assert bank.directories() == []


@pytest.mark.parametrize(
    ("positive", "said"), [("paid", "no row has the text 'paid'"), ("yes", "every row has the text")]
)
def test_labels_by_a_text_that_no_row_or_every_row_has_make_no_snapshot(bank, positive, said):
    bank.describe("positive", positive)
    bank.write("id,label,age\na,yes,1\nb,yes,2\n")
    with pytest.raises(DataError, match="column label: the label is the same in every row") as refused:
        bank.snapshots.publish("loans")
    assert said in refused.value.hint


@pytest.mark.parametrize(
    "more",
    [
        {"missing": "mean"},
        {"missing": "indicator"},
        {"missing": "mean", "categories": ["age"]},
        {"missing": "mean", "categories": {"age": ["old"]}},
        {"missing": "indicator", "categories": ["age"]},
    ],
)
def test_a_feature_that_no_row_has_a_value_of_makes_no_snapshot(bank, more):
    for option, value in more.items():
        bank.describe(option, value)
    bank.write("id,label,age\na,1,\nb,0,\n")
    with pytest.raises(DataError, match=r"column age(=old)?: no row has a value( \(|$)") as refused:
        bank.snapshots.publish("loans")
    assert refused.value.hint.startswith('set datasets.loans.except = ["age"]')
    assert bank.snapshots.all_of("loans") == []


def test_a_disk_that_is_full_makes_no_snapshot(bank):
    def full(source, directory):
        (directory / "part").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    first = published(bank.snapshots, "loans")
    snapshots = Snapshots(bank.settings("bank"), bank.root, bank.kept, full)
    with pytest.raises(DataError, match=r"snapshots cannot be written: No space left on device( \(|$)") as refused:
        snapshots.publish("loans")
    assert refused.value.hint == "check that the disk is not full, and that this user may write there"
    assert bank.directories() == [first.id]


def test_a_measurement_servers_table_may_hold_converters_only(tmp_path):
    bank = Bank(tmp_path, role="measurement")
    bank.write("id,label\na,1\nb,1\n")
    snapshot = bank.snapshots.publish("loans")
    with open_index(snapshot.directory) as index, index.new_request(None, "refuse") as request:
        assert request.join(["b", "a"]).labels.tolist() == [1, 1]


@pytest.mark.parametrize(("positive", "remarks"), [("paid", 1), ("yes", 0)])
def test_a_measurement_server_is_told_alone_that_no_row_has_the_text_of_label_1(tmp_path, positive, remarks):
    bank = Bank(tmp_path, role="measurement")
    bank.describe("positive", positive)
    bank.write("id,label\na,yes\nb,no\n")
    found = list(bank.snapshots.cautions(bank.snapshots.publish("loans")))
    assert [remark.startswith("no row has the text 'paid', ") for remark in found] == [True] * remarks


def test_a_kill_while_publishing_leaves_nothing_that_counts(bank):
    first = published(bank.snapshots, "loans")
    killed = """
import os, sys
from pathlib import Path
from blindfit.parties.snapshots import snapshots
from tests.snapshots.bank import Bank
bank = Bank(Path(sys.argv[1]))
snapshots.refuse_another_population = lambda *_: os.kill(os.getpid(), 9)
bank.snapshots.publish("loans")
"""
    run = subprocess.run([sys.executable, "-c", killed, bank.root], cwd=Path(__file__).parents[2], check=False)
    assert run.returncode == -9
    assert len(bank.directories()) == 3  # the directory has its name, and its mark
    assert published(bank.snapshots, "loans").id == first.id
    assert list(bank.snapshots.list_unknown()) == []
    second = bank.snapshots.publish("loans")
    assert bank.directories() == sorted([first.id, second.id])
    assert second.row.number == 2


def test_a_snapshot_that_is_gone_is_one_line(bank):
    snapshot = published(bank.snapshots, "loans")
    (snapshot.directory / "rows.arrow").write_bytes(b"ARROW1")
    with pytest.raises(DataError, match=r"rows\.arrow, which holds a snapshot of loans, cannot be read"):
        snapshot.source()


def test_files_are_their_owners_alone(bank):
    snapshot = published(bank.snapshots, "loans")
    assert snapshot.directory.stat().st_mode & 0o777 == 0o700
    assert (snapshot.directory / "rows.arrow").stat().st_mode & 0o777 == 0o600


def leave(bank, *made):
    """Leave directories with a file, as something that ended left them."""
    for name in made:
        directory = bank.root / "state/bank" / "snapshots" / name
        directory.mkdir(parents=True)
        (directory / "rows.arrow").write_bytes(b"rows")


def test_what_is_not_ours_stays(bank):
    published(bank.snapshots, "loans")
    place = bank.root / "state/bank" / "snapshots"
    leave(bank, "my-database-dumps", UNKNOWN)
    (place / ".DS_Store").write_bytes(b"")
    (place / "link").symlink_to(bank.root)
    (place / ".building-link").symlink_to(bank.root)
    before = bank.directories()
    second = bank.snapshots.publish("loans")
    bank.snapshots.settle()
    assert bank.directories() == sorted([*before, second.id])
    assert (place / "my-database-dumps" / "rows.arrow").read_bytes() == b"rows"
    assert (bank.root / "bank.toml").exists()


def test_an_older_database_that_is_put_back_destroys_no_snapshot(bank):
    published(bank.snapshots, "loans")
    bank.kept.close()
    database = bank.root / "state/bank" / "party.sqlite"
    older = database.read_bytes()
    bank.kept = Store(database)
    newer = bank.snapshots.publish("loans")
    bank.kept.close()
    database.write_bytes(older)
    bank.kept = Store(database)
    bank.snapshots.publish("loans")
    assert (newer.directory / "rows.arrow").exists()
    (told,) = bank.snapshots.list_unknown()
    assert told.startswith(f"{newer.directory} has the name of a snapshot that the party's database does not know")
    with capture_logs() as logs:
        bank.snapshots.settle()
    assert [(log["log_level"], log["event"]) for log in logs] == [("warning", told)]


def test_what_is_unfinished_goes_at_a_start(bank):
    """The party was killed before its rows were whole, before the database knew it, or before a mark was removed."""
    first = published(bank.snapshots, "loans")
    leave(bank, f".building-{UNKNOWN}/rows", f".building-{first.id}", UNKNOWN)
    bank.snapshots.settle()
    assert bank.directories() == [first.id]
    assert (first.directory / "rows.arrow").exists()


def test_a_removal_that_was_killed_is_ended(bank):
    first = published(bank.snapshots, "loans")
    second = bank.snapshots.publish("loans")
    with bank.kept.transaction() as transaction:
        transaction.remove_snapshot(first.id, "2026-03-01T10:00:00+00:00")
    bank.snapshots.settle()
    assert bank.directories() == [second.id]


def test_an_error_once_the_database_knows_it_takes_nothing_away(bank, monkeypatch):
    monkeypatch.setattr(Snapshots, "_at", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bank.snapshots.publish("loans")
    monkeypatch.undo()
    current = bank.snapshots.current("loans")
    assert bank.directories() == [current.id]
    assert (current.directory / "rows.arrow").exists()


# --- one publisher at a time -----------------------------------------------------------------------------


def test_another_publish_is_waited_for_and_named(bank):
    said = []

    def told(what):
        said.append(what)
        other.__exit__(None, None, None)

    other = only_publisher(bank.root / "state/bank", "other", said.append)
    other.__enter__()
    assert bank.snapshots.publish("loans", on_waiting=told).row.number == 1
    (what,) = said
    assert re.fullmatch(
        rf"loans waits: another publish of this party is in progress: other, since \S+, process {os.getpid()}", what
    )


def test_another_publish_is_not_waited_for_for_ever(bank, monkeypatch):
    monkeypatch.setattr(directories, "MOST_WAIT_S", 0.3)
    with (
        capture_logs() as logs,
        only_publisher(bank.root / "state/bank", "other", lambda _: None),
        pytest.raises(
            DataError, match="loans is not published: another publish of this party is in progress: other, si"
        ),
    ):
        bank.snapshots.publish("loans")
    assert [log["event"].partition(":")[0] for log in logs] == ["loans waits"]
    assert bank.snapshots.publish("loans").row.number == 1


# --- for the operator ------------------------------------------------------------------------------------


def test_a_source_that_has_changed_is_noticed(bank):
    snapshot = published(bank.snapshots, "loans")
    assert bank.snapshots.has_changed_since(snapshot) is False
    bank.write(ROWS)
    assert bank.snapshots.has_changed_since(snapshot) is True
    (bank.root / "loans.csv").unlink()
    assert bank.snapshots.has_changed_since(snapshot) is True


def test_whether_a_source_has_changed_is_known_without_its_rows(bank, monkeypatch):
    bank.write("id,label,age,region\na,0,31,north\nb,1,44,south\n")
    bank.describe("categories", ["region"])
    snapshot = published(bank.snapshots, "loans")

    def read(*_):
        raise AssertionError("rows are read")

    monkeypatch.setattr(CsvFile, "arrow_batches", read)
    assert bank.snapshots.has_changed_since(snapshot) is False
    bank.write("id,label,age,region\na,0,31,north\nb,1,44,west\n")
    assert bank.snapshots.has_changed_since(snapshot) is True


def test_older_ones_are_removed_at_the_operators_word(bank):
    first = published(bank.snapshots, "loans")
    second = bank.snapshots.publish("loans")
    ((removed, size),) = bank.snapshots.remove_older("loans")
    assert (removed.id, size > 0) == (first.id, True)
    assert bank.directories() == [second.id]
    assert bank.snapshots.publish("loans").row.number == 3  # a number belongs to one snapshot, for ever


def test_a_party_that_is_up_does_not_undo_what_its_operator_published_in_other_words(bank):
    up = bank.snapshots
    first = published(up, "loans")
    bank.describe("features", ["age"])
    second = bank.snapshots.publish("loans")
    with pytest.raises(ConfigError, match="than this process has read") as refused:
        published(up, "loans")
    assert refused.value.hint == "start the party again"
    assert published(bank.snapshots, "loans").id == second.id != first.id
    assert len(bank.directories()) == 2


def test_a_schedule_asks_for_the_next_one_changed_or_not(bank, monkeypatch):
    bank.describe("snapshot_every_h", 24)
    assert not bank.snapshots.overdue("loans")  # nobody has published it
    published(bank.snapshots, "loans")
    assert not bank.snapshots.overdue("loans")
    bank.kept._db.execute("UPDATE snapshots SET made = '2020-01-01T00:00:00+00:00'")
    assert bank.snapshots.overdue("loans")
    assert not bank.snapshots.overdue("other")


# --- one budget for one content --------------------------------------------------------------------------


def test_rows_that_another_population_has_wait_for_the_operator(bank):
    published(bank.snapshots, "loans")
    (bank.root / "other.csv").write_text((bank.root / "loans.csv").read_text())
    with refused(
        'set datasets.{}.population = "{}"; or, if these are other people, '
        "`blindfit snapshot PARTY.TOML {} --other-people`"
    ) as told:
        published(bank.snapshots, "other")
    assert "its rows are known under the population people, as snapshot 1 of loans" in told.text
    assert told.options == {"datasets.other.population": "people"}
    assert len(bank.directories()) == 1
    bank.set("datasets.other.population", "people")
    bank.snapshots.publish("other")
    bank.set("datasets.other.population", "visitors")
    bank.snapshots.publish("other", other_people=True)
    bank.snapshots.publish("other")  # said once


def test_people_that_another_population_has_wait_for_the_operator_also_in_another_table(bank):
    published(bank.snapshots, "loans")
    header, *rows = (bank.root / "loans.csv").read_text().splitlines()
    (bank.root / "other.csv").write_text("\n".join([header, *(row[0].upper() + row[1:] for row in rows[::-1])]) + "\n")
    with refused('set datasets.{}.population = "{}"') as told:
        published(bank.snapshots, "other")
    assert "ids also occur in the population people: the same people would have two budgets" in told.text
    assert told.options == {"datasets.other.population": "people"}
    with refused("or, if these are other people, `blindfit snapshot PARTY.TOML {} --other-people`"):
        published(bank.snapshots, "other")
    assert len(bank.directories()) == 1
    bank.set("datasets.other.population", "people")
    bank.snapshots.publish("other")
    bank.set("datasets.other.population", "visitors")
    bank.snapshots.publish("other", other_people=True)
    bank.snapshots.publish("other")  # said once


def test_nor_is_a_person_column_that_one_dataset_has(tmp_path):
    """These datasets cannot be of one population; only the operator can declare that their labels are the same."""
    bank = Bank(tmp_path, role="measurement")
    bank.write("id,label,who\n" + "".join(f"r{i},{i % 2},p{i // 2}\n" for i in range(40)))
    bank.describe("person", "who")
    bank.set("datasets.other.url", "csv:loans.csv")
    bank.snapshots.publish("loans")
    with pytest.raises(ConfigError, match="its rows are known under the population people, as snapshot 1 of loans"):
        bank.snapshots.publish("other")


def test_a_population_that_is_renamed_is_no_fresh_budget(bank):
    published(bank.snapshots, "loans")
    bank.describe("population", "visitors")
    with pytest.raises(ConfigError, match="its rows are known under the population people"):
        published(bank.snapshots, "loans")
    bank.write(ROWS.replace("44,", "45,1"))  # other rows under the same name do not help either
    with pytest.raises(ConfigError, match="its rows are known under the population people"):
        published(bank.snapshots, "loans")
