"""A lock that lets one process at a time use a party's folder: otherwise two parties would charge one ledger."""

from __future__ import annotations

import os
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.lock_file import LockFile
from blindfit.parties.files.private_files import make_private

LOCK = "party.lock"


class DataDirLock:
    """Lock that is held from `take` to `release`, or to the end of the process, in any way."""

    def __init__(self, data_dir: Path, party: str) -> None:
        self._data_dir, self._party, self._lock = data_dir, party, LockFile(data_dir / LOCK)

    def take(self) -> None:
        """Take the lock. Raise ConfigError if another process has the folder; the error names both parties."""
        make_private(self._data_dir)
        holder = self._lock.take(f"{self._party} (process {os.getpid()})")
        if holder is not None:
            raise ConfigError(
                f"data_dir = {self._data_dir}: {holder or 'another party'} uses it, so {self._party} cannot",
                hint="start each party once, with a data_dir of its own; for parties that are running use "
                "`blindfit submit JOB.TOML`",
            )

    def release(self) -> None:
        self._lock.release()
