"""Checks of a party in every system: its policy and its budget, or its identity if only its address is known."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from shlex import quote
from typing import Any

from blindfit.algorithms.columns.record import Kind
from blindfit.algorithms.errors import BlindfitError, BudgetExhausted, TooFewRows
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Budget, LedgerEntry
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding
from blindfit.coordinator.running.control import ALONE_TIMEOUT_S, Control
from blindfit.coordinator.running.launcher import party_settings
from blindfit.coordinator.running.reaching import addresses_of, coordinator_identity
from blindfit.coordinator.running.receipts import of_this_user
from blindfit.coordinator.running.session import proposal_of, receipt_key_of
from blindfit.coordinator.running.snapshots import datasets_of, find_changed
from blindfit.coordinator.terminal.wording import join_names, plain
from blindfit.parties.account.account import BITS_OF_A_LABEL, Account
from blindfit.parties.data.opening import kinds_of, open_for_model, open_source
from blindfit.parties.data.origin import Origin
from blindfit.parties.data.settings import PartyDatasetSettings, is_csv
from blindfit.parties.data.source import Source
from blindfit.parties.data.urls import without_password
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.snapshot import check_kinds, check_recipes
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.training.rows import require_offered
from blindfit.protos import control_pb2


@dataclass(frozen=True)
class PartyHere:
    """A party whose file is on this machine."""

    name: str
    dataset_name: str  # empty for a key node
    settings: PartySettings
    file: Path
    resumes: str = ""  # the training that the job continues, which has chosen the snapshot

    @classmethod
    def of(cls, job: Job[Any], name: str) -> PartyHere:
        path, settings = party_settings(job, name)
        return cls(name, job.parties[name].dataset, settings, path)

    @property
    def base_dir(self) -> Path:
        """Return the folder in which relative paths of the file start."""
        return self.file.parent

    @property
    def dataset(self) -> PartyDatasetSettings:
        return self.settings.datasets[self.dataset_name]

    def source(self) -> Source:
        """Open the rows of the job: the newest snapshot, or the one that `blindfit run` would publish."""
        return self.source_of(self.dataset_name)

    def source_of(self, name: str) -> Source:
        """Open the rows of any dataset of the party."""
        store = None if self.settings.role == "measurement" else Store.existing(self.settings, self.base_dir)
        with contextlib.closing(store) if store else contextlib.nullcontext():
            snapshots = Snapshots(self.settings, self.base_dir, store) if store else None
            if snapshots and self.resumes and name == self.dataset_name:
                return snapshots.to_read(name, self.resumes).source()
            found = snapshots.current(name) if snapshots else None
            return found.source() if found else open_source(self.settings.datasets[name], self.base_dir, name)

    def kinds(self) -> dict[str, Kind]:
        """Return the kind of each feature, without reading a row."""
        return kinds_of(self.dataset, self.base_dir, self.dataset_name)

    def read_scaled(self, scale: Standardiser) -> Source:
        """Return the rows as a model reads them.

        Raises:
            DataError: a prediction on the rows would raise it.
        """
        require_offered(scale.record, self.dataset, self.dataset_name)
        store = Store.existing(self.settings, self.base_dir)
        with contextlib.closing(store) if store else contextlib.nullcontext():
            found = Snapshots(self.settings, self.base_dir, store).current(self.dataset_name) if store else None
        if found is not None:
            return found.for_model(scale.record, scale.columns, scale.means())
        settings = self.dataset.model_copy(update={"label": None, "person": None, "quasi_identifiers": {}})
        origin = Origin(self.dataset_name, without_password(settings.url))
        check_kinds(scale.record, self.kinds(), origin)
        check_recipes(scale.record, settings.derive, origin)
        record = scale.record.with_fill(scale.means() if settings.fills else {})
        return open_for_model(settings, record, scale.columns, self.base_dir, self.dataset_name)

    def label_bits(self, rows: int) -> tuple[float, float]:
        """Return how many bits about the labels were revealed before, and the limit.

        Args:
            rows: number of people of a dataset that has not been published.
        """
        account = Account.of(self.settings, self.dataset_name)
        unpublished = rows * account.label_entropy * BITS_OF_A_LABEL
        store = Store.existing(self.settings, self.base_dir)
        if store is None:
            return 0.0, unpublished
        with contextlib.closing(store):
            reader = store.reader()
            return account.spent(reader, "labels", account.label), account.label_limit(reader) or unpublished

    def ledger(self, population: str) -> list[LedgerEntry]:
        """Return the charges of the population."""
        store = Store.existing(self.settings, self.base_dir)
        if store is None:
            return []
        with contextlib.closing(store):
            return store.reader().ledger(population)


def describe_files(job: Job[Any], party: PartyHere) -> Iterator[Finding]:
    """Yield the form in which each csv file of the job is read."""
    for name in datasets_of(job, party.name):
        if name in party.settings.datasets and is_csv(party.settings.datasets[name].url):
            form = party.settings.datasets[name].dialect.in_words()
            yield Finding("note", party.name, f"{name} is read as a csv file in this form: {form}")


def check_changes(party: PartyHere) -> Iterator[Finding]:
    """Yield the datasets that have changed since the snapshot that the job reads."""
    for snapshot in (s for s in find_changed(party.settings, party.base_dir) if s.row.dataset == party.dataset_name):
        number = snapshot.row.number
        text = (
            f"{party.dataset_name} has changed since snapshot {number}, which the job reads: publish it with "
            f"`blindfit snapshot {quote(str(party.file))} {quote(party.dataset_name)}`"
        )
        yield Finding("warning", party.name, text)


def list_derived(party: PartyHere, source: Source) -> Iterator[Finding]:
    """Yield the columns that recipes compute."""
    for recipe in source.record.recipes:
        columns = "1 column" if len(recipe.made) == 1 else f"{len(recipe.made)} columns"
        text = f"{recipe.name}: {columns} by {recipe.by} of {join_names(recipe.of)}"
        yield Finding("ok", party.name, text)


def note_habits(party: PartyHere) -> Iterator[Finding]:
    """Yield notes about the party that refuse nothing."""
    if party.settings.policy.approve == "ask":
        yield Finding("note", party.name, "its operator approves each job (`blindfit approve`)")
    if party.settings.passphrase_file is None:
        yield Finding(
            "note", party.name, "keeps its keys and checkpoints without encryption: it has no secrets.passphrase_file"
        )


def check_least_rows(server: PartyHere, n_rows: int) -> Iterator[Finding]:
    """Yield a refusal if the request has fewer rows than the server needs."""
    try:
        server.settings.policy.check_rows(n_rows)
    except TooFewRows as error:
        yield Finding("refuses", server.name, str(error))


def describe_spent(party: PartyHere) -> Finding:
    """Return a finding about the spent part of the budget of the party's dataset."""
    name = str(party.dataset.population)
    population = party.settings.populations[name]
    spent = book.spent(party.ledger(name), population.delta)
    return Finding("note", party.name, f"budget of {name}: epsilon {spent:.4g} of {population.epsilon:g} is spent")


