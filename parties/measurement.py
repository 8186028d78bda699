"""The measurement server: what its role adds to a party. It holds labels and releases only noisy aggregates."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import itertools
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import grpc
import numpy as np
import numpy.typing as npt

from algorithms.errors import (
    LedgerBehind,
    PolicyRefused,
    RequestConflict,
    TooFewRows,
)
from algorithms.privacy import ledger as book
from algorithms.privacy.events import ReleaseEvent
from algorithms.privacy.gaussian import NOISE_MULTIPLIERS
from algorithms.privacy.ledger import Budget, Receipt
from algorithms.protocols import walr
from algorithms.protocols.walr import AggregateOpen, Draft, NoisySum, Tally
from algorithms.randomness import UniformInt, system_uniform
from parties import measurement_codec, signing
from parties.label_index import JoinState, LabelIndex
from parties.settings import PartyDatasetSettings, PolicySettings
from parties.signing import SigningKey
from parties.store import Store, StoredAnswer, Transaction
from protos import measurement_pb2 as pb
from protos import measurement_pb2_grpc

SPOOL_BYTES = 2**20
STEP_TIMEOUT_S = 120.0
MAX_RECEIPT_BYTES = 2**18  # a receipt lists its population's different events, and goes into every later request
R = TypeVar("R")

UNITS = {
    "row": ("the label of one row", "one row's label changes, number and weights of the rows public"),
    "person": (
        "the labels of one person",
        "one person's labels change, number and weights of the rows public",
    ),
}


@dataclass(frozen=True)
class LabelDataset:
    """A dataset that is ready to be asked about."""

    name: str
    settings: PartyDatasetSettings
    index: LabelIndex

    @property
    def kind(self) -> str:
        return "person" if self.settings.person else "row"

    @property
    def unit(self) -> str:
        """In words, for ledger and privacy statement."""
        row_is = self.settings.row_is
        return UNITS[self.kind][0] + (f", {row_is}" if row_is and self.kind == "row" else "")

    @property
    def population(self) -> str:
        return str(self.settings.population)

    @property
    def max_rows_per_person(self) -> int:
        return self.settings.max_rows_per_person if self.settings.person else 0


@dataclass(frozen=True, slots=True)
class ApprovedJob:
    """What the operator said yes to."""

    dataset: str
    epsilon: float
    delta: float


class MeasurementService:
    """Datasets, budgets, ledger. Everything that is released passes `release`."""

    def __init__(
        self,
        name: str,
        datasets: dict[str, LabelDataset],
        budgets: dict[str, Budget],
        policy: PolicySettings,
        store: Store,
        key: SigningKey,
        approved_job: Callable[[str, str], ApprovedJob | None] = lambda _session, _consumer: None,
        uniform: UniformInt = system_uniform,
    ) -> None:
        self.approved_job = approved_job
        self.name, self.datasets, self.budgets, self.policy = name, datasets, budgets, policy
        self.store, self.key, self.uniform = store, key, uniform
        book.verify_chain(store.reader().ledger())

    def dataset(self, name: str, consumer: str) -> LabelDataset:
        """One answer for both: who may not use a dataset does not learn that it exists."""
        dataset = self.datasets.get(name)
        if dataset is None or consumer not in dataset.settings.consumers:
            raise PolicyRefused(party=self.name, field="dataset", reason="it has none of this name for this party")
        return dataset

    # --- before any row

    def admit(self, request: AggregateOpen, dataset: LabelDataset, consumer: str) -> NoisySum | None:
        """Policy, receipt, budget; the stored answer when the same request was answered before."""
        self._check_receipt(request, dataset)
        with self.store.snapshot() as snapshot:  # the same request may be answered at this moment
            stored = snapshot.answer(consumer, request.request_id)
            if stored is not None:
                return _stored_answer(stored, request)
            self._check_policy(request, dataset)
            self._check_chargeable(snapshot, request, dataset, consumer)
        return None

    def _check_chargeable(
        self, reader: Transaction, request: AggregateOpen, dataset: LabelDataset, consumer: str
    ) -> None:
        """Asked before any row, and again in the transaction that charges: then nobody can come between."""
        _check_rollbacks(reader, dataset)
        self._check_approval(reader, request, dataset, consumer)
        book.check_budget(
            _events(reader, dataset.population),
            _event(request, dataset),
            self.budgets[dataset.population],
            dataset.population,
        )

    def _check_policy(self, request: AggregateOpen, dataset: LabelDataset) -> None:
        if request.n_rows < self.policy.least_rows:
            raise TooFewRows(rows=request.n_rows, least=self.policy.least_rows)
        if request.epsilon > self.policy.most_epsilon:
            self._refuse(
                "privacy.epsilon",
                f"{request.epsilon:g} is more than most_epsilon = {self.policy.most_epsilon:g}",
            )
        if request.dataset_version != dataset.index.version:
            self._refuse("dataset_version", "the dataset has changed since it was described: describe it again")
        most = dataset.max_rows_per_person
        if not (request.max_rows_per_person == most == 0 or 1 <= request.max_rows_per_person <= most):
            wanted = f"from 1 to {most}" if most else "0, as its unit is a row"
            self._refuse("privacy.max_rows_per_person", f"it must be {wanted}")

    def _check_approval(
        self, reader: Transaction, request: AggregateOpen, dataset: LabelDataset, consumer: str
    ) -> None:
        """Where the operator says yes to each job, a request outside an approved job would go past him, and so would a
        second one in its name."""
        if self.policy.approve == "auto":
            return
        job = self.approved_job(request.session, consumer)
        if job is None:
            self._refuse("session", "its operator approves each job, and this request belongs to no approved one")
        elif request.epsilon > job.epsilon or request.delta > job.delta or job.dataset != dataset.name:
            self._refuse("privacy", "the request asks for more than the approved job")
        elif reader.has_answered(consumer, request.session):
            self._refuse("session", "the approved job has had its answer: another request needs another job")

    def _refuse(self, field: str, reason: str) -> None:
        raise PolicyRefused(party=self.name, field=field, reason=reason)

    def _check_receipt(self, request: AggregateOpen, dataset: LabelDataset) -> None:
        """A restored backup refunds no budget: what a client can prove must still be in the ledger."""
        if request.receipt:
            if not signing.verify(self.key.public_bytes, request.receipt, request.receipt_signature):
                self._refuse("receipt", "it is not signed by this server's key")
            receipt = Receipt.from_statement(request.receipt)
            if receipt.server != self.name:
                self._refuse("receipt", "it is another server's, which has the same key")
            self._compare(receipt)
        _check_rollbacks(self.store.reader(), dataset)

    def _compare(self, receipt: Receipt) -> None:
        reader = self.store.reader()
        try:
            book.check_receipt(receipt, reader.entry_at, last_position=_last_position(reader))
        except LedgerBehind:
            # What was lost and acknowledged was charged again in the same transaction, under other hashes.
            if not reader.is_acknowledged(receipt.statement()):
                with self.store.transaction() as transaction:
                    transaction.notice_rollback(receipt.statement(), _now())

    # --- the release

    def release(self, tally: Tally, dataset: LabelDataset, consumer: str, kept: Iterable[bytes] = ()) -> NoisySum:
        """Charge and answer in one transaction, before anything leaves: a crash never gives a second draw.

        Args:
            kept: the packed bits of the rows that counted, in pieces; stored where not every row did.
        """
        request = tally.request
        with self.store.transaction() as transaction:
            stored = transaction.answer(consumer, request.request_id)
            if stored is not None:
                return _stored_answer(stored, request)
            if tally.rows_kept < self.policy.least_rows:
                raise TooFewRows(rows=tally.rows_kept, least=self.policy.least_rows)
            self._check_chargeable(transaction, request, dataset, consumer)
            draft = walr.step_5_draft(tally, self.uniform, neighbours=UNITS[dataset.kind][1])
            answer = self._charge(transaction, request, draft, dataset, consumer)
            if answer.rows_kept < request.n_rows:
                for piece, bits in enumerate(kept):
                    transaction.add_kept_piece(consumer, request.request_id, piece, bits)
            return answer

    def _charge(
        self,
        transaction: Transaction,
        request: AggregateOpen,
        draft: Draft,
        dataset: LabelDataset,
        consumer: str,
    ) -> NoisySum:
        entry = book.append(
            transaction.last_entry(),
            population=dataset.population,
            dataset=dataset.name,
            dataset_version=request.dataset_version,
            requester=consumer,
            request_id=request.request_id,
            content_sha256=request.content_sha256.hex(),
            kind="release",
            event=draft.event,
            epsilon=request.epsilon,
            delta=request.delta,
            unit=dataset.unit,
            answer_sha256=hashlib.sha256(np.ascontiguousarray(draft.sums, "<i8").tobytes()).hexdigest(),
            time=_now(),
        )
        transaction.add_entry(entry)
        charged = [e.event for e in transaction.ledger(dataset.population)]
        statement = book.receipt_for(self.name, entry, charged, transaction.entry_at).statement()
        if len(statement) > MAX_RECEIPT_BYTES:
            self._refuse("privacy.epsilon", "this population has seen too many different ones: take one used before")
        answer = walr.answer_of(draft, unit=dataset.unit, receipt=(statement, self.key.sign(statement)))
        encoded = measurement_codec.answer_to_pb(answer).SerializeToString()
        transaction.add_answer(
            consumer,
            request.request_id,
            StoredAnswer(walr.request_digest(request).hex(), encoded, entry.position, request.session),
        )
        return answer

    # --- describing

    def describe(self, dataset: LabelDataset) -> pb.DatasetDescription:
        return pb.DatasetDescription(
            dataset=dataset.name,
            version=dataset.index.version,
            population=dataset.population,
            unit=dataset.kind,
            max_rows_per_person=dataset.max_rows_per_person,
            unknown_rows=dataset.settings.unknown_rows,
            least_rows=self.policy.least_rows,
            most_epsilon=self.policy.most_epsilon,
            receipt_key=self.key.public_bytes,
            mechanisms=sorted(NOISE_MULTIPLIERS),
        )

    def describe_budget(self, population: str) -> pb.BudgetDescription:
        budget = self.budgets[population]
        entries = self.store.reader().ledger(population)
        return pb.BudgetDescription(
            population=population,
            epsilon=budget.epsilon,
            delta=budget.delta,
            spent_epsilon=book.spent(entries, budget.delta),
            releases=len(entries),
        )


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
        transaction.acknowledge_rollbacks(_now())
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
    return book.append(
        transaction.last_entry(),
        population=receipt.population,
        dataset="",
        dataset_version="",
        requester="",
        request_id="",
        content_sha256="",
        kind="recovered",
        event=ReleaseEvent.from_canonical(event),
        epsilon=0.0,
        delta=0.0,
        unit="",
        answer_sha256="",
        time=_now(),
    )


def _event(request: AggregateOpen, dataset: LabelDataset) -> ReleaseEvent:
    return walr.mechanism_of(request).event(UNITS[dataset.kind][1])


def _events(transaction: Transaction, population: str) -> list[ReleaseEvent]:
    return [ReleaseEvent.from_canonical(entry.event) for entry in transaction.ledger(population)]


def _stored_answer(stored: StoredAnswer, request: AggregateOpen) -> NoisySum:
    if stored.request_digest != walr.request_digest(request).hex():
        raise RequestConflict("this request id was answered for other content", hint="take another request id")
    return measurement_codec.answer_from_pb(pb.NoisySum.FromString(stored.answer), "the store")


def _check_rollbacks(reader: Transaction, dataset: LabelDataset) -> None:
    """One ledger for all populations; the error names the asker's, as another one is none of its business."""
    noticed = reader.rollbacks()
    if noticed:
        raise LedgerBehind(
            population=dataset.population,
            ledger_position=_last_position(reader),
            receipt_position=Receipt.from_statement(noticed[-1]).position,
        )


