"""A party's one database: sessions, ledger, stored answers, receipts. SQLite, durable before anything leaves.

Several processes may open it at once (the party, `blindfit approve`, `blindfit ledger`): every change is one
IMMEDIATE transaction, so the last unit of a budget has one winner.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError, LedgerUnavailable
from blindfit.algorithms.privacy.ledger import LedgerEntry, from_json_line, to_json_line
from blindfit.parties.files.private_files import make_private

BUSY_TIMEOUT_S = 30.0
READER_CACHE_KIB = 256  # of each thread; the system keeps the file's pages anyway

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    session TEXT PRIMARY KEY, protocol TEXT NOT NULL, proposed_by TEXT NOT NULL,
    digest TEXT NOT NULL, state TEXT NOT NULL, changed TEXT NOT NULL, proposal BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS sessions_of ON sessions (proposed_by, changed);
CREATE TABLE IF NOT EXISTS cancellations (
    session TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS ledger (
    position INTEGER PRIMARY KEY, population TEXT NOT NULL, line TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS ledger_population ON ledger (population);
CREATE TABLE IF NOT EXISTS answers (
    requester TEXT, request_id TEXT, request_digest TEXT NOT NULL, answer BLOB NOT NULL,
    position INTEGER NOT NULL REFERENCES ledger, session TEXT NOT NULL, PRIMARY KEY (requester, request_id));
CREATE INDEX IF NOT EXISTS answers_session ON answers (requester, session);
CREATE TABLE IF NOT EXISTS kept_rows (
    requester TEXT, request_id TEXT, piece INTEGER, bits BLOB NOT NULL,
    PRIMARY KEY (requester, request_id, piece));
CREATE TABLE IF NOT EXISTS block_fits (
    requester TEXT, request_id TEXT, settings TEXT NOT NULL, fit BLOB NOT NULL, PRIMARY KEY (requester, request_id));
CREATE TABLE IF NOT EXISTS told_bits (
    snapshot TEXT, requester TEXT, request_id TEXT, bits INTEGER NOT NULL,
    PRIMARY KEY (snapshot, requester, request_id));
CREATE TABLE IF NOT EXISTS label_releases (
    digest TEXT PRIMARY KEY, position INTEGER NOT NULL REFERENCES ledger, mechanism TEXT NOT NULL,
    release TEXT NOT NULL, directory TEXT NOT NULL, labels_sha256 TEXT NOT NULL, answer BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS snapshots (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, number INTEGER NOT NULL, population TEXT NOT NULL,
    meaning TEXT NOT NULL, source TEXT, content_sha256 TEXT NOT NULL, rows INTEGER NOT NULL,
    other_people INTEGER NOT NULL, made TEXT NOT NULL, removed TEXT, UNIQUE (dataset, number));
CREATE TABLE IF NOT EXISTS session_snapshots (
    session TEXT PRIMARY KEY, snapshot TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS draws (
    context TEXT PRIMARY KEY, begun INTEGER NOT NULL, key BLOB);
CREATE TABLE IF NOT EXISTS scored_rows (
    snapshot TEXT, asker TEXT, model TEXT, bits REAL NOT NULL, rows BLOB NOT NULL,
    PRIMARY KEY (snapshot, asker, model));
CREATE TABLE IF NOT EXISTS label_layouts (
    snapshot TEXT, layout TEXT, share REAL NOT NULL, PRIMARY KEY (snapshot, layout));
CREATE TABLE IF NOT EXISTS linkages (
    snapshot TEXT, other TEXT, question TEXT, least_common INTEGER NOT NULL, PRIMARY KEY (snapshot, other, question));
CREATE TABLE IF NOT EXISTS receipts_held (
    server TEXT, population TEXT, statement BLOB NOT NULL, signature BLOB NOT NULL,
    PRIMARY KEY (server, population));
CREATE TABLE IF NOT EXISTS uploads (
    number INTEGER PRIMARY KEY AUTOINCREMENT, consumer TEXT NOT NULL, dataset TEXT NOT NULL, began TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS uploads_consumer ON uploads (consumer, began);
CREATE TABLE IF NOT EXISTS kept_files (
    path TEXT PRIMARY KEY, session TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS begun_files (
    path TEXT, session TEXT, sha256 TEXT NOT NULL, PRIMARY KEY (path, session));
CREATE TABLE IF NOT EXISTS predictions (
    session TEXT PRIMARY KEY, model TEXT NOT NULL, place TEXT NOT NULL, path TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS rollbacks (
    statement BLOB PRIMARY KEY, noticed TEXT NOT NULL, acknowledged TEXT);
"""


