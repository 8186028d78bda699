"""Databases of every version."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from blindfit.parties.store import migrations

HERE = Path(__file__).parent


NEWEST = migrations.newest()


def version_of(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return migrations.version_of(database)
