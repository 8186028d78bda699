"""Typed figures that the party reports of a dp-lr job, and those of its own report if that is at hand."""

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
    """Everything that the report states about a fit, and about whom.

    Args:
        epsilon_asked: epsilon that the job asks for, for the run or for each iteration.
        losses: training loss of each iteration; empty if no loss may be known.
        evaluation: figures on held-out rows; None if no row was held out, or if only the coordinator's part is known.
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
        """Parties that have the model, or a part of it."""
        return [self.active]

    @property
    def public_trained(self) -> int:
        """Number of training rows, or the public number that stands for it."""
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
    """Return the figures of a report.

    Raises:
        DataError: a figure is missing or wrong; names the party and the figure.
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
        raise DataError(f"the report of {active} has unknown values of fit.start and fit.scale")
    return fit
