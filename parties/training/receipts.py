"""The receipts of a training that is charged to the active party's budget: every other party keeps one."""

from __future__ import annotations

from collections.abc import Sequence

from blindfit.algorithms.protocols import receipts
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.receipts import SignedReceipt, hold_receipt
from blindfit.parties.training.budget import Charged, SameNoise, charge, population_of


async def charge_and_prove(
    party: Party,
    session: Session[TrainingParameters],
    others: Sequence[str],
    drawn: Sequence[str],
    same_noise: SameNoise,
) -> Charged:
    """Charge the training at the active party, and give every other party a receipt before anything of it is released.

    Args:
        drawn: see `budget.charge`.
        same_noise: see `budget.charge`.

    Raises:
        LedgerBehind: the ledger lacks an entry that a party's receipt proves.
        PolicyRefused: a party presents a receipt that this party did not sign.
        BudgetExhausted: the training does not fit; nothing is charged.
    """
    charged: list[Charged] = []
    population = population_of(party.settings.datasets[session.me.dataset], session.me.dataset)

    def pay() -> SignedReceipt:
        charged.append(charge(session, party.settings, party.store, drawn, same_noise))
        session.receipt = party.receipts.newest(population)
        return session.receipt

    own = party.receipts
    await receipts.run_payer(population, own.public_key, others, session.channel, take=own.take, charge=pay)
    return charged[0]


async def keep_proof(party: Party, session: Session[TrainingParameters], payer: str) -> None:
    """Keep the receipt at any other party of such a training.

    Raises:
        MalformedMessage: the active party gave something that is not its receipt.
    """

    def keep(population: str, given: SignedReceipt, key: bytes) -> None:
        hold_receipt(party.store, payer, key, population, given)

    await receipts.run_other(
        payer, session.channel, held=lambda of: party.store.reader().receipt_held(payer, of), keep=keep
    )
