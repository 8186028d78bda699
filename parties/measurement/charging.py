"""Checks of every release of a measurement server (permission, receipts, policy, approval, budget), and its charge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from blindfit.algorithms.errors import PolicyRefused, RequestConflict
from blindfit.algorithms.privacy.accountant import spent_epsilon
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.ledger import Budget, Charge, LedgerEntry
from blindfit.algorithms.protocols.label_dp.messages import LabelsOpen
from blindfit.algorithms.protocols.walr import AggregateOpen
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.files.vault import PLAIN, Vault
from blindfit.parties.identity.key_proof import NO_PROOF, KeyProof
from blindfit.parties.measurement.background import Threads
from blindfit.parties.measurement.label_index import LabelIndex
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import FitSettings, PolicySettings
from blindfit.parties.store import charging
from blindfit.parties.store.answers import StoredAnswer
from blindfit.parties.store.charging import check_rollbacks
from blindfit.parties.store.database import Reads, Store, Writes
from blindfit.parties.store.receipts import OwnReceipts
from blindfit.protos import measurement_pb2 as pb

MIB = 2**20
KEPT_BYTES = 4096  # size of an answer and its charge, without the parts that grow with rows and columns
KEPT_BYTES_OF_A_COLUMN = 64  # a sum of up to 16 bytes, and two fitted numbers as JSON
KEPT_BYTES_OF_A_LABEL = 24  # its noisy value, and 16 bytes of the hash of its id
KEPT_BYTES_OF_LABELS = 2**15  # size of a release of labels without its rows: a directory and four files, in blocks
Asked = AggregateOpen | LabelsOpen


@dataclass(frozen=True)
class LabelDataset:
    """A dataset that is ready for requests."""

    name: str
    settings: PartyDatasetSettings
    index: LabelIndex
    snapshot: str  # id of the snapshot that the index describes

    @property
    def kind(self) -> str:
        return "person" if self.settings.person else "row"

    @property
    def is_of_shares(self) -> bool:
        return self.settings.label_kind == "share"

    @property
    def unit(self) -> str:
        """Unit of privacy, in the words of the ledger and the privacy statement."""
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
    """The job that the operator approved."""

    dataset: str
    epsilon: float
    delta: float
    unsafe: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a whole release: privacy for one unit, and space.

    Args:
        kept_bytes: bytes that the release occupies on the disk for ever, estimated from public sizes. The actual size
            would depend on which rows count.
    """

    event: ReleaseEvent
    epsilon: float
    delta: float
    kept_bytes: int


