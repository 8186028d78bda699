"""The roles of a prediction in shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.falcon.roles import deal_seeds, receive_seed
from blindfit.algorithms.protocols.falcon.seats import DataSeat, DealerSeat
from blindfit.algorithms.protocols.shared_scores.messages import ModelTold
from blindfit.algorithms.protocols.shared_scores.parameters import ScoringParameters
from blindfit.algorithms.protocols.shared_scores.program import HeldRows, run_program
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing.prg import Seed


async def tell_all(
    mine: ModelTold, me: str, data_parties: Sequence[str], key_node: str, channel: Channel
) -> Mapping[str, ModelTold]:
    """Do step 0 at a data party: return the announcements of all data parties, with this one's own.

    Raises:
        MalformedMessage: one party has weights of its own, and another has shares.
    """
    others = [name for name in data_parties if name != me]
    for other in (*others, key_node):
        await channel.send(other, mine)
    told = {other: await channel.receive(other, ModelTold) for other in others}
    return _of_one_kind({me: mine, **told}, mine)


async def hear_at_key_node(data_parties: Sequence[str], channel: Channel) -> Mapping[str, ModelTold]:
    """Do step 0 at the key node: return the announcements of all data parties."""
    told = {name: await channel.receive(name, ModelTold) for name in data_parties}
    return _of_one_kind(told, told[data_parties[0]])


def _of_one_kind(told: Mapping[str, ModelTold], first: ModelTold) -> Mapping[str, ModelTold]:
    for name, one in told.items():
        if one.is_shared != first.is_shared:
            reason = "are announced for a model in shares by only some of the data parties"
            raise MalformedMessage(culprit=name, field="columns", reason=reason, step="ModelTold")
    return told


async def run_data_party(
    me: str,
    held: HeldRows,
    parameters: ScoringParameters,
    run: str,
    channel: Channel,
    *,
    report: Callable[[int], None] = lambda _rows: None,
    before_scores: Callable[[], None] = lambda: None,
    uniform: UniformInt = system_uniform,
) -> npt.NDArray[np.int64] | None:
    """Do steps 1 and 3 to 6; see `run_program`.

    Args:
        run: the session's name.

    Raises:
        SharesDoNotFit, MacCheckFailed, MalformedMessage: nothing was revealed.
    """
    parameters.check()
    seed = await receive_seed(parameters.key_node, channel)
    names, key_node = parameters.data_parties, parameters.key_node
    seat = DataSeat(me, names, key_node, seed, run, channel, macs=parameters.macs, uniform=uniform)
    scores = await run_program(seat, parameters, held, report, before_scores)
    seat.require_all_used()
    return scores


async def run_key_node(
    parameters: ScoringParameters,
    run: str,
    channel: Channel,
    *,
    report: Callable[[int], None] = lambda _rows: None,
    seeds: Sequence[Seed] | None = None,
) -> None:
    """Do steps 1 and 2, through the same program.

    Args:
        seeds: seeds of the data parties; None: random seeds, only for this session.
    """
    parameters.check()
    seeds = seeds or [Seed.random() for _ in parameters.data_parties]
    await deal_seeds(seeds, parameters.data_parties, channel)
    seat = DealerSeat(seeds, parameters.data_parties[0], run, channel, macs=parameters.macs)
    await run_program(seat, parameters, None, report)
    await seat.flush()
