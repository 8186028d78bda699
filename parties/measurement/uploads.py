"""Uploads of ids. An upload is counted before its first id is looked up, and no longer counts after it led to an
answer.

A party that uploads ids without an answer pays no budget for what it observes: how long the upload took, and whether
the server would answer at all. Both depend on who is in the server's table. So such uploads are limited: for each
active party in 24 hours, and for all active parties together in the disclosure account of the people. An upload in
progress counts until it ends. So neither many uploads at once nor a server that is killed pass the limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import structlog

from blindfit.algorithms.errors import (
    BlindfitError,
    CannotAnswer,
    DuplicateId,
    LedgerUnavailable,
    PolicyRefused,
    TooFewRows,
    UnknownId,
)
from blindfit.parties.account.account import Account
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.measurement.charging import ChargingService, LabelDataset
from blindfit.parties.measurement.label_index import JoinState
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.database import Reads, stamp

log = structlog.get_logger(__name__)

WINDOW = timedelta(hours=24)
MOST_UPLOADS = 1000  # limit of uploads without an answer, for all active parties, until the account starts again


def log_unanswered(error: BlindfitError, consumer: str) -> None:
    """Log the reason for the operator; the active party may not have it."""
    log.warning(
        "a request cannot be answered",
        consumer=consumer,
        error=type(error).__name__,
        reason=error.message,
        hint=error.hint,
    )


def check_uploads(
    reader: Reads, policy: PolicySettings, dataset: PartyDatasetSettings, server: str, consumer: str
) -> None:
    """Check the limits of uploads without an answer.

    Raises:
        PolicyRefused: too many uploads of an active party ended without an answer, or are in progress.
    """
    if reader.count_uploads(consumer=consumer, since=stamp(-WINDOW)) >= policy.max_failed_uploads:
        reason = f"{policy.max_failed_uploads} uploads of this party had no answer in 24 hours: no more may"
        reader.excess.stop(PolicyRefused(party=server, field="max_failed_uploads", reason=reason))
    start, share = Account(policy, dataset).start(reader), policy.account_shares.get(consumer, 0.0)
    is_over = reader.count_uploads(since=start) >= MOST_UPLOADS
    if policy.account_shares and not is_over:
        is_over = reader.count_uploads(consumer=consumer, since=start) >= max(1, share * MOST_UPLOADS)
    if is_over:
        reason = "the disclosure account allows no more uploads without an answer"
        reader.excess.stop(PolicyRefused(party=server, field="uploads", reason=reason))


class Upload:
    """One upload. It does nothing before `begin`."""

    def __init__(self, charging: ChargingService, dataset: LabelDataset, consumer: str) -> None:
        self._charging, self._dataset, self._consumer = charging, dataset, consumer
        self._number: int | None = None
        self._is_answered = False

    def check_quota(self, reader: Reads) -> None:
        """Check the limits of uploads without an answer.

        Raises:
            PolicyRefused: too many ended without an answer, or are in progress.
        """
        charging = self._charging
        check_uploads(reader, charging.policy, self._dataset.settings, charging.name, self._consumer)

    def begin(self) -> None:
        """Count the upload once, also if this is called again; the count is on the disk when this returns.

        Raises:
            PolicyRefused: as in `check_quota`.
            LedgerUnavailable: the upload could not be counted.
        """
        if self._number is None:
            with self._charging.store.transaction() as transaction:
                self.check_quota(transaction)
                self._number = transaction.add_upload(self._consumer, self._dataset.name, stamp())

    @contextmanager
    def answering(self, joined: JoinState) -> Iterator[None]:
        """Run the work that makes the answer when all rows have come. After it the upload no longer counts.

        Raises:
            CannotAnswer, DuplicateId, UnknownId, TooFewRows: as in `joining`.
        """
        with self.joining(joined):
            yield
        self._is_answered = True
        self._forget()

    @contextmanager
    def joining(self, joined: JoinState) -> Iterator[None]:
        """Run work when all rows have come; the upload still counts.

        Raises:
            CannotAnswer: for a reason that depends on who is in the table, or whose rows they are.
            DuplicateId, UnknownId, TooFewRows: that reason itself, if the dataset's rows are public.
        """
        try:
            joined.check()
            yield
        except (DuplicateId, UnknownId, TooFewRows) as error:
            log_unanswered(error, self._consumer)
            if self._dataset.settings.rows_are_public:
                raise
            raise CannotAnswer(party=self._charging.name) from None

    def _forget(self) -> None:
        """Delete the upload from the counts. The answer was charged, so it leaves even if this fails: then the upload
        still counts.
        """
        try:
            with self._charging.store.transaction() as transaction:
                transaction.forget_upload(self._number)
        except LedgerUnavailable as error:
            log.warning("an upload that was answered stays counted", consumer=self._consumer, reason=str(error))

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        """Warn the operator about an upload that still counts."""
        if self._number is not None and not self._is_answered:
            log.warning("an upload of ids ended without an answer", consumer=self._consumer, dataset=self._dataset.name)