@dataclass(frozen=True, slots=True)
class SessionRow:
    session: str
    protocol: str
    proposed_by: str
    digest: str  # of the job: what its operator approves
    state: str
    changed: str
    proposal: bytes = b""  # as it came, for the operator; until the state changes


@dataclass(frozen=True, slots=True, repr=False)
class StoredAnswer:
    request_digest: str  # what the request id stands for
    answer: bytes
    position: int  # of its charge
    session: str


@dataclass(frozen=True, slots=True, repr=False)
class StoredLabels:
    digest: str  # of all that the release stands for
    position: int  # of its charge
    mechanism: str
    release: str
    directory: str  # where the noisy labels are, or are made; empty: no mechanism could be made
    labels_sha256: str = ""  # once they are there
    answer: bytes = b""

    @property
    def is_under_way(self) -> bool:
        """Charged, and not made yet; where nobody makes it any more, it is lost."""
        return bool(self.directory) and not self.labels_sha256


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotRow:
    """A dataset as it was when its owner published it.

    Args:
        id: random: all that others learn of it.
        meaning: what of the party's file it was made by.
        source: the source's fingerprint as it was then; None where it has none.
        content_sha256: for the owner alone: anyone who has it can try out labels.
        other_people: the operator said that its people are not those of another population.
        removed: when its files went.
    """

    id: str
    dataset: str
    number: int
    population: str
    meaning: str
    source: str | None
    content_sha256: str
    rows: int
    other_people: int
    made: str
    removed: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ScoredRows:
    """Rows of a snapshot of which an active party has got one model's scores.

    Args:
        asker: which one.
        model: a digest of the party's part of it.
        bits: that one of its scores has.
        rows: a compressed bitmap, by position.
    """

    asker: str
    model: str
    bits: float
    rows: bytes


@dataclass(frozen=True, slots=True)
class Linkage:
    """Of a snapshot with another data party's rows.

    Args:
        question: a digest of all that its outcome depends on.
        least_common: fewer matches end it.
    """

    other: str
    question: str
    least_common: int


