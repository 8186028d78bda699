"""What the party of a dp-lr job writes into its report, and what of it the coordinator is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.quality.evaluation import evaluate_classes
from blindfit.parties.dp_lr.rows import PrivateRows, Start
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.budget import Charged
from blindfit.parties.training.summary import told

THRESHOLD = 0.5  # of the confusion matrix
TOLD = ("rows", "privacy", "fit", "timing")


@dataclass(frozen=True, repr=False)
class Outcome:
    """Args:
    is_new: charged by this job; False where the answer of an earlier one was given again.
    evaluation: on held-out rows, without any noise; None where there are none of both classes.
    """

    session: Session[DPLRJob]
    rows: PrivateRows
    start: Start
    model: DPLogisticModel
    answer: dict[str, Any]
    is_new: bool
    charged: Charged
    releases: int
    evaluation: dict[str, Any] | None
    laps: dict[str, float]


def evaluation_of(labels: Floats, probabilities: Floats) -> dict[str, Any] | None:
    if len(np.unique(labels)) < 2:
        return None
    return evaluate_classes(labels, probabilities, THRESHOLD)


def report_of(outcome: Outcome) -> dict[str, Any]:
    session = outcome.session
    return {
        "session": session.id,
        "party": session.me.name,
        "role": session.me.role,
        "dataset": session.me.dataset,
        "job": dict(session.parameters),
        "rows": {
            "trained": outcome.rows.n_trained,
            "held_out": int(outcome.rows.test.sum()),
            "public_figures": _public_figures(session.job),
            "public": 0 if outcome.start.public is None else len(outcome.start.public[1]),
            "features": len(outcome.model.standardiser.kept),
            "dropped_columns": list(outcome.model.standardiser.dropped),
        },
        "privacy": _privacy(outcome),
        "fit": {
            "start": outcome.start.kind,
            "scale": outcome.start.scale,
            "learning_rate": outcome.answer["learning_rate"],
            "gradient_noise_std": gradient_noise_std(
                session, outcome.answer["noise_multiplier"], session.job.expected_rows(outcome.rows.n_trained)
            ),
        },
        "evaluation": outcome.evaluation,
        "losses": outcome.answer["losses"],
        "timing": outcome.laps,
    }


def _public_figures(job: DPLRJob) -> dict[str, Any] | None:
    """What stands for the numbers of rows before others, where these are private."""
    public = job.dp_lr.public_rows
    if public is None:
        return None
    trained = round(job.expected_rows(public))
    return {"trained": trained, "held_out": public - trained, "expected": True}


def gradient_noise_std(session: Session[DPLRJob], noise_multiplier: float, expected_rows: float) -> float:
    """On each coordinate of the mean gradient of one iteration."""
    chosen, privacy = session.job.dp_lr, session.job.run_privacy
    return float(noise_multiplier * privacy.sensitivity * chosen.clip_norm / (expected_rows * privacy.batch_fraction))


def _privacy(outcome: Outcome) -> dict[str, Any]:
    chosen = outcome.session.job.dp_lr
    sampled = "" if chosen.batch_fraction == 1 else ", of Poisson samples of the rows"
    return {
        **asdict(outcome.charged),
        "mechanism": f"{chosen.iterations} noisy sums of clipped gradients{sampled}; analytic Gaussian, drawn as "
        "discrete Gaussian",
        "noise_multiplier": outcome.answer["noise_multiplier"],
        "releases": outcome.releases,
        "charged_now": outcome.is_new,
    }


def summary_of(report: dict[str, Any]) -> dict[str, ParameterValue]:
    """What the coordinator may see: no weight, and no figure on held-out rows, which no budget pays for; of rows whose
    number is private, the public figures.
    """
    public = report["rows"]["public_figures"]
    return told({**report, "rows": {**report["rows"], **(public or {})}}, TOLD, ("public_figures",))
