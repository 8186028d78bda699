"""A measurement server without its wire: datasets, ledger and key in a folder, called through both roles of WALR."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, NoisySum, ReleaseSettings
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.measurement import codec as measurement_codec
from blindfit.parties.measurement.charging import ApprovedJob, LabelDataset
from blindfit.parties.measurement.desk import AggregateDesk
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.database import Store
from tests.measurement.indexes import built
from tests.walr.seats import run_both

ONE = 2**16  # the number 1 with 16 fraction bits, and the norm bound
SETTINGS = ReleaseSettings("visits", "", epsilon=1.0, delta=1e-6)
BUDGET = Budget(1.0, 1e-6)
MANY = 10**6
POLICY = PolicySettings(min_rows=1, max_epsilon=50.0, max_failed_uploads=MANY)
NAMES = tuple(f"row-{i}" for i in range(12))


def make_dataset(
    directory: Path,
    labels: Mapping[str, int],
    persons: Sequence[str] | None = None,
    *,
    name: str = "visits",
    population: str = "people",
    active_parties: Sequence[str] = ("shop", "bank"),
    unknown_rows: str = "refuse",
    max_rows_per_person: int = 1,
    **options: Any,
) -> LabelDataset:
    """Write the table and build its index again."""
    write_labels(directory / f"{name}.csv", "label", labels, persons)
    settings = PartyDatasetSettings(
        url=f"csv:{name}.csv",
        id="id",
        label="label",
        person="person" if persons else None,
        population=population,
        active_parties=list(active_parties),
        unknown_rows=unknown_rows,
        max_rows_per_person=max_rows_per_person,
        **options,
    )
    return published(settings, directory, name)


def published(settings: PartyDatasetSettings, directory: Path, name: str) -> LabelDataset:
    """Publish at a snapshot named after the content, so that processes agree on it; a party's own snapshots have random
    ids.
    """
    snapshot = hashlib.sha256((directory / f"{name}.csv").read_bytes()).hexdigest()[:32]
    index = built(open_source(settings, directory, name), directory / "snapshots" / snapshot)
    return LabelDataset(name, settings, index, snapshot)


def write_labels(path: Path, column: str, labels: Mapping[str, float], persons: Sequence[str] | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", column, *(["person"] if persons else [])])
        for i, (row, label) in enumerate(labels.items()):
            table.writerow([row, label, *([persons[i]] if persons else [])])


def one_hot(names: Sequence[str] = NAMES, columns: Sequence[int] | None = None, weight: int = ONE) -> ConsumerRows:
    """Return rows of which row i has the weight in its own column, so that a sum's cell counts the label of one row."""
    columns = range(len(names)) if columns is None else columns
    weights = np.zeros((len(names), max(columns) + 1), np.int32)
    weights[np.arange(len(names)), list(columns)] = weight
    return ConsumerRows(tuple(names), weights)


@dataclass
class House:
    directory: Path
    datasets: dict[str, LabelDataset]
    budget: Budget = BUDGET
    policy: PolicySettings = POLICY
    approved_job: Callable[[str, str], ApprovedJob | None] = lambda _session, _consumer: None
    service: MeasurementService = field(init=False)
    consumed: list[str] = field(default_factory=list)  # messages that active parties sent

    def __post_init__(self) -> None:
        self.open()

    @property
    def database(self) -> Path:
        return self.directory / "party.sqlite"

    def open(self) -> None:
        store = Store(self.database)
        key = SigningKey.load_or_create(self.directory / "receipt_key.pem")
        budgets = {d.population: self.budget for d in self.datasets.values()}
        self.service = MeasurementService("labels", self.datasets, budgets, self.policy, store, key, self.approved_job)

    def close(self) -> None:
        self.service.store.close()

    def reopen(self) -> None:
        self.close()
        self.open()

    def request(
        self, rows: ConsumerRows, dataset: str = "visits", receipt: NoisySum | None = None, **changes: Any
    ) -> AggregateOpen:
        """Return the request of an honest active party; it chooses `release`, `epsilon` and `delta`; other changes are
        the wire's.
        """
        known = self.datasets[dataset]
        chosen = {name: changes.pop(name) for name in ("release", "epsilon", "delta") if name in changes}
        settings = replace(
            SETTINGS,
            dataset=dataset,
            snapshot=known.snapshot,
            max_rows_per_person=changes.pop("max_rows_per_person", known.max_rows_per_person),
            **chosen,
        )
        held = (receipt.receipt, receipt.receipt_signature) if receipt else (b"", b"")
        return replace(walr.step_1_open(rows, ONE, settings, held), **changes)

    def send(
        self,
        rows: ConsumerRows,
        request: AggregateOpen,
        consumer: str = "shop",
        make_desk: Callable[[MeasurementService, str], AggregateDesk] = AggregateDesk,
    ) -> tuple[NoisySum, np.ndarray]:
        """Return the answer and which rows counted."""
        self.consumed.clear()

        def wire(sender: str, receiver: str, step: str, data: bytes) -> bytes:
            self.consumed.extend([step] if sender == consumer else [])
            return data

        desk = make_desk(self.service, consumer)
        try:
            answer, kept, _ = run_both(rows, request, desk, wire, consumer)
        finally:
            desk.close()
        return answer, kept

    def ask(self, rows: ConsumerRows | None = None, consumer: str = "shop", **changes: Any) -> NoisySum:
        rows = one_hot() if rows is None else rows
        return self.send(rows, self.request(rows, **changes), consumer)[0]

    def octets(self, **changes: Any) -> bytes:
        """Return the answer as it is stored and sent."""
        return measurement_codec.answer_to_pb(self.ask(**changes)).SerializeToString()

    @property
    def entries(self) -> list[Any]:
        return self.service.store.reader().ledger()

    def spent(self, population: str = "people") -> float:
        return self.service.describe_budget(population).spent_epsilon
