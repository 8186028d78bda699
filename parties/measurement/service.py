"""The aggregates of a measurement server: policy, budget, ledger, and the charge of each answer."""

from __future__ import annotations

from collections.abc import Iterable

from blindfit.algorithms.privacy.gaussian import NOISE_MULTIPLIERS
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, Tally, Terms, several_parties, statement
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement.charging import (
    KEPT_BYTES,
    KEPT_BYTES_OF_A_COLUMN,
    ChargingService,
    Cost,
    LabelDataset,
    check_same,
)
from blindfit.parties.measurement.policy import LabelDPPolicy
from blindfit.parties.store.answers import StoredAnswer
from blindfit.protos import measurement_pb2 as pb


class MeasurementService(ChargingService):
    """Aggregates, and the server's description of its datasets."""

    def admit(self, request: AggregateOpen, dataset: LabelDataset, consumer: str) -> NoisySum | None:
        """Check policy, receipt and budget; return the stored answer if the same request was answered before."""
        if dataset.settings.label_kind == "number":
            self.refuse("dataset", "its labels are numbers: ask for a release of labels")
        self.check_receipt(request, dataset)
        with self.store.view() as view:  # another call may answer the same request at this moment
            stored = view.answer(consumer, request.request_id)
            if stored is not None:
                return _read_stored_answer(stored, request)
            cost = _cost(request, dataset)
            self.check_policy(request, dataset, cost)
            self.check_chargeable(view, request, dataset, consumer, cost)
        return None

    def release(self, tally: Tally, dataset: LabelDataset, consumer: str, kept: Iterable[bytes] = ()) -> NoisySum:
        """Charge and answer in one transaction, before anything leaves: a crash never leads to a second draw.

        Args:
            kept: packed bits of the rows that counted, in pieces; stored if some rows did not count.
        """
        request, cost = tally.request, _cost(tally.request, dataset)
        with self.store.transaction() as transaction:
            stored = transaction.answer(consumer, request.request_id)
            if stored is not None:
                return _read_stored_answer(stored, request)
            self.check_kept(tally.rows_kept)
            self.check_chargeable(transaction, request, dataset, consumer, cost)
            draft = walr.step_5_draft(tally, self.uniform, neighbours=dataset.neighbours)
            answer = walr.answer_of(draft, unit=dataset.unit, terms=self._terms(dataset))
            about = Between(self.name, consumer, dataset.population)
            sha256 = statement.digest(request, several_parties.redact(answer, request), about)
            entry, receipt = self.append(transaction, request, dataset, consumer, cost, sha256)
            answer = statement.attach_proof(answer, entry, receipt)
            encoded, digest = measurement_codec.answer_to_pb(answer).SerializeToString(), walr.request_digest(request)
            stored = StoredAnswer(digest.hex(), encoded, entry.position, request.session, cost.kept_bytes)
            transaction.add_answer(consumer, request.request_id, stored)
            if answer.rows_kept < request.n_rows:
                for piece, bits in enumerate(kept):
                    transaction.add_kept_piece(consumer, request.request_id, piece, bits)
            return answer

    def check_ready(self, tally: Tally, dataset: LabelDataset, consumer: str) -> None:
        """Raise the error that would refuse the charge of rows that have come; charge nothing."""
        self.check_kept(tally.rows_kept)
        with self.store.view() as view:
            self.check_chargeable(view, tally.request, dataset, consumer, _cost(tally.request, dataset))

    def _terms(self, dataset: LabelDataset) -> Terms:
        budget = self.budgets[dataset.population]
        policy = self.policy
        return Terms(policy.min_rows, policy.max_epsilon, policy.max_delta, budget.epsilon, budget.delta)

    def _mechanisms(self, dataset: LabelDataset) -> list[str]:
        is_aggregate = dataset.settings.label_range is None
        return sorted(NOISE_MULTIPLIERS) if is_aggregate else self.policy.of(LabelDPPolicy).allowed

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
            min_rows=self.policy.min_rows,
            max_epsilon=self.policy.max_epsilon,
            receipt_key=self.key.public_bytes,
            mechanisms=self._mechanisms(dataset),
            label_kind=dataset.settings.label_kind,
            label_lo=lo,
            label_hi=hi,
            certificate=proof.certificate,
            receipt_key_signature=proof.signature,
        )


def _cost(request: AggregateOpen, dataset: LabelDataset) -> Cost:
    event = walr.mechanism_of(request).event(dataset.neighbours)
    kept_bytes = KEPT_BYTES + KEPT_BYTES_OF_A_COLUMN * request.n_columns + request.n_rows // 8
    return Cost(event, request.epsilon, request.delta, kept_bytes)


def _read_stored_answer(stored: StoredAnswer, request: AggregateOpen) -> NoisySum:
    check_same(stored, walr.request_digest(request))
    return measurement_codec.answer_from_pb(pb.NoisySum.FromString(stored.answer), "the store")
