"""The measurement server: what its role adds to a party. It holds labels and releases only noisy aggregates."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import grpc
import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.privacy.gaussian import NOISE_MULTIPLIERS
from blindfit.algorithms.protocols import release_labels, walr, walr_encrypted, walr_shares, walr_split, walr_statement
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, Tally, Terms
from blindfit.algorithms.protocols.walr_shares import SharedRowsTally
from blindfit.algorithms.protocols.walr_split import Counted, ShareTally
from blindfit.algorithms.protocols.walr_statement import Between
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement import labels_codec as measurement_labels_codec
from blindfit.parties.measurement.background import Background
from blindfit.parties.measurement.charging import Asked, ChargingService, Cost, LabelDataset, check_same
from blindfit.parties.measurement.label_index import JoinState
from blindfit.parties.measurement.meeting import Meeting
from blindfit.parties.measurement.release_labels import LabelReleases, LabelsDesk, allowed_mechanisms
from blindfit.parties.measurement.trust import UNCHECKED_ROWS
from blindfit.parties.measurement.uploads import Upload
from blindfit.parties.store.store import StoredAnswer
from blindfit.protos import measurement_pb2 as pb
from blindfit.protos import measurement_pb2_grpc

SPOOL_BYTES = 2**20
STEP_TIMEOUT_S = 120.0


class MeasurementService(ChargingService):
    """Aggregates, and what the server says of its datasets."""

    def admit(self, request: AggregateOpen, dataset: LabelDataset, consumer: str) -> NoisySum | None:
        """Policy, receipt, budget; the stored answer when the same request was answered before."""
        if dataset.settings.label_kind == "number":
            self.refuse("dataset", "its labels are numbers: ask for a release of labels")
        if request.key:
            self._check_hidden_rows(request, consumer)
        self.check_receipt(request, dataset)
        with self.store.view() as view:  # the same request may be answered at this moment
            stored = view.answer(consumer, request.request_id)
            if stored is not None:
                return _stored_answer(stored, request)
            cost = _cost(request, dataset)
            self.check_policy(request, dataset, cost)
            self.check_chargeable(view, request, dataset, consumer, cost)
        return None

    def _check_hidden_rows(self, request: AggregateOpen, consumer: str) -> None:
        """Rows that cannot be checked: only where the policy lists the flag, or the operator saw it with the job."""
        job = self.approved_job(request.session, consumer) if self.policy.approve == "ask" else None
        if job and UNCHECKED_ROWS not in job.unsafe:
            self.refuse("key", "the approved job does not hide its rows")
        for field, reason in self.policy.refusals(request.epsilon, request.delta, (UNCHECKED_ROWS,)):
            self.refuse(field, reason)

    def release(self, tally: Tally, dataset: LabelDataset, consumer: str, kept: Iterable[bytes] = ()) -> NoisySum:
        """Charge and answer in one transaction, before anything leaves: a crash never gives a second draw.

        Args:
            kept: the packed bits of the rows that counted, in pieces; stored where not every row did.
        """
        request, cost = tally.request, _cost(tally.request, dataset)
        with self.store.transaction() as transaction:
            stored = transaction.answer(consumer, request.request_id)
            if stored is not None:
                return _stored_answer(stored, request)
            self.check_kept(tally.rows_kept)
            self.check_chargeable(transaction, request, dataset, consumer, cost)
            draft = walr.step_5_draft(tally, self.uniform, neighbours=dataset.neighbours)
            answer = walr.answer_of(draft, unit=dataset.unit, terms=self._terms(dataset))
            about = Between(self.name, consumer, dataset.population)
            sha256 = walr_statement.digest(request, answer, about)
            entry, receipt = self.append(transaction, request, dataset, consumer, cost, sha256)
            answer = walr_statement.proved(answer, entry, receipt)
            encoded, digest = measurement_codec.answer_to_pb(answer).SerializeToString(), walr.request_digest(request)
            stored = StoredAnswer(digest.hex(), encoded, entry.position, request.session)
            transaction.add_answer(consumer, request.request_id, stored)
            if answer.rows_kept < request.n_rows:
                for piece, bits in enumerate(kept):
                    transaction.add_kept_piece(consumer, request.request_id, piece, bits)
            return answer

    def check_ready(self, tally: Tally, dataset: LabelDataset, consumer: str) -> None:
        """Of rows that have come: raises what would refuse their charge, and charges nothing."""
        self.check_kept(tally.rows_kept)
        with self.store.view() as view:
            self.check_chargeable(view, tally.request, dataset, consumer, _cost(tally.request, dataset))

    def _terms(self, dataset: LabelDataset) -> Terms:
        budget = self.budgets[dataset.population]
        policy = self.policy
        return Terms(policy.least_rows, policy.most_epsilon, policy.most_delta, budget.epsilon, budget.delta)

    def describe(self, dataset: LabelDataset) -> pb.DatasetDescription:
        lo, hi = dataset.settings.label_range or (0.0, 1.0)
        proof = self.prove_key(self.key.public_bytes)
        return pb.DatasetDescription(
            dataset=dataset.name,
            snapshot=dataset.snapshot,
            population=dataset.population,
            unit=dataset.kind,
            max_rows_per_person=dataset.max_rows_per_person,
            unknown_rows=dataset.settings.unknown_rows,
            least_rows=self.policy.least_rows,
            most_epsilon=self.policy.most_epsilon,
            receipt_key=self.key.public_bytes,
            mechanisms=sorted(NOISE_MULTIPLIERS) if dataset.settings.label_range is None else allowed_mechanisms(self),
            label_kind=dataset.settings.label_kind,
            label_lo=lo,
            label_hi=hi,
            certificate=proof.certificate,
            receipt_key_signature=proof.signature,
        )


def _cost(request: AggregateOpen, dataset: LabelDataset) -> Cost:
    event = walr.mechanism_of(request).event(dataset.neighbours)
    return Cost(event, request.epsilon, request.delta)


def _stored_answer(stored: StoredAnswer, request: AggregateOpen) -> NoisySum:
    check_same(stored, walr.request_digest(request))
    return measurement_codec.answer_from_pb(pb.NoisySum.FromString(stored.answer), "the store")


# --- one request --------------------------------------------------------------------------------------


class AggregateDesk(Background):
    """walr.Desk for one call."""

    def __init__(self, service: MeasurementService, consumer: str) -> None:
        super().__init__(service.threads, consumer)
        self._service = service
        self._closing = contextlib.ExitStack()
        spool = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - closed with the others
        self._kept = self._closing.enter_context(spool)
        self._join: JoinState | None = None
        self._upload: Upload
        self._dataset: LabelDataset
        self.request: AggregateOpen

    def admit(self, request: AggregateOpen) -> NoisySum | None:
        self._dataset = self._service.dataset(request.dataset, self._consumer)
        self.request = request
        if self._is_of_shares:
            self._check_shares(request)
        elif request.in_shares:
            self._service.refuse("in_shares", "its labels are no shares")
        self._upload = self._closing.enter_context(Upload(self._service, self._dataset, self._consumer))
        answer = self._service.admit(request, self._dataset, self._consumer)
        if answer is None:
            self._upload.check_quota(self._service.store.reader())
        return answer

    # --- of shares: the other server

    @property
    def _is_of_shares(self) -> bool:
        return self._dataset.settings.label_kind == "share"

    def _check_shares(self, request: AggregateOpen) -> None:
        """What is remembered is told again of the newest split alone: the other server knows no other."""
        walr_split.step_2_check(request, consumer=self._consumer)
        if request.in_shares:
            walr_shares.plan_of(request, culprit=self._consumer)
        if request.key:
            self._service.refuse("key", "its labels are shares: servers of shares sum rows that they can read")
        if request.snapshot != self._dataset.snapshot:
            self._service.refuse("snapshot", "it is not the newest of this dataset: describe the dataset again")

    def _meeting(self) -> Meeting:
        meeting = self._service.meeting(self.request.session, self._consumer)
        if meeting is None:
            reason = "its labels are shares: only a job of two measurement servers may ask for a sum of them"
            raise PolicyRefused(party=self._service.name, field="session", reason=reason)
        return meeting

    async def before_rows(self, request: AggregateOpen, answer: NoisySum | None) -> None:
        if not self._is_of_shares:
            return
        index, meeting = self._dataset.index, self._meeting()
        if bool(request.in_shares) != bool(meeting.rows):
            self._service.refuse("in_shares", "the job says otherwise")
        ids_sha256 = await self.in_background(index.ids_sha256)
        answered_in = await self.in_background(self._answered_in) if request.in_shares and answer else ""
        await meeting.agree(walr_split.step_2_agreement(request, index.split_id, ids_sha256, answered_in))
        if answer is not None:
            meeting.counted_before(await self.in_background(lambda: self._counted_in(answer)))

    def _answered_in(self) -> str:
        """Shares of one sum come from the masks of one session."""
        stored = self._service.store.reader().answer(self._consumer, self.request.request_id)
        return stored.session if stored else ""

    def _counted_in(self, answer: NoisySum) -> Counted:
        if answer.rows_kept == self.request.n_rows:
            return walr_split.step_4_counted(np.packbits(np.ones(self.request.n_rows, np.bool_)).tobytes())
        return walr_split.step_4_counted(b"".join(self.kept_pieces()))

    async def before_release(self, tally: Tally) -> None:
        if not self._is_of_shares:
            return
        meeting = self._meeting()
        await meeting.counted(await self.in_background(lambda: self._counted(tally)))
        if meeting.rows:
            await meeting.rows.add_up(tally)

    def _counted(self, tally: Tally) -> Counted:
        """Once nothing but another charge that comes between could refuse this one."""
        with self._upload.joining(self._joined()):
            self._service.check_ready(tally, self._dataset, self._consumer)
        self._kept.seek(0)
        return walr_split.step_4_counted(self._kept.read())

    def tally(self, request: AggregateOpen) -> Tally:
        if request.in_shares:
            return SharedRowsTally(request, self.keep_bits)
        if request.key:
            return walr_encrypted.tally_of(request, self.keep_bits, consumer=self._consumer)
        return (ShareTally if self._is_of_shares else Tally)(request, self.keep_bits)

    def _joined(self) -> JoinState:
        if self._join is None:
            # The request's bound, at most the dataset's: the noise is for this one.
            state = self._dataset.index.new_request(
                self.request.max_rows_per_person or None, self._dataset.settings.unknown_rows
            )
            self._join = self._closing.enter_context(state)
        return self._join

    def join(self, ids: Sequence[str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        self._upload.begin()
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
        with self._upload.answering(self._joined()):
            return self._service.release(tally, self._dataset, self._consumer, pieces)

    def close_files(self) -> None:
        self._closing.close()


class MeasurementServicer(measurement_pb2_grpc.MeasurementServicer):
    """Args:
    on_answered: told the consumer and the request of every answer that left.
    """

    def __init__(
        self,
        service: MeasurementService,
        caller_of: Callable[[], str],
        on_answered: Callable[[str, Asked], None] = lambda _consumer, _request: None,
    ) -> None:
        self._service, self._caller_of, self._on_answered = service, caller_of, on_answered
        self._labels = LabelReleases(service)

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

    async def ReleaseLabels(  # noqa: N802
        self,
        request_iterator: AsyncIterator[pb.ReleaseLabelsRequest],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> None:
        consumer = self._caller_of()
        desk = LabelsDesk(self._service, self._labels, consumer)
        messages = measurement_labels_codec.MESSAGES
        channel = measurement_codec.ServerSide(consumer, request_iterator, context, STEP_TIMEOUT_S, messages)
        try:
            await release_labels.run_measurement_server(consumer, channel, desk)
        finally:
            desk.close()
            if channel.answered:
                self._on_answered(consumer, desk.request)
