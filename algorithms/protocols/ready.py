"""Ready: before a vertical training each data party says how wide it is; after it each party says that it has stored
its part, and only then lets go of what the training could be resumed from.

Source: our own; what a gradient gives away depends on widths.
Model: semi-honest.

    step  who         does                                                      sends
    1     each P_i    how wide it is                                            Ready to every other
    2     each        checks the widths of all against the batches              --
    3     each        has stored its part of the model                          Stored to every other
    4     each        once all have: removes its checkpoints                    --

Departures: none.
Learns: every party, the number of columns of every other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel, Integer, Text
from blindfit.algorithms.protocols.table import ONCE, VERTICAL, Arrow, Table

MOST_COLUMNS = 2**16
MOST_NAME = 64  # characters


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    columns: Integer  # of the party's block, the intercept included; 0 at a key node
    checkpoint: Text = ""  # of a job that is resumed: the epoch it can go on from
    drawn: Text = ""  # a name of what was drawn: the split and the batches; at a key node, its noise


@dataclass(frozen=True, slots=True)
class Stored:
    epochs: Integer  # of the training


TABLE = Table(
    "ready",
    Arrow(
        "1",
        VERTICAL,
        VERTICAL,
        Ready,
        ONCE,
        "number of columns, checkpoints, names of draws, in which session a training was answered",
    ),
    Arrow("3", VERTICAL, VERTICAL, Stored, ONCE, "that a party has stored its part"),
)


# --- steps ---------------------------------------------------------------------------------------


def step_2_check(ready: Ready, *, sender: str) -> Ready:
    if not 0 <= ready.columns <= MOST_COLUMNS:
        raise MalformedMessage(culprit=sender, field="columns", reason="is out of range")
    return ready


def step_2_drawn(told: Mapping[str, Ready]) -> str:
    """Return the name of what the data parties drew, which is the same at all of them."""
    first = next(iter(told.values())).drawn
    for party, ready in told.items():
        if ready.drawn != first or len(first) > MOST_NAME:
            raise MalformedMessage(culprit=party, field="drawn", reason="is not what the others have drawn")
    return first


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


async def run_key_node(
    mine: Callable[[str], Ready], me: str, data_parties: Sequence[str], channel: Channel
) -> Mapping[str, Ready]:
    """Return the same at a key node, whose noise is for the splits and batches that the data parties have drawn.

    Args:
        mine: the name of what they drew -> what the key node says.
    """
    told = {party: step_2_check(await channel.receive(party, Ready), sender=party) for party in data_parties}
    own = mine(step_2_drawn(told))
    for party in data_parties:
        await channel.send(party, own)
    return {me: own, **told}


async def run_stored(epochs: int, others: Sequence[str], channel: Channel) -> None:
    """Steps 3 and 4, up to where every party has stored its part: none is left with a model that another lacks."""
    for other in others:
        await channel.send(other, Stored(epochs))
    for other in others:
        step_4_check(await channel.receive(other, Stored), epochs, sender=other)
