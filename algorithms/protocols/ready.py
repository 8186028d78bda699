"""Ready: before a vertical training each data party announces its width; after it, each announces its stored part.

Only when all have stored their parts does a party remove the files from which the training could be resumed.

Source: our own; the leak of a gradient depends on widths.
Model: semi-honest.

    step  who         does                                                      sends
    1     each P_i    its number of columns                                     Ready to every other.
    2     each        checks the widths of all against the batches              nothing.
    3     each        has stored its part of the model                          Stored to every other.
    4     each        once all have: removes its checkpoints                    nothing.

Departures: none.
Learns: every party learns the number of columns of every other.
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
    columns: Integer  # of the party's block, with the intercept; 0 at a key node
    checkpoint: Text = ""  # for a resumed job: the epoch from which it can go on
    drawn: Text = ""  # name of a draw: of split and batches; at a key node, of its noise


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
        "number of columns, checkpoints, names of draws, the session that answered a training",
    ),
    Arrow("3", VERTICAL, VERTICAL, Stored, ONCE, "that a party has stored its part"),
)


# --- steps ---------------------------------------------------------------------------------------


def step_2_check(ready: Ready, *, sender: str) -> Ready:
    if not 0 <= ready.columns <= MOST_COLUMNS:
        raise MalformedMessage(culprit=sender, field="columns", reason="is out of range")
    return ready


def step_2_drawn(told: Mapping[str, Ready]) -> str:
    """Return the name of the data parties' draw, which is the same at all of them."""
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
    """Return what every party sent, with this one's own."""
    for other in others:
        await channel.send(other, mine)
    told = {other: step_2_check(await channel.receive(other, Ready), sender=other) for other in others}
    return {me: mine, **told}


async def run_key_node(
    mine: Callable[[str], Ready], me: str, data_parties: Sequence[str], channel: Channel
) -> Mapping[str, Ready]:
    """Do the same at a key node, whose noise is for the splits and batches that the data parties have drawn.

    Args:
        mine: name of their draw -> the key node's message.
    """
    told = {party: step_2_check(await channel.receive(party, Ready), sender=party) for party in data_parties}
    own = mine(step_2_drawn(told))
    for party in data_parties:
        await channel.send(party, own)
    return {me: own, **told}


async def run_stored(epochs: int, others: Sequence[str], channel: Channel) -> None:
    """Do steps 3 and 4 until every party has stored its part, so that no party has a model that another lacks."""
    for other in others:
        await channel.send(other, Stored(epochs))
    for other in others:
        step_4_check(await channel.receive(other, Stored), epochs, sender=other)