@dataclass(frozen=True, slots=True)
class BegunFile:
    """Args:
    sha256: of what it is to hold.
    """

    path: str
    session: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of the active party.

    Args:
        model: the session of the training whose model has scored the rows.
        place: where the scores went, as its operator is told; without a password.
        path: of the csv file that is the session's own, as `files_of` has it; empty where they went elsewhere.
    """

    session: str
    model: str
    place: str
    path: str


@dataclass(frozen=True, slots=True)
class FailedUploads:
    consumer: str
    dataset: str
    count: int
    last: str  # when it began


class Store:
    """Methods that change several things take the transaction they belong to, `with store.transaction() as t`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._of_thread = threading.local()
        self._readers: list[sqlite3.Connection] = []
        try:
            make_private(path.parent)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            self._db = _connect(path)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # an answer leaves only after its charge is on the disk
            self._db.executescript(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"{path} cannot be used as the party's database: {error}",
                hint="is it a file that Blindfit made, on a disk with room, and may this user write it?",
            ) from None

    def close(self) -> None:
        with self._lock:
            for connection in (*self._readers, self._db):
                connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All or nothing, and on the disk when it returns.

        Raises:
            LedgerUnavailable: the database could not be written; nothing was changed.
        """
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield Transaction(self._db)
                    self._db.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise LedgerUnavailable(
                    f"{self.path} could not be written ({error}): this step released nothing and charged nothing",
                    hint="make room on its disk, or mend its permissions, and ask again",
                ) from None

    @contextlib.contextmanager
    def view(self) -> Iterator[Transaction]:
        """Several reads of one state, whatever other processes write meanwhile; for nothing else."""
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                yield Transaction(connection)
            finally:
                connection.execute("ROLLBACK")

    def reader(self) -> Transaction:
        """Each read alone, of what is on the disk."""
        return _Reader(self)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Each thread by a connection of its own: who reads waits for nobody's charge to be on the disk."""
        try:
            connection: sqlite3.Connection | None = getattr(self._of_thread, "connection", None)
            if connection is None:
                connection = self._of_thread.connection = _connect(self.path)
                connection.execute("PRAGMA query_only = ON")
                connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
                self._readers.append(connection)
            yield connection
        except sqlite3.Error as error:
            raise LedgerUnavailable(
                f"{self.path} could not be read ({error}): this step released nothing and charged nothing",
                hint="look at its disk; if it is damaged, restore a backup, and every consumer's receipt will say so",
            ) from None


