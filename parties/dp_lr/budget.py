"""A dp-lr training is one release: charged in the transaction that keeps its answer, so that both are there or neither.

Whoever asks again, by the same job on the same snapshot, gets the same model: no new noise and no new charge.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from blindfit.algorithms.messages import canonical_json
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store import charging
from blindfit.parties.store.answers import StoredAnswer
from blindfit.parties.store.database import Store
from blindfit.parties.training.budget import Charged, budget_of, charge_of, describe_charge

UNIT = "each row, features and label"


class TrainingLedger:
    """One question about one snapshot, and the budget that pays for it.

    Args:
        public: what the answer depends on beside the job: the columns, the start and its scale.
        drawn: a name of the split's randomness.
    """

    def __init__(
        self, session: Session[DPLRJob], settings: PartySettings, store: Store, public: dict[str, Any], drawn: str
    ) -> None:
        self._session, self._settings, self._store = session, settings, store
        privacy = session.job.run_privacy
        start = hashlib.sha256(canonical_json(public)).hexdigest()
        self._charge = charge_of(session, settings, store, privacy.event(), privacy.spent(), UNIT, (drawn, start))
        self._budget = budget_of(settings, self._charge.population)

    @property
    def population(self) -> str:
        return self._charge.population

    @property
    def question(self) -> str:
        """The same for the same job on the same snapshot."""
        return self._charge.request_id

    def answer(self) -> dict[str, Any] | None:
        stored = self._store.reader().answer(self._session.me.name, self.question)
        return None if stored is None else _decode(stored)

    def check(self) -> None:
        """Before the work; what counts is the same check in the transaction.

        Raises:
            BudgetExhausted: the run does not fit.
            UnsupportedEvent: the population was charged for neighbours that do not compose with these.
        """
        charging.check(self._store.reader(), self._charge, self._budget)

    def charge(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Charge and keeps the answer, on the disk when it returns.

        Returns:
            The answer that counts: an earlier one, where the same was asked at the same moment.

        Raises:
            BudgetExhausted: it does not fit; nothing is charged, and nothing may be told.
            LedgerUnavailable: the ledger could not be written.
        """
        content, me = json.dumps(answer, allow_nan=False).encode(), self._session.me.name
        with self._store.transaction() as transaction:
            earlier = transaction.answer(me, self.question)
            if earlier is not None:
                return _decode(earlier)
            charging.check(transaction, self._charge, self._budget)
            entry = charging.enter(transaction, self._charge, hashlib.sha256(content).hexdigest())
            stored = StoredAnswer(self.question, content, entry.position, self._session.id)
            transaction.add_answer(me, self.question, stored)
        return answer

    def described(self) -> tuple[Charged, int]:
        """Return the promise and the budget as it now is, and how many releases there were."""
        entries = self._store.reader().ledger(self._charge.population)
        return describe_charge(self._charge, self._settings, self._store), len(entries)


def _decode(stored: StoredAnswer) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(stored.answer)
    return answer
