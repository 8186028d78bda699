"""The owner of a file: the session that has written it, and never a session that was only about to write it.

| begin   the database records the session that is about to write the file, and a digest of the new content
| write   the file takes the place of an older one, whole
| note    the database records that the session has the file

A session that fails or is killed in between has begun a file. The file's content then decides its owner (`settle`). If
the file has the new content, it belongs to that session; otherwise it stays the earlier session's. A file that holds
the same bytes already is the earlier session's until it is noted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from blindfit.algorithms.errors import LedgerUnavailable
from blindfit.parties.files import written
from blindfit.parties.sessions.state import ENDS
from blindfit.parties.store.database import Store
from blindfit.parties.store.sessions import BegunFile


def write(store: Store, data_dir: Path, session: str, path: Path, content: bytes) -> None:
    """Write a file. Raise ConfigError or LedgerUnavailable if it could not be written or noted; its owner stays
    known.
    """
    settle(store, data_dir)
    begun = BegunFile(os.path.relpath(path, data_dir), session, hashlib.sha256(content).hexdigest())
    if _sha256(path) != begun.sha256:
        with store.transaction() as transaction:
            transaction.begin_file(begun)
    try:
        written.write_file(path, content)
    except BaseException:
        with contextlib.suppress(LedgerUnavailable):  # then the owner is settled later
            _settle(store, data_dir, [begun])
        raise
    with store.transaction() as transaction:
        transaction.note_file(begun.path, session)


def files_of(store: Store, data_dir: Path, session: str) -> list[Path]:
    """Return the files of a session, without the files that a running session is about to replace."""
    settle(store, data_dir)
    reader = store.reader()
    begun = {one.path for one in reader.list_begun_files()}
    return [Path(os.path.normpath(data_dir / path)) for path in reader.files_of(session) if path not in begun]


def settle(store: Store, data_dir: Path) -> None:
    """Settle the owners of the files that sessions had begun to write when they ended."""
    reader = store.reader()
    begun = [
        one for one in reader.list_begun_files() if (row := reader.session(one.session)) is None or row.state in ENDS
    ]
    _settle(store, data_dir, begun)


def _settle(store: Store, data_dir: Path, begun: list[BegunFile]) -> None:
    for one in begun:
        is_written = _sha256(data_dir / one.path) == one.sha256
        with store.transaction() as transaction:
            if not transaction.has_begun(one):
                continue
            if is_written:
                transaction.note_file(one.path, one.session)
            else:
                transaction.drop_begun_file(one)


def _sha256(path: Path) -> str:
    """Return the file's digest; empty if there is no such file."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
