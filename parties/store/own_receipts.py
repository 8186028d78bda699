"""The receipts of a party's own ledger: given with every charge, and believed when others present them."""

from __future__ import annotations

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.ledger import LedgerEntry, Receipt
from blindfit.parties.files import signing
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.store.books import Books
from blindfit.parties.store.receipts import MOST_RECEIPT_BYTES, SignedReceipt
from blindfit.parties.store.rollbacks import compare_receipt
from blindfit.parties.store.store import Store, Transaction

FORMER_KEY = "its operator puts the former receipt_key.pem back, from a backup"


class OwnReceipts:
    """
    Args:
        name: of the party whose ledger it is.
    """

    def __init__(self, name: str, store: Store, key: SigningKey) -> None:
        self.books = Books()
        self._name, self._store, self._key = name, store, key

    @property
    def public_key(self) -> bytes:
        return self._key.public_bytes

    def take(self, presented: SignedReceipt, by: str) -> None:
        """A restored backup refunds no budget: what others can prove must still be in the ledger. Where it is not, the
        ledger is known to be behind from here on, and nothing is charged (`charging.check_rollbacks`).

        Raises:
            PolicyRefused: this party did not sign it.
        """
        statement, signature = presented
        if len(statement) > MOST_RECEIPT_BYTES or not signing.verify(self.public_key, statement, signature):
            self._refuse(f"the one that {by} presents is not signed by this party's receipt key: {FORMER_KEY}")
        receipt = Receipt.from_statement(statement)
        if receipt.server != self._name:
            self._refuse(f"the one that {by} presents is another party's, which has the same key")
        compare_receipt(receipt, self._store)

    def of_entry(self, transaction: Transaction, entry: LedgerEntry) -> SignedReceipt:
        """Of the last entry of its population."""
        charges = self.books.charges(transaction, entry.population)
        statement = book.receipt_for(self._name, entry, charges, transaction.entry_at).statement()
        return statement, self._key.sign(statement)

    def newest(self, population: str) -> SignedReceipt:
        """Of all that the population was charged; of nothing where it was not."""
        with self._store.view() as reader:
            last = self.books.last(reader, population)
            return self.of_entry(reader, last) if last else (b"", b"")

    def _refuse(self, reason: str) -> None:
        raise PolicyRefused(party=self._name, field="receipt", reason=reason)
