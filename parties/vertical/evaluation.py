"""Evaluation of a vertical model on the test rows: the active party learns the figures, the other parties nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.linear.platt import IDENTITY, Platt, fit_platt, out_of_fold
from blindfit.algorithms.statistics.quality.evaluation import evaluate_classes, evaluate_values
from blindfit.algorithms.statistics.quality.ranking import ranking_curve
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart, real_scores
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.session import Session
from blindfit.parties.vertical.prepared import Floats, Positions, Prepared
from blindfit.parties.vertical.scored_rows import ScoreQuota, give_scores
from blindfit.parties.vertical.seats import Seats


@dataclass(frozen=True, repr=False)
class Tested:
    """The figures of the n test rows, which only the active party learns.

    Attributes:
        evaluation: figures; None if all test rows have the same class.
        labels: labels (n,), 0 or 1, or the values that a linear model learned.
        scores: log odds (n,) of the trained model; empty for a linear model.
        predictions: probabilities (n,) of the model as it is kept, or values of a linear model.
        platt: slope and offset that were fitted to these rows.
        out_of_fold: probability (n,) of each row by a fit to the other half of the rows. Log loss, accuracy, confusion
            matrix, calibration and histogram of calibrated rows are computed from these.
    """

    evaluation: dict[str, Any] | None
    labels: Floats
    scores: Floats
    predictions: Floats
    platt: Platt = IDENTITY
    out_of_fold: Floats | None = None

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of `test_scores.csv`, from which all figures of the report are computed."""
        if not len(self.scores):
            return {"label": self.labels, "prediction": self.predictions}
        classes = self.labels.astype(np.int64)
        found: dict[str, NDArray[Any]] = {"label": classes, "score": self.scores, "probability": self.predictions}
        return found if self.out_of_fold is None else {**found, "probability_out_of_fold": self.out_of_fold}


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
    """Score the test rows together; return None without test rows, and at passive parties.

    Args:
        threshold: threshold of the confusion matrix.
        quota: quota of a passive party.
        positions: places of the aligned rows in the party's snapshot.
        calibrate: True fits slope and offset of the log odds to all test rows. The figures then use, for each row, a
            fit to the other half of the rows.
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
        raise LocalProtocolError("only the active party gets scores", session=session.id)
    scores = await predict.run_active(own, seats.passives, session.channel)
    predictions, labels = part.predictions(scores), prepared.rows.labels[test]
    if part.model == "linear":
        return Tested(evaluate_values(labels, predictions), labels, np.empty(0), predictions)
    real = real_scores(scores)
    if len(np.unique(labels)) < 2:  # under label DP no job ends because a class is missing
        return Tested(None, labels, real, predictions)
    plain = Tested(evaluate_classes(labels, predictions, threshold), labels, real, predictions)
    return _calibrate(part, scores, plain, threshold) if calibrate else plain


def _calibrate(part: VerticalModelPart, scores: NDArray[np.int64], plain: Tested, threshold: float) -> Tested:
    """Return `plain` with slope and offset; unchanged if the rows are too few to determine a slope."""
    labels, figures = plain.labels, plain.evaluation or {}
    positive = labels > 0
    platt, of_each = fit_platt(plain.scores, positive), out_of_fold(plain.scores, positive)
    if platt is None or of_each is None:
        return plain
    fitted = {"slope": platt.slope, "offset": platt.offset, "log_loss_before": figures["log_loss"]}
    predictions = replace(part, slope=platt.slope, offset=platt.offset).predictions(scores)
    # These depend on the order of the scores only, which a slope above 0 does not change.
    ranked = {name: figures[name] for name in ("auc", "average_precision", "ks", "lift")}
    ranked["ranking"] = ranking_curve(positive, predictions)  # at thresholds of the model as it is kept
    calibrated = {**evaluate_classes(labels, of_each, threshold), **ranked, **fitted}
    return replace(plain, evaluation=calibrated, predictions=predictions, platt=platt, out_of_fold=of_each)
