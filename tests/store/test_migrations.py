"""A database of any version opens, counts no less than before, and has the newest version from then on."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import ConfigError, LedgerUnavailable
from blindfit.parties.store import migrations
from blindfit.parties.store.charging import check_chain
from blindfit.parties.store.database import Reads, Store, Writes, stamp
from blindfit.parties.training import randomness
from tests.store.counts import counts_of
from tests.store.versions import HERE, NEWEST, version_of
from tests.world import World

FOLDERS = {0: "version_0", 1: "version_0", 2: "version_2", 3: "version_3", 4: "version_4"}
"""Folders with the rows of a database of each version: version 1 has the tables of version 0, and a number."""
VERSIONS = sorted(FOLDERS)


def database_of(version: int, path: Path) -> Path:
    """Return a database of an earlier version, with rows in every table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript((HERE / FOLDERS[version] / "everything.sql").read_text())
        database.execute(f"PRAGMA user_version = {version}")
    return path


def counted_in(version: int) -> dict[str, float]:
    counted: dict[str, float] = json.loads((HERE / FOLDERS[version] / "counts.json").read_text())
    return counted


def fewer(after: dict[str, float], before: dict[str, float]) -> dict[str, tuple[float, float | None]]:
    """Return the counts that a migration lowered."""
    return {name: (count, after.get(name)) for name, count in before.items() if after.get(name, -1) < count}


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Store]:
    with contextlib.closing(Store(path)) as store:
        yield store


def tables_of(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        found = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {re.sub(r"\s|IF NOT EXISTS", "", text) for (text,) in found}


def test_there_is_a_database_of_every_earlier_version() -> None:
    """Without one, no test shows that a migration keeps what it should: README.md here explains how to make one."""
    assert list(range(NEWEST)) == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_counts_no_less_once_it_is_migrated(version: int, tmp_path: Path) -> None:
    path, before = database_of(version, tmp_path / "party.sqlite"), counted_in(version)
    with opened(path) as store:
        after = counts_of(store.reader())
        check_chain(store)
    assert fewer(after, before) == {}
    assert version_of(path) == NEWEST


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_database_has_the_tables_of_a_migrated_one(version: int, tmp_path: Path) -> None:
    for path in (tmp_path / "new.sqlite", database_of(version, tmp_path / "old.sqlite")):
        with opened(path):
            pass
    assert version_of(tmp_path / "new.sqlite") == NEWEST
    assert tables_of(tmp_path / "new.sqlite") == tables_of(tmp_path / "old.sqlite")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migration_that_is_killed_leaves_the_version_before_it_whole(version: int, tmp_path: Path) -> None:
    path = database_of(version, tmp_path / "party.sqlite")
    killed = """
import os, sys
from pathlib import Path
from typing import Any
from blindfit.parties.store import migrations
from blindfit.parties.store.database import Store
def half(database):
    database.execute("DROP TABLE disclosures")
    database.execute("UPDATE ledger SET line = ''")
    os.kill(os.getpid(), 9)
migrations.MIGRATIONS = (*migrations.MIGRATIONS, half)
Store(Path(sys.argv[1]))
"""
    run = subprocess.run([sys.executable, "-c", killed, path], cwd=HERE.parents[1], check=False)
    assert run.returncode == -9
    assert version_of(path) == version
    with opened(path) as store:
        assert fewer(counts_of(store.reader()), counted_in(version)) == {}


def test_a_migration_that_fails_changes_nothing_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database_of(0, tmp_path / "party.sqlite")

    def fails(database: sqlite3.Connection) -> None:
        database.execute("DROP TABLE disclosures")
        database.execute("SELECT * FROM no_such_table")

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, fails))
        with pytest.raises(ConfigError, match=r"party\.sqlite cannot be used as the party's database: no such table"):
            Store(path)
    assert version_of(path) == 0
    with opened(path) as store:
        assert fewer(counts_of(store.reader()), counted_in(0)) == {}


