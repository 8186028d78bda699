"""The charge of a dp-lr training, which is one release: the transaction that charges it also keeps its answer.

A party that asks again, by the same job on the same snapshot, gets the same model: no new noise and no new charge.
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
        public: facts that the answer depends on, in addition to the job: the columns, the start and its scale.
        drawn: name of the split's randomness.
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
        """Digest that is the same for the same job on the same snapshot."""
        return self._charge.request_id

    def answer(self) -> dict[str, Any] | None:
        stored = self._store.reader().answer(self._session.me.name, self.question)
        return None if stored is None else _decode(stored)

    def check(self) -> None:
        """Check the budget before the work; the check that counts is in the transaction.

        Raises:
            BudgetExhausted: the run does not fit.
            UnsupportedEvent: the population was charged for neighbours that do not compose with these.
        """
        charging.check(self._store.reader(), self._charge, self._budget)

    def charge(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Charge, and keep the answer; it is on the disk when this returns.

        Returns:
            The answer that counts: an earlier one, if the same question was asked at the same moment.

        Raises:
            BudgetExhausted: it does not fit; nothing is charged, and nothing may be revealed.
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

    def describe(self) -> tuple[Charged, int]:
        """Return the promise with the present state of the budget, and the number of releases."""
        entries = self._store.reader().ledger(self._charge.population)
        return describe_charge(self._charge, self._settings, self._store), len(entries)


def _decode(stored: StoredAnswer) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(stored.answer)
    return answer