def describe_budget(party: PartyHere, event: ReleaseEvent, again: str) -> Iterator[Finding]:
    """Yield what is spent, for a party that has not refused the job.

    If the whole budget is spent, the job may have been charged before.

    Args:
        again: request that is possible even if the budget is spent.
    """
    yield describe_spent(party)
    if party.settings.excess.only_warns:  # another warning reports it
        return
    name = str(party.dataset.population)
    population, entries = party.settings.populations[name], party.ledger(name)
    events = [ReleaseEvent.from_canonical(entry.event) for entry in entries]
    try:
        book.check_budget(events, event, Budget(population.epsilon, population.delta), name)
    except BudgetExhausted as error:
        yield Finding("warning", party.name, f"{again}; any other is refused: {error}")


# --- running parties -- ---------------------------------------------------------------------------------


def introduce(name: str, told: control_pb2.PartyDescription) -> Finding:
    """Return a finding about a running party's own description."""
    return Finding("ok", name, f"is running: {plain(told.role)}, version {plain(told.version)}")


async def ask_parties(job: Job[Any], names: Sequence[str] | None = None) -> list[Finding]:
    """Return what running parties, by default all of the job, report of themselves and would refuse of its proposal."""
    own, addresses, receipts = coordinator_identity(job), addresses_of(job), of_this_user()
    findings: list[Finding] = []
    for name, address in addresses.items():
        if names is not None and name not in names:
            continue
        try:
            async with Control.open(own, name, address) as control:
                told = await control.describe(ALONE_TIMEOUT_S)
                key = receipt_key_of(job, name, told)
                findings.append(introduce(name, told))
                proposal = proposal_of(job, f"check-{token_hex(4)}", addresses, receipts.of(name, key) if key else ())
                await control.check(proposal, ALONE_TIMEOUT_S)
        except BlindfitError as error:
            findings.append(Finding("refuses", name, str(error)))
    return findings
