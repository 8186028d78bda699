"""Make what tests/store/version_0 holds: databases of version 0, by the code of version 0 itself.

It was run once, in a checkout of commit f802605, the last one whose databases had no version:

    git worktree add /tmp/version-0 f802605
    cp -r tests/store /tmp/version-0/tests/
    cd /tmp/version-0 && PYTHONPATH=. python -m tests.store.make_version_0 OUT

    OUT/worlds.tar.xz    what the parties of each job of WORLDS keep after it: NAME/state/PARTY and NAME/user
    OUT/everything.sql   one database with rows in every table, sessions in every state and a ledger with recovered
                         entries, as SQL text
    OUT/counts.json      what tests/store/counts.py counts in that database
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

import structlog

from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.charges import ChargeCounter
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Charge
from blindfit.parties.store import charging, rollbacks
from blindfit.parties.store.store import (
    BegunFile,
    Linkage,
    Prediction,
    ScoredRows,
    SessionRow,
    SnapshotRow,
    Store,
    StoredAnswer,
    StoredLabels,
)
from tests.certificates import demo_authority
from tests.interference.systems import SYSTEMS
from tests.interference.world import begin
from tests.store.counts import counts_of

WORLDS = (
    "walr",
    "walr-holders",
    "walr-split",
    "walr-hidden",
    "walr-shares",
    "label-dp",
    "dp-lr",
    "taylor",
    "taylor-label-dp",
    "taylor-linkage",
    "falcon",
    "falcon-private",
    "predict",
    "evaluate",
)
DATABASES = "party.sqlite*"


def make_worlds(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, tarfile.open(out / "worlds.tar.xz", "w:xz", preset=9) as archive:
        authority = demo_authority(Path(folder))
        for name in WORLDS:
            root = Path(folder) / name
            root.mkdir()
            begun = begin(SYSTEMS[name](), authority, root)
            assert begun.error == "", (name, begun.error)
            for path in root.rglob(DATABASES):
                close(path)
            for kept in ("state", "user"):
                if (root / kept).exists():
                    archive.add(root / kept, f"{name}/{kept}")


def close(path: Path) -> None:
    """Move the content of a database's log into the database."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def make_everything(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "party.sqlite")
        fill_sessions(store)
        fill_ledger(store)
        fill_answers(store)
        fill_counts(store)
        (out / "counts.json").write_text(json.dumps(counts_of(store.reader()), indent=1, sort_keys=True) + "\n")
        store.close()
        with contextlib.closing(sqlite3.connect(store.path)) as database:
            (out / "everything.sql").write_text("\n".join(database.iterdump()) + "\n")


MONDAY, TUESDAY = "2026-03-02T10:00:00+00:00", "2026-03-03T10:00:00+00:00"
STATES = ("HELD", "ACCEPTED", "RUNNING", "DONE", "FAILED", "REFUSED", "ENDED")
EVENT = ReleaseEvent("gaussian", 3.73, "one row's label changes, number and weights of the rows public")


def fill_sessions(store: Store) -> None:
    with store.transaction() as t:
        for number, state in enumerate(STATES):
            proposal = b"as it came" if state == "HELD" else b""
            t.add_session(SessionRow(f"s{number}", "walr", "coordinator", f"{number:032x}", state, MONDAY, proposal))
        t.cancel_session("s6")
        t.note_file("models/s3/model.json", "s3")
        t.begin_file(BegunFile("models/s2/model.json", "s2", "ab" * 32))
        t.note_prediction(Prediction("s3", "s1", "scores.csv", "models/s3/scores.csv"))
        for number, removed in ((1, TUESDAY), (2, None)):
            meaning = json.dumps({"url": "csv:rows.csv", "id": "id", "columns": ["age"], "distinct": {"age": 9}})
            row = (
                f"{number:032x}",
                "rows",
                number,
                "people",
                meaning,
                "fingerprint",
                "cd" * 32,
                100,
                number - 1,
                MONDAY,
            )
            t.add_snapshot(SnapshotRow(*row, removed))
            t.put_session_snapshot(f"s{number}", f"{number:032x}")


def fill_ledger(store: Store) -> None:
    """Enter three releases; then a receipt of a lost ledger whose charges are recovered, and one of
    which they are not.
    """
    with store.transaction() as t:
        for number in range(3):
            charging.enter(t, charge(number, "people"))
        charging.enter(t, charge(0, "visitors"))
    lost = Store(store.path.with_name("lost.sqlite"))
    with lost.transaction() as t:
        for number in range(6):
            charging.enter(t, charge(number, "people"))
    for last in (5, 6):
        reader = lost.reader()
        counter = ChargeCounter()
        for entry in reader.ledger("people")[:last]:
            counter.add(book.charge_of(entry))
        receipt = book.receipt_for("meter", reader.ledger("people")[last - 1], counter.charges(), reader.entry_at)
        rollbacks.compare_receipt(receipt, store)
        if last == 5:
            assert rollbacks.acknowledge_rollbacks(store)
    lost.close()
    with store.transaction() as t:
        t.hold_receipt("clinic", "patients", (b"statement", b"signature"))
    assert store.reader().rollbacks()
    assert store.reader().list_acknowledged_rollbacks()


def charge(number: int, population: str) -> Charge:
    about = {"dataset": "rows", "snapshot": f"{2:032x}", "requester": "shop", "epsilon": 1.0, "delta": 1e-5}
    return Charge(population, EVENT, request_id=f"r{number}", content_sha256=f"{number:064x}", unit="row", **about)


def fill_answers(store: Store) -> None:
    with store.transaction() as t:
        for number in range(3):
            t.add_answer("shop", f"r{number}", StoredAnswer(f"{number:064x}", b"an answer", number + 1, f"s{number}"))
            t.add_kept_piece("shop", f"r{number}", 0, b"\xff\x00")
        t.add_block_fit("shop", "r0", "settings", b"a fit")
        t.add_label_release(StoredLabels("aa" * 32, 1, "laplace", "first", "release-1"))  # under way
        t.add_label_release(StoredLabels("bb" * 32, 2, "laplace", "second", ""))  # no mechanism could be made
        t.add_label_release(StoredLabels("cc" * 32, 3, "laplace", "third", "release-3"))
        t.end_label_release(StoredLabels("cc" * 32, 3, "laplace", "third", "release-3", "dd" * 32, b"parameters"))


def fill_counts(store: Store) -> None:
    snapshot = f"{2:032x}"
    with store.transaction() as t:
        for number in range(2):
            t.add_told_bits(snapshot, "shop", f"r{number}", 40 + number)
            t.put_scored_rows(snapshot, ScoredRows("shop", f"{number:064x}", 12.5, zlib.compress(b"\xf0")))
            t.add_label_layout(snapshot, f"{number:064x}", 0.125)
            t.add_linkage(snapshot, Linkage("shop", f"{number:064x}", 100))
            t.begin_draw("ef" * 32)
            t.add_upload("shop", "rows", MONDAY)
        t.end_draw("ef" * 32, b"k" * 32)
        t.begin_draw("fe" * 32)
        t.forget_upload(2)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    make_worlds(Path(sys.argv[1]))
    make_everything(Path(sys.argv[1]))
