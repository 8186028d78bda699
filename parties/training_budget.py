"""What a training under label DP costs: one Gaussian release, charged to the active party's ledger before it begins.

However many epochs run, the label's part of every gradient is noised once for each batch, and a row is in one batch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from algorithms.errors import ConfigError
from algorithms.messages import canonical_bytes
from algorithms.privacy import ledger as book
from algorithms.privacy.events import ReleaseEvent
from algorithms.privacy.gaussian import noise_multiplier
from algorithms.privacy.ledger import Budget
from parties.jobs import PrivacySettings
from parties.measurement import UNITS
from parties.sessions import Session
from parties.settings import PartyDatasetSettings, PartySettings
from parties.store import Store


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
            f"datasets.{name}.population is missing: a training under label DP is charged to a budget",
            hint="name one of [populations], with its epsilon and delta",
        )
    return dataset.population


def charge(session: Session, settings: PartySettings, store: Store, dataset_version: str) -> Charge:
    """Charges a session once, however often it is resumed.

    Raises:
        ConfigError: the dataset has no population, and so no budget.
        BudgetExhausted: it does not fit; nothing is charged.
        LedgerUnavailable: the ledger could not be written.
    """
    privacy, dataset = session.job.required_privacy, settings.datasets[session.me.dataset]
    population = population_of(dataset, session.me.dataset)
    limits = settings.populations[population]
    event = event_of(privacy)
    unit = UNITS["row"][0] + (f", {dataset.row_is}" if dataset.row_is else "")
    request_id = session.job.taylor.resume or session.id  # its checkpoints say that it is the same job
    content = hashlib.sha256(canonical_bytes(session.parameters)).hexdigest()
    with store.transaction() as transaction:
        entries = list(transaction.ledger(population))
        if not any(entry.request_id == request_id for entry in entries):
            events = [ReleaseEvent.from_canonical(entry.event) for entry in entries]
            book.check_budget(events, event, Budget(limits.epsilon, limits.delta), population)
            entry = book.append(
                transaction.last_entry(),
                population=population,
                dataset=session.me.dataset,
                dataset_version=dataset_version,
                requester=session.proposed_by,
                request_id=request_id,
                content_sha256=content,
                kind="release",
                event=event,
                epsilon=privacy.epsilon,
                delta=privacy.delta,
                unit=unit,
                answer_sha256="",  # the answer is the training: noisy gradients at every party
                time=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            transaction.add_entry(entry)
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
