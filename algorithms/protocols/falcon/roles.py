"""The roles of a Falcon training in shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.falcon import program
from blindfit.algorithms.protocols.falcon.messages import DealtSeed
from blindfit.algorithms.protocols.falcon.parameters import FalconParameters
from blindfit.algorithms.protocols.falcon.program import Held, Model, Progress, Trained
from blindfit.algorithms.protocols.falcon.seats import DataSeat, DealerSeat
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing.prg import SEED_BYTES, Seed


async def deal_seeds(seeds: Sequence[Seed], data_parties: Sequence[str], channel: Channel) -> None:
    """Step 0, at the key node: for a new training."""
    for party, seed in zip(data_parties, seeds, strict=True):
        await channel.send(party, DealtSeed(seed.octets))


async def receive_seed(key_node: str, channel: Channel) -> Seed:
    octets = (await channel.receive(key_node, DealtSeed)).seed
    if len(octets) != SEED_BYTES:
        raise MalformedMessage(culprit=key_node, field="seed", reason="has the wrong length", step="DealtSeed")
    return Seed(octets)


async def run_data_party(
    me: str,
    held: Held,
    parameters: FalconParameters,
    seed: Seed,
    run: str,
    channel: Channel,
    *,
    progress: Progress | None = None,
    model: Model | None = None,
    is_done: bool = False,
    uniform: UniformInt = system_uniform,
) -> Trained:
    """Steps 2 to 7.

    Args:
        seed: this party's, of the whole training.
        run: a name that no session had before under these seeds.
        model, is_done: of a training that goes on.

    Raises:
        MacCheckFailed, ScoresOutOfRange: and nothing was revealed.
    """
    parameters.check()
    told = progress or Progress()
    seat = DataSeat(
        me,
        parameters.data_parties,
        parameters.key_node,
        seed,
        run,
        channel,
        macs=parameters.macs,
        uniform=uniform,
        check_begun=told.check_begun,
    )
    trained = await program.run(seat, parameters, held, told, model, is_done=is_done)
    seat.require_all_used()
    return replace(trained, rounds=seat.rounds)


async def run_key_node(
    parameters: FalconParameters,
    seeds: Sequence[Seed],
    run: str,
    channel: Channel,
    *,
    progress: Progress | None = None,
    epochs: int = 0,
    is_done: bool = False,
) -> Trained:
    """Step 1, through the same program.

    Args:
        epochs: that a training which goes on has behind it.
    """
    parameters.check()
    seat = DealerSeat(seeds, parameters.data_parties[0], run, channel, macs=parameters.macs)
    model = program.new_model(parameters, seat)
    model.epochs = epochs
    trained = await program.run(seat, parameters, None, progress or Progress(), model, is_done=is_done)
    await seat.flush()
    return trained
