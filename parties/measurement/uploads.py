"""Uploads of ids: counted before their first id is looked up, given back when an answer was made of them.

Who uploads ids and gets no answer pays no budget for what he sees on the way: how long it took, and whether the server
would answer at all, which depends on who is in its table. So such uploads are few: of each consumer in 24 hours, and of
all consumers together in the disclosure account of the people. An upload under way counts until it has ended, so
that neither many at once nor a server that is killed in the middle go past the limits.
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
MOST_UPLOADS = 1000  # without an answer, of all active parties, until the account starts again


def log_unanswered(error: BlindfitError, consumer: str) -> None:
    """Give the operator the reason, which the active party may not have."""
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
    """Raises:
    PolicyRefused: too many uploads of a consumer ended without an answer, or are under way.
    """
    if reader.count_uploads(consumer=consumer, since=stamp(-WINDOW)) >= policy.max_failed_uploads:
        reason = f"{policy.max_failed_uploads} uploads of this party had no answer in 24 hours: no more may"
        reader.excess.stop(PolicyRefused(party=server, field="max_failed_uploads", reason=reason))
    start, share = Account(policy, dataset).start(reader), policy.account_shares.get(consumer, 0.0)
    is_over = reader.count_uploads(since=start) >= MOST_UPLOADS
    if policy.account_shares and not is_over:
        is_over = reader.count_uploads(consumer=consumer, since=start) >= max(1, share * MOST_UPLOADS)
    if is_over:
        reason = "the disclosure account has no room for one more upload without an answer"
        reader.excess.stop(PolicyRefused(party=server, field="uploads", reason=reason))


class Upload:
    """One of them; does nothing before `begin`."""

    def __init__(self, charging: ChargingService, dataset: LabelDataset, consumer: str) -> None:
        self._charging, self._dataset, self._consumer = charging, dataset, consumer
        self._number: int | None = None
        self._is_answered = False

    def check_quota(self, reader: Reads) -> None:
        """Raises:
        PolicyRefused: too many ended without an answer, or are under way.
        """
        charging = self._charging
        check_uploads(reader, charging.policy, self._dataset.settings, charging.name, self._consumer)

    def begin(self) -> None:
        """Count it, on the disk when this returns; once, however often it is called.

        Raises:
            PolicyRefused: as `check_quota`.
            LedgerUnavailable: it could not be counted.
        """
        if self._number is None:
            with self._charging.store.transaction() as transaction:
                self.check_quota(transaction)
                self._number = transaction.add_upload(self._consumer, self._dataset.name, stamp())

    @contextmanager
    def answering(self, joined: JoinState) -> Iterator[None]:
        """All rows have come; what is done within makes the answer, and the upload no longer counts after it.

        Raises what `joining` does.
        """
        with self.joining(joined):
            yield
        self._is_answered = True
        self._forget()

    @contextmanager
    def joining(self, joined: JoinState) -> Iterator[None]:
        """All rows have come; the upload counts as before.

        Raises:
            CannotAnswer: for a reason that depends on who is in the table, or whose rows they are.
            DuplicateId, UnknownId, TooFewRows: that reason, where the dataset's rows are public.
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
        """The answer was charged, so it leaves also where this cannot be written: then one too many stays counted."""
        try:
            with self._charging.store.transaction() as transaction:
                transaction.forget_upload(self._number)
        except LedgerUnavailable as error:
            log.warning("an upload that was answered stays counted", consumer=self._consumer, reason=str(error))

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        """Tells the operator of one that stays counted."""
        if self._number is not None and not self._is_answered:
            log.warning("an upload of ids ended without an answer", consumer=self._consumer, dataset=self._dataset.name)