def _last_position(reader: Transaction) -> int:
    last = reader.last_entry()
    return last.position if last else 0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- one request --------------------------------------------------------------------------------------


class AggregateDesk:
    """walr.Desk for one call."""

    def __init__(self, service: MeasurementService, consumer: str) -> None:
        self._service, self._consumer = service, consumer
        self._join: JoinState | None = None
        self.request: AggregateOpen
        self._dataset: LabelDataset
        self._kept = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - closed in close()
        self._work: asyncio.Future[Any] | None = None

    def admit(self, request: AggregateOpen) -> NoisySum | None:
        self._dataset = self._service.dataset(request.dataset, self._consumer)
        self.request = request
        return self._service.admit(request, self._dataset, self._consumer)

    def _joined(self) -> JoinState:
        if self._join is None:
            # The request's bound, at most the dataset's: the noise is for this one.
            self._join = self._dataset.index.new_request(
                self.request.max_rows_per_person or None, self._dataset.settings.unknown_rows
            )
        return self._join

    def join(self, ids: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        batch = self._joined().join(list(ids))
        return batch.labels, batch.kept

    def keep_bits(self, bits: bytes) -> None:
        self._kept.write(bits)

    def kept_pieces(self) -> Iterator[bytes]:
        reader = self._service.store.reader()
        numbered = (reader.kept_piece(self._consumer, self.request.request_id, n) for n in itertools.count())
        return itertools.takewhile(bool, numbered)

    def release(self, tally: Tally) -> NoisySum:
        self._kept.seek(0)
        pieces = iter(functools.partial(self._kept.read, walr.KEPT_PIECE_BYTES), b"")
        return self._service.release(tally, self._dataset, self._consumer, pieces)

    def in_background(self, work: Callable[[], R]) -> Awaitable[R]:
        """Work that has begun goes on when the consumer hangs up: a thread cannot be stopped in the middle."""
        running = asyncio.ensure_future(asyncio.to_thread(work))
        self._work = running
        return asyncio.shield(running)

    def close(self) -> None:
        """Lets go of the files, as soon as no work uses them."""
        if self._work is not None and not self._work.done():
            self._work.add_done_callback(self._close_after)
        else:
            self._close_files()

    def _close_after(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # nobody waits for it any more
        self._close_files()

    def _close_files(self) -> None:
        self._kept.close()
        if self._join is not None:
            self._join.close()


class MeasurementServicer(measurement_pb2_grpc.MeasurementServicer):
    """Args:
    on_answered: told the consumer and the request of every answer that left.
    """

    def __init__(
        self,
        service: MeasurementService,
        caller_of: Callable[[], str],
        on_answered: Callable[[str, AggregateOpen], None] = lambda _consumer, _request: None,
    ) -> None:
        self._service, self._caller_of, self._on_answered = service, caller_of, on_answered

    async def Describe(self, request: pb.DescribeDatasetRequest, context: Any) -> pb.DatasetDescription:  # noqa: N802, ARG002
        return self._service.describe(self._service.dataset(request.dataset, self._caller_of()))

    async def Budget(self, request: pb.BudgetRequest, context: Any) -> pb.BudgetDescription:  # noqa: N802, ARG002
        population = self._service.dataset(request.dataset, self._caller_of()).population
        return await asyncio.to_thread(self._service.describe_budget, population)

    async def Aggregate(  # noqa: N802
        self,
        request_iterator: AsyncIterator[pb.AggregateRequest],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> None:
        consumer = self._caller_of()
        desk = AggregateDesk(self._service, consumer)
        channel = measurement_codec.ServerSide(consumer, request_iterator, context, STEP_TIMEOUT_S)
        try:
            await walr.run_measurement_server(consumer, channel, desk)
        finally:
            desk.close()
            if channel.answered:  # even if the consumer hung up after it
                self._on_answered(consumer, desk.request)
