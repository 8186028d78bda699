"""Keep facts of a party's sessions: their states, the files that they wrote, the predictions that they made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blindfit.parties.store.rows import RowReads, RowWrites


@dataclass(frozen=True, slots=True)
class SessionRow:
    session: str
    protocol: str
    proposed_by: str
    digest: str  # digest of the job that its operator approves
    state: str
    changed: str
    proposal: bytes = b""  # as it was received, for the operator; until the state changes


@dataclass(frozen=True, slots=True)
class BegunFile:
    """A file that a session is about to write.

    Args:
        sha256: digest of its new content.
    """

    path: str
    session: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction of the active party.

    Args:
        model: session of the training whose model has scored the rows.
        place: place of the scores, in the form that the operator sees; without a password.
        path: csv file that belongs to the session, as in `files_of`; empty if the scores went elsewhere.
    """

    session: str
    model: str
    place: str
    path: str


class SessionReads(RowReads):
    def sessions(self, state: str | None = None) -> list[SessionRow]:
        return self._rows(SessionRow, "sessions", "WHERE ?1 IS NULL OR state = ?1 ORDER BY changed", state)

    def session(self, session: str) -> SessionRow | None:
        return self._row(SessionRow, "sessions", "WHERE session = ?", session)

    def count_sessions(self, proposed_by: str, *, since: str) -> int:
        """Count a coordinator's sessions that were proposed or changed since that time."""
        query = "SELECT COUNT(*) FROM sessions WHERE proposed_by = ? AND changed >= ?"
        return self._number(query, proposed_by, since)

    def is_cancelled(self, session: str) -> bool:
        return bool(self._all("SELECT 1 FROM cancellations WHERE session = ?", session))

    def list_begun_files(self) -> list[BegunFile]:
        return self._rows(BegunFile, "begun_files")

    def has_begun(self, begun: BegunFile) -> bool:
        query = "SELECT 1 FROM begun_files WHERE path = ? AND session = ? AND sha256 = ?"
        return bool(self._all(query, begun.path, begun.session, begun.sha256))

    def files_of(self, session: str) -> list[str]:
        return [str(row[0]) for row in self._all("SELECT path FROM kept_files WHERE session = ?", session)]

    def session_of_file(self, path: str) -> str | None:
        rows = self._all("SELECT session FROM kept_files WHERE path = ?", path)
        return str(rows[0][0]) if rows else None

    def prediction(self, session: str) -> Prediction | None:
        return self._row(Prediction, "predictions", "WHERE session = ?", session)


class SessionWrites(SessionReads, RowWrites):
    def add_session(self, row: SessionRow) -> None:
        """Add a new session. A row never becomes another session's."""
        self._insert("sessions", row)

    def change_session(self, session: str, *, state: str, changed: str) -> None:
        query = "UPDATE sessions SET state = ?, changed = ?, proposal = x'' WHERE session = ?"
        self._change(query, state, changed, session)

    def cancel_session(self, session: str) -> None:
        """Ask the party's process, which is another process, to end the session."""
        self._insert("cancellations", how="INSERT OR IGNORE", session=session)

    def begin_file(self, begun: BegunFile) -> None:
        """Note a file that a session is about to write, and does not own yet."""
        self._insert("begun_files", begun, "INSERT OR REPLACE")

    def drop_begun_file(self, begun: BegunFile) -> None:
        self._change("DELETE FROM begun_files WHERE path = ? AND session = ?", begun.path, begun.session)

    def note_file(self, path: str, session: str) -> None:
        """Note that the file is this session's: the newest session that has written a file owns it."""
        self._insert("kept_files", how="INSERT OR REPLACE", path=path, session=session)
        self._change("DELETE FROM begun_files WHERE path = ? AND session = ?", path, session)

    def forget_file(self, path: str) -> None:
        self._change("DELETE FROM kept_files WHERE path = ?", path)

    def move_files(self, move: Callable[[str], str]) -> None:
        """Rename every noted file, in a copy of the database that lies in another folder."""
        for table in ("kept_files", "begun_files", "predictions"):
            for (path,) in self._all(f"SELECT path FROM {table} WHERE path != ''"):  # noqa: S608 - our own tables
                self._change(f"UPDATE {table} SET path = ? WHERE path = ?", move(str(path)), path)  # noqa: S608

    def note_prediction(self, prediction: Prediction) -> None:
        self._insert("predictions", prediction, "INSERT OR REPLACE")
