"""If the ledger's disk is full, read-only or damaged, nothing is released or charged, and an error gives the reason."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import ConfigError, LedgerUnavailable
from blindfit.algorithms.privacy.ledger import verify_chain
from blindfit.parties.store.database import Store
from blindfit.parties.store.sessions import SessionRow
from tests.measurement import children
from tests.measurement.house import House, one_hot
from tests.measurement.wide import WIDE

OpenHouse = Callable[..., House]
PAGES = "PRAGMA max_page_count = "


def refused(house: House, reason: str, **changes: Any) -> None:
    charged, answered = house.entries, answers_of(house)
    with pytest.raises(LedgerUnavailable) as caught:
        house.ask(**changes)
    assert caught.value.message == (
        f"{house.database} could not be written ({reason}): this step released nothing and charged nothing"
    )
    assert caught.value.hint == "make space on its disk, or correct its permissions, and ask again"
    assert (house.entries, answers_of(house)) == (charged, answered)


def answers_of(house: House) -> list[tuple[object, ...]]:
    return house.service.store.reader()._all("SELECT * FROM answers ORDER BY position")


def test_a_full_disk(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    house.service.store._db.execute(f"{PAGES} 1")  # SQLite raises it to what is in use now
    answered = 0
    for answered in range(100):
        try:
            house.ask(release=str(answered))
        except LedgerUnavailable:
            break
    assert answered < 99
    refused(house, "database or disk is full", release="next")
    house.service.store._db.execute(f"{PAGES} 1000000")
    first = house.octets(release="next")
    assert len(house.entries) == answered + 1
    verify_chain(house.entries)
    house.reopen()
    assert house.octets(release="next") == first


LIMITED = """
    import resource, sys
    from pathlib import Path
    from blindfit.algorithms.errors import LedgerUnavailable
    from tests.measurement.children import dataset_of
    from tests.measurement.house import House
    from tests.measurement.talking import log_to_standard_error
    from tests.measurement.wide import WIDE

    log_to_standard_error()
    directory = Path(sys.argv[1])
    house = House(directory, {"visits": dataset_of(directory)}, WIDE)
    wal = Path(f"{house.database}-wal")
    house.ask(release="first")
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size + 4096, resource.RLIM_INFINITY))
    for i in range(100):
        before = len(house.entries)
        try:
            house.ask(release=str(i))
        except LedgerUnavailable as error:
            assert len(house.entries) == before
            print(i, error.message, sep="|")
            break
    else:
        sys.exit("the limit was never met")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(house.octets(release=str(i)).hex())
"""


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The operating system refuses in the middle of a transaction; then there is space again in the same process."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), str(tmp_path)],
        cwd=Path(children.__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    line, answer = run.stdout.splitlines()
    answered, text = line.split("|")
    database = tmp_path / "party.sqlite"
    assert text in (
        f"{database} could not be written ({reason}): this step released nothing and charged nothing"
        for reason in ("database or disk is full", "disk I/O error")
    )
    house = House(tmp_path, {"visits": children.dataset_of(tmp_path)}, WIDE)
    assert len(house.entries) == int(answered) + 2
    assert house.octets(release=answered).hex() == answer
    house.close()


def test_a_read_only_database(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    first = house.octets()
    house.service.store._db.execute("PRAGMA query_only = ON")
    refused(house, "attempt to write a readonly database", release="next")
    assert house.octets() == first  # what was answered can still be read
    house.service.store._db.execute("PRAGMA query_only = OFF")
    house.ask(release="next")


def test_another_process_holds_the_database(open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blindfit.parties.store.database.BUSY_TIMEOUT_S", 0.2)
    house = open_house(budget=WIDE)
    holder = sqlite3.connect(house.database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    refused(house, "database is locked")
    holder.execute("ROLLBACK")
    holder.close()
    house.ask()


# --- opening ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be looked at" * 10, b"SQLite format 3\0" + b"\xff" * 4080]
)
def test_a_corrupted_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "party.sqlite"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        Store(path)
    assert str(refused.value).startswith(f"{path} cannot be used as the party's database: ")
    assert "check that Blindfit made this file" in refused.value.hint
    assert path.read_bytes() == content


def test_a_ledger_that_breaks_while_it_is_used_is_no_foreign_error(open_house: OpenHouse) -> None:
    house = open_house(budget=WIDE)
    for i in range(40):
        house.ask(release=str(i))
    house.close()
    broken = bytearray(house.database.read_bytes())
    store = Store(house.database)
    root = store._db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ledger'").fetchone()[0]
    store.close()
    broken[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    house.database.write_bytes(broken)
    house.open()
    with pytest.raises(LedgerUnavailable, match="malformed"):
        house.ask(release="another")
    house.close()
    store = Store(house.database)
    with pytest.raises(LedgerUnavailable, match=r"could not be read \(database disk image is malformed\)"):
        store.reader().ledger()
    store.close()


@pytest.mark.parametrize("what", ["a directory", "below a file"])
def test_a_place_that_is_none_is_named(tmp_path: Path, what: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path if what == "a directory" else tmp_path / "file" / "party.sqlite"
    with pytest.raises(ConfigError, match="cannot be used as the party's database"):
        Store(path)


def test_only_its_owner_can_read_it(open_house: OpenHouse) -> None:
    old = os.umask(0)
    try:
        house = open_house()
        house.ask(one_hot())
        files = [path for path in house.directory.iterdir() if path.name.startswith("party.sqlite")]
        assert len(files) == 3
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    finally:
        os.umask(old)


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "party.sqlite")
    row = SessionRow("s", "walr", "coordinator", "", "PROPOSED", "now")

    def change_my_mind() -> None:
        with store.transaction() as transaction:
            transaction.add_session(row)
            raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed my mind"):
        change_my_mind()
    assert store.reader().sessions() == []
    with store.transaction() as transaction:
        transaction.add_session(row)
    assert store.reader().session("s") == row
    store.close()


FULL = 2  # https://www.sqlite.org/pragma.html#pragma_synchronous


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    """Only a machine that loses its power can show it, so the test reads the settings of the connections.

    With a write-ahead log FULL flushes the log at every commit. Anything less leaves commits that a power cut takes
    back."""
    store = Store(tmp_path / "party.sqlite")
    with store.transaction() as transaction:
        assert transaction._all("PRAGMA synchronous") == [(FULL,)]
    with store.view() as view:
        assert view._all("PRAGMA synchronous") == [(FULL,)]
    reader = store.reader()
    assert reader._all("PRAGMA synchronous") == [(FULL,)]
    assert reader._all("PRAGMA journal_mode") == [("wal",)]
    store.close()
