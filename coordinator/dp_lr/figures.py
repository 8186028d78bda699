"""What the party tells of a dp-lr job, typed; and, where its own report is at hand, what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report.evaluation import Evaluation, class_evaluation
from blindfit.coordinator.report.reading import fullest, read
from blindfit.parties.dp_lr.report import FitFigures, PrivacyFigures, RowFigures
from blindfit.parties.dp_lr.rows import SCALES, STARTS
from blindfit.parties.dp_lr.settings import DPLRSettings
from blindfit.parties.tables import validate
from blindfit.parties.training.report import TimingFigures


@dataclass(frozen=True)
class Figures:
    """Everything that the report says about a fit, and who it is about.

    Args:
        epsilon_asked: of the run, or of each iteration.
        losses: of each iteration; empty where none may be known.
        evaluation: None where no row was held out, or only the coordinator's part is known.
    """

    active: str
    settings: DPLRSettings
    epsilon_asked: float
    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    timing: TimingFigures
    losses: tuple[float, ...]
    evaluation: Evaluation | None

    @property
    def owners(self) -> list[str]:
        """Who has the model, or a part of it."""
        return [self.active]

    @property
    def public_trained(self) -> int:
        """Rows trained on, or the public number that stands for them."""
        public = self.rows.public_figures
        return self.rows.trained if public is None else public.trained

    @property
    def start(self) -> str:
        return STARTS[self.fit.start]

    @property
    def scale(self) -> str:
        return SCALES[self.fit.scale]


@dataclass(frozen=True)
class _Asked:
    epsilon: float


@dataclass(frozen=True)
class _Losses:
    losses: tuple[float, ...] = ()


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Raises:
    DataError: names the party and the figure that is missing or not what it must be.
    """
    active = next((name for name, party in report["parties"].items() if party["role"] == "active"), None)
    if active is None:
        raise DataError("the report names no active party")
    summary, job = report["parties"][active]["summary"], report["job"]
    own = report["party_reports"].get(active, {})
    return Figures(
        active=active,
        settings=validate(job.get("dp_lr", {}), DPLRSettings, source="the job of the report"),
        epsilon_asked=read(_Asked, job, active, "privacy").epsilon,
        rows=read(RowFigures, fullest(report, active), active, "rows"),
        privacy=read(PrivacyFigures, summary, active, "privacy"),
        fit=_fit(summary, active),
        timing=read(TimingFigures, summary, active, "timing"),
        losses=read(_Losses, own, active).losses,
        evaluation=class_evaluation(own, active) if own.get("evaluation") else None,
    )


def _fit(summary: Mapping[str, Any], active: str) -> FitFigures:
    fit = read(FitFigures, summary, active, "fit")
    if fit.start not in STARTS or fit.scale not in SCALES:
        raise DataError(f"what {active} reports: fit.start and fit.scale are not what they can be")
    return fit
