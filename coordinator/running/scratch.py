"""A temporary folder of a command. The command removes it, or after a kill the next command does.

The folder holds keys or rows, so only its user may read it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from blindfit.parties.files.lock_file import LockFile

PREFIX, LOCK = "blindfit-run-", "lock"
NEW_S = 60.0  # a newer folder may not have its lock yet


@contextlib.contextmanager
def scratch_folder(command: str) -> Iterator[Path]:
    """Yield a new folder.

    Args:
        command: name of the command, for users who wait for the lock.
    """
    sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as temporary:
        held = LockFile(Path(temporary) / LOCK)
        held.take(command)
        try:
            yield Path(temporary)
        finally:
            held.release()


def sweep() -> None:
    """Remove the folders of killed commands without living parties."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if is_ours and time.time() - status.st_mtime > NEW_S and LockFile(folder / LOCK).take("") is None:
                shutil.rmtree(folder, ignore_errors=True)
