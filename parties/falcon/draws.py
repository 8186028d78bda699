"""The charges of a training under differential privacy, at every data party, because each row has parts of all parties.

Each draw of its noise may be opened once, and a charge pays for one opening. A charge is on the disk before any value
is shared. It is used up, also on the disk, before this party releases its shares of the weights. A training that ends
in between has revealed nothing of its noise. So the next training for the same question, resumed or not, draws new
noise for the same charge. Weights that were opened and lost are charged again. No name from outside has an effect: the
draws of a question are counted.

| step  who          does
| 1     each party   checks its own budget, and the ledger against receipts
| 2     active       charges, once all the others have done step 1, and gives its receipt (protocols/receipts.py)
| 3     passives     charge
| 4     each party   uses up the charge before the weights are opened; if another session of the same question was
|                    faster, makes another charge
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
    """The draws of one question at this party.

    Args:
        drawn: names of everything that the question depends on, in addition to the job and the snapshots.
    """

    def __init__(self, party: Party, session: Session[FalconJob], drawn: Sequence[str]) -> None:
        self._party, self._session, self._drawn = party, session, drawn
        dataset = session.me.dataset
        self._population = population_of(party.settings.datasets[dataset], dataset)

    async def charge(self, seats: Seats) -> None:
        """Do steps 1 to 3: no party is charged unless all can pay.

        Raises:
            BudgetExhausted: the training does not fit.
            LedgerBehind: the ledger lacks an entry that a receipt proves.
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
        """Do step 4.

        Raises:
            BudgetExhausted: another session has used up this session's charge, and the budget has no epsilon left.
            LedgerUnavailable: it could not be written.
        """
        with self._party.store.transaction() as transaction:
            asked, entry = self._find_or_make_charge(transaction)
            answer = StoredAnswer(asked.content_sha256, OPENED, entry.position, self._session.id)
            transaction.add_answer(self._session.me.name, asked.request_id, answer)
        self._session.receipt = self._party.receipts.newest(self._population)

    def describe(self) -> Charged:
        """Return the promise, with the present state of the budget."""
        return describe_charge(self._make_charge(0), self._party.settings, self._party.store)

    def check(self) -> None:
        """Do step 1. Raise BudgetExhausted or LedgerBehind as `charge` does."""
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
        """Return the charge of a draw that was not opened; make a new charge if there is no such draw."""
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
