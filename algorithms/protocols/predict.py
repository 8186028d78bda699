"""Joint prediction: the active party learns the sum of the parties' score parts, and no part.

Source: pairwise masks as in Bonawitz et al. 2017, without its recovery (a dropped party ends the job).
Model: semi-honest; the active party does not collude with passive parties. Rows were aligned before.

    step  who            does                                                        sends
    1     passive p      for each passive q after it: a random 32-byte seed          MaskSeed to q.
    2     passive p      part + sum_{q after p} m_pq - sum_{q before p} m_qp         MaskedScores to the active party.
                         mod 2^64, m_pq expanded from the seed
    3     active         own part + all of them mod 2^64 = the score                 nothing.

Departures: none that matter here.
Learns: the active party learns the scores. With one passive party, it learns that party's part of each score, which is
    the score less its own part; no protocol can hide that. The passive parties learn nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel, IntegerTensor, Octets
from blindfit.algorithms.protocols.table import ACTIVE, ONCE, PASSIVE, Arrow, Table
from blindfit.algorithms.randomness import UniformInt, system_uniform

Scores = npt.NDArray[np.int64]
SEED_BYTES = 32
SCORE_LIMIT = 2**61  # of the sum of all parts: a larger sum is not a score


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class MaskSeed:
    seed: Octets


@dataclass(frozen=True, slots=True, repr=False)
class MaskedScores:
    scores: IntegerTensor  # (rows,), uniform mod 2^64 with two or more passive parties


TABLE = Table(
    "predict",
    Arrow(
        "1", PASSIVE, PASSIVE, MaskSeed, ONCE, "a mask shared with another passive party", "two passive parties or more"
    ),
    Arrow("2", PASSIVE, ACTIVE, MaskedScores, ONCE, "a part of scores, masked with two or more passive parties"),
)


# --- steps ---------------------------------------------------------------------------------------


def step_1_seed(uniform: UniformInt) -> MaskSeed:
    return MaskSeed(uniform(1 << 8 * SEED_BYTES).to_bytes(SEED_BYTES, "big"))


def step_2_mask(part: Scores, added: Sequence[MaskSeed], subtracted: Sequence[MaskSeed]) -> MaskedScores:
    """Return part + masks of later parties - masks of earlier ones, mod 2^64."""
    total = part.view(np.uint64).copy()
    for message in added:
        total += _expand(message.seed, len(part))
    for message in subtracted:
        total -= _expand(message.seed, len(part))
    return MaskedScores(total.view(np.int64))


def step_3_sum(own: Scores, masked: Sequence[tuple[str, MaskedScores]]) -> Scores:
    """Sum the parts.

    Raises:
        MalformedMessage: the length differs from the rows', or the sum is too large for a score.
    """
    total = own.view(np.uint64).copy()
    for sender, message in masked:
        if message.scores.shape != own.shape:
            raise MalformedMessage(culprit=sender, field="scores", reason="is not one number for each row")
        total += message.scores.view(np.uint64)
    scores = total.view(np.int64)
    if scores.size and max(int(scores.max()), -int(scores.min())) > SCORE_LIMIT:
        culprits = ", ".join(sender for sender, _ in masked)
        raise MalformedMessage(culprit=culprits, field="scores", reason="do not sum to scores: a mask is missing")
    return scores


def _expand(seed: bytes, count: int) -> npt.NDArray[np.uint64]:
    stream = hashlib.shake_256(b"blindfit prediction mask v1/" + seed).digest(8 * count)
    return np.frombuffer(stream, "<u8").astype(np.uint64, copy=False)


# --- roles ---------------------------------------------------------------------------------------


async def run_active(own: Scores, passives: Sequence[str], channel: Channel) -> Scores:
    """Return the scores: own part and all others, in steps of the parts' grid."""
    return step_3_sum(own, [(name, await channel.receive(name, MaskedScores)) for name in passives])


async def run_passive(
    part: Scores,
    me: str,
    passives: Sequence[str],
    active: str,
    channel: Channel,
    uniform: UniformInt = system_uniform,
) -> None:
    """Send the masked part of a passive party.

    Args:
        passives: every passive party, in the same order everywhere.
    """
    place = list(passives).index(me)
    added = []
    for later in passives[place + 1 :]:
        added.append(step_1_seed(uniform))
        await channel.send(later, added[-1])
    subtracted = [_check(await channel.receive(name, MaskSeed), name) for name in passives[:place]]
    await channel.send(active, step_2_mask(part, added, subtracted))


def _check(message: MaskSeed, sender: str) -> MaskSeed:
    if len(message.seed) != SEED_BYTES:
        raise MalformedMessage(culprit=sender, field="seed", reason=f"is not {SEED_BYTES} bytes")
    return message


# --- the specification ------------------------------------------------------------------------------


def run_locally(own: Scores, parts: Sequence[Scores], uniform: UniformInt = system_uniform) -> Scores:
    """Run all roles in one process; `parts` are the passive parties'."""
    seeds = {(i, j): step_1_seed(uniform) for i in range(len(parts)) for j in range(i + 1, len(parts))}
    masked = [
        step_2_mask(
            part,
            [seeds[i, j] for j in range(i + 1, len(parts))],
            [seeds[j, i] for j in range(i)],
        )
        for i, part in enumerate(parts)
    ]
    return step_3_sum(own, [(f"passive {i}", message) for i, message in enumerate(masked)])
