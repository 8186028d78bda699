"""One process at a time keeps a party's folder: two would charge one ledger for two parties."""

from __future__ import annotations

import os
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.lock_file import LockFile
from blindfit.parties.files.private_files import make_private

LOCK = "party.lock"


class DataDirLock:
    """Held from `take` to `release`, or to the end of the process, however it ends."""

    def __init__(self, data_dir: Path, party: str) -> None:
        self._data_dir, self._party, self._lock = data_dir, party, LockFile(data_dir / LOCK)

    def take(self) -> None:
        """Raise ConfigError: another process has the folder; it names both parties."""
        make_private(self._data_dir)
        holder = self._lock.take(f"{self._party} (process {os.getpid()})")
        if holder is not None:
            raise ConfigError(
                f"data_dir = {self._data_dir}: {holder or 'another party'} is up and keeps it, so {self._party} cannot",
                hint="start each party once, with a data_dir of its own; for parties that are up use "
                "`blindfit submit JOB.TOML`",
            )

    def release(self) -> None:
        self._lock.release()
