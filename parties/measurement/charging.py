"""What every release of a measurement server passes: who may ask, receipts, policy, approval, budget, the charge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from blindfit.algorithms.errors import PolicyRefused, RequestConflict, TooFewRows
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.ledger import Budget, LedgerEntry, Receipt
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.parties.files import signing
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.files.vault import PLAIN, Vault
from blindfit.parties.measurement.label_index import LabelIndex
from blindfit.parties.measurement.rollbacks import check_rollbacks, compare_receipt, now
from blindfit.parties.settings import PartyDatasetSettings, PolicySettings
from blindfit.parties.store.store import Store, StoredAnswer, Transaction
from blindfit.protos import measurement_pb2 as pb

MAX_RECEIPT_BYTES = 2**18  # a receipt lists its population's different events, and goes into every later request


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
    def neighbours(self) -> str:
        return UNITS[self.kind][1]

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


class Asked(Protocol):
    """What the opening messages of all releases have."""

    @property
    def request_id(self) -> str: ...
    @property
    def dataset_version(self) -> str: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def max_rows_per_person(self) -> int: ...
    @property
    def content_sha256(self) -> bytes: ...
    @property
    def receipt(self) -> bytes: ...
    @property
    def receipt_signature(self) -> bytes: ...
    @property
    def session(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a whole release, for one unit."""

    event: ReleaseEvent
    epsilon: float
    delta: float


class ChargingService:
    """Datasets, budgets, ledger. Nothing leaves that was not charged here."""

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
        vault: Vault = PLAIN,
    ) -> None:
        self.approved_job, self.vault = approved_job, vault
        self.name, self.datasets, self.budgets, self.policy = name, datasets, budgets, policy
        self.store, self.key, self.uniform = store, key, uniform
        book.verify_chain(store.reader().ledger())

    def dataset(self, name: str, consumer: str) -> LabelDataset:
        """One answer for both: who may not use a dataset does not learn that it exists."""
        dataset = self.datasets.get(name)
        if dataset is None or consumer not in dataset.settings.consumers:
            raise PolicyRefused(party=self.name, field="dataset", reason="it has none of this name for this party")
        return dataset

    def refuse(self, field: str, reason: str) -> None:
        raise PolicyRefused(party=self.name, field=field, reason=reason)

    # --- before any row

    def check_receipt(self, request: Asked, dataset: LabelDataset) -> None:
        """A restored backup refunds no budget: what a client can prove must still be in the ledger."""
        if request.receipt:
            if not signing.verify(self.key.public_bytes, request.receipt, request.receipt_signature):
                self.refuse("receipt", "it is not signed by this server's key")
            receipt = Receipt.from_statement(request.receipt)
            if receipt.server != self.name:
                self.refuse("receipt", "it is another server's, which has the same key")
            compare_receipt(receipt, self.store)
        check_rollbacks(self.store.reader(), dataset.population)

    def check_policy(self, request: Asked, dataset: LabelDataset, cost: Cost) -> None:
        if request.n_rows < self.policy.least_rows:
            raise TooFewRows(rows=request.n_rows, least=self.policy.least_rows)
        if cost.epsilon > self.policy.most_epsilon:
            self.refuse(
                "privacy.epsilon",
                f"{cost.epsilon:g} is more than most_epsilon = {self.policy.most_epsilon:g}",
            )
        if request.dataset_version != dataset.index.version:
            self.refuse("dataset_version", "the dataset has changed since it was described: describe it again")
        most = dataset.max_rows_per_person
        if not (request.max_rows_per_person == most == 0 or 1 <= request.max_rows_per_person <= most):
            wanted = f"from 1 to {most}" if most else "0, as its unit is a row"
            self.refuse("privacy.max_rows_per_person", f"it must be {wanted}")

    def check_kept(self, rows_kept: int) -> None:
        """The least number holds also for the rows that count."""
        if rows_kept < self.policy.least_rows:
            raise TooFewRows(rows=rows_kept, least=self.policy.least_rows)

    # --- before any row, and again in the transaction that charges: then nobody can come between

    def check_chargeable(
        self, reader: Transaction, request: Asked, dataset: LabelDataset, consumer: str, cost: Cost
    ) -> None:
        check_rollbacks(reader, dataset.population)
        self.check_approval(reader, request, dataset, consumer, cost)
        events = [ReleaseEvent.from_canonical(entry.event) for entry in reader.ledger(dataset.population)]
        book.check_budget(events, cost.event, self.budgets[dataset.population], dataset.population)

    def check_approval(
        self,
        reader: Transaction,
        request: Asked,
        dataset: LabelDataset,
        consumer: str,
        cost: Cost,
        *,
        made_before: bool = False,
    ) -> None:
        """Where the operator says yes to each job, a request outside an approved job would go past him, and so would a
        second one in its name, but for one that tells again what was told."""
        if self.policy.approve == "auto":
            return
        job = self.approved_job(request.session, consumer)
        if job is None:
            self.refuse("session", "its operator approves each job, and this request belongs to no approved one")
        elif cost.epsilon > job.epsilon or cost.delta > job.delta or job.dataset != dataset.name:
            self.refuse("privacy", "the request asks for more than the approved job")
        elif not made_before and reader.has_answered(consumer, request.session):
            self.refuse("session", "the approved job has had its answer: another request needs another job")

    # --- in the transaction that charges

    def append(
        self,
        transaction: Transaction,
        request: Asked,
        dataset: LabelDataset,
        consumer: str,
        cost: Cost,
        answer_sha256: str,
    ) -> tuple[LedgerEntry, tuple[bytes, bytes]]:
        """The new entry, and the signed receipt that proves it."""
        entry = book.append(
            transaction.last_entry(),
            population=dataset.population,
            dataset=dataset.name,
            dataset_version=request.dataset_version,
            requester=consumer,
            request_id=request.request_id,
            content_sha256=request.content_sha256.hex(),
            kind="release",
            event=cost.event,
            epsilon=cost.epsilon,
            delta=cost.delta,
            unit=dataset.unit,
            answer_sha256=answer_sha256,
            time=now(),
        )
        transaction.add_entry(entry)
        charged = [e.event for e in transaction.ledger(dataset.population)]
        statement = book.receipt_for(self.name, entry, charged, transaction.entry_at).statement()
        if len(statement) > MAX_RECEIPT_BYTES:
            self.refuse("privacy.epsilon", "this population has seen too many different ones: take one used before")
        return entry, (statement, self.key.sign(statement))

    # --- describing

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


def check_same(stored: StoredAnswer, request_digest: bytes) -> None:
    if stored.request_digest != request_digest.hex():
        raise RequestConflict("this request id was answered for other content", hint="take another request id")
