"""Notice that files of a party belong to a database that is gone, and keep the operator's acknowledgement.

A database that was lost, or restored from an older backup than the files next to it, has forgotten charges. These files
show it:

    a key             whose database has never had a row, and did not begin before the key
    snapshots/ID      a finished snapshot that the database does not know

The party does not start on such files until its operator has acknowledged each with a reason, which stays. An older
database that knows every snapshot is noticed only by receipts (receipts.py).
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from blindfit.parties.files.vault import MODEL_KEY, PARTY_KEY, RECEIPT_KEY, ROW_KEY
from blindfit.parties.store.rows import RowReads, RowWrites

KEYS = (MODEL_KEY, RECEIPT_KEY, PARTY_KEY, ROW_KEY)
SNAPSHOTS, SNAPSHOT_ID = "snapshots", re.compile(r"[0-9a-f]{32}")
UNFINISHED = ".building-"  # mark of a snapshot that is being made: parties/snapshots/directories.py
BEGUN = "party.sqlite"
ROWS_IN = ("sessions", "ledger", "snapshots", "receipts_held", "uploads")


@dataclass(frozen=True, slots=True)
class Loss:
    """A lost file or entry that the operator has acknowledged.

    Args:
        what: path from the party's folder, or name of a receipt.
    """

    what: str
    acknowledged: str
    reason: str


class LossReads(RowReads):
    def losses(self) -> list[Loss]:
        """Return the losses that the operator has acknowledged, the oldest first."""
        return self._rows(Loss, "losses", "WHERE what != ? ORDER BY acknowledged, what", BEGUN)

    def begins_before_keys(self) -> bool:
        """Return True if the database was begun in a folder without keys and snapshots, or has had rows."""
        return bool(self._all("SELECT 1 FROM losses WHERE what = ?", BEGUN))

    def list_snapshots(self) -> set[str]:
        return {str(row[0]) for row in self._all("SELECT id FROM snapshots")}


class LossWrites(LossReads, RowWrites):
    def add_loss(self, loss: Loss) -> None:
        self._insert("losses", loss, "INSERT OR IGNORE")


def begin(database: sqlite3.Connection) -> None:
    """Make the table. Note that the database began before the keys, unless it is empty and its folder has files."""
    database.execute("CREATE TABLE losses (what TEXT PRIMARY KEY, acknowledged TEXT NOT NULL, reason TEXT NOT NULL)")
    has_rows = any(database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall() for table in ROWS_IN)  # noqa: S608
    folder = Path(database.execute("PRAGMA database_list").fetchone()[2]).parent
    if has_rows or not any((*_keys(folder), *_snapshots(folder))):
        database.execute("INSERT INTO losses VALUES (?, '', '')", (BEGUN,))


def find_unexplained(data_dir: Path, reader: LossReads | None) -> list[str]:
    """Return the files whose database is gone, as paths from the party's folder.

    Args:
        reader: reader of the party's database; None without a database.
    """
    keys, snapshots = _keys(data_dir), _snapshots(data_dir)
    if reader is None:
        return [*keys, *(f"{SNAPSHOTS}/{name}" for name in snapshots)]
    # The files were listed before the rows are read: a file that another process has begun since then is in both.
    acknowledged = {loss.what for loss in reader.losses()}
    found = [] if reader.begins_before_keys() else keys
    found += [f"{SNAPSHOTS}/{name}" for name in sorted(set(snapshots) - reader.list_snapshots())]
    return [path for path in found if path not in acknowledged]


def _keys(data_dir: Path) -> list[str]:
    return [name for name in KEYS if (data_dir / name).exists()]


def _snapshots(data_dir: Path) -> list[str]:
    directory = data_dir / SNAPSHOTS
    return [
        path.name
        for path in sorted(directory.glob("*"))
        if SNAPSHOT_ID.fullmatch(path.name) and path.is_dir() and not (directory / f"{UNFINISHED}{path.name}").exists()
    ]
