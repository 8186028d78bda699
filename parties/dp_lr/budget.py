"""A dp-lr training is one release: charged in the transaction that keeps its answer, so that both are there or neither.

Whoever asks again, by the same job on the same rows, gets the same model: no new noise and no new charge.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.messages import canonical_bytes
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.events import ReleaseEvent, Sampling
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.files.written import canonical_json
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.store import Store, StoredAnswer
from blindfit.parties.training.budget import Charge, add_entry, population_of, unit_of

UNIT = "each row, features and label"
NOT_ASKED = ("timeouts.",)  # of a job's parameters, what no answer depends on


def event_of(privacy: RunPrivacy) -> ReleaseEvent:
    """Of the whole run."""
    # Imported here because scikit-learn takes a second, and most processes fit nothing with it.
    from blindfit.algorithms.estimators.dp_logistic_regression import UNITS

    multiplier, neighbours = privacy.noise_multiplier(), UNITS[privacy.neighbours]
    if privacy.batch_fraction < 1:
        sampling = Sampling(privacy.batch_fraction, privacy.n_iterations, privacy.sensitivity)
        return ReleaseEvent("sampled-gaussian", multiplier, neighbours, sampling)
    return ReleaseEvent("gaussian", multiplier / privacy.n_iterations**0.5, neighbours)


@dataclass(frozen=True, repr=False)
class Request:
    """What an answer is the answer to.

    Args:
        id: the same for the same job on the same rows; the ledger shows it to auditors.
        dataset_version: for the ledger.
    """

    id: str
    dataset_version: str


def request_of(
    session: Session[DPLRJob], model_key: SigningKey, public: dict[str, Any], rows: bytes, dataset_version: str
) -> Request:
    """Args:
    public: what the answer depends on beside the job: the start and its scale. rows: the private rows' digest.
    """
    asked = {name: value for name, value in session.parameters.items() if not name.startswith(NOT_ASKED)}
    parts = (canonical_bytes(asked), session.me.dataset.encode(), canonical_json(public), rows)
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
    # Signed, as a hash that leaves with the ledger would let anyone try out which rows it was made of.
    signature = model_key.sign(digest)
    return Request(hashlib.sha256(signature).hexdigest()[:32], dataset_version)


class TrainingLedger:
    """The budget of one dataset, as a training sees it."""

    def __init__(self, session: Session[DPLRJob], settings: PartySettings, store: Store) -> None:
        self._session, self._store = session, store
        self._dataset = settings.datasets[session.me.dataset]
        self.population = population_of(self._dataset, session.me.dataset)
        limits = settings.populations[self.population]
        self._budget = Budget(limits.epsilon, limits.delta)
        self._privacy = session.job.run_privacy
        self._event = event_of(self._privacy)

    def answer(self, request: Request) -> dict[str, Any] | None:
        """What was answered before."""
        stored = self._store.reader().answer(self._session.me.name, request.id)
        return None if stored is None else _decoded(stored)

    def check(self) -> None:
        """Before the work; what counts is the same check in the transaction.

        Raises:
            BudgetExhausted: the run does not fit.
            UnsupportedEvent: the population was charged under another neighbouring relation.
        """
        events = [ReleaseEvent.from_canonical(entry.event) for entry in self._store.reader().ledger(self.population)]
        book.check_budget(events, self._event, self._budget, self.population)

    def charge(self, request: Request, answer: dict[str, Any]) -> dict[str, Any]:
        """Charges and keeps the answer, on the disk when it returns.

        Returns:
            The answer that counts: an earlier one, where the same was asked at the same moment.

        Raises:
            BudgetExhausted: it does not fit; nothing is charged, and nothing may be told.
            LedgerUnavailable: the ledger could not be written.
        """
        content, me = json.dumps(answer, allow_nan=False).encode(), self._session.me.name
        with self._store.transaction() as transaction:
            earlier = transaction.answer(me, request.id)
            if earlier is not None:
                return _decoded(earlier)
            entry = add_entry(
                transaction,
                self._session,
                self._budget,
                population=self.population,
                dataset_version=request.dataset_version,
                request_id=request.id,
                event=self._event,
                epsilon=self._privacy.spent(),
                unit=self._unit,
                answer_sha256=hashlib.sha256(content).hexdigest(),
            )
            transaction.add_answer(me, request.id, StoredAnswer(request.id, content, entry.position, self._session.id))
        return answer

    @property
    def _unit(self) -> str:
        return unit_of(self._dataset, UNIT)

    def described(self) -> tuple[Charge, int]:
        """The promise and the budget as it now is, and how many releases there were."""
        entries = self._store.reader().ledger(self.population)
        charged = Charge(
            population=self.population,
            unit=self._unit,
            neighbours=self._event.neighbours,
            epsilon=self._privacy.spent(),
            delta=self._privacy.delta,
            noise_multiplier=self._event.noise_multiplier,
            spent_epsilon=book.spent(entries, self._budget.delta),
            budget_epsilon=self._budget.epsilon,
            budget_delta=self._budget.delta,
        )
        return charged, len(entries)


def _decoded(stored: StoredAnswer) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(stored.answer)
    return answer