def test_a_database_that_many_open_at_once_is_migrated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ran = database_of(0, tmp_path / "party.sqlite"), list[int]()

    def counting(_: sqlite3.Connection) -> None:
        ran.append(1)

    class Waiting(sqlite3.Connection):
        """Waits for its turn to write until another process has migrated the database."""

        def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
            if query == "BEGIN IMMEDIATE" and not ran:
                with opened(path) as store:
                    assert store.reader().ledger()
            return super().execute(query, *values)

    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, counting))
    with contextlib.closing(sqlite3.connect(path, factory=Waiting, isolation_level=None)) as database:
        migrations.migrate(database, path)
    assert len(ran) == 1
    assert version_of(path) == NEWEST + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_draws_of_before_the_account_count_in_every_population_and_others_once(version: int, tmp_path: Path) -> None:
    with opened(database_of(version, tmp_path / "party.sqlite")) as store:
        reader = store.reader()
        begun = sum(reader.draw(context)[0] for context in ("ef" * 32, "fe" * 32))
        populations = {snapshot.population for snapshot in reader.snapshots()}
        assert begun
        assert populations
        for population in populations:
            entries = reader.disclosures(population, "membership")
            drawn = [entry for entry in entries if entry.event == randomness.EVENT]
            assert len(drawn) == begun + (version == 4 and population == "people")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_counted_before_the_account_counts_for_a_whole_period(version: int, tmp_path: Path) -> None:
    with opened(database_of(version, tmp_path / "party.sqlite")) as store:
        entries = store.reader().disclosures()
        assert {entry.made >= stamp(-timedelta(days=1)) for entry in entries if not entry.session} == {True}
        assert {entry.made[:7] for entry in entries if entry.session} <= {"2026-03"}


def test_a_database_of_a_later_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = database_of(0, tmp_path / "party.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {NEWEST + 1}")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=f"has version {NEWEST + 1}, and this Blindfit reads versions up to {NEWEST}"):
        Store(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["party.sqlite"]


def test_a_process_from_before_a_migration_writes_nothing_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party that runs while its operator's newer command migrates the database must not count as before."""
    with opened(tmp_path / "party.sqlite") as party:
        with monkeypatch.context() as patch:
            patch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, lambda _: None))
            with opened(tmp_path / "party.sqlite"):
                pass
        with pytest.raises(LedgerUnavailable, match=f"was upgraded to version {NEWEST + 1}") as refused:
            with party.transaction() as transaction:
                transaction.cancel_session("s1")
        assert not party.reader().is_cancelled("s1")
    assert refused.value.hint is not None


# --- commands ---------------------------------------------------------------------------------------------


def bank_of(root: Path) -> tuple[World, Path]:
    """Return a bank, and its database of version 0."""
    about, budget = {"label": "label", "population": "people"}, {"people": {"epsilon": 8.0, "delta": 1e-5}}
    world = World(root).active("bank", about=about, populations=budget)
    return world, database_of(0, world.path("state/bank/party.sqlite"))


@pytest.mark.parametrize("command", ["ledger", "snapshot", "jobs", "approve"])
def test_a_command_reads_a_database_of_before(command: str, tmp_path: Path) -> None:
    world, path = bank_of(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM sessions WHERE state = 'HELD'")  # its proposal was made up
        database.commit()
    done = world.blindfit(command, "bank.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert version_of(path) == NEWEST


@pytest.mark.parametrize("command", ["ledger", "snapshot", "jobs", "approve"])
def test_a_command_refuses_a_database_of_a_later_version_in_one_line(command: str, tmp_path: Path) -> None:
    world, path = bank_of(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {NEWEST + 1}")
    done = world.blindfit(command, "bank.toml")
    assert done.returncode != 0
    message, hint = done.stderr.strip().splitlines()
    assert f"party.sqlite has version {NEWEST + 1}" in message
    assert "use the version of Blindfit that wrote it" in hint


# --- who may write ----------------------------------------------------------------------------------------


def test_a_reader_has_no_way_to_write() -> None:
    """Methods that change the database are in Writes, and mypy distinguishes a Reads from it."""
    assert issubclass(Writes, Reads)
    changing = {name for name in dir(Writes) if not hasattr(Reads, name)}
    assert {"add_session", "add_entry", "add_answer", "add_snapshot", "add_disclosure", "add_upload"} < changing
    verbs = ("add_", "put_", "change_", "note_", "drop_", "forget_", "begin_", "end_", "hold_", "remove_", "cancel_")
    assert [name for name in dir(Reads) if name.startswith(verbs)] == []


def test_a_reader_that_tries_is_stopped_by_the_database(tmp_path: Path) -> None:
    with opened(tmp_path / "party.sqlite") as store, store.view() as reader:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._all("DELETE FROM ledger")
