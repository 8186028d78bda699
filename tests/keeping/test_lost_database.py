"""A restored backup refunds nothing: files of a party whose database is gone keep it from starting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.operator import ledger
from blindfit.parties.store.database import Store
from tests.backups import back_up, restore
from tests.certificates import quick_connections
from tests.each_case import each_case
from tests.hints.following import refused, refused_command
from tests.store.versions import HERE as VERSIONS
from tests.world import World

REASON = "disk failed on Monday, no backup"


def clinic_in(root: Path) -> World:
    root.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    rows = {"id": np.arange(200), "age": rng.normal(size=200), "ill": rng.integers(0, 2, 200)}
    budget = {"patients": {"epsilon": 4.0, "delta": 1e-5}}
    policy = {"systems": ["dp-lr"], "max_epsilon": 2.0}
    about = {"label": "ill", "population": "patients"}
    world = World(root).active("clinic", rows, about=about, populations=budget, policy=policy)
    return world.job("dp-lr", privacy={"epsilon": 1.0}, dp_lr={"iterations": 5, "feature_bounds": ["*:-3:3"]})


@pytest.fixture(scope="module")
def charged(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A party that has been charged, and no longer runs."""
    world = clinic_in(tmp_path_factory.mktemp("charged"))
    world.run()
    assert len(world.ledger("clinic")) == 1
    return world


def remove(database: Path) -> None:
    for path in database.parent.glob("party.sqlite*"):
        path.unlink()


def only_keys(database: Path) -> None:
    remove(database)
    shutil.rmtree(database.parent / "snapshots")


def only_snapshots(database: Path) -> None:
    remove(database)
    for path in (*database.parent.glob("*.pem"), *database.parent.glob("*.key")):
        path.unlink()


def empty(database: Path) -> None:
    remove(database)
    database.write_bytes(b"")


def without_tables(database: Path) -> None:
    remove(database)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as made:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE another (x)")


def without_rows(database: Path) -> None:
    """Replace the database by one from before the first start, or made by another command since."""
    remove(database)
    elsewhere = database.parent.parent / "elsewhere"
    Store(elsewhere / "party.sqlite").close()
    shutil.copy(elsewhere / "party.sqlite", database)


def made_since(database: Path) -> None:
    """Make the database again, as another command does after a loss."""
    only_keys(database)
    Store(database).close()


def made_by_version_2(database: Path) -> None:
    """Leave an empty database of a Blindfit that did not note when a database began."""
    empty_of_version(2, database)


def made_by_version_3(database: Path) -> None:
    """Leave an empty database of the last Blindfit that did not note when a database began."""
    empty_of_version(3, database)


