"""Signed receipts of charges. Receipts of others' ledgers are kept; receipts of the own ledger are given, and compared
with it when they come back.

A ledger that was restored from a backup lacks entries that somebody's receipt proves. The party notices this, and
charges nothing until the operator acknowledges it. Then the entries that the receipt proves are charged again.
"""

from __future__ import annotations

import hashlib

from blindfit.algorithms.errors import DataError, LedgerBehind, MalformedMessage, PolicyRefused
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.charges import CountedCharge
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Charge, LedgerEntry, Receipt
from blindfit.parties.files import signing
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.store.charging import Books, last_position
from blindfit.parties.store.database import Reads, Store, Writes, stamp
from blindfit.parties.store.losses import Loss, find_unexplained

MOST_RECEIPT_BYTES = 2**17  # twice the size for 256 different charges
SignedReceipt = tuple[bytes, bytes]
"""Statement and signature; both are empty without a receipt."""

FORMER_KEY = "its operator must restore the former receipt_key.pem from a backup"


def check_given(receipt: SignedReceipt, server: str, key: bytes, population: str | None = None) -> Receipt:
    """Return the receipt that a server gave.

    Args:
        server: server that gave it.
        key: public key of the server's receipts.
        population: population that it must be about; None for any population that the server charged.

    Raises:
        MalformedMessage: it is not the server's, or about something else.
    """
    statement, signature = receipt
    if len(statement) > MOST_RECEIPT_BYTES or not signing.verify(key, statement, signature):
        raise MalformedMessage(culprit=server, field="receipt", reason="is not signed by its sender's receipt key")
    try:
        given = Receipt.from_statement(statement)
    except DataError as error:
        raise MalformedMessage(
            culprit=server, field="receipt", reason="is not a receipt, though signed as one"
        ) from error
    if given.server != server or population not in (None, given.population):
        raise MalformedMessage(culprit=server, field="receipt", reason="is about something else")
    return given


def proves_more(given: Receipt, held: bytes) -> bool:
    """Return True if a receipt replaces the one that is held: the answer to an old request comes with its old
    receipt.
    """
    return not held or given.covers(Receipt.from_statement(held))


def hold_receipt(store: Store, server: str, key: bytes, population: str, receipt: SignedReceipt) -> None:
    """Keep the receipt that proves most.

    Raises:
        MalformedMessage: it is not the server's, or about something else.
    """
    given = check_given(receipt, server, key, population)
    with store.transaction() as transaction:
        if proves_more(given, transaction.receipt_held(server, population)[0]):
            transaction.hold_receipt(server, population, receipt)


# --- receipts of the own ledger ----------------------------------------------------------------------------------


class OwnReceipts:
    """Receipts of this party's ledger.

    Args:
        name: name of the party whose ledger it is.
    """

    def __init__(self, name: str, store: Store, key: SigningKey) -> None:
        self.books = Books()
        self._name, self._store, self._key = name, store, key

    @property
    def public_key(self) -> bytes:
        return self._key.public_bytes

    def take(self, presented: SignedReceipt, by: str) -> None:
        """Check that the ledger has what a presented receipt proves: a restored backup refunds no budget.

        If the ledger lacks an entry, this is recorded, and from then on nothing is charged
        (`charging.check_rollbacks`).

        Raises:
            PolicyRefused: this party did not sign it.
        """
        statement, signature = presented
        if len(statement) > MOST_RECEIPT_BYTES or not signing.verify(self.public_key, statement, signature):
            self._refuse(f"the receipt that {by} presents is not signed by this party's receipt key: {FORMER_KEY}")
        receipt = Receipt.from_statement(statement)
        if receipt.server != self._name:
            self._refuse(f"the receipt that {by} presents is another party's, which has the same key")
        compare_receipt(receipt, self._store)

    def of_entry(self, transaction: Reads, entry: LedgerEntry) -> SignedReceipt:
        """Return a receipt of the last entry of its population."""
        charges = self.books.charges(transaction, entry.population)
        statement = book.receipt_for(self._name, entry, charges, transaction.entry_at).statement()
        return statement, self._key.sign(statement)

    def newest(self, population: str) -> SignedReceipt:
        """Return a receipt of everything that the population was charged; an empty receipt if it was not charged."""
        with self._store.view() as reader:
            last = self.books.last(reader, population)
            return self.of_entry(reader, last) if last else (b"", b"")

    def _refuse(self, reason: str) -> None:
        raise PolicyRefused(party=self._name, field="receipt", reason=reason)


# --- a ledger that is behind a receipt ---------------------------------------------------------------------------


def acknowledge_losses(store: Store, reason: str) -> int:
    """Keep the operator's reason for a ledger that was lost or restored, and charge again what noticed receipts prove.

    Returns:
        The number of recovered charges; a sum of many counts once.
    """
    recovered, now = 0, stamp()
    with store.transaction() as transaction:
        for what in find_unexplained(store.path.parent, transaction):
            transaction.add_loss(Loss(what, now, reason))
        for statement in transaction.rollbacks():
            receipt = Receipt.from_statement(statement)
            digest = hashlib.sha256(statement).hexdigest()[:16]
            transaction.add_loss(Loss(f"receipt {digest} of entry {receipt.position}", now, reason))
            for charge, count in _missing(receipt, transaction):
                for _ in range(count):
                    transaction.add_entry(_recover_entry(transaction, receipt, charge))
                    recovered += 1
        transaction.acknowledge_rollbacks(now)
    return recovered


def _recover_entry(transaction: Writes, receipt: Receipt, charge: CountedCharge) -> book.LedgerEntry:
    event = ReleaseEvent.from_canonical(charge.event)
    again = Charge(receipt.population, event, content_sha256=receipt.entry_hash)
    return book.append(transaction.last_entry(), again, time=stamp(), kind=book.kind_of_recovery(charge))


def compare_receipt(receipt: Receipt, store: Store) -> None:
    """Record a receipt whose entries the ledger should have and lacks."""
    reader = store.reader()
    try:
        book.check_receipt(receipt, reader.entry_at, last_position=last_position(reader))
    except LedgerBehind:
        # Entries that were lost and acknowledged were charged again in the same transaction, under other hashes.
        if not reader.is_acknowledged(receipt.statement()) and not _was_recovered(receipt, reader):
            with store.transaction() as transaction:
                transaction.notice_rollback(receipt.statement(), stamp())


def _was_recovered(receipt: Receipt, reader: Reads) -> bool:
    """Return True if an acknowledged receipt covers this one, so that everything that this one proves was charged
    again.

    The acknowledged receipt must be of the same lost ledger, at this entry or later. A receipt of another population,
    or of another lost ledger, may prove missing entries.
    """
    at = (receipt.position, receipt.entry_hash)
    acknowledged = map(Receipt.from_statement, reader.list_acknowledged_rollbacks())
    if not any(at in ((known.position, known.entry_hash), *known.landmarks) for known in acknowledged):
        return False
    return not _missing(receipt, reader)


def _missing(receipt: Receipt, reader: Reads) -> list[tuple[CountedCharge, int]]:
    statements = (*reader.rollbacks(), *reader.list_acknowledged_rollbacks())
    common, entries = book.common_position(receipt, reader.entry_at), reader.ledger(receipt.population)
    return list(book.missing_charges(receipt, entries, common, map(Receipt.from_statement, statements)))
