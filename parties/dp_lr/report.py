"""What the party of a dp-lr job reports of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from blindfit.parties.training.quality import ClassFigures, class_figures
from blindfit.parties.training.report import FittedRows, Own, Report, Table, TimingFigures

THRESHOLD = 0.5  # of the confusion matrix


@dataclass(frozen=True)
class PublicFigures(Table):
    """What stands for the numbers of rows before others, where these are private."""

    trained: int
    held_out: int
    expected: bool


@dataclass(frozen=True, repr=False, kw_only=True)
class RowFigures(FittedRows, Table):
    """Attributes:
    trained, held_out: the public figures in what the coordinator sees, where the numbers are private.
    public: rows that the start was fitted to, where the job names them.
    """

    trained: int
    held_out: int
    public_figures: Own[PublicFigures]
    public: int
    features: int
    dropped_columns: tuple[str, ...]
    expected: bool = False

    def shown_to_coordinator(self) -> dict[str, ParameterValue]:
        if self.public_figures is None:
            return super().shown_to_coordinator()
        return replace(self, **self.public_figures.to_dict(), public_figures=None).shown_to_coordinator()


@dataclass(frozen=True, kw_only=True)
class PrivacyFigures(Charged):
    """Attributes:
    noise_multiplier: of each iteration's gradient.
    """

    mechanism: str
    releases: int
    charged_now: bool


@dataclass(frozen=True)
class FitFigures(Table):
    start: str
    scale: str
    learning_rate: float
    gradient_noise_std: float


@dataclass(frozen=True, repr=False, kw_only=True)
class DPLRReport(Report):
    """No budget pays for figures on held-out rows.

    Attributes:
        losses: of each iteration; empty where none may be known.
    """

    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    evaluation: Own[ClassFigures]
    losses: Own[tuple[float, ...]]
    timing: TimingFigures


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
    evaluation: ClassFigures | None
    laps: dict[str, float]


def evaluation_of(labels: Floats, probabilities: Floats) -> ClassFigures | None:
    if len(np.unique(labels)) < 2:
        return None
    return class_figures(evaluate_classes(labels, probabilities, THRESHOLD))


def report_of(outcome: Outcome) -> DPLRReport:
    session, answer = outcome.session, outcome.answer
    n_expected = session.job.expected_rows(outcome.rows.n_trained)
    return DPLRReport(
        rows=RowFigures(
            trained=outcome.rows.n_trained,
            held_out=int(outcome.rows.test.sum()),
            public_figures=_public_figures(session.job),
            public=0 if outcome.start.public is None else len(outcome.start.public[1]),
            features=len(outcome.model.standardiser.kept),
            dropped_columns=outcome.model.standardiser.dropped,
        ),
        privacy=_privacy(outcome),
        fit=FitFigures(
            start=outcome.start.kind,
            scale=outcome.start.scale,
            learning_rate=answer["learning_rate"],
            gradient_noise_std=gradient_noise_std(session, answer["noise_multiplier"], n_expected),
        ),
        evaluation=outcome.evaluation,
        losses=tuple(answer["losses"]),
        timing=TimingFigures(**outcome.laps),
    )


def _public_figures(job: DPLRJob) -> PublicFigures | None:
    public = job.dp_lr.public_rows
    if public is None:
        return None
    trained = round(job.expected_rows(public))
    return PublicFigures(trained, public - trained, expected=True)


def gradient_noise_std(session: Session[DPLRJob], noise_multiplier: float, expected_rows: float) -> float:
    """On each coordinate of the mean gradient of one iteration."""
    chosen, privacy = session.job.dp_lr, session.job.run_privacy
    return float(noise_multiplier * privacy.sensitivity * chosen.clip_norm / (expected_rows * privacy.batch_fraction))


def _privacy(outcome: Outcome) -> PrivacyFigures:
    chosen = outcome.session.job.dp_lr
    sampled = "" if chosen.batch_fraction == 1 else ", of Poisson samples of the rows"
    charged = {**outcome.charged.to_dict(), "noise_multiplier": outcome.answer["noise_multiplier"]}
    return PrivacyFigures(
        **charged,
        mechanism=f"{chosen.iterations} noisy sums of clipped gradients{sampled}; analytic Gaussian, drawn as "
        "discrete Gaussian",
        releases=outcome.releases,
        charged_now=outcome.is_new,
    )
