"""Keep the ledger's entries, others' receipts, and the receipts that prove entries which this ledger lacks."""

from __future__ import annotations

from blindfit.algorithms.privacy.ledger import LedgerEntry, from_json_line, to_json_line
from blindfit.parties.store.rows import RowReads, RowWrites


class LedgerReads(RowReads):
    def ledger(self, population: str | None = None, *, after: int = 0) -> list[LedgerEntry]:
        """Return the entries of one population or of all, after a position."""
        if population is None:
            rows = self._all("SELECT position, line FROM ledger WHERE position > ? ORDER BY position", after)
        else:
            query = "SELECT position, line FROM ledger WHERE population = ? AND position > ? ORDER BY position"
            rows = self._all(query, population, after)
        return [from_json_line(str(line), int(position)) for position, line in rows]

    def entry_at(self, position: int) -> LedgerEntry | None:
        rows = self._all("SELECT line FROM ledger WHERE position = ?", position)
        return from_json_line(str(rows[0][0]), position) if rows else None

    def last_entry(self) -> LedgerEntry | None:
        rows = self._all("SELECT position, line FROM ledger ORDER BY position DESC LIMIT 1")
        return from_json_line(str(rows[0][1]), int(rows[0][0])) if rows else None

    def entries_missing(self) -> int:
        """Count the entries that are missing before the last one. Positions count from 1, and no entry is ever
        removed.
        """
        return self._number("SELECT coalesce(max(position), 0) - count(*) FROM ledger")

    def receipt_held(self, server: str, population: str) -> tuple[bytes, bytes]:
        query = "SELECT statement, signature FROM receipts_held WHERE server = ? AND population = ?"
        rows = self._all(query, server, population)
        return (rows[0][0], rows[0][1]) if rows else (b"", b"")

    def rollbacks(self) -> list[bytes]:
        """Return the receipts that prove entries which this ledger lacks, and that nobody has acknowledged."""
        rows = self._all("SELECT statement FROM rollbacks WHERE acknowledged IS NULL ORDER BY noticed")
        return [row[0] for row in rows]

    def list_acknowledged_rollbacks(self) -> list[bytes]:
        return [row[0] for row in self._all("SELECT statement FROM rollbacks WHERE acknowledged IS NOT NULL")]

    def is_acknowledged(self, statement: bytes) -> bool:
        query = "SELECT 1 FROM rollbacks WHERE statement = ? AND acknowledged IS NOT NULL"
        return bool(self._all(query, statement))


class LedgerWrites(LedgerReads, RowWrites):
    def add_entry(self, entry: LedgerEntry) -> None:
        line = to_json_line(entry)
        self._insert("ledger", position=entry.position, population=entry.population, line=line)

    def hold_receipt(self, server: str, population: str, receipt: tuple[bytes, bytes]) -> None:
        statement, signature = receipt
        about = {"server": server, "population": population}
        self._insert("receipts_held", how="INSERT OR REPLACE", **about, statement=statement, signature=signature)

    def notice_rollback(self, statement: bytes, noticed: str) -> None:
        self._insert("rollbacks", how="INSERT OR IGNORE", statement=statement, noticed=noticed)

    def acknowledge_rollbacks(self, acknowledged: str) -> None:
        self._change("UPDATE rollbacks SET acknowledged = ? WHERE acknowledged IS NULL", acknowledged)
