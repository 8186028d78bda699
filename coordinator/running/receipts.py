"""Receipts of parties that a coordinator's user keeps.

They show that a ledger was restored from a backup, even if no other party took part. One file serves all jobs of the
user, `blindfit/receipts.sqlite` under $XDG_STATE_HOME (else ~/.local/state). It identifies a party by its name and its
receipt key, because jobs on this machine have temporary certificates.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job
from blindfit.parties.files.private_files import make_private
from blindfit.parties.sessions.admission import MOST_RECEIPTS
from blindfit.parties.store.receipts import SignedReceipt, check_given, proves_more

BUSY_TIMEOUT_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS receipts (
    party TEXT, key BLOB, population TEXT, position INTEGER NOT NULL, statement BLOB NOT NULL, signature BLOB NOT NULL,
    PRIMARY KEY (party, key, population))
"""


def receipts_of(job: Job[Any]) -> HeldReceipts:
    """Return the receipts that a job presents and adds to: those of this user, or of the rehearsal."""
    return of_this_user() if job.stage is None else HeldReceipts(job.stage.receipts)


def of_this_user() -> HeldReceipts:
    state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state")
    with contextlib.suppress(RuntimeError):  # no home directory: a job that needs it reports the error
        state = state.expanduser()
    return HeldReceipts(state / "blindfit" / "receipts.sqlite")


@dataclass(frozen=True)
class HeldReceipts:
    """File of receipts.

    Args:
        path: path of the file; it is made if it does not exist.
    """

    path: Path

    def of(self, party: str, key: bytes) -> list[SignedReceipt]:
        """Return receipts that a party signed: for each population the strongest; the newest, if there are very many.

        Raises:
            ConfigError: the file cannot be used, so that this job's receipts could not be kept either.
        """
        query = "SELECT statement, signature FROM receipts WHERE party = ? AND key = ? ORDER BY position DESC LIMIT ?"
        with self._open() as database:
            return [(row[0], row[1]) for row in database.execute(query, (party, key, MOST_RECEIPTS))]

    def keep(self, party: str, key: bytes, receipt: SignedReceipt) -> None:
        """Keep a receipt if it proves more than the kept one.

        Raises:
            ConfigError: the file cannot be written.
            MalformedMessage: the party did not sign the receipt.
        """
        given = check_given(receipt, party, key)
        about = (party, key, given.population)
        with self._open() as database:
            query = "SELECT statement FROM receipts WHERE party = ? AND key = ? AND population = ?"
            held = database.execute(query, about).fetchone()
            if proves_more(given, held[0] if held else b""):
                database.execute(
                    "INSERT OR REPLACE INTO receipts VALUES (?, ?, ?, ?, ?, ?)", (*about, given.position, *receipt)
                )

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield one transaction, which may write."""
        try:
            if not self.path.is_absolute():
                raise OSError("this user has no home directory")
            make_private(self.path.parent)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))
            with contextlib.closing(sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S)) as database, database:
                database.execute(_SCHEMA)
                database.execute("BEGIN IMMEDIATE")
                yield database
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"{self.path} cannot be used to keep the parties' receipts: {error}",
                hint="set XDG_STATE_HOME to a directory of this user, and keep this directory for all jobs",
            ) from None
