"""The roles of a Falcon training in shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blindfit.algorithms.errors import DataError, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.threshold import KeyShare, deal
from blindfit.algorithms.protocols.falcon.encrypted_descent import EncryptedScales
from blindfit.algorithms.protocols.falcon.messages import DealtKeyShare, DealtSeed
from blindfit.algorithms.protocols.falcon.parameters import FalconParameters
from blindfit.algorithms.protocols.falcon.program import Held, Model, Progress, Trained, begin_model, run_program
from blindfit.algorithms.protocols.falcon.seats import DataSeat, DealerSeat
from blindfit.algorithms.protocols.falcon.threshold_seats import ThresholdDataSeat, ThresholdDealerSeat
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing.descent_scales import BatchesTooLarge
from blindfit.algorithms.sharing.prg import SEED_BYTES, Seed
from blindfit.algorithms.statistics.vertical.row_plan import rows_of_batches


async def deal_seeds(seeds: Sequence[Seed], data_parties: Sequence[str], channel: Channel) -> None:
    """Do step 0 at the key node, for a new training."""
    for party, seed in zip(data_parties, seeds, strict=True):
        await channel.send(party, DealtSeed(seed.octets))


async def receive_seed(key_node: str, channel: Channel) -> Seed:
    octets = (await channel.receive(key_node, DealtSeed)).seed
    if len(octets) != SEED_BYTES:
        raise MalformedMessage(culprit=key_node, field="seed", reason="has the wrong length", step="DealtSeed")
    return Seed(octets)


async def deal_key(key: PrivateKey, data_parties: Sequence[str], channel: Channel) -> None:
    """Do step 0 for encrypted weights: deal shares of a key that was made for this training; then forget the key."""
    for party, share in zip(data_parties, deal(key, len(data_parties)), strict=True):
        await channel.send(party, DealtKeyShare(share.public_key, share.to_bytes()))


async def receive_key_share(
    me: str, data_parties: Sequence[str], key_node: str, key_bits: int, channel: Channel
) -> KeyShare:
    """Receive this party's share of the key for encrypted weights.

    Raises:
        MalformedMessage: the bytes are not a share of such a key, or are another party's share.
    """
    told = await channel.receive(key_node, DealtKeyShare)
    check_public_key(told.public_key, min_bits=key_bits, maker_trusted=True, culprit=key_node)
    try:
        share = KeyShare.from_bytes(told.share, told.public_key)
    except DataError as wrong:
        raise MalformedMessage(culprit=key_node, field="share", reason=wrong.message, step="DealtKeyShare") from None
    if (share.index, share.parties) != (list(data_parties).index(me), len(data_parties)):
        raise MalformedMessage(culprit=key_node, field="share", reason="is another party's", step="DealtKeyShare")
    return share


def check_parameters(parameters: FalconParameters) -> None:
    """Raise RangeError if numbers of these sizes do not fit; its hint about batches names a size that fits."""
    try:
        _check(parameters)
    except BatchesTooLarge as error:
        raise RangeError(error.message, hint=_smaller_batches(parameters, error.hint)) from None


def _check(parameters: FalconParameters) -> None:
    if parameters.selection is not None:
        parameters.selection.check(parameters.train_rows)
    for variant in parameters.variants:
        variant.check()
    if parameters.key_bits is not None:
        EncryptedScales(parameters).check(parameters.key_bits)


def _smaller_batches(parameters: FalconParameters, instead: str) -> str:
    """Return the largest power of two that passes every check as the job's batch size.

    Args:
        instead: hint about another change.
    """
    for bits in reversed(range(1, max(parameters.batch_rows).bit_length())):
        smaller = tuple(rows_of_batches(parameters.train_rows, 1 << bits))
        try:
            _check(replace(parameters, batch_rows=smaller))
        except RangeError:
            continue
        return f"set falcon.batch_rows = {1 << bits}" + (f", or {instead}" if instead else "")
    return f"no falcon.batch_rows is small enough: {instead or 'use fewer rows'}"


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
    key_share: KeyShare | None = None,
) -> Trained:
    """Do steps 2 to 7.

    Args:
        seed: this party's seed of the whole training.
        key_share: this party's share of the key of the whole training, if weights are encrypted.
        run: a name that no session had before under these seeds.
        model, is_done: state of a training that goes on.

    Raises:
        MacCheckFailed, ScoresOutOfRange: nothing was revealed.
    """
    check_parameters(parameters)
    told = progress or Progress()
    if parameters.key_bits is not None:
        if key_share is None:
            raise LocalProtocolError("encrypted weights take a share of their key")
        encrypted = ThresholdDataSeat(me, parameters, key_share, seed, run, channel, uniform)
        trained = await run_program(encrypted, parameters, held, told, model, is_done=is_done)
        encrypted.require_all_used()
        return replace(trained, rounds=encrypted.all_rounds)
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
    trained = await run_program(seat, parameters, held, told, model, is_done=is_done)
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
    """Do step 1, through the same program.

    Args:
        epochs: number of epochs that a training which goes on has behind it.
    """
    check_parameters(parameters)
    if parameters.key_bits is None:
        seat = DealerSeat(seeds, parameters.data_parties[0], run, channel, macs=parameters.macs)
    else:
        seat = ThresholdDealerSeat(parameters, seeds, run, channel)
    model = begin_model(parameters, seat)
    model.epochs = epochs
    trained = await run_program(seat, parameters, None, progress or Progress(), model, is_done=is_done)
    await seat.flush()
    return trained
