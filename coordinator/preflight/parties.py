"""What every protocol asks of a party: its policy and its budget, or, where only its address is known, who it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.columns.record import Kind
from blindfit.algorithms.errors import BlindfitError, BudgetExhausted, PolicyRefused
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Budget, LedgerEntry
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding, catch_error
from blindfit.coordinator.running.control import ALONE_TIMEOUT_S, Control
from blindfit.coordinator.running.launcher import party_settings
from blindfit.coordinator.running.reaching import addresses_of, coordinator_identity
from blindfit.coordinator.running.snapshots import datasets_of, find_changed, find_unpublished
from blindfit.coordinator.terminal.wording import plain
from blindfit.parties.account.account import BITS_OF_A_LABEL, Account
from blindfit.parties.data.opening import kinds_of, open_for_model, open_source
from blindfit.parties.data.origin import Origin
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.data.urls import without_password
from blindfit.parties.measurement.trust import wrong_labels
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.scored import check_number_of_models, refuse_weak_content
from blindfit.parties.snapshots.snapshot import check_kinds, content_of_columns
from blindfit.parties.snapshots.snapshots import Snapshots, not_published
from blindfit.parties.store.database import Store
from blindfit.parties.training.rows import PartyRows, require_offered
from blindfit.parties.vertical.scored_rows import (
    OPENED_FIT,
    ScoreQuota,
    check_gives_scores,
    models_of,
)
from blindfit.protos import control_pb2


@dataclass(frozen=True)
class PartyHere:
    """A party whose file is on this machine."""

    name: str
    dataset_name: str  # none at a key node
    settings: PartySettings
    file: Path

    @classmethod
    def of(cls, job: Job[Any], name: str) -> PartyHere:
        path, settings = party_settings(job, name)
        return cls(name, job.parties[name].dataset, settings, path)

    @property
    def base_dir(self) -> Path:
        """Return where relative paths of the file start."""
        return self.file.parent

    @property
    def dataset(self) -> PartyDatasetSettings:
        return self.settings.datasets[self.dataset_name]

    def source(self) -> Source:
        """Open what a job would read: the newest snapshot, or what `blindfit run` would publish."""
        return self.source_of(self.dataset_name)

    def source_of(self, name: str) -> Source:
        """Open what a job would read of any dataset of the party."""
        store = None if self.settings.role == "measurement" else Store.existing(self.settings, self.base_dir)
        with contextlib.closing(store) if store else contextlib.nullcontext():
            found = Snapshots(self.settings, self.base_dir, store).current(name) if store else None
            return found.source() if found else open_source(self.settings.datasets[name], self.base_dir, name)

    def kinds(self) -> dict[str, Kind]:
        """Return the kind of each feature, without reading a row."""
        return kinds_of(self.dataset, self.base_dir, self.dataset_name)

    def read_scaled(self, scale: Standardiser) -> Source:
        """Return the rows as a model reads them.

        Raises:
            DataError: as a prediction on them would.
        """
        require_offered(scale.record, self.dataset, self.dataset_name)
        store = Store.existing(self.settings, self.base_dir)
        with contextlib.closing(store) if store else contextlib.nullcontext():
            found = Snapshots(self.settings, self.base_dir, store).current(self.dataset_name) if store else None
        if found is not None:
            return found.scored_by(scale.record, scale.columns, scale.means())
        settings = self.dataset.model_copy(update={"label": None, "person": None, "quasi_identifiers": {}})
        origin = Origin(self.dataset_name, without_password(settings.url))
        check_kinds(scale.record, self.kinds(), origin)
        record = scale.record.with_fill(scale.means() if settings.fills else {})
        return open_for_model(settings, record, scale.columns, self.base_dir, self.dataset_name)

    def label_bits(self, rows: int) -> tuple[float, float]:
        """Return how many bits of the labels were revealed before, and how many may be.

        Args:
            rows: people of a dataset that has not been published.
        """
        account = Account.of(self.settings, self.dataset_name)
        unpublished = rows * account.label_entropy * BITS_OF_A_LABEL
        store = Store.existing(self.settings, self.base_dir)
        if store is None:
            return 0.0, unpublished
        with contextlib.closing(store):
            reader = store.reader()
            return account.spent(reader, "labels", account.label), account.label_limit(reader) or unpublished

    def may_repeat_a_training(self) -> bool:
        """Return whether a training on the newest snapshot has revealed labels before: the same one again is free."""
        store = Store.existing(self.settings, self.base_dir)
        if store is None:
            return False
        with contextlib.closing(store):
            account, reader = Account.of(self.settings, self.dataset_name), store.reader()
            current = Snapshots(self.settings, self.base_dir, store).current(self.dataset_name)
            entries = account.entries(reader, "labels", account.label)
            return current is not None and any(entry.snapshot == current.id for entry in entries)

    def check_content(self, source: Source, features: NDArray[np.float64]) -> Iterator[Finding]:
        """Find nothing, but check that rows which were not published hold enough for the scores that their party gives.

        Raises:
            ConfigError: `blindfit snapshot` and `blindfit run` would refuse them.
        """
        store = Store.existing(self.settings, self.base_dir)
        if store is not None:
            with contextlib.closing(store):
                if Snapshots(self.settings, self.base_dir, store).current(self.dataset_name) is not None:
                    return
        counts = {name: len(np.unique(column)) for name, column in zip(source.feature_names, features.T, strict=True)}
        content = content_of_columns(source.feature_names, source.record, [counts])
        refuse_weak_content(self.dataset_name, content, len(source.record.columns), self.settings)
        yield from ()

    def check_gives_scores(self) -> Iterator[Finding]:
        """Raises PolicyRefused: the party gives no scores of this dataset."""
        check_gives_scores(self.settings, self.dataset_name)
        yield from ()

    def check_another_fit(
        self, rows: PartyRows, learners: Sequence[str], bits: float | None, grid_bits: float = 0.0, models: int = 1
    ) -> Iterator[Finding]:
        """Find out whether the account of scores has room for one more fit on these rows.

        Args:
            learners: the other data parties.
            bits: of the score of one row; None: those of a score.
            grid_bits: those of one row in the figures of grid points.
            models: how many trainings each row has.

        Raises:
            PolicyRefused: they are more than a row may ever have.
        """
        if self.dataset.models_per_row != "unlimited" and not self.dataset.public:
            allowed = models_of(self.dataset, len(self.source().record.columns))
            check_number_of_models(self.settings, self.dataset_name, allowed, models)
        store = Store.existing(self.settings, self.base_dir)
        if store is None:
            return
        with contextlib.closing(store):
            current = Snapshots(self.settings, self.base_dir, store).current(self.dataset_name)
            if current is None:
                return
            people = current.people()[rows.in_snapshot[rows.in_snapshot >= 0]]
            quota = ScoreQuota(self.settings, store, self.dataset_name, current.table_columns)
            try:
                quota.check_another_fit(people, learners, bits, grid_bits, models)
            except PolicyRefused as refused:
                entries = Account.of(self.settings, self.dataset_name).entries(store.reader(), "scores")
                may_repeat = any((one.event, one.snapshot) == (OPENED_FIT, current.id) for one in entries)
                yield again_or_refused(self.name, refused, may_repeat)

    def ledger(self, population: str) -> list[LedgerEntry]:
        """What the population was charged."""
        store = Store.existing(self.settings, self.base_dir)
        if store is None:
            return []
        with contextlib.closing(store):
            return store.reader().ledger(population)


def again_or_refused(about: str, refused: PolicyRefused, may_repeat: bool) -> Finding:
    if not may_repeat:
        return Finding("refuses", about, str(refused))
    return Finding("warning", about, f"unless it is a training that was finished before and is free: {refused}")


def _not_lost(party: PartyHere) -> Iterator[Finding]:
    Store.check_not_lost(party.settings, party.base_dir)
    yield from ()


def check_snapshot(job: Job[Any], party: PartyHere) -> Iterator[Finding]:
    """Say what the job would read of the party's datasets, and that it cannot start with a lost database."""
    yield from catch_error(party.name, partial(_not_lost, party))
    for name, reason in find_unpublished(party.settings, party.base_dir, datasets_of(job, party.name)):
        said = f"{name} is not published: `blindfit run` and the party's next start do so"
        yield Finding("refuses", party.name, reason) if reason else Finding("note", party.name, said)
    for snapshot in (s for s in find_changed(party.settings, party.base_dir) if s.row.dataset == party.dataset_name):
        number = snapshot.row.number
        text = (
            f"{party.dataset_name} has changed since snapshot {number}, which the job reads: publish it with "
            f"`blindfit snapshot {party.file} {party.dataset_name}`"
        )
        yield Finding("warning", party.name, text)


