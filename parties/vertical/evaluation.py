"""What a vertical model is worth on the test rows: the active party learns it, the others nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.evaluation import evaluate_classes, evaluate_values
from blindfit.algorithms.statistics.platt import IDENTITY, Platt, fit_platt, out_of_fold
from blindfit.algorithms.statistics.ranking import ranking_curve
from blindfit.algorithms.statistics.vertical_model import VerticalModelPart, real_scores
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
    platt: Platt = IDENTITY  # of the log odds, where it was fitted to these rows


async def evaluate(
    session: Session[JobParameters],
    seats: Seats,
    prepared: Prepared,
    part: VerticalModelPart,
    threshold: float,
    quota: ScoreQuota | None,
    positions: Positions,
    *,
    calibrate: bool = False,
) -> Tested | None:
    """Scores the test rows together; None where there are none, and at passive parties.

    Args:
        threshold: of the confusion matrix.
        quota: a passive party's.
        positions: of the aligned rows in the party's snapshot.
        calibrate: fit slope and offset of the log odds to all test rows; the figures are of each row by a fit to the
            other half of them.
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
    if len(np.unique(labels)) < 2:  # under label DP no job ends by the lack of a class
        return Tested(None, predictions)
    plain = evaluate_classes(labels, predictions, threshold)
    return _calibrated(part, scores, labels, plain, threshold) if calibrate else Tested(plain, predictions)


def _calibrated(
    part: VerticalModelPart, scores: NDArray[np.int64], labels: Floats, plain: dict[str, Any], threshold: float
) -> Tested:
    """As it was, where the rows are too few to tell a slope."""
    real, positive = real_scores(scores), labels > 0
    platt, of_each = fit_platt(real, positive), out_of_fold(real, positive)
    if platt is None or of_each is None:
        return Tested(plain, part.predictions(scores))
    told = {"slope": platt.slope, "offset": platt.offset, "log_loss_before": plain["log_loss"]}
    predictions = replace(part, slope=platt.slope, offset=platt.offset).predictions(scores)
    ranked = {name: plain[name] for name in ("auc", "average_precision", "ks", "lift")}  # of the score: its order stays
    ranked["ranking"] = ranking_curve(positive, predictions)  # at thresholds of the model as it is used
    calibrated = {**evaluate_classes(labels, of_each, threshold), **ranked, **told}
    return Tested(calibrated, predictions, platt)
