"""What a training on the active party's own data costs, and how it is charged to that party's ledger.

Under label DP a vertical training is one Gaussian release, charged before it begins: however many epochs run, the
label's part of every gradient is noised once for each batch, and a row is in one batch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.messages import canonical_bytes
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.gaussian import noise_multiplier
from blindfit.algorithms.privacy.ledger import Budget, LedgerEntry
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.settings import PartyDatasetSettings, PartySettings
from blindfit.parties.store.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Charge:
    """What a training was charged, in the words of the privacy statement."""

    population: str
    unit: str
    neighbours: str
    epsilon: float
    delta: float
    noise_multiplier: float
    spent_epsilon: float
    budget_epsilon: float
    budget_delta: float


def event_of(privacy: PrivacySettings) -> ReleaseEvent:
    return ReleaseEvent("gaussian", noise_multiplier("analytic", privacy.epsilon, privacy.delta), UNITS["row"][1])


def population_of(dataset: PartyDatasetSettings, name: str) -> str:
    """Raises ConfigError: the dataset has none, and so no budget."""
    if dataset.population is None:
        raise ConfigError(
            f"datasets.{name}.population is missing: a training under differential privacy is charged to a budget",
            hint="name one of [populations], with its epsilon and delta",
        )
    return dataset.population


def charge(session: Session[TrainingParameters], settings: PartySettings, store: Store, dataset_version: str) -> Charge:
    """Charges a session once, however often it is resumed; a name that somebody gave it pays for nothing.

    Raises:
        ConfigError: the dataset has no population, and so no budget.
        BudgetExhausted: it does not fit; nothing is charged.
        LedgerUnavailable: the ledger could not be written.
    """
    privacy, dataset = session.job.required_privacy, settings.datasets[session.me.dataset]
    population = population_of(dataset, session.me.dataset)
    limits = settings.populations[population]
    event = event_of(privacy)
    unit = unit_of(dataset, UNITS["row"][0])
    request_id = session.job.resumes or session.id  # its checkpoints say that it is the same job
    with store.transaction() as transaction:
        entries = list(transaction.ledger(population))
        is_paid = bool(session.job.resumes) and any(entry.request_id == request_id for entry in entries)
        if not is_paid:
            entry = add_entry(
                transaction,
                session,
                Budget(limits.epsilon, limits.delta),
                population=population,
                dataset_version=dataset_version,
                request_id=request_id,
                event=event,
                epsilon=privacy.epsilon,
                unit=unit,
                answer_sha256="",  # the answer is the training: noisy gradients at every party
            )
            entries.append(entry)
    return Charge(
        population=population,
        unit=unit,
        neighbours=event.neighbours,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        noise_multiplier=event.noise_multiplier,
        spent_epsilon=book.spent(entries, limits.delta),
        budget_epsilon=limits.epsilon,
        budget_delta=limits.delta,
    )


def unit_of(dataset: PartyDatasetSettings, what: str) -> str:
    return what + (f", {dataset.row_is}" if dataset.row_is else "")


def add_entry(
    transaction: Transaction,
    session: Session[TrainingParameters],
    budget: Budget,
    *,
    population: str,
    dataset_version: str,
    request_id: str,
    event: ReleaseEvent,
    epsilon: float,
    unit: str,
    answer_sha256: str,
) -> LedgerEntry:
    """Charges the session's job, in a transaction that may keep its answer too.

    Raises:
        BudgetExhausted: it does not fit.
    """
    events = [ReleaseEvent.from_canonical(entry.event) for entry in transaction.ledger(population)]
    book.check_budget(events, event, budget, population)
    entry = book.append(
        transaction.last_entry(),
        population=population,
        dataset=session.me.dataset,
        dataset_version=dataset_version,
        requester=session.proposed_by,
        request_id=request_id,
        content_sha256=hashlib.sha256(canonical_bytes(session.parameters)).hexdigest(),
        kind="release",
        event=event,
        epsilon=epsilon,
        delta=session.job.required_privacy.delta,
        unit=unit,
        answer_sha256=answer_sha256,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    transaction.add_entry(entry)
    return entry
