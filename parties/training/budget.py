"""Cost of a training on the active party's own data, and its charge to that party's ledger.

Under label DP a vertical training is one Gaussian release, charged before it begins. The number of epochs does not
matter: the label's part of every gradient gets noise once for each batch, and a row is in one batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.accountant import common_neighbours, spent_epsilon
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.gaussian import noise_multiplier
from blindfit.algorithms.privacy.ledger import Budget, Charge
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store import charging
from blindfit.parties.store.database import Store
from blindfit.parties.training.report import LabelPrivacy

SameNoise = Callable[[ReleaseEvent], bool]


@dataclass(frozen=True, kw_only=True)
class Charged(LabelPrivacy):
    """The charge of a training, in the words of the privacy statement."""

    noise_multiplier: float
    spent_neighbours: str  # unit that all releases of the population together protect, for spent_epsilon


def event_of(privacy: PrivacySettings) -> ReleaseEvent:
    return ReleaseEvent("gaussian", noise_multiplier("analytic", privacy.epsilon, privacy.delta), UNITS["row"][1])


def population_of(dataset: PartyDatasetSettings, name: str) -> str:
    """Return the population of a dataset. Raise ConfigError if the dataset has none, and so no budget."""
    if dataset.population is None:
        raise ConfigError(
            f"datasets.{name}.population is missing: a training under differential privacy is charged to a budget",
            hint=f"set datasets.{name}.population to a table of [populations], which has its epsilon and delta",
        )
    return dataset.population


def check_before(settings: PartySettings, store: Store, dataset: str, event: ReleaseEvent, snapshot: str) -> None:
    """Refuse a job, before it begins, if the budget of a dataset cannot pay for its release.

    Raises:
        ConfigError: the dataset has no population, and so no budget.
        LedgerUnavailable, LedgerBehind, BudgetExhausted, UnsupportedEvent: as in `charging.check_before`.
    """
    population = population_of(settings.datasets[dataset], dataset)
    charging.check_before(store.reader(), population, event, budget_of(settings, population), snapshot)


def charge(
    session: Session[TrainingParameters],
    settings: PartySettings,
    store: Store,
    drawn: Sequence[str],
    same_noise: SameNoise,
) -> Charged:
    """Charge a question about a snapshot once, in any number of jobs and resumptions, under any name.

    Args:
        drawn: names of all random draws for it: the same draws give the same answer, and any other draw a new answer.
        same_noise: see `charge_of`.

    Raises:
        ConfigError: the dataset has no population, and so no budget.
        LedgerBehind: the ledger lacks entries that a receipt proves, and its operator has not acknowledged that.
        BudgetExhausted: the charge does not fit; nothing is charged.
        LedgerUnavailable: the ledger could not be written.
    """
    asked = _ask(session, settings, store, drawn, same_noise)
    with store.transaction() as transaction:
        charging.check_rollbacks(transaction, asked.population)
        if not charging.is_paid(transaction, asked):  # the answer is the training: noisy gradients at every party
            charging.check(transaction, asked, budget_of(settings, asked.population))
            charging.enter(transaction, asked)
    return describe_charge(asked, settings, store)


def check_charge(
    session: Session[TrainingParameters],
    settings: PartySettings,
    store: Store,
    drawn: Sequence[str],
    same_noise: SameNoise,
) -> None:
    """Check that `charge` would charge a training, or has charged it before; nothing is charged. Errors are those of
    `charge`.
    """
    asked = _ask(session, settings, store, drawn, same_noise)
    with store.view() as reader:
        charging.check_rollbacks(reader, asked.population)
        if not charging.is_paid(reader, asked):
            charging.check(reader, asked, budget_of(settings, asked.population))


def _ask(
    session: Session[TrainingParameters],
    settings: PartySettings,
    store: Store,
    drawn: Sequence[str],
    same_noise: SameNoise,
) -> Charge:
    privacy = session.job.required_privacy
    unit = UNITS["row"][0]
    return charge_of(session, settings, store, event_of(privacy), privacy.epsilon, unit, drawn, same_noise)


def charge_of(
    session: Session[TrainingParameters],
    settings: PartySettings,
    store: Store,
    event: ReleaseEvent,
    epsilon: float,
    unit: str,
    drawn: Sequence[str],
    same_noise: SameNoise = lambda _event: True,
) -> Charge:
    """Return the charge of a question about a snapshot. If the question was charged before, return that charge.

    The noise multiplier follows from the question. Another version, or another machine, may compute another last digit
    of it, which must not make another question.

    Args:
        event: event that this process computes now.
        same_noise: function that returns True if the noise of an earlier event is drawn again as it was then. If not,
            the training would be another answer to the question, so it is charged. A stored answer is always the same.

    Raises:
        ConfigError: the dataset has no population.
    """
    dataset, snapshot = settings.datasets[session.me.dataset], session.published.id
    population = population_of(dataset, session.me.dataset)

    def identity_with(event: str) -> str:
        parts = (session.question, snapshot.encode(), event.encode(), *(name.encode() for name in drawn))
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

    releases = (entry for entry in store.reader().ledger(population) if entry.kind == "release")
    entered = [entry for entry in releases if entry.snapshot == snapshot]
    known = {entry.content_sha256 for entry in entered}
    earlier = dict.fromkeys(entry.event for entry in entered)
    paid = (ReleaseEvent.from_canonical(text) for text in earlier if identity_with(text) in known)
    event = next(filter(same_noise, paid), event)
    identity = identity_with(event.canonical())
    return Charge(
        population=population,
        event=event,
        dataset=session.me.dataset,
        snapshot=snapshot,
        requester=session.proposed_by,
        request_id=identity[:32],
        content_sha256=identity,
        epsilon=epsilon,
        delta=session.job.required_privacy.delta,
        unit=unit + (f", {dataset.row_is}" if dataset.row_is else ""),
    )


def budget_of(settings: PartySettings, population: str) -> Budget:
    limits = settings.populations[population]
    return Budget(limits.epsilon, limits.delta)


def describe_charge(asked: Charge, settings: PartySettings, store: Store) -> Charged:
    """Return the charge with the present state of the budget."""
    budget = budget_of(settings, asked.population)
    events = [ReleaseEvent.from_canonical(entry.event) for entry in store.reader().ledger(asked.population)]
    return Charged(
        population=asked.population,
        unit=asked.unit,
        neighbours=asked.event.neighbours,
        epsilon=asked.epsilon,
        delta=asked.delta,
        noise_multiplier=asked.event.noise_multiplier,
        spent_epsilon=spent_epsilon(events, budget.delta),
        spent_neighbours=common_neighbours(events),
        budget_epsilon=budget.epsilon,
        budget_delta=budget.delta,
    )
