"""The files that a party keeps of an ended session: find them in all places, and remove them.

| data_dir/checkpoints/SESSION    secrets, order of rows, encrypted mask, state after each epoch
| data_dir/models/SESSION         its part of a model, report, scores, transcript
| data_dir/predictions/SESSION    report and scores of a prediction
| data_dir/logs/SESSION           the party's log of the session

Each file that the database records as the session's is removed too: in an output_dir, a file of scores, or the
checkpoints of the training that the session resumed.

Each file belongs to the session that has written it. A session that was killed while it wrote a file has that file only
if the new content is there. Otherwise the file stays the earlier session's (kept_files.py).

The ledger, receipts, stored answers and the session's name stay: they prove the charges, and nothing is charged twice.
Files go one after the other, and the database forgets each file after its removal. A purge that is stopped in the
middle can be repeated to remove the rest.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.files.written import read_json
from blindfit.parties.sessions import kept_files
from blindfit.parties.sessions.state import ENDS
from blindfit.parties.settings import SESSION
from blindfit.parties.store.database import Reads, Store

KINDS = ("checkpoints", "models", "predictions", "logs")
FIRST, LAST = "base.json", "report.json"  # the first is needed to resume a training; the last names the place of scores


@dataclass(frozen=True)
class Kept:
    of: str
    path: Path
    size_bytes: int


def find_ended_sessions(store: Store, before: date | None = None) -> list[str]:
    """Return the sessions that ended before a day (UTC), the oldest first."""
    rows = [row for row in store.reader().sessions() if row.state in ENDS]
    return [row.session for row in rows if before is None or row.changed < before.isoformat()]


def find_kept(store: Store, data_dir: Path, session: str) -> list[Kept]:
    """Return the files of a session, in the order in which they must be removed.

    Raises:
        ConfigError: this party had no such session; or the session, or a session that resumed it, has not ended.
    """
    reader = store.reader()
    if not re.fullmatch(SESSION, session) or reader.session(session) is None:
        raise ConfigError(f"{session} is not a session of this party", hint="find its name in the report of its job")
    _check_ended(reader, session)
    roots = [data_dir / kind / session for kind in KINDS]
    _check_ended(reader, reader.session_of_file(os.path.relpath(roots[0], data_dir)))  # the training that resumed it
    noted = kept_files.files_of(store, data_dir, session)
    found = (path for root in dict.fromkeys([*roots, *noted]) for path in _files_in(root))
    mine = sorted({path for path in found if not _is_strangers(path, reader)}, key=_order)
    return [Kept(session, path, path.lstat().st_size) for path in mine]


def _check_ended(reader: Reads, session: str | None) -> None:
    row = reader.session(session) if session else None
    if row is not None and row.state not in ENDS:
        raise ConfigError(
            f"{row.session} is {row.state.lower()}: its files are in use",
            hint="wait for its end, or cancel its job; if the party was killed, its next start ends the session",
        )


def _files_in(root: Path) -> Iterator[Path]:
    """Yield every file under a directory, or the file itself; links are not followed."""
    if root.is_dir() and not root.is_symlink():
        for directory, _, names in os.walk(root):
            yield from (Path(directory, name) for name in names)
    elif os.path.lexists(root):
        yield root


def _is_strangers(path: Path, reader: Reads) -> bool:
    """Return True if a job that this party does not know has since written its report next to the file."""
    try:
        content = read_json(path.parent / LAST)
    except DataError:
        return False
    writer = content.get("session") if isinstance(content, dict) else None
    return isinstance(writer, str) and reader.session(writer) is None


def _order(path: Path) -> tuple[bool, bool, Path]:
    return path.name == LAST, path.name != FIRST, path


def remove(kept: Iterable[Kept]) -> Iterator[Kept]:
    """Remove file after file, and yield each after its removal.

    Raises:
        DataError: a file could not be removed.
    """
    for one in kept:
        try:
            one.path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(
                f"{one.path} cannot be removed: {error.strerror}", hint="correct its permissions, and purge again"
            ) from None
        yield one


def forget(store: Store, data_dir: Path, session: str) -> None:
    """Remove the empty directories of a session whose files are gone, and the records of its files."""
    for kind in KINDS:
        _remove_empty(data_dir / kind / session)
    with store.transaction() as transaction:
        for path in transaction.files_of(session):
            _remove_empty(data_dir / path)
            if not os.path.lexists(data_dir / path):
                transaction.forget_file(path)


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):  # not a directory, or not empty
        directory.rmdir()
