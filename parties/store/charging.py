"""The only code that charges a budget: within the transaction that keeps the answer."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from blindfit.algorithms.errors import BudgetExhausted, DataError, LedgerBehind, LedgerUnavailable
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.charges import ChargeCounter, Charges
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Budget, Charge, LedgerEntry, Receipt, charge_of
from blindfit.parties.store.database import Reads, Store, Writes, stamp

MEND = "restore a backup of party.sqlite that has them all: `blindfit ledger PARTY.TOML` shows its entries"


def check_chain(store: Store) -> None:
    """Check a whole ledger when its party starts: 10,000 entries take half a second.

    Raises:
        DataError: the ledger was edited, or an entry is missing; the error names the first wrong position.
    """
    try:
        book.verify_chain(store.reader().ledger())
    except DataError as error:
        raise DataError(f"{store.path}: {error.message}: a budget would be spent twice", hint=MEND) from None


def check(reader: Reads, charge: Charge, budget: Budget) -> None:
    """Check that a charge fits.

    Raises:
        LedgerUnavailable: an entry is missing.
        LedgerBehind: a receipt proves entries that the ledger does not have.
        BudgetExhausted: the charge does not fit.
        UnsupportedEvent: the charge cannot be composed with earlier ones.
    """
    check_event(reader, charge.population, charge.event, budget)


def check_event(reader: Reads, population: str, event: ReleaseEvent, budget: Budget) -> None:
    """Check that a release fits. Raise errors as `check` does."""
    check_rollbacks(reader, population)
    events = [ReleaseEvent.from_canonical(entry.event) for entry in reader.ledger(population)]
    check_fits(reader, events, event, budget, population)


def check_fits(
    reader: Reads, events: Sequence[ReleaseEvent], event: ReleaseEvent, budget: Budget, population: str
) -> None:
    """Refuse a release that would exceed the budget; a rehearsal that only warns continues.

    Raises:
        BudgetExhausted, UnsupportedEvent: as in `check`.
    """
    try:
        book.check_budget(events, event, budget, population)
    except BudgetExhausted as error:
        reader.excess.stop(error)


def check_before(reader: Reads, population: str, event: ReleaseEvent, budget: Budget, snapshot: str) -> None:
    """Refuse a job, before it begins, if its release does not fit and cannot have been charged before.

    The same question about the same snapshot is free. So a release of the same kind about it may be the same question,
    and then only the charge itself shows whether it is.

    Raises:
        LedgerUnavailable, LedgerBehind, BudgetExhausted, UnsupportedEvent: as in `check`.
    """
    check_rollbacks(reader, population)
    if not any(may_be_paid_by(entry, event, snapshot) for entry in reader.ledger(population)):
        check_event(reader, population, event, budget)


def may_be_paid_by(entry: LedgerEntry, event: ReleaseEvent, snapshot: str) -> bool:
    """Return True if an entry may be the charge of a release that is requested again.

    Another version, or another machine, may compute another last digit of a noise multiplier.
    """
    if entry.kind != "release" or entry.snapshot != snapshot:
        return False
    known = ReleaseEvent.from_canonical(entry.event)
    return math.isclose(known.noise_multiplier, event.noise_multiplier, rel_tol=1e-6) and (
        replace(known, noise_multiplier=event.noise_multiplier) == event
    )


def check_rollbacks(reader: Reads, population: str) -> None:
    """Check that the ledger is complete. All populations share one ledger; the error names only the population of the
    request.

    Raises:
        LedgerUnavailable: an entry is missing; `check_chain` will report it too at the next start.
        LedgerBehind: a receipt proves more, and the operator has not acknowledged it.
    """
    if reader.entries_missing():
        raise LedgerUnavailable(
            "entries of the ledger are missing: this step released nothing and charged nothing", hint=MEND
        )
    noticed = reader.rollbacks()
    if noticed:
        raise LedgerBehind(
            population=population,
            ledger_position=last_position(reader),
            receipt_position=Receipt.from_statement(noticed[-1]).position,
        )


def last_position(reader: Reads) -> int:
    last = reader.last_entry()
    return last.position if last else 0


def enter(transaction: Writes, charge: Charge, answer_sha256: str = "") -> LedgerEntry:
    """Enter a charge that was checked in the same transaction; it is on the disk when the transaction ends."""
    entry = book.append(transaction.last_entry(), charge, time=stamp(), answer_sha256=answer_sha256)
    transaction.add_entry(entry)
    return entry


def is_paid(reader: Reads, charge: Charge) -> bool:
    """Return True if this question about this snapshot was charged before."""
    return any(
        (entry.snapshot, entry.request_id) == (charge.snapshot, charge.request_id) and entry.kind == "release"
        for entry in reader.ledger(charge.population)
    )


# --- what was charged, read from the ledger once: a long history does not make every request slow --------------


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
    """The entries of all populations, as they are in the reader's own view of the ledger."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books: dict[str, _Book] = defaultdict(_Book)

    def events(self, reader: Reads, population: str) -> list[ReleaseEvent]:
        with self._lock:
            return list(self._up_to_date(reader, population).events)

    def charges(self, reader: Reads, population: str) -> Charges:
        with self._lock:
            return self._up_to_date(reader, population).counter.charges()

    def last(self, reader: Reads, population: str) -> LedgerEntry | None:
        with self._lock:
            return self._up_to_date(reader, population).last

    def _up_to_date(self, reader: Reads, population: str) -> _Book:
        known = self._books[population].last
        if known is not None and reader.entry_at(known.position) != known:
            # It was read within a transaction that was rolled back since, or that the reader does not see.
            del self._books[population]
        book = self._books[population]
        for entry in reader.ledger(population, after=book.last.position if book.last else 0):
            book.add(entry)
        return book
