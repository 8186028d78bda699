"""Keep snapshots, the sessions that read them, and the draws that were made once for them."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.store.rows import RowReads, RowWrites


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotRow:
    """A dataset as it was when its owner published it.

    Args:
        id: random name, the only fact that others learn of it.
        meaning: parts of the party's file by which it was made.
        source: fingerprint of the source at that time; None for a source without one.
        content_sha256: digest of its content, only for the owner: anyone who has it can try out labels.
        other_people: True if the operator declared that its people are not those of another population.
        removed: time at which its files were removed.
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


class SnapshotReads(RowReads):
    def snapshots(self, dataset: str | None = None) -> list[SnapshotRow]:
        """Return the snapshots of one dataset or of all, the oldest first."""
        rest = "WHERE ?1 IS NULL OR dataset = ?1 ORDER BY dataset, number"
        return self._rows(SnapshotRow, "snapshots", rest, dataset)

    def session_snapshot(self, session: str) -> str | None:
        rows = self._all("SELECT snapshot FROM session_snapshots WHERE session = ?", session)
        return str(rows[0][0]) if rows else None

    def draw(self, context: str) -> tuple[int, bytes | None]:
        """Return the number of draws that were begun for this context, and the result of the last finished draw."""
        rows = self._all("SELECT begun, key FROM draws WHERE context = ?", context)
        return (rows[0][0], rows[0][1]) if rows else (0, None)


class SnapshotWrites(SnapshotReads, RowWrites):
    def add_snapshot(self, row: SnapshotRow) -> None:
        self._insert("snapshots", row)

    def remove_snapshot(self, snapshot: str, removed: str) -> None:
        self._change("UPDATE snapshots SET removed = ? WHERE id = ? AND removed IS NULL", removed, snapshot)

    def put_session_snapshot(self, session: str, snapshot: str) -> None:
        self._insert("session_snapshots", how="INSERT OR REPLACE", session=session, snapshot=snapshot)

    def begin_draw(self, context: str) -> None:
        query = (
            "INSERT INTO draws (context, begun, key) VALUES (?, 1, NULL) ON CONFLICT DO UPDATE SET begun = begun + 1"
        )
        self._change(query, context)

    def end_draw(self, context: str, key: bytes) -> None:
        self._change("UPDATE draws SET key = ? WHERE context = ?", key, context)
