"""A lock that ends with its process, in any way, and names its holder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from blindfit.algorithms.texts import printable

MOST_BYTES = 200  # length of the holder's description


class LockFile:
    """Held from `take` to `release`, or to the end of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self, words: str) -> str | None:
        """Take the lock.

        Args:
            words: description of this holder, which another process can read meanwhile.

        Returns:
            The description of the lock's holder, which may be empty; None if this process took the lock.
        """
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with contextlib.closing(os.fdopen(file, "rb")) as held:
                return printable(held.read(MOST_BYTES).decode("ascii", "replace"))
        os.ftruncate(file, 0)
        os.pwrite(file, words.encode(), 0)
        self._file = file
        return None

    def release(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # of the description; the lock itself ends with the file
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None
