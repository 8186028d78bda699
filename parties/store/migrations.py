"""Bring a party's database to the version of this code: one function for each version, forward only.

`PRAGMA user_version` is the version of a database. An empty database has version 0, and so has every database that was
made before versions existed. A database passes through all functions after its version, in one transaction. A process
that is killed in between leaves the earlier version intact, and of two processes that open a database at once only one
migrates it.

To change the tables, append a function to MIGRATIONS, and never change a function that others have run. No function may
drop a count, a charge, an answer or a receipt. tests/store/test_migrations.py compares every count before and after
with databases of each version, and README.md there describes how such a database is made.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.store import losses

_TABLES = (
    """CREATE TABLE IF NOT EXISTS sessions (
    session TEXT PRIMARY KEY, protocol TEXT NOT NULL, proposed_by TEXT NOT NULL,
    digest TEXT NOT NULL, state TEXT NOT NULL, changed TEXT NOT NULL, proposal BLOB NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS sessions_of ON sessions (proposed_by, changed)",
    "CREATE TABLE IF NOT EXISTS cancellations (session TEXT PRIMARY KEY)",
    """CREATE TABLE IF NOT EXISTS ledger (
    position INTEGER PRIMARY KEY, population TEXT NOT NULL, line TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS ledger_population ON ledger (population)",
    """CREATE TABLE IF NOT EXISTS answers (
    requester TEXT, request_id TEXT, request_digest TEXT NOT NULL, answer BLOB NOT NULL,
    position INTEGER NOT NULL REFERENCES ledger, session TEXT NOT NULL, PRIMARY KEY (requester, request_id))""",
    "CREATE INDEX IF NOT EXISTS answers_session ON answers (requester, session)",
    """CREATE TABLE IF NOT EXISTS kept_rows (
    requester TEXT, request_id TEXT, piece INTEGER, bits BLOB NOT NULL,
    PRIMARY KEY (requester, request_id, piece))""",
    """CREATE TABLE IF NOT EXISTS block_fits (
    requester TEXT, request_id TEXT, settings TEXT NOT NULL, fit BLOB NOT NULL, PRIMARY KEY (requester, request_id))""",
    """CREATE TABLE IF NOT EXISTS told_bits (
    snapshot TEXT, requester TEXT, request_id TEXT, bits INTEGER NOT NULL,
    PRIMARY KEY (snapshot, requester, request_id))""",
    """CREATE TABLE IF NOT EXISTS label_releases (
    digest TEXT PRIMARY KEY, position INTEGER NOT NULL REFERENCES ledger, mechanism TEXT NOT NULL,
    release TEXT NOT NULL, directory TEXT NOT NULL, labels_sha256 TEXT NOT NULL, answer BLOB NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS snapshots (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, number INTEGER NOT NULL, population TEXT NOT NULL,
    meaning TEXT NOT NULL, source TEXT, content_sha256 TEXT NOT NULL, rows INTEGER NOT NULL,
    other_people INTEGER NOT NULL, made TEXT NOT NULL, removed TEXT, UNIQUE (dataset, number))""",
    "CREATE TABLE IF NOT EXISTS session_snapshots (session TEXT PRIMARY KEY, snapshot TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS draws (context TEXT PRIMARY KEY, begun INTEGER NOT NULL, key BLOB)",
    """CREATE TABLE IF NOT EXISTS scored_rows (
    snapshot TEXT, asker TEXT, model TEXT, bits REAL NOT NULL, rows BLOB NOT NULL,
    PRIMARY KEY (snapshot, asker, model))""",
    """CREATE TABLE IF NOT EXISTS label_layouts (
    snapshot TEXT, layout TEXT, share REAL NOT NULL, PRIMARY KEY (snapshot, layout))""",
    """CREATE TABLE IF NOT EXISTS linkages (
    snapshot TEXT, other TEXT, question TEXT, least_common INTEGER NOT NULL,
    PRIMARY KEY (snapshot, other, question))""",
    """CREATE TABLE IF NOT EXISTS receipts_held (
    server TEXT, population TEXT, statement BLOB NOT NULL, signature BLOB NOT NULL,
    PRIMARY KEY (server, population))""",
    """CREATE TABLE IF NOT EXISTS uploads (
    number INTEGER PRIMARY KEY AUTOINCREMENT, consumer TEXT NOT NULL, dataset TEXT NOT NULL, began TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS uploads_consumer ON uploads (consumer, began)",
    "CREATE TABLE IF NOT EXISTS kept_files (path TEXT PRIMARY KEY, session TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS begun_files (
    path TEXT, session TEXT, sha256 TEXT NOT NULL, PRIMARY KEY (path, session))""",
    """CREATE TABLE IF NOT EXISTS predictions (
    session TEXT PRIMARY KEY, model TEXT NOT NULL, place TEXT NOT NULL, path TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS rollbacks (
    statement BLOB PRIMARY KEY, noticed TEXT NOT NULL, acknowledged TEXT)""",
)


def to_version_1(database: sqlite3.Connection) -> None:
    """Make the tables of version 1. A file of version 0 may have all, some (an early one) or none (a new one)."""
    for statement in _TABLES:
        database.execute(statement)


def to_version_2(database: sqlite3.Connection) -> None:
    """Rename the smallest number of common rows of a linkage to the name of the job's option."""
    database.execute("ALTER TABLE linkages RENAME COLUMN least_common TO min_common")


def to_version_3(database: sqlite3.Connection) -> None:
    """Make one account from the counts that five tables kept for each snapshot. No entry is lost or covers fewer
    people.

    This function does not know the ids of a snapshot, because their digests need the party's secret. So an entry about
    some rows of a snapshot becomes an entry about all people of its population.
    """
    for statement in _ACCOUNT_TABLES:
        database.execute(statement)
    for statement in _ACCOUNT_ENTRIES:
        database.execute(statement)
    for table in ("told_bits", "scored_rows", "label_layouts", "linkages"):
        database.execute(f"DROP TABLE {table}")


_ACCOUNT_TABLES = (
    """CREATE TABLE disclosures (
    position INTEGER PRIMARY KEY AUTOINCREMENT, population TEXT NOT NULL, subject TEXT NOT NULL, about TEXT NOT NULL,
    learner TEXT NOT NULL, event TEXT NOT NULL, question TEXT NOT NULL, bits REAL NOT NULL, people BLOB NOT NULL,
    snapshot TEXT NOT NULL, session TEXT NOT NULL, made TEXT NOT NULL,
    UNIQUE (population, subject, about, learner, question))""",
    "CREATE TABLE people (position INTEGER PRIMARY KEY, population TEXT NOT NULL, digests BLOB NOT NULL)",
    "CREATE INDEX people_population ON people (population)",
    """CREATE TABLE labelled_people (
    population TEXT, label TEXT, people BLOB NOT NULL, PRIMARY KEY (population, label))""",
)
_ENTER = """INSERT INTO disclosures (
    population, subject, about, learner, event, question, bits, people, snapshot, session, made) SELECT """
_ACCOUNT_ENTRIES = (
    _ENTER
    + """coalesce(s.population, ''), 'labels', coalesce(json_extract(s.meaning, '$.label'), ''), '', 'batch layout',
    l.layout, l.share * coalesce(s.rows, 1), x'', l.snapshot, '', coalesce(s.made, '')
    FROM label_layouts l LEFT JOIN snapshots s ON s.id = l.snapshot WHERE l.layout NOT LIKE '% %'""",
    _ENTER
    + """coalesce(s.population, ''), 'labels', coalesce(json_extract(s.meaning, '$.label'), ''), '',
    substr(l.layout, 1, instr(l.layout, ' ') - 1), l.layout, l.share * coalesce(s.rows, 1), x'', l.snapshot,
    substr(l.layout, instr(l.layout, ' ') + 1), coalesce(s.made, '')
    FROM label_layouts l LEFT JOIN snapshots s ON s.id = l.snapshot WHERE l.layout LIKE '% %'""",
    _ENTER
    + """coalesce(s.population, ''), 'scores', '', r.asker, 'scores', r.model || ' ' || r.snapshot, r.bits, x'',
    r.snapshot, '', coalesce(s.made, '') FROM scored_rows r LEFT JOIN snapshots s ON s.id = r.snapshot""",
    _ENTER
    + """coalesce(s.population, ''), 'columns', '', t.requester, 'weights',
    t.request_id || ' ' || t.snapshot, t.bits, x'',
    t.snapshot, '', coalesce(s.made, '') FROM told_bits t LEFT JOIN snapshots s ON s.id = t.snapshot""",
    _ENTER
    + """coalesce(s.population, ''), 'membership', l.other, l.other, 'linkage at min_common = ' || l.min_common,
    l.question, 1, x'', l.snapshot, '', coalesce(s.made, '')
    FROM linkages l LEFT JOIN snapshots s ON s.id = l.snapshot""",
)


def to_version_4(database: sqlite3.Connection) -> None:
    """Keep the operator's reasons for a lost database, the fact that this database began before the party's keys, and
    the size of each answer.
    """
    losses.begin(database)
    database.execute("ALTER TABLE answers ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0")


def to_version_5(database: sqlite3.Connection) -> None:
    """Keep the unit of the jitter of labels that are numbers, and correct two kinds of entries.

    Draws of held-out rows that were begun before the account existed become entries. Their population is not known, so
    they count in every population of the party. Entries that version 3 has made get today's date. The time of a count
    from before version 3 is not known: version 3 gave it the date of its snapshot, so it ended early in an account with
    a period.
    """
    database.execute(
        "CREATE TABLE label_units (population TEXT, label TEXT, unit REAL NOT NULL, PRIMARY KEY (population, label))"
    )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    database.execute(_TODAY, (now,))
    populations = database.execute("SELECT DISTINCT population FROM snapshots ORDER BY population").fetchall()
    draws = database.execute(
        "SELECT context, begun FROM draws WHERE context NOT LIKE '% %' ORDER BY context"
    ).fetchall()
    for (population,), (context, begun) in itertools.product(populations, draws):
        for number in range(min(begun, MOST_DRAWS)):
            database.execute(_DRAW, (population, f"{context} {number + 1}", now))


MOST_DRAWS = 16  # more are refused
_TODAY = """UPDATE disclosures SET made = ?
    WHERE made = '' OR made = (SELECT s.made FROM snapshots s WHERE s.id = disclosures.snapshot)"""
_DRAW = """INSERT INTO disclosures (
    population, subject, about, learner, event, question, bits, people, snapshot, session, made)
    VALUES (?, 'membership', '', '', 'draw of who is held out', ?, 1, x'', '', '', ?)"""


Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: tuple[Migration, ...] = (to_version_1, to_version_2, to_version_3, to_version_4, to_version_5)
"""Functions, in order: the first migrates version 0 to version 1, the next version 1 to version 2, and so on."""


def newest() -> int:
    """Return the version that this code reads and writes."""
    return len(MIGRATIONS)


def version_of(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def check_known(database: sqlite3.Connection, path: Path) -> None:
    """Raise ConfigError if a later version of Blindfit has written the database."""
    if (found := version_of(database)) > newest():
        raise ConfigError(
            f"{path} has version {found}, and this Blindfit reads versions up to {newest()}",
            hint="use the version of Blindfit that wrote it, or a later one",
        )


def migrate(database: sqlite3.Connection, path: Path) -> None:
    """Migrate the database to the newest version, in one transaction.

    Raises:
        ConfigError: a later version of Blindfit has written the database.
        sqlite3.Error: the database could not be written; it keeps its version.
    """
    check_known(database, path)
    if version_of(database) == newest():
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        check_known(database, path)  # another process may have migrated it meanwhile
        for step in MIGRATIONS[version_of(database) :]:
            step(database)
        database.execute(f"PRAGMA user_version = {newest()}")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise
