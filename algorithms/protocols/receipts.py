"""Receipts: the party that pays for a training gives the others a signed proof, and trusts their earlier receipts.

So a ledger that was restored from a backup refunds nothing.

Source: our own; the receipt is that of a measurement server's answers (algorithms/privacy/ledger.py).
Model: the active party wants to keep its own budget, and the others want nothing; a forged receipt is refused.

    step  who          does                                                     sends
    1     active       names the population that pays                           ReceiptAsked to every other.
    2     each other   looks for its newest receipt of this population          ReceiptHeld.
    3     active       checks that its ledger has what they prove; charges      ReceiptGiven to every other.
    4     each other   checks the signature, and keeps the receipt              nothing.

Departures: none.
Learns: every other party learns the name of the population, and which releases about it were charged (mechanism, noise
    and neighbours of each), like every active party that asks a measurement server. It learns no row, no label and no
    name of a requester.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel, Octets, Text
from blindfit.algorithms.protocols.table import ACTIVE, KEY, ONCE, PASSIVE, Arrow, Table

MOST_NAME = 256  # characters
PAID = "differential privacy"
Signed = tuple[bytes, bytes]  # statement, signature


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReceiptAsked:
    population: Text


@dataclass(frozen=True, slots=True)
class ReceiptHeld:
    statement: Octets  # empty: it has no receipt
    signature: Octets


@dataclass(frozen=True, slots=True)
class ReceiptGiven:
    statement: Octets  # canonical JSON
    signature: Octets
    key: Octets  # Ed25519, public


OTHERS = PASSIVE + KEY
TABLE = Table(
    "receipts",
    Arrow("1", ACTIVE, OTHERS, ReceiptAsked, ONCE, "the name of the population that pays", PAID),
    Arrow("2", OTHERS, ACTIVE, ReceiptHeld, ONCE, "its own receipt of an earlier charge", PAID),
    Arrow("3", ACTIVE, OTHERS, ReceiptGiven, ONCE, "the releases charged to the population", PAID),
)


# --- steps ---------------------------------------------------------------------------------------


def step_2_check(asked: ReceiptAsked, *, sender: str) -> str:
    if not 1 <= len(asked.population) <= MOST_NAME:
        raise MalformedMessage(culprit=sender, field="population", reason="is not a name", step="ReceiptAsked")
    return asked.population


# --- roles ---------------------------------------------------------------------------------------


async def run_payer(
    population: str,
    key: bytes,
    others: Sequence[str],
    channel: Channel,
    *,
    take: Callable[[Signed, str], None],
    charge: Callable[[], Signed],
) -> None:
    """Charge a training, and prove the charge to the others.

    Args:
        key: public key by which the others check the signature.
        take: function of another party's receipt and its name; it may raise.
        charge: function that charges, and returns the new receipt; it raises if the ledger is behind.
    """
    for other in others:
        await channel.send(other, ReceiptAsked(population))
    for other in others:
        held = await channel.receive(other, ReceiptHeld)
        if held.statement:
            take((held.statement, held.signature), other)
    statement, signature = charge()
    for other in others:
        await channel.send(other, ReceiptGiven(statement, signature, key))


async def run_other(
    payer: str,
    channel: Channel,
    *,
    held: Callable[[str], Signed],
    keep: Callable[[str, Signed, bytes], None],
) -> None:
    """Receive the proof of payment.

    Args:
        held: population -> this party's receipt of it; a pair of empty texts if it has no receipt.
        keep: function of population, receipt and key; it raises if the payer did not sign the receipt.
    """
    population = step_2_check(await channel.receive(payer, ReceiptAsked), sender=payer)
    await channel.send(payer, ReceiptHeld(*held(population)))
    given = await channel.receive(payer, ReceiptGiven)
    keep(population, (given.statement, given.signature), given.key)
