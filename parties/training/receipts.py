"""The receipts of a training that is charged to the active party's budget: kept by everybody else who takes part."""

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
    """At the active party: charges the training, and gives everybody a receipt before anything of it is released.

    Args:
        drawn, same_noise: as `budget.charge` takes them.

    Raises:
        LedgerBehind: the ledger lacks what somebody's receipt proves.
        PolicyRefused: somebody presents what this party did not sign.
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
    """At any other party of such a training.

    Raises:
        MalformedMessage: what the active party gives is not its receipt.
    """

    def keep(population: str, given: SignedReceipt, key: bytes) -> None:
        hold_receipt(party.store, payer, key, population, given)

    await receipts.run_other(
        payer, session.channel, held=lambda of: party.store.reader().receipt_held(payer, of), keep=keep
    )
