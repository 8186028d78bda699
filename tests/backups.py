"""Back up and restore a party's database, as an operator does."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path


def back_up(database: Path, copy: Path) -> Path:
    """Back up a database, even if it is open."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(database)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def restore(copy: Path, database: Path) -> None:
    """Restore a database that nobody has open."""
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    shutil.copy(copy, database)
