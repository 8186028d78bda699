"""Receipts of others' ledgers: checked, and kept for the next request, so that a restored ledger is noticed."""

from __future__ import annotations

from blindfit.algorithms.errors import DataError, MalformedMessage
from blindfit.algorithms.privacy.ledger import Receipt
from blindfit.parties.files import signing
from blindfit.parties.store.store import Store

MOST_RECEIPT_BYTES = 2**17  # twice what 256 different charges take
SignedReceipt = tuple[bytes, bytes]
"""Statement and signature; two empty ones: there is none."""


def check_given(receipt: SignedReceipt, server: str, key: bytes, population: str | None = None) -> Receipt:
    """
    Args:
        server: who gave it.
        key: its public one.
        population: about whom it must be; None: whichever the server charged.

    Raises:
        MalformedMessage: it is not the server's, or about something else.
    """
    statement, signature = receipt
    if len(statement) > MOST_RECEIPT_BYTES or not signing.verify(key, statement, signature):
        raise MalformedMessage(culprit=server, field="receipt", reason="is not signed by its sender's receipt key")
    try:
        given = Receipt.from_statement(statement)
    except DataError as error:
        raise MalformedMessage(culprit=server, field="receipt", reason="is no receipt, though signed as one") from error
    if given.server != server or population not in (None, given.population):
        raise MalformedMessage(culprit=server, field="receipt", reason="is about something else")
    return given


def proves_more(given: Receipt, held: bytes) -> bool:
    """Whether it takes the place of what is held: the answer to an old request comes with its old receipt."""
    return not held or given.covers(Receipt.from_statement(held))


def hold_receipt(store: Store, server: str, key: bytes, population: str, receipt: SignedReceipt) -> None:
    """Keeps the one that proves most.

    Raises:
        MalformedMessage: it is not the server's, or about something else.
    """
    given = check_given(receipt, server, key, population)
    with store.transaction() as transaction:
        if proves_more(given, transaction.receipt_held(server, population)[0]):
            transaction.hold_receipt(server, population, receipt)
