"""Report of the party of a dp-lr job."""

from __future__ import annotations

from collections.abc import Mapping
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

THRESHOLD = 0.5  # threshold of the confusion matrix


@dataclass(frozen=True)
class PublicFigures(Table):
    """Public figures, which replace the numbers of rows for others if these are private."""

    trained: int
    held_out: int
    expected: bool


@dataclass(frozen=True, repr=False, kw_only=True)
class RowFigures(FittedRows, Table):
    """Numbers of rows.

    Attributes:
        trained: number of training rows; for the coordinator the public figure, if the number is private.
        held_out: number of held-out rows; for the coordinator the public figure, if the number is private.
        public: number of rows that the start was fitted to, if the job names them.
    """

    trained: int
    held_out: int
    public_figures: Own[PublicFigures]
    public: int
    features: int
    dropped_columns: tuple[str, ...]
    expected: bool = False

    def fields_for_coordinator(self) -> dict[str, ParameterValue]:
        if self.public_figures is None:
            return super().fields_for_coordinator()
        return replace(self, **self.public_figures.to_dict(), public_figures=None).fields_for_coordinator()


@dataclass(frozen=True, kw_only=True)
class PrivacyFigures(Charged):
    """Figures of the release's privacy.

    Attributes:
        noise_multiplier: noise multiplier of each iteration's gradient.
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
    """The report of a training. No budget pays for figures of held-out rows.

    Attributes:
        losses: loss of each iteration; empty if no loss may be known.
    """

    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    evaluation: Own[ClassFigures]
    losses: Own[tuple[float, ...]]
    timing: TimingFigures


def evaluation_of(labels: Floats, probabilities: Floats) -> ClassFigures | None:
    if len(np.unique(labels)) < 2:
        return None
    return class_figures(evaluate_classes(labels, probabilities, THRESHOLD))


def report_of(
    session: Session[DPLRJob],
    rows: PrivateRows,
    start: Start,
    model: DPLogisticModel,
    answer: Mapping[str, Any],
    charged: Charged,
    evaluation: ClassFigures | None,
    laps: Mapping[str, float],
    *,
    is_new: bool,
    releases: int,
) -> DPLRReport:
    """Return the report.

    Args:
        evaluation: figures of held-out rows, without any noise; None unless both classes occur.
        is_new: True if this job was charged; False if it got the answer of an earlier job.
        releases: number of the population's releases so far.
    """
    chosen = session.job.dp_lr
    sampled = "" if chosen.batch_fraction == 1 else ", of Poisson samples of the rows"
    noise_multiplier, n_expected = answer["noise_multiplier"], session.job.expected_rows(rows.n_trained)
    return DPLRReport(
        rows=RowFigures(
            trained=rows.n_trained,
            held_out=int(rows.test.sum()),
            public_figures=_public_figures(session.job),
            public=0 if start.public is None else len(start.public[1]),
            features=len(model.standardiser.kept),
            dropped_columns=model.standardiser.dropped,
        ),
        privacy=PrivacyFigures(
            **{**charged.to_dict(), "noise_multiplier": noise_multiplier},
            mechanism=f"{chosen.iterations} noisy sums of clipped gradients{sampled}; analytic Gaussian, drawn as "
            "discrete Gaussian",
            releases=releases,
            charged_now=is_new,
        ),
        fit=FitFigures(
            start=start.kind,
            scale=start.scale,
            learning_rate=answer["learning_rate"],
            gradient_noise_std=gradient_noise_std(session, noise_multiplier, n_expected),
        ),
        evaluation=evaluation,
        losses=tuple(answer["losses"]),
        timing=TimingFigures(**laps),
    )


def _public_figures(job: DPLRJob) -> PublicFigures | None:
    public = job.dp_lr.public_rows
    if public is None:
        return None
    trained = round(job.expected_rows(public))
    return PublicFigures(trained, public - trained, expected=True)


def gradient_noise_std(session: Session[DPLRJob], noise_multiplier: float, expected_rows: float) -> float:
    """Return the standard deviation of the noise on each coordinate of an iteration's mean gradient."""
    chosen, privacy = session.job.dp_lr, session.job.run_privacy
    return float(noise_multiplier * privacy.sensitivity * chosen.clip_norm / (expected_rows * privacy.batch_fraction))
