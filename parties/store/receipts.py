"""Receipts of measurement servers: proof of what they charged, kept at the consumer."""

from __future__ import annotations

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.privacy.ledger import Receipt
from blindfit.parties.files import signing
from blindfit.parties.store.store import Store
from blindfit.protos import measurement_pb2


def hold_receipt(
    store: Store,
    server: str,
    description: measurement_pb2.DatasetDescription,
    statement: bytes,
    signature: bytes,
) -> None:
    """Kept for the next request: with it a restored ledger is noticed.

    Raises:
        MalformedMessage: it is not the server's, or about something else.
    """
    if not signing.verify(description.receipt_key, statement, signature):
        raise MalformedMessage(culprit=server, field="receipt", reason="is not signed by the server's key")
    receipt = Receipt.from_statement(statement)
    if (receipt.server, receipt.population) != (server, description.population):
        raise MalformedMessage(culprit=server, field="receipt", reason="is about something else")
    with store.transaction() as transaction:
        held, _ = transaction.receipt_held(server, receipt.population)
        # The answer to an old request comes with its old receipt: the held one proves more.
        if not held or receipt.covers(Receipt.from_statement(held)):
            transaction.hold_receipt(server, receipt.population, (statement, signature))
