"""A ledger that is behind a receipt that somebody holds: noticed, and charged again at the operator's word."""

from __future__ import annotations

from blindfit.algorithms.errors import LedgerBehind
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.charges import CountedCharge
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Charge, Receipt
from blindfit.parties.store.charging import last_position
from blindfit.parties.store.store import Store, Transaction, stamp


def acknowledge_rollbacks(store: Store) -> int:
    """The operator's word that the ledger was restored: charges again what the noticed receipts prove.

    Returns:
        How many charges were recovered; a sum of many counts once.
    """
    recovered = 0
    with store.transaction() as transaction:
        for statement in transaction.rollbacks():
            receipt = Receipt.from_statement(statement)
            for charge, count in _missing(receipt, transaction):
                for _ in range(count):
                    transaction.add_entry(_recovered_entry(transaction, receipt, charge))
                    recovered += 1
        transaction.acknowledge_rollbacks(stamp())
    return recovered


def _recovered_entry(transaction: Transaction, receipt: Receipt, charge: CountedCharge) -> book.LedgerEntry:
    event = ReleaseEvent.from_canonical(charge.event)
    again = Charge(receipt.population, event, content_sha256=receipt.entry_hash)
    return book.append(transaction.last_entry(), again, time=stamp(), kind=book.recovered_kind(charge))


def compare_receipt(receipt: Receipt, store: Store) -> None:
    """Notices a receipt that the ledger should show and does not."""
    reader = store.reader()
    try:
        book.check_receipt(receipt, reader.entry_at, last_position=last_position(reader))
    except LedgerBehind:
        # What was lost and acknowledged was charged again in the same transaction, under other hashes.
        if not reader.is_acknowledged(receipt.statement()) and not _was_recovered(receipt, reader):
            with store.transaction() as transaction:
                transaction.notice_rollback(receipt.statement(), stamp())


def _was_recovered(receipt: Receipt, reader: Transaction) -> bool:
    """Whether an acknowledged receipt is of the same lost ledger, at this entry or later, and all that this one proves
    was charged again: of another population, or of another lost ledger, it may prove what is missing.
    """
    at = (receipt.position, receipt.entry_hash)
    acknowledged = map(Receipt.from_statement, reader.acknowledged_rollbacks())
    if not any(at in ((known.position, known.entry_hash), *known.landmarks) for known in acknowledged):
        return False
    return not _missing(receipt, reader)


def _missing(receipt: Receipt, reader: Transaction) -> list[tuple[CountedCharge, int]]:
    statements = (*reader.rollbacks(), *reader.acknowledged_rollbacks())
    common, entries = book.common_position(receipt, reader.entry_at), reader.ledger(receipt.population)
    return list(book.missing_charges(receipt, entries, common, map(Receipt.from_statement, statements)))