class Transaction:
    """Reads and writes within one transaction (or reads alone, from `Store.reader`)."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def _all(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()

    # --- sessions

    def add_session(self, row: SessionRow) -> None:
        """A new one: no row is ever another session's."""
        self._all("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(row))

    def sessions(self, state: str | None = None) -> list[SessionRow]:
        rows = self._all("SELECT * FROM sessions WHERE ?1 IS NULL OR state = ?1 ORDER BY changed", (state,))
        return [SessionRow(*row) for row in rows]

    def session(self, session: str) -> SessionRow | None:
        rows = self._all("SELECT * FROM sessions WHERE session = ?", (session,))
        return SessionRow(*rows[0]) if rows else None

    def count_sessions(self, proposed_by: str, *, since: str) -> int:
        """Of one coordinator, that were proposed or changed since then."""
        query = "SELECT COUNT(*) FROM sessions WHERE proposed_by = ? AND changed >= ?"
        return int(str(self._all(query, (proposed_by, since))[0][0]))

    def change_session(self, session: str, *, state: str, changed: str) -> None:
        query = "UPDATE sessions SET state = ?, changed = ?, proposal = x'' WHERE session = ?"
        self._all(query, (state, changed, session))

    def cancel_session(self, session: str) -> None:
        """Its party's process ends it, which is another one."""
        self._all("INSERT OR IGNORE INTO cancellations VALUES (?)", (session,))

    def is_cancelled(self, session: str) -> bool:
        return bool(self._all("SELECT 1 FROM cancellations WHERE session = ?", (session,)))

    # --- files of sessions

    def begin_file(self, begun: BegunFile) -> None:
        """A session is about to write it, and does not have it yet."""
        self._all("INSERT OR REPLACE INTO begun_files VALUES (?, ?, ?)", astuple(begun))

    def begun_files(self) -> list[BegunFile]:
        return [BegunFile(*row) for row in self._all("SELECT * FROM begun_files")]

    def has_begun(self, begun: BegunFile) -> bool:
        query = "SELECT 1 FROM begun_files WHERE path = ? AND session = ? AND sha256 = ?"
        return bool(self._all(query, astuple(begun)))

    def drop_begun_file(self, begun: BegunFile) -> None:
        self._all("DELETE FROM begun_files WHERE path = ? AND session = ?", (begun.path, begun.session))

    def note_file(self, path: str, session: str) -> None:
        """The newest session that has written a file has it."""
        self._all("INSERT OR REPLACE INTO kept_files VALUES (?, ?)", (path, session))
        self._all("DELETE FROM begun_files WHERE path = ? AND session = ?", (path, session))

    def files_of(self, session: str) -> list[str]:
        return [str(row[0]) for row in self._all("SELECT path FROM kept_files WHERE session = ?", (session,))]

    def session_of_file(self, path: str) -> str | None:
        rows = self._all("SELECT session FROM kept_files WHERE path = ?", (path,))
        return str(rows[0][0]) if rows else None

    def forget_file(self, path: str) -> None:
        self._all("DELETE FROM kept_files WHERE path = ?", (path,))

    # --- joint predictions

    def note_prediction(self, prediction: Prediction) -> None:
        self._all("INSERT OR REPLACE INTO predictions VALUES (?, ?, ?, ?)", astuple(prediction))

    def prediction(self, session: str) -> Prediction | None:
        rows = self._all("SELECT * FROM predictions WHERE session = ?", (session,))
        return Prediction(*rows[0]) if rows else None

    # --- ledger and answers

    def ledger(self, population: str | None = None, *, after: int = 0) -> list[LedgerEntry]:
        """Of one population or all, behind a position."""
        if population is None:
            rows = self._all("SELECT position, line FROM ledger WHERE position > ? ORDER BY position", (after,))
        else:
            query = "SELECT position, line FROM ledger WHERE population = ? AND position > ? ORDER BY position"
            rows = self._all(query, (population, after))
        return [from_json_line(str(line), int(str(position))) for position, line in rows]

    def entry_at(self, position: int) -> LedgerEntry | None:
        rows = self._all("SELECT line FROM ledger WHERE position = ?", (position,))
        return from_json_line(str(rows[0][0]), position) if rows else None

    def last_entry(self) -> LedgerEntry | None:
        rows = self._all("SELECT position, line FROM ledger ORDER BY position DESC LIMIT 1")
        return from_json_line(str(rows[0][1]), int(str(rows[0][0]))) if rows else None

    def entries_missing(self) -> int:
        """Before the last one; positions count from 1, and none is ever removed."""
        return int(self._all("SELECT coalesce(max(position), 0) - count(*) FROM ledger")[0][0])

    def add_entry(self, entry: LedgerEntry) -> None:
        self._all("INSERT INTO ledger VALUES (?, ?, ?)", (entry.position, entry.population, to_json_line(entry)))

    def answer(self, requester: str, request_id: str) -> StoredAnswer | None:
        rows = self._all(
            "SELECT request_digest, answer, position, session FROM answers WHERE requester = ? AND request_id = ?",
            (requester, request_id),
        )
        return StoredAnswer(*rows[0]) if rows else None

    def add_answer(self, requester: str, request_id: str, answer: StoredAnswer) -> None:
        self._all(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)",
            (requester, request_id, answer.request_digest, answer.answer, answer.position, answer.session),
        )

    def has_answered(self, requester: str, session: str) -> bool:
        query = "SELECT 1 FROM answers WHERE requester = ? AND session = ? LIMIT 1"
        return bool(self._all(query, (requester, session)))

    def add_kept_piece(self, requester: str, request_id: str, piece: int, bits: bytes) -> None:
        self._all("INSERT INTO kept_rows VALUES (?, ?, ?, ?)", (requester, request_id, piece, bits))

    def kept_piece(self, requester: str, request_id: str, piece: int) -> bytes:
        """Empty past the last one."""
        rows = self._all(
            "SELECT bits FROM kept_rows WHERE requester = ? AND request_id = ? AND piece = ?",
            (requester, request_id, piece),
        )
        return rows[0][0] if rows else b""

    # --- fits of columns that several parties hold

    def add_block_fit(self, requester: str, request_id: str, settings: str, fit: bytes) -> None:
        self._all("INSERT INTO block_fits VALUES (?, ?, ?, ?)", (requester, request_id, settings, fit))

    def block_fit(self, requester: str, request_id: str) -> tuple[str, bytes] | None:
        """The settings that it was made with, and the fit."""
        query = "SELECT settings, fit FROM block_fits WHERE requester = ? AND request_id = ?"
        rows = self._all(query, (requester, request_id))
        return (rows[0][0], rows[0][1]) if rows else None

    def add_told_bits(self, snapshot: str, requester: str, request_id: str, bits: int) -> None:
        """That hang on the rows of this snapshot; the same request counts once."""
        self._all("INSERT OR REPLACE INTO told_bits VALUES (?, ?, ?, ?)", (snapshot, requester, request_id, bits))

    def told_bits(self, snapshot: str) -> int:
        return int(self._all("SELECT coalesce(sum(bits), 0) FROM told_bits WHERE snapshot = ?", (snapshot,))[0][0])

    # --- label releases

    def add_label_release(self, stored: StoredLabels) -> None:
        self._all("INSERT INTO label_releases VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(stored))

    def end_label_release(self, stored: StoredLabels) -> None:
        """Of one that is under way: what was made is never changed."""
        query = (
            "UPDATE label_releases SET directory = ?, labels_sha256 = ?, answer = ? "
            "WHERE digest = ? AND directory != '' AND labels_sha256 = ''"
        )
        self._all(query, (stored.directory, stored.labels_sha256, stored.answer, stored.digest))

    def label_release(self, digest: str) -> StoredLabels | None:
        rows = self._all("SELECT * FROM label_releases WHERE digest = ?", (digest,))
        return StoredLabels(*rows[0]) if rows else None

    def label_releases(self) -> list[StoredLabels]:
        rows = self._all("SELECT * FROM label_releases ORDER BY position")
        return [StoredLabels(*row) for row in rows]

    # --- snapshots, and what was drawn once for them

    def add_snapshot(self, row: SnapshotRow) -> None:
        self._all("INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(row))

    def snapshots(self, dataset: str | None = None) -> list[SnapshotRow]:
        """The oldest first."""
        rows = self._all(
            "SELECT * FROM snapshots WHERE ?1 IS NULL OR dataset = ?1 ORDER BY dataset, number", (dataset,)
        )
        return [SnapshotRow(*row) for row in rows]

    def remove_snapshot(self, snapshot: str, removed: str) -> None:
        self._all("UPDATE snapshots SET removed = ? WHERE id = ? AND removed IS NULL", (removed, snapshot))

    def put_session_snapshot(self, session: str, snapshot: str) -> None:
        self._all("INSERT OR REPLACE INTO session_snapshots VALUES (?, ?)", (session, snapshot))

    def session_snapshot(self, session: str) -> str | None:
        rows = self._all("SELECT snapshot FROM session_snapshots WHERE session = ?", (session,))
        return str(rows[0][0]) if rows else None

    def draw(self, context: str) -> tuple[int, bytes | None]:
        """How many draws for this context have begun, and what the last that ended gave."""
        rows = self._all("SELECT begun, key FROM draws WHERE context = ?", (context,))
        return rows[0] if rows else (0, None)

    def begin_draw(self, context: str) -> None:
        self._all("INSERT INTO draws VALUES (?, 1, NULL) ON CONFLICT DO UPDATE SET begun = begun + 1", (context,))

    def end_draw(self, context: str, key: bytes) -> None:
        self._all("UPDATE draws SET key = ? WHERE context = ?", (key, context))

    # --- what repeats give away of a snapshot

    def scored_rows(self, snapshot: str) -> list[ScoredRows]:
        rows = self._all("SELECT asker, model, bits, rows FROM scored_rows WHERE snapshot = ?", (snapshot,))
        return [ScoredRows(*row) for row in rows]

    def put_scored_rows(self, snapshot: str, scored: ScoredRows) -> None:
        self._all("INSERT OR REPLACE INTO scored_rows VALUES (?, ?, ?, ?, ?)", (snapshot, *astuple(scored)))

    def label_layouts(self, snapshot: str) -> dict[str, float]:
        """Digests of the batch layouts that were trained in, with the bits that each gives away of a label."""
        rows = self._all("SELECT layout, share FROM label_layouts WHERE snapshot = ?", (snapshot,))
        return dict(rows)

    def add_label_layout(self, snapshot: str, layout: str, share: float) -> None:
        self._all("INSERT INTO label_layouts VALUES (?, ?, ?)", (snapshot, layout, share))

    def linkages(self, snapshot: str) -> list[Linkage]:
        rows = self._all("SELECT other, question, least_common FROM linkages WHERE snapshot = ?", (snapshot,))
        return [Linkage(*row) for row in rows]

    def add_linkage(self, snapshot: str, linkage: Linkage) -> None:
        """The same question counts once."""
        self._all("INSERT OR IGNORE INTO linkages VALUES (?, ?, ?, ?)", (snapshot, *astuple(linkage)))

    # --- uploads without an answer

    def add_upload(self, consumer: str, dataset: str, began: str) -> int:
        """Its number."""
        query = "INSERT INTO uploads (consumer, dataset, began) VALUES (?, ?, ?) RETURNING number"
        return int(str(self._all(query, (consumer, dataset, began))[0][0]))

    def forget_upload(self, number: int | None) -> None:
        self._all("DELETE FROM uploads WHERE number = ?", (number,))

    def count_uploads(self, *, consumer: str | None = None, since: str = "") -> int:
        """Args:
        since: in the form of `began`, of all the same length.
        """
        query = "SELECT count(*) FROM uploads WHERE (?1 IS NULL OR consumer = ?1) AND began >= ?2"
        return int(str(self._all(query, (consumer, since))[0][0]))

    def uploads(self) -> list[FailedUploads]:
        """By consumer and dataset."""
        query = "SELECT consumer, dataset, count(*), max(began) FROM uploads GROUP BY consumer, dataset"
        return [FailedUploads(*row) for row in self._all(query)]

    # --- receipts

    def receipt_held(self, server: str, population: str) -> tuple[bytes, bytes]:
        rows = self._all(
            "SELECT statement, signature FROM receipts_held WHERE server = ? AND population = ?",
            (server, population),
        )
        return rows[0] if rows else (b"", b"")

    def hold_receipt(self, server: str, population: str, receipt: tuple[bytes, bytes]) -> None:
        self._all("INSERT OR REPLACE INTO receipts_held VALUES (?, ?, ?, ?)", (server, population, *receipt))

    def notice_rollback(self, statement: bytes, noticed: str) -> None:
        self._all("INSERT OR IGNORE INTO rollbacks VALUES (?, ?, NULL)", (statement, noticed))

    def rollbacks(self) -> list[bytes]:
        """Receipts that prove what this ledger does not have, and that nobody has acknowledged."""
        rows = self._all("SELECT statement FROM rollbacks WHERE acknowledged IS NULL ORDER BY noticed")
        return [row[0] for row in rows]

    def acknowledged_rollbacks(self) -> list[bytes]:
        return [row[0] for row in self._all("SELECT statement FROM rollbacks WHERE acknowledged IS NOT NULL")]

    def is_acknowledged(self, statement: bytes) -> bool:
        rows = self._all("SELECT 1 FROM rollbacks WHERE statement = ? AND acknowledged IS NOT NULL", (statement,))
        return bool(rows)

    def acknowledge_rollbacks(self, acknowledged: str) -> None:
        self._all("UPDATE rollbacks SET acknowledged = ? WHERE acknowledged IS NULL", (acknowledged,))


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def stamp(later: timedelta = timedelta()) -> str:
    """The time as the database keeps it: UTC, to the second."""
    return (datetime.now(UTC) + later).isoformat(timespec="seconds")


class _Reader(Transaction):
    def __init__(self, store: Store) -> None:
        self._store = store

    def _all(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._store._reading() as connection:
            return connection.execute(query, values).fetchall()
