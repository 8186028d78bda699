"""A party's one database: sessions, ledger, stored answers, receipts. SQLite, durable before anything leaves.

Several processes may open the database at once (the party, `blindfit approve`, `blindfit ledger`). Every change is one
IMMEDIATE transaction, so only one process gets the last unit of a budget. Its tables have a version (migrations.py).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from blindfit.algorithms.errors import ConfigError, LedgerUnavailable
from blindfit.parties.files.private_files import make_private
from blindfit.parties.store.account import AccountReads, AccountWrites
from blindfit.parties.store.answers import AnswerReads, AnswerWrites
from blindfit.parties.store.excess import Excess
from blindfit.parties.store.ledger import LedgerReads, LedgerWrites
from blindfit.parties.store.losses import LossReads, LossWrites, find_unexplained
from blindfit.parties.store.migrations import check_known, migrate, newest, version_of
from blindfit.parties.store.rows import Execute
from blindfit.parties.store.sessions import SessionReads, SessionWrites
from blindfit.parties.store.snapshots import SnapshotReads, SnapshotWrites
from blindfit.parties.store.uploads import UploadReads, UploadWrites

BUSY_TIMEOUT_S = 30.0
READER_CACHE_KIB = 256  # size for each thread; the system keeps the file's pages anyway


class Reads(SessionReads, LedgerReads, AnswerReads, SnapshotReads, AccountReads, UploadReads, LossReads):
    """Reads of the database, which change nothing."""


class Writes(SessionWrites, LedgerWrites, AnswerWrites, SnapshotWrites, AccountWrites, UploadWrites, LossWrites, Reads):
    """Reads and writes within one transaction."""


class KeepsData(Protocol):
    """The settings of a party that the database needs."""

    @property
    def data_dir(self) -> Path: ...
    @property
    def excess(self) -> Excess: ...


def path_of(party: KeepsData, base_dir: Path) -> Path:
    """Return the path of a party's database.

    Args:
        base_dir: folder of the party's file.
    """
    return base_dir / party.data_dir / "party.sqlite"


def make_lost_error(path: Path, unexplained: Sequence[str]) -> ConfigError:
    """Return the error of a party whose database is older than its files."""
    more = f" and {len(unexplained) - 1} more" if unexplained[1:] else ""
    return ConfigError(
        f"{path} does not know {unexplained[0]}{more} in its folder: the database was lost or is an older one, and "
        "its budgets and counts would start again",
        hint="stop the party and put the newest backup of party.sqlite back, with its party.sqlite-wal; without one, "
        "run `blindfit ledger PARTY.TOML --acknowledge REASON` with what happened: the reason stays in the ledger",
    )


class Store:
    """A party's database. Methods that change several things take their transaction, `with store.transaction() as t`.

    Args:
        excess: treatment of a job that exceeds a limit of a budget or an account; by default the job is refused.
    """

    def __init__(self, path: Path, excess: Excess | None = None) -> None:
        self.path, self.excess = path, excess or Excess()
        self._lock = threading.RLock()
        self._left = threading.Condition()  # guards the two below
        self._inside, self._is_closed = 0, False
        self._of_thread = threading.local()
        self._readers: list[sqlite3.Connection] = []
        try:
            make_private(path.parent)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._db = _connect(path)
            check_known(self._db, path)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # an answer leaves only after its charge is on the disk
            migrate(self._db, path)
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"{path} cannot be used as the party's database: {error}",
                hint="check that Blindfit made this file, that its disk has space, and that this user may write it",
            ) from None

    def close(self) -> None:
        """Wait until every thread has left, then close all connections; a later use raises LedgerUnavailable.

        SQLite frees a connection that is closed, even while another thread runs a query on it. A thread must not close
        the store within its own `view` or `transaction`: it would wait for itself.
        """
        with self._left:
            self._is_closed = True
            self._left.wait_for(lambda: not self._inside)
            for connection in (*self._readers, self._db):
                connection.close()

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """Keep the connections open while they are used.

        Raises:
            LedgerUnavailable: the store was closed.
        """
        with self._left:
            if self._is_closed:
                raise LedgerUnavailable(
                    f"{self.path} is closed, because the party stops: this step released nothing and charged nothing",
                    hint="ask again when the party has started again",
                )
            self._inside += 1
        try:
            yield
        finally:
            with self._left:
                self._inside -= 1
                self._left.notify_all()

    @classmethod
    def of(cls, party: KeepsData, base_dir: Path) -> Store:
        """Open the database of a party, or make a new one.

        Raises:
            ConfigError: the party has files of a database that is gone, and its operator has not acknowledged that.
        """
        path = path_of(party, base_dir)
        store = cls(path, party.excess)
        if unexplained := find_unexplained(path.parent, store.reader()):
            store.close()
            raise make_lost_error(path, unexplained)
        return store

    @classmethod
    def existing(cls, party: KeepsData, base_dir: Path) -> Store | None:
        """Open the database of a party, as it is; None if it has no database yet."""
        path = path_of(party, base_dir)
        return cls(path) if path.exists() else None

    @classmethod
    def check_not_lost(cls, party: KeepsData, base_dir: Path) -> None:
        """Check as `of` does, and make nothing. Raise ConfigError if the party has files of a lost database."""
        path, store = path_of(party, base_dir), cls.existing(party, base_dir)
        with contextlib.closing(store) if store else contextlib.nullcontext():
            if unexplained := find_unexplained(path.parent, store.reader() if store else None):
                raise make_lost_error(path, unexplained)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writes]:
        """Yield a transaction. All its changes are on the disk when it returns, or none.

        Raises:
            LedgerUnavailable: the database could not be written, or was closed; nothing was changed.
        """
        with self._open(), self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    self._check_version()
                    yield Writes(_executing(self._db), self.excess)
                    self._db.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise LedgerUnavailable(
                    f"{self.path} could not be written ({error}): this step released nothing and charged nothing",
                    hint="make space on its disk, or correct its permissions, and ask again",
                ) from None

    def _check_version(self) -> None:
        """Raise LedgerUnavailable if a later Blindfit has migrated the database, and counts in ways that this one does
        not know.
        """
        if (found := version_of(self._db)) != newest():
            raise LedgerUnavailable(
                f"{self.path} was upgraded to version {found} while this process ran: this step released nothing and "
                "charged nothing",
                hint="start the party again, with the version of Blindfit that upgraded it",
            )

    @contextlib.contextmanager
    def view(self) -> Iterator[Reads]:
        """Yield several reads of one state, while other processes may write. Use it for nothing else."""
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                yield Reads(_executing(connection), self.excess)
            finally:
                connection.execute("ROLLBACK")

    def reader(self) -> Reads:
        """Return reads, each of which shows the present state of the disk."""
        return Reads(self._read, self.excess)

    def _read(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._reading() as connection:
            return connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Give each thread a connection of its own, so that a read does not wait until a charge is on the disk."""
        with self._open():
            try:
                connection: sqlite3.Connection | None = getattr(self._of_thread, "connection", None)
                if connection is None:
                    connection = self._of_thread.connection = _connect(self.path)
                    connection.execute("PRAGMA query_only = ON")
                    connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
                    self._readers.append(connection)
                yield connection
            except sqlite3.Error as error:
                raise LedgerUnavailable(
                    f"{self.path} could not be read ({error}): this step released nothing and charged nothing",
                    hint="check its disk; if the file is damaged, restore a backup: the active parties' receipts then "
                    "show the entries that it lacks",
                ) from None


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def _executing(connection: sqlite3.Connection) -> Execute:
    return lambda query, values: connection.execute(query, values).fetchall()


def stamp(later: timedelta = timedelta()) -> str:
    """Return the time in the form of the database: UTC, to the second."""
    return (datetime.now(UTC) + later).isoformat(timespec="seconds")
