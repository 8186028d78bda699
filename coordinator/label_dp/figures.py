"""What the active party tells of a label-dp job, typed; and, where its own report is at hand, what it found."""

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
    """Against released labels; all but the first two need the mechanism's bias removed."""

    rows: int
    mse_released: float
    mse: float | None = None
    mse_error: float | None = None
    noise_variance: float | None = None
    gain: float | None = None  # what the error of a constant is above the model's
    gain_error: float | None = None


@dataclass(frozen=True)
class Figures(MeasuredFigures):
    """Everything that the report says about a fit, and who it is about.

    Args:
        on_released, on_true: None where nothing was evaluated, or only the coordinator's part is known.
    """

    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    timing: TimingFigures
    on_released: ReleasedEvaluation | None
    on_true: ValueFigures | None

    @property
    def bias(self) -> str:
        """In a word."""
        removed = "bias removed" if self.fit.debiased else "bias not removed"
        return removed if self.privacy.has_a_bias else "noise without bias"


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Raises:
    DataError: names the party and the figure that is missing or not what it must be.
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
