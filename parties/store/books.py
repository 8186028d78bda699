"""What each population was charged, read from the ledger once: a long history does not make every request slow."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from blindfit.algorithms.privacy.charges import ChargeCounter, Charges
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import LedgerEntry, charge_of
from blindfit.parties.store.store import Transaction


@dataclass
class _Book:
    last: LedgerEntry | None = None
    events: list[ReleaseEvent] = field(default_factory=list)
    counter: ChargeCounter = field(default_factory=ChargeCounter)

    def add(self, entry: LedgerEntry) -> None:
        self.last = entry
        self.events.append(ReleaseEvent.from_canonical(entry.event))
        self.counter.add(charge_of(entry))


class Books:
    """Of all populations. What it says is what the reader's own view of the ledger says."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books: dict[str, _Book] = defaultdict(_Book)

    def events(self, reader: Transaction, population: str) -> list[ReleaseEvent]:
        with self._lock:
            return list(self._up_to_date(reader, population).events)

    def charges(self, reader: Transaction, population: str) -> Charges:
        with self._lock:
            return self._up_to_date(reader, population).counter.charges()

    def last(self, reader: Transaction, population: str) -> LedgerEntry | None:
        """The newest charge."""
        with self._lock:
            return self._up_to_date(reader, population).last

    def _up_to_date(self, reader: Transaction, population: str) -> _Book:
        known = self._books[population].last
        if known is not None and reader.entry_at(known.position) != known:
            # It was read within a transaction that was taken back since, or that the reader does not see.
            del self._books[population]
        book = self._books[population]
        for entry in reader.ledger(population, after=book.last.position if book.last else 0):
            book.add(entry)
        return book
