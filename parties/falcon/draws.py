"""A training under differential privacy is charged at every data party, as the rows are made of all parties' parts.

Each draw of its noise may be opened once. A charge pays for one opening: it is on the disk before anything is put in,
and is used up, on the disk too, before this party lets its shares of the weights go. A training that ends in between
has shown nothing of its noise, so the next one of the same question, resumed or not, draws new noise for the same
charge. Weights that were opened and lost are charged again. Nobody's name for anything is in it: the draws of a
question are counted.

    step  who          does
    1     each party   checks its own budget, and the ledger against receipts
    2     active       charges, once all the others have come so far, and gives its receipt (protocols/receipts.py)
    3     passives     charge
    4     each party   before the weights are opened: the charge is used up; where another session of the same question
                       was faster, another charge
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from blindfit.algorithms.privacy.ledger import Budget, Charge, LedgerEntry
from blindfit.algorithms.protocols import receipts
from blindfit.parties.falcon.privacy import UNIT, event_of
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.store import charging
from blindfit.parties.store.answers import StoredAnswer
from blindfit.parties.store.database import Reads, Writes
from blindfit.parties.store.receipts import SignedReceipt, hold_receipt
from blindfit.parties.training.budget import Charged, budget_of, charge_of, describe_charge, population_of
from blindfit.parties.vertical.seats import Seats

OPENED = b"opened"


class Draws:
    """Of one question at this party.

    Args:
        drawn: names of all that the question depends on beside the job and the snapshots.
    """

    def __init__(self, party: Party, session: Session[FalconJob], drawn: Sequence[str]) -> None:
        self._party, self._session, self._drawn = party, session, drawn
        dataset = session.me.dataset
        self._population = population_of(party.settings.datasets[dataset], dataset)

    async def charge(self, seats: Seats) -> None:
        """Steps 1 to 3: nothing is charged anywhere unless all can pay.

        Raises:
            BudgetExhausted: the training does not fit.
            LedgerBehind: the ledger lacks what somebody's receipt proves.
        """
        self.check()
        channel, payer, own = self._session.channel, seats.chain[0], self._party.receipts
        if seats.me == payer:
            await receipts.run_payer(
                self._population, own.public_key, seats.others, channel, take=own.take, charge=self._pay
            )
            return

        def keep(population: str, given: SignedReceipt, key: bytes) -> None:
            hold_receipt(self._party.store, payer, key, population, given)
            self._pay()

        held = self._party.store.reader().receipt_held
        await receipts.run_other(payer, channel, held=lambda of: held(payer, of), keep=keep)

    def open(self) -> None:
        """Step 4.

        Raises:
            BudgetExhausted: another session has used up what this one was charged, and no more is left.
            LedgerUnavailable: it could not be written.
        """
        with self._party.store.transaction() as transaction:
            asked, entry = self._find_or_make_charge(transaction)
            answer = StoredAnswer(asked.content_sha256, OPENED, entry.position, self._session.id)
            transaction.add_answer(self._session.me.name, asked.request_id, answer)
        self._session.receipt = self._party.receipts.newest(self._population)

    def describe(self) -> Charged:
        """Return the promise, and the budget as it now is."""
        return describe_charge(self._make_charge(0), self._party.settings, self._party.store)

    def check(self) -> None:
        """Step 1. Raises BudgetExhausted, LedgerBehind: as `charge`."""
        reader = self._party.store.reader()
        charging.check_rollbacks(reader, self._population)
        asked, entry = self._next(reader)
        if entry is None:
            charging.check(reader, asked, self._budget)

    def _pay(self) -> SignedReceipt:
        with self._party.store.transaction() as transaction:
            self._find_or_make_charge(transaction)
        self._session.receipt = self._party.receipts.newest(self._population)
        return self._session.receipt

    def _find_or_make_charge(self, transaction: Writes) -> tuple[Charge, LedgerEntry]:
        """Return the charge of a draw that was not opened, made now where there is none."""
        charging.check_rollbacks(transaction, self._population)
        asked, entry = self._next(transaction)
        if entry is None:
            charging.check(transaction, asked, self._budget)
            entry = charging.enter(transaction, asked)
        return asked, entry

    def _next(self, reader: Reads) -> tuple[Charge, LedgerEntry | None]:
        """Return the first draw that was not opened, and its charge, if it has one."""
        entries = {
            entry.request_id: entry
            for entry in reader.ledger(self._population)
            if entry.kind == "release" and entry.snapshot == self._session.published.id
        }
        draws = map(self._make_charge, itertools.count())
        asked = next(draw for draw in draws if not reader.answer(self._session.me.name, draw.request_id))
        return asked, entries.get(asked.request_id)

    def _make_charge(self, number: int) -> Charge:
        job, drawn = self._session.job, (*self._drawn, f"draw {number}")
        party = self._party
        return charge_of(self._session, party.settings, party.store, event_of(job), job.epsilon, UNIT, drawn)

    @property
    def _budget(self) -> Budget:
        return budget_of(self._party.settings, self._population)
