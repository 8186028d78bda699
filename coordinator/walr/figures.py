"""What the active party tells of a WALR job, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.measured.report import MeasuredFigures, MeasuredPrivacy, members_of
from blindfit.coordinator.report.fitted_rows import FittedRows
from blindfit.coordinator.report.reading import fullest, read


@dataclass(frozen=True, kw_only=True)
class RowFigures(FittedRows):
    clipped: int | None = None  # in the party's own report alone: it hangs on values
    not_counted: int
    unknown: int = 0  # rows that the server does not know and takes as label 0; 0 also if it keeps that number private

    @property
    def sent(self) -> int:
        return self.trained + self.not_counted


@dataclass(frozen=True)
class PrivacyFigures(MeasuredPrivacy):
    sensitivity: float
    noise_std_of_sum: float
    noise_std_of_mean: float
    norm_bound: float
    trust: str = "trusted"
    epsilon_of_both: float | None = None  # where labels are split: against the active party alone
    holders: tuple[str, ...] = ()  # of columns, beside the active party


@dataclass(frozen=True)
class FitFigures:
    solver: str
    iterations: int
    converged: bool
    reason: str
    l2: float
    mu: str
    gradient_norm: float | None = None  # known at the active party alone
    feasible: bool | None = None  # None: neither was proved
    feasibility: str = ""


@dataclass(frozen=True)
class TimingFigures:
    prepare_s: float | None = None
    aggregate_s: float | None = None
    fit_s: float | None = None


@dataclass(frozen=True)
class Figures(MeasuredFigures):
    """Everything that the report says about a fit, and who it is about."""

    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    timing: TimingFigures
    sent_by_holders: Mapping[str, int | None]


@dataclass(frozen=True)
class _SentFigures:
    sent: int | None = None


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Raises:
    DataError: names the party and the figure that is missing or not what it must be.
    """
    active, server = members_of(report)
    summary = report["parties"][active]["summary"]
    if not summary:
        raise DataError(f"a passive party's report has no figures of the whole: ask {active} for its report")
    privacy = read(PrivacyFigures, summary, active, "privacy")
    return Figures(
        active=active,
        server=server,
        rows=read(RowFigures, fullest(report, active), active, "rows"),
        privacy=privacy,
        fit=read(FitFigures, summary, active, "fit"),
        timing=read(TimingFigures, summary, active, "timing"),
        sent_by_holders={name: _sent(report, name) for name in privacy.holders if name in report["parties"]},
    )


def _sent(report: Mapping[str, Any], holder: str) -> int | None:
    summary = report["parties"][holder]["summary"]
    return read(_SentFigures, summary, holder, "rows").sent if summary else None