def empty_of_version(version: int, database: Path) -> None:
    remove(database)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as made:
        made.executescript((VERSIONS / f"version_{version}" / "everything.sql").read_text())
        for (table,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            made.execute(f"DELETE FROM {table}")
        made.execute(f"PRAGMA user_version = {version}")


def older(database: Path) -> None:
    """Restore the same party's database from before its newest snapshot."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as made:
        for table in ("answers", "ledger", "sessions", "snapshots"):
            made.execute(f"DELETE FROM {table}")


LOST = {
    "no database": remove,
    "keys only": only_keys,
    "snapshots only": only_snapshots,
    "an empty file": empty,
    "a database without tables": without_tables,
    "a database without rows": without_rows,
    "a database that another command made": made_since,
    "an empty database of version 2": made_by_version_2,
    "an empty database of version 3": made_by_version_3,
    "an older database": older,
}


def start(world: World) -> None:
    """Start the party, and end it again."""

    async def start_and_stop() -> None:
        async with world.up(world.load()):
            pass

    with quick_connections(world.root / "ca"):
        asyncio.run(start_and_stop())


@each_case("lose", list(LOST.values()))
def test_a_party_that_lost_its_database_does_not_start(
    charged: World, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    world = charged.copied_to(tmp_path / lose.__name__)
    lose(world.path("state", "clinic", "party.sqlite"))
    for _ in range(2):  # the first refusal explains nothing
        with refused("run `blindfit ledger PARTY.TOML --acknowledge REASON` with what happened: the reason stays"):
            start(world)
    assert world.ledger("clinic") == []  # undefended it begins at zero, as here, where nobody asks
    ledger.acknowledge(world.settings("clinic"), world.root, REASON)
    start(world)
    with world.store("clinic") as store:
        assert {loss.reason for loss in store.reader().losses()} == {REASON}


def test_another_loss_is_refused_again(charged: World, tmp_path: Path) -> None:
    """A reason covers only what was lost then."""
    world = charged.copied_to(tmp_path)
    database = world.path("state", "clinic", "party.sqlite")
    remove(database)
    ledger.acknowledge(world.settings("clinic"), world.root, REASON)
    acknowledged = back_up(database, tmp_path / "backup")
    restore(acknowledged, database)
    start(world)  # it publishes its rows again
    restore(acknowledged, database)
    with pytest.raises(ConfigError, match="does not know"):
        start(world)


def test_a_party_that_never_ran_starts(tmp_path: Path) -> None:
    world = clinic_in(tmp_path)
    for _ in range(2):  # a party that has keys by now, and has had no job, is refused too
        start(world)


def test_commands_say_what_was_lost_and_keep_the_reason(charged: World, tmp_path: Path) -> None:
    world = charged.copied_to(tmp_path)
    remove(world.path("state", "clinic", "party.sqlite"))
    for command in (("ledger", "clinic.toml"), ("snapshot", "clinic.toml", "rows"), ("run", "job.toml", "--out", "o")):
        done = world.blindfit(*command)
        assert done.returncode == 2, command
        assert "does not know" in done.stderr, command
    assert "does not know" in world.blindfit("check", "job.toml").stdout
    empty(world.path("state", "clinic", "party.sqlite"))  # then there is a ledger to show, which begins at zero
    shown = world.blindfit("ledger", "clinic.toml")
    assert (shown.returncode, "does not know" in shown.stdout) == (0, True)
    empty_reason = world.blindfit("ledger", "clinic.toml", "--acknowledge", "  ")
    refused_command("such as --acknowledge 'disk failed, no backup since 3 May'", empty_reason)
    assert world.blindfit("ledger", "clinic.toml", "--acknowledge", REASON).returncode == 0
    shown = world.blindfit("ledger", "clinic.toml", "--json")
    assert {loss["reason"] for loss in json.loads(shown.stdout)["losses"]} == {REASON}
    assert world.blindfit("snapshot", "clinic.toml", "rows").returncode == 0


# --- a copy of a party that is up -----------------------------------------------------------------------


def no(_name: str) -> bool:
    """Copy no file of the database, because SQLite copies it."""
    return False


async def copied_while_up(world: World, copies: dict[str, Callable[[str], bool]]) -> None:
    """Copy the party's folder after a charge, while its database is open.

    Args:
        copies: files of the database to copy, by folder.
    """
    job = world.load()
    async with world.up(job) as nodes:
        await world.session(job, nodes).run()
        for folder, wanted in copies.items():
            other = world.root.parent / folder
            shutil.copytree(world.root, other)
            for path in (other / "state" / "clinic").glob("party.sqlite*"):
                if not wanted(path.name):
                    os.unlink(path)
            if wanted is no:
                back_up(world.path("state", "clinic", "party.sqlite"), other / "state" / "clinic" / "party.sqlite")


def test_a_backup_of_a_running_party_needs_the_write_ahead_log(tmp_path: Path) -> None:
    """docs/guides/backup.md: copy the database and its -wal, or let SQLite copy it; copy the rest too."""
    world = clinic_in(tmp_path / "up")
    whole, part = {"party.sqlite", "party.sqlite-wal"}, {"party.sqlite"}
    with quick_connections(world.root / "ca"):
        asyncio.run(copied_while_up(world, {"whole": whole.__contains__, "made": no, "part": part.__contains__}))
    for folder in ("whole", "made"):
        restored = World(tmp_path / folder, roles=world.roles)
        restored.run()  # the same question: the stored answer
        assert restored.ledger("clinic") == world.ledger("clinic")
    with pytest.raises(ConfigError, match="does not know"):
        World(tmp_path / "part", roles=world.roles).run()
