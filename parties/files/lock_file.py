"""A lock that ends with its process, however that ends, and says who has it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from blindfit.algorithms.texts import printable

MOST_BYTES = 200  # of who holds it


class LockFile:
    """Held from `take` to `release`, or to the end of the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self, words: str) -> str | None:
        """
        Args:
            words: that whoever wants it meanwhile is told.

        Returns:
            None: it is ours. Otherwise the words of who has it, which may be none.
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
            with contextlib.suppress(OSError):  # the words; the lock goes with the file
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None
