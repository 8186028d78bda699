"""One process at a time keeps a party's folder: two would charge one ledger for two parties."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import make_private

LOCK = "party.lock"
MOST_BYTES = 200  # of who holds it


class DataDirLock:
    """Held from `take` to `release`, or to the end of the process, however it ends."""

    def __init__(self, data_dir: Path, party: str) -> None:
        self._path, self._party = data_dir / LOCK, party
        self._file: int | None = None

    def take(self) -> None:
        """Raises ConfigError: another process has the folder; it names both parties."""
        make_private(self._path.parent)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _printable(os.read(file, MOST_BYTES)) or "another party"
            os.close(file)
            raise ConfigError(
                f"data_dir = {self._path.parent}: {holder} is up and keeps it, so {self._party} cannot",
                hint="start each party once, with a data_dir of its own; jobs for parties that are up: blindfit submit",
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{self._party} (process {os.getpid()})".encode(), 0)
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # the words; the lock goes with the file
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _printable(content: bytes) -> str:
    text = content.decode("ascii", "replace")
    return "".join(letter for letter in text if letter.isprintable())
