"""Scores of a model that no party holds, at a data party: computed in shares, and counted before they are revealed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import PolicyRefused, RangeError, SharesDoNotFit
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols import shared_scores
from blindfit.algorithms.protocols.falcon.parameters import FEATURE_BOUND, WEIGHT_BOUND
from blindfit.algorithms.protocols.shared_scores import HeldRows, ModelTold, ScoringParameters
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.protocols.shared_scores.parameters import bits_to_drop, part_bits
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS, SCORE_BITS, VerticalModelPart
from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.sessions.session import Session
from blindfit.parties.vertical.scored_rows import Positions, ScoreQuota
from blindfit.parties.vertical.seats import Seats
from blindfit.parties.work.own_thread import in_own_thread

Scores = NDArray[np.int64]


def what_is_told(part: VerticalModelPart | SharedModelPart) -> ModelTold:
    if isinstance(part, VerticalModelPart):
        return ModelTold.of_open_weights()
    columns = np.array(part.columns, dtype=np.int64)
    return ModelTold(columns, part.kept_bits, part.score_limit, int(part.kept.macs), part.score_bits)


def parameters_of(told: Mapping[str, ModelTold], seats: Seats, rows: int) -> ScoringParameters:
    """Return the parameters. They are public and the same at every party, and so is the reason of a refusal.

    Raises:
        PolicyRefused: numbers of these sizes do not fit.
        MalformedMessage: a party reported another model.
    """
    parameters = shared_scores.parameters_of(told, seats.chain, seats.key_node, rows)
    try:
        parameters.check()
    except RangeError as error:
        raise PolicyRefused(party=seats.me, field="predict.session", reason=str(error)) from None
    return parameters


async def scores_in_shares(
    session: Session[PredictJob],
    seats: Seats,
    part: SharedModelPart,
    told: Mapping[str, ModelTold],
    features: NDArray[Any],
    quota: ScoreQuota | None,
    positions: Positions,
) -> Scores | None:
    """Return the scores in steps of 2^-42 at the active party; None at the others.

    Args:
        quota: quota of a passive party.
        positions: places of the rows in its snapshot.

    Raises:
        PolicyRefused: the parties' shares do not fit together.
        MacCheckFailed, MalformedMessage: a party deviated. In either case nothing was revealed, and the stored shares
            stay valid: this session had seeds and a MAC key of its own.
    """
    held = HeldRows(part.rows(features), part.kept)
    parameters = parameters_of(told, seats, len(features))

    def count() -> None:
        if quota is not None:
            quota.count_model(session, model_digest(part), bits_of_a_part(part), positions, part.trained_in)

    async def score(channel: Channel) -> Scores | None:
        return await shared_scores.run_data_party(
            seats.me,
            held,
            parameters,
            session.id,
            channel,
            report=lambda rows: session.report("score", rows, parameters.rows, "rows"),
            before_scores=count,
        )

    try:
        found = await in_own_thread(session.channel, score)
    except SharesDoNotFit as error:
        reason = f"{error.message}; {error.hint}"
        raise PolicyRefused(party=seats.me, field="predict.session", reason=reason) from None
    return None if found is None else found << (SCORE_BITS - parameters.scale)


def model_digest(part: SharedModelPart) -> str:
    """Return a digest of the training that the model came from: nobody knows the model's numbers."""
    return hashlib.sha256(f"shared model/{part.trained_in}/{part.score_bits}".encode()).hexdigest()


def bits_of_a_part(part: SharedModelPart) -> float:
    """Return the largest number of bits that a passive party's part of a score reveals."""
    scale = FEATURE_BITS + part.kept_bits
    if not part.score_bits:
        return float(scale + np.log2(2 * part.columns[part.place] * FEATURE_BOUND * WEIGHT_BOUND))
    return part_bits(part.score_limit, scale, bits_to_drop(part.score_bits, part.score_limit, scale))
