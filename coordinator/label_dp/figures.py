"""Typed figures that the active party reports of a label-dp job, and those of its own report if that is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.coordinator.measured.report import MeasuredFigures, members_of
from blindfit.coordinator.report.reading import fullest, read
from blindfit.parties.label_dp.report import FitFigures, PrivacyFigures, RowFigures
from blindfit.parties.training.quality import ValueFigures
from blindfit.parties.training.report import TimingFigures


@dataclass(frozen=True)
class ReleasedEvaluation:
    """Figures against released labels; all but the first two need the mechanism's bias removed."""

    rows: int
    mse_released: float
    mse: float | None = None
    mse_error: float | None = None
    noise_variance: float | None = None
    gain: float | None = None  # error of a constant minus error of the model
    gain_error: float | None = None


@dataclass(frozen=True)
class Figures(MeasuredFigures):
    """Everything that the report states about a fit, and about whom.

    Args:
        on_released, on_true: figures; None if nothing was evaluated, or if only the coordinator's part is known.
    """

    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    timing: TimingFigures
    on_released: ReleasedEvaluation | None
    on_true: ValueFigures | None

    @property
    def bias(self) -> str:
        """State of the bias in a few words."""
        removed = "bias removed" if self.fit.debiased else "bias not removed"
        return removed if self.privacy.has_a_bias else "noise without bias"


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Return the figures of a report.

    Raises:
        DataError: a figure is missing or wrong; names the party and the figure.
    """
    active, server = members_of(report)
    summary = report["parties"][active]["summary"]
    own = report["party_reports"].get(active, {})
    found = own.get("evaluation", {})
    return Figures(
        active=active,
        server=server,
        rows=read(RowFigures, fullest(report, active), active, "rows"),
        privacy=read(PrivacyFigures, summary, active, "privacy"),
        fit=read(FitFigures, summary, active, "fit"),
        timing=read(TimingFigures, summary, active, "timing"),
        on_released=read(ReleasedEvaluation, own, active, "evaluation.released") if found.get("released") else None,
        on_true=read(ValueFigures, own, active, "evaluation.true") if found.get("true") else None,
    )
