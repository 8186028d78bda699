"""The directories of a party's snapshots: each is complete or absent, and directories of others are left untouched.

    snapshots/ID            a snapshot, once it is finished
    snapshots/.building-ID  its mark, from before its first row until the database knows it; its rows are made within

A publisher that is killed leaves its mark, before or after its snapshot has its name. A directory with a mark that the
database does not know is unfinished: the next start or publish removes it. A snapshot's name without a mark was
finished once. If the database does not know it, an older database was restored, and only the operator can decide
between the two. The directory is left, and reported to the operator at each start and by `blindfit snapshot`.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from blindfit.algorithms.errors import DataError
from blindfit.parties.files.lock_file import LockFile
from blindfit.parties.files.private_files import sync_directory
from blindfit.parties.store.database import stamp
from blindfit.parties.store.snapshots import SnapshotRow

ID_BYTES = 16
ID = re.compile(rf"[0-9a-f]{{{2 * ID_BYTES}}}")
MARK = ".building-"
LOCK = "publish.lock"
MOST_WAIT_S = 600.0  # longest wait for another publisher
POLL_S = 0.2


@dataclass(frozen=True)
class Unfinished:
    """A snapshot that is being made.

    Args:
        within: directory in which its rows are made.
    """

    id: str
    within: Path
    final: Path

    @classmethod
    def begin(cls, directory: Path) -> Unfinished:
        made = secrets.token_hex(ID_BYTES)
        mark = directory / f"{MARK}{made}"
        mark.mkdir(mode=0o700)
        within = mark / "rows"
        within.mkdir(mode=0o700)
        return cls(made, within, directory / made)

    def give_name(self) -> None:
        """Give the finished snapshot its name. Its mark stays, for `remove_unfinished`."""
        self.within.rename(self.final)
        sync_directory(self.final.parent)


def remove_unfinished(directory: Path, rows: Sequence[SnapshotRow]) -> None:
    """Remove the remains of a publisher or a removal that was killed, and marks of finished snapshots. Call it only as
    the only publisher.

    Args:
        rows: all snapshots that the database knows, removed ones included.
    """
    known = {row.id for row in rows if row.removed is None}
    for mark in directory.glob(f"{MARK}*"):
        marked = mark.name.removeprefix(MARK)
        if ID.fullmatch(marked) and marked not in known:
            _remove(directory / marked)
        _remove(mark)
    for row in rows:
        if row.removed is not None:
            _remove(directory / row.id)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        with contextlib.suppress(FileNotFoundError):  # `remove_older` may remove it at the same time
            shutil.rmtree(path)


def find_unknown(directory: Path, rows: Sequence[SnapshotRow]) -> Iterator[str]:
    """Yield a sentence for the operator about each finished snapshot that the database does not know, with the
    remedy.
    """
    known = {row.id for row in rows}
    for path in sorted(directory.glob("*")):
        is_marked = (directory / f"{MARK}{path.name}").exists()
        if ID.fullmatch(path.name) and path.name not in known and not is_marked and path.is_dir():
            yield (
                f"{path} has the name of a snapshot that the party's database does not know. Perhaps an older database "
                "was restored. The directory may hold rows or labels in plain text: put the newer database back, or "
                "remove that directory"
            )


@contextmanager
def only_publisher(
    data_dir: Path, dataset: str, on_waiting: Callable[[str], None], max_wait_s: float | None = None
) -> Iterator[None]:
    """Reserve publishing for this process, among all processes of a party.

    Args:
        on_waiting: function that gets one sentence about the wait, if there is a wait.

    Raises:
        DataError: another process still publishes after `max_wait_s`, by default MOST_WAIT_S.
    """
    lock = LockFile(data_dir / LOCK)
    wait_s = MOST_WAIT_S if max_wait_s is None else max_wait_s
    ends, told = time.monotonic() + wait_s, False
    while (holder := lock.take(f"{dataset}, since {stamp()}, process {os.getpid()}")) is not None:
        under_way = f"another publish of this party is in progress: {holder or 'it has just begun'}"
        if not told:
            on_waiting(f"{dataset} waits: {under_way}")
            told = True
        if time.monotonic() >= ends:
            raise DataError(
                f"{dataset} is not published: {under_way}",
                hint="try again when it has ended; end its process if it hangs in a database",
            )
        time.sleep(POLL_S)
    try:
        yield
    finally:
        lock.release()
