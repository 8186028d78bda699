"""Ready: before a vertical training each data party says how wide it is and what it found unsafe in its own rows; after
it each party says that it has stored its part, and only then lets go of what the training could be resumed from.

Source: our own; what a gradient gives away depends on widths, and on checks that a party makes on its own columns.
Model: semi-honest.

    step  who         does                                                      sends
    1     each P_i    checks its own rows against the batches                   Ready to every other
    2     each        the widths of all, in the chain's order                   --
    3     each        has stored its part of the model                          Stored to every other
    4     each        once all have: removes its checkpoints                    --

Departures: none.
Learns: every party, the number of columns of every other, and which unsafe options its operator allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel, Integer, Text, Texts
from blindfit.algorithms.protocols.table import ONCE, VERTICAL, Arrow, Table

MOST_COLUMNS = 2**16


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    columns: Integer  # of the party's block, the intercept included; 0 at a key node
    unsafe: Texts  # flags that its operator allowed and that its rows needed
    checkpoint: Text = ""  # of a job that is resumed: the epoch it can go on from


@dataclass(frozen=True, slots=True)
class Stored:
    epochs: Integer  # of the training


TABLE = Table(
    "ready",
    Arrow("1", VERTICAL, VERTICAL, Ready, ONCE, "a party's number of columns, unsafe flags, checkpoints"),
    Arrow("3", VERTICAL, VERTICAL, Stored, ONCE, "that a party has stored its part"),
)


# --- steps ---------------------------------------------------------------------------------------


def step_2_check(ready: Ready, *, sender: str) -> Ready:
    if not 0 <= ready.columns <= MOST_COLUMNS or len(ready.unsafe) > 64:
        raise MalformedMessage(culprit=sender, field="columns", reason="is out of range")
    return ready


def step_4_check(stored: Stored, epochs: int, *, sender: str) -> None:
    if stored.epochs != epochs:
        raise MalformedMessage(culprit=sender, field="epochs", reason="is not the number that ran here", step="Stored")


# --- role ----------------------------------------------------------------------------------------


async def run_party(mine: Ready, me: str, others: Sequence[str], channel: Channel) -> Mapping[str, Ready]:
    """What every party said, this one included."""
    for other in others:
        await channel.send(other, mine)
    told = {other: step_2_check(await channel.receive(other, Ready), sender=other) for other in others}
    return {me: mine, **told}


async def run_stored(epochs: int, others: Sequence[str], channel: Channel) -> None:
    """Steps 3 and 4, up to where every party has stored its part: none is left with a model that another lacks."""
    for other in others:
        await channel.send(other, Stored(epochs))
    for other in others:
        step_4_check(await channel.receive(other, Stored), epochs, sender=other)
