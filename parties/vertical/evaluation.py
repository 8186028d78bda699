"""What a vertical model is worth on the test rows: the active party learns it, the others nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.evaluation import evaluate_classes, evaluate_values
from blindfit.algorithms.statistics.vertical_model import VerticalModelPart
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.vertical.prepared import Floats, Positions, Prepared
from blindfit.parties.vertical.scored_rows import ScoreQuota, give_scores
from blindfit.parties.vertical.seats import Seats


@dataclass(frozen=True, repr=False)
class Tested:
    """What the active party learns of the test rows."""

    evaluation: dict[str, Any] | None  # None where they are of one class alone
    predictions: Floats  # (test rows,) probabilities, or values of a linear model


async def evaluate(
    session: Session[JobParameters],
    seats: Seats,
    prepared: Prepared,
    part: VerticalModelPart,
    threshold: float,
    quota: ScoreQuota | None,
    positions: Positions,
) -> Tested | None:
    """Scores the test rows together; None where there are none, and at passive parties.

    Args:
        threshold: of the confusion matrix.
        quota: a passive party's.
        positions: of the aligned rows in the party's snapshot.
    """
    test = prepared.plan.test
    if not len(test):
        return None
    session.report("evaluate")
    own = part.score_parts(prepared.rows.features[test])
    if quota is not None:
        await give_scores(quota, session, seats, part, own, positions[test])
        return None
    if prepared.rows.labels is None:
        raise LocalProtocolError("the active party alone is given scores", session=session.id)
    scores = await predict.run_active(own, seats.passives, session.channel)
    predictions, labels = part.predictions(scores), prepared.rows.labels[test]
    if part.model == "linear":
        return Tested(evaluate_values(labels, predictions), predictions)
    both = len(np.unique(labels)) == 2  # under label DP no job ends by the lack of one
    return Tested(evaluate_classes(labels, predictions, threshold) if both else None, predictions)
