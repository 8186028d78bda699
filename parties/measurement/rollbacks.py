"""A ledger that is behind a client's receipt: noticed, and charged again at the operator's word."""

from __future__ import annotations

from collections import Counter

from blindfit.algorithms.errors import LedgerBehind
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Charge, Receipt
from blindfit.parties.store.charging import now
from blindfit.parties.store.store import Store, Transaction


def acknowledge_rollbacks(store: Store) -> int:
    """The operator's word that the ledger was restored: charges again what the noticed receipts prove.

    Returns:
        How many charges were recovered.
    """
    recovered = 0
    with store.transaction() as transaction:
        for statement in transaction.rollbacks():
            receipt = Receipt.from_statement(statement)
            for event, count in sorted(_lost_charges(receipt, transaction).items()):
                for _ in range(count):
                    transaction.add_entry(_recovered_entry(transaction, receipt, event))
                    recovered += 1
        transaction.acknowledge_rollbacks(now())
    return recovered


def _lost_charges(receipt: Receipt, transaction: Transaction) -> Counter[str]:
    """What a receipt proves, less what this ledger is known to have in common with the one that gave it.

    What was released after the two parted is not in common: else it would stand in for an equal release that was
    lost. What was recovered is, from whichever receipt.
    """
    common = book.common_position(receipt, transaction.entry_at)
    entries = (e for e in transaction.ledger() if e.kind == "recovered" or e.position <= common)
    return book.missing_charges(receipt, entries)


def _recovered_entry(transaction: Transaction, receipt: Receipt, event: str) -> book.LedgerEntry:
    charge = Charge(receipt.population, ReleaseEvent.from_canonical(event))
    return book.append(transaction.last_entry(), charge, time=now(), kind="recovered")


def compare_receipt(receipt: Receipt, store: Store) -> None:
    """Notices a receipt that the ledger should show and does not."""
    reader = store.reader()
    try:
        book.check_receipt(receipt, reader.entry_at, last_position=_last_position(reader))
    except LedgerBehind:
        # What was lost and acknowledged was charged again in the same transaction, under other hashes.
        if not reader.is_acknowledged(receipt.statement()):
            with store.transaction() as transaction:
                transaction.notice_rollback(receipt.statement(), now())


def check_rollbacks(reader: Transaction, population: str) -> None:
    """One ledger for all populations; the error names the asker's, as another one is none of its business."""
    noticed = reader.rollbacks()
    if noticed:
        raise LedgerBehind(
            population=population,
            ledger_position=_last_position(reader),
            receipt_position=Receipt.from_statement(noticed[-1]).position,
        )


def _last_position(reader: Transaction) -> int:
    last = reader.last_entry()
    return last.position if last else 0