class ChargingService:
    """Datasets, budgets and ledger. Every release leaves only after this service has charged it.

    Args:
        described: every dataset of the server's file, published or not; by default the keys of `datasets`.
        newest: function from a dataset's name and the known dataset to the dataset at its newest snapshot. It raises
            PolicyRefused if the dataset is not published.
        find_session: function from a session's name and an active party to that session, if the party is in it.
        prove_key: proof of the receipt key's owner; empty without a certificate.
    """

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
        described: Mapping[str, PartyDatasetSettings] | None = None,
        newest: Callable[[str, LabelDataset | None], LabelDataset] | None = None,
        fit: FitSettings | None = None,
        vault: Vault = PLAIN,
        find_session: Callable[[str, str], Session[Any] | None] = lambda _session, _consumer: None,
        prove_key: Callable[[bytes], KeyProof] = lambda _key: NO_PROOF,
    ) -> None:
        self.find_session, self.prove_key = find_session, prove_key
        self.approved_job, self.vault = approved_job, vault
        self.described = described or {known.name: known.settings for known in datasets.values()}
        self._newest = newest or (lambda name, _known: datasets[name])
        self.name, self.datasets, self.budgets, self.policy = name, datasets, budgets, policy
        self.store, self.key, self.uniform, self.fit = store, key, uniform, fit or FitSettings()
        self.receipts, self.threads = OwnReceipts(name, store, key), Threads()

    def dataset(self, name: str, consumer: str) -> LabelDataset:
        """Return a dataset at its newest snapshot. A party that may not use it does not learn that it exists.

        Raises:
            PolicyRefused: this active party has no dataset of this name, or the dataset is not published.
        """
        described = self.described.get(name)
        if described is None or consumer not in described.active_parties:
            raise PolicyRefused(party=self.name, field="dataset", reason="this party has no dataset of this name")
        self.datasets[name] = self._newest(name, self.datasets.get(name))
        return self.datasets[name]

    def refuse(self, field: str, reason: str) -> NoReturn:
        raise PolicyRefused(party=self.name, field=field, reason=reason)

    # --- before any row

    def check_receipt(self, request: Asked, dataset: LabelDataset) -> None:
        """Check that the ledger has every entry that the active party's receipt proves: a restored backup refunds no
        budget.
        """
        if request.receipt:
            self.receipts.take((request.receipt, request.receipt_signature), by="the request")
        check_rollbacks(self.store.reader(), dataset.population)

    def check_policy(self, request: Asked, dataset: LabelDataset, cost: Cost) -> None:
        self.policy.check_rows(request.n_rows)
        for field, reason in self.policy.refusals(cost.epsilon, cost.delta):
            self.refuse(field, reason)
        self.check_snapshot(request, dataset)
        if reason := wrong_rows_per_person(request.max_rows_per_person, dataset.max_rows_per_person):
            self.refuse("privacy.max_rows_per_person", reason)

    def check_snapshot(self, request: Asked, dataset: LabelDataset) -> None:
        if request.snapshot != dataset.snapshot:
            self.refuse("snapshot", "this is not the newest snapshot of the dataset: describe the dataset again")

    def check_kept(self, rows_kept: int) -> None:
        """Check that enough rows count: the policy's least number of rows holds for them too."""
        self.policy.check_rows(rows_kept)

    # --- before any row, and again in the transaction that charges, so that no other charge can come between

    def check_chargeable(self, reader: Reads, request: Asked, dataset: LabelDataset, consumer: str, cost: Cost) -> None:
        check_rollbacks(reader, dataset.population)
        self.check_approval(reader, request, dataset, consumer, cost)
        check_space(reader, self.policy, self.name, consumer, cost.kept_bytes)
        events = self.receipts.books.events(reader, dataset.population)
        charging.check_fits(reader, events, cost.event, self.budgets[dataset.population], dataset.population)

    def check_approval(
        self,
        reader: Reads,
        request: Asked,
        dataset: LabelDataset,
        consumer: str,
        cost: Cost,
        *,
        made_before: bool = False,
    ) -> None:
        """Refuse a request outside an approved job, or a second answer to one job, if the operator approves each job.

        A repeat of an answer that was given before is allowed.
        """
        if self.policy.approve == "auto":
            return
        job = self.approved_job(request.session, consumer)
        if job is None:
            self.refuse("session", "the operator approves each job, and this request belongs to no approved job")
        elif cost.epsilon > job.epsilon or cost.delta > job.delta or job.dataset != dataset.name:
            self.refuse("privacy", "the request asks for more than the approved job")
        elif not made_before and reader.has_answered(consumer, request.session):
            self.refuse("session", "the approved job has had its answer: another request needs another job")

    # --- in the transaction that charges

    def append(
        self,
        transaction: Writes,
        request: Asked,
        dataset: LabelDataset,
        consumer: str,
        cost: Cost,
        answer_sha256: str = "",
    ) -> tuple[LedgerEntry, tuple[bytes, bytes]]:
        """Return the new entry, and the signed receipt that proves it."""
        charge = Charge(
            population=dataset.population,
            event=cost.event,
            dataset=dataset.name,
            snapshot=request.snapshot,
            requester=consumer,
            request_id=request.request_id,
            content_sha256=request.content_sha256.hex(),
            epsilon=cost.epsilon,
            delta=cost.delta,
            unit=dataset.unit,
        )
        entry = charging.enter(transaction, charge, answer_sha256)
        return entry, self.receipts.of_entry(transaction, entry)

    # --- describing

    def describe_budget(self, population: str) -> pb.BudgetDescription:
        budget = self.budgets[population]
        with self.store.view() as snapshot:
            events = self.receipts.books.events(snapshot, population)
        return pb.BudgetDescription(
            population=population,
            epsilon=budget.epsilon,
            delta=budget.delta,
            spent_epsilon=spent_epsilon(events, budget.delta),
            releases=len(events),
        )


def check_space(reader: Reads, policy: PolicySettings, server: str, consumer: str, more_bytes: int) -> None:
    """Check that the stored answers of an active party fit into its share of the disk.

    Raises:
        PolicyRefused: they do not fit.
    """
    most_mib = policy.max_kept_mib
    if reader.count_kept_bytes(consumer) + more_bytes > most_mib * MIB:
        reason = (
            f"answers to {consumer} would take more than {most_mib} MiB on this server's disk, where they are kept "
            "for ever: ask for a release that was made before, or ask the server's operator to raise max_kept_mib"
        )
        raise PolicyRefused(party=server, field="max_kept_mib", reason=reason)


def wrong_rows_per_person(asked: int, most: int) -> str:
    """Return the change that a job needs in the number of rows that it counts for a person; "" if nothing is wrong.

    Args:
        asked: number that the job asks for; 0 if it names none.
        most: number that the dataset declares; 0 if its unit is a row.
    """
    if asked == most == 0 or 1 <= asked <= most:
        return ""
    return f"set it to 1 or more, at most {most}" if most else "remove it, as the unit is a row"


def check_same(stored: StoredAnswer, request_digest: bytes) -> None:
    if stored.request_digest != request_digest.hex():
        raise RequestConflict("this request id was used for another request", hint="take another request id")