def check_policy(job: Job[Any], party: PartyHere) -> Iterator[Finding]:
    name, settings = party.name, party.settings
    policy = settings.policy
    if settings.role != job.parties[name].role:
        yield Finding("refuses", name, f"is {settings.role}, the job says {job.parties[name].role}")
    if job.protocol not in policy.systems:
        yield Finding("refuses", name, f"its policy has no protocol {job.protocol}")
    for field, reason in job.parameters.refusals(policy, settings.role):
        yield Finding("refuses", name, f"{field}: {reason}")
    if policy.approve == "ask":
        yield Finding("note", name, "its operator approves each job (`blindfit approve`)")
    if party.dataset_name and party.dataset_name not in settings.datasets:
        yield Finding("refuses", name, f"has no dataset named {party.dataset_name}")
    if settings.passphrase_file is None:
        yield Finding("note", name, "keeps its keys and checkpoints unlocked: it has no secrets.passphrase_file")


def wrong_labels_here(job: Job[Any], party: PartyHere) -> str:
    """Return why the labels of a measurement server do not go with the job, in its own words; "" if they do."""
    return wrong_labels(job.parameters, party.dataset_name, shares=party.dataset.label_kind == "share")


def check_budget(party: PartyHere, event: ReleaseEvent, again: str) -> Iterator[Finding]:
    """Args:
    again: what may be asked even when the budget is spent.
    """
    name = str(party.dataset.population)
    population = party.settings.populations[name]
    entries = party.ledger(name)
    spent = book.spent(entries, population.delta)
    yield Finding("note", party.name, f"budget of {name}: epsilon {spent:.4g} of {population.epsilon:g} is spent")
    events = [ReleaseEvent.from_canonical(entry.event) for entry in entries]
    try:
        book.check_budget(events, event, Budget(population.epsilon, population.delta), name)
    except BudgetExhausted as error:
        yield Finding("warning" if again else "refuses", party.name, error.message + (f"; {again}" if again else ""))


# --- parties that are up ---------------------------------------------------------------------------------


async def ask_parties(job: Job[Any]) -> list[Finding]:
    own = coordinator_identity(job)
    findings: list[Finding] = []
    for name, address in addresses_of(job).items():
        try:
            async with Control.open(own, name, address) as control:
                findings += _compare(job, name, await control.describe(ALONE_TIMEOUT_S))
        except BlindfitError as error:
            findings.append(Finding("refuses", name, error.message))
    return findings


def _compare(job: Job[Any], name: str, told: control_pb2.PartyDescription) -> Iterator[Finding]:
    party = job.parties[name]
    role = plain(told.role)
    yield Finding("ok", name, f"is up: {role}, version {plain(told.version)}")
    if told.role != party.role:
        yield Finding("refuses", name, f"is {role}, the job says {party.role}")
    if job.protocol not in told.systems:
        yield Finding("refuses", name, f"takes no part in {job.protocol}")
    if party.dataset and party.dataset not in told.datasets:
        yield Finding("refuses", name, f"has no dataset named {party.dataset}")
    for dataset in datasets_of(job, name):
        if dataset in told.datasets and dataset not in told.published:
            yield Finding("refuses", name, not_published(dataset))
