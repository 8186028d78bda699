"""Typed figures that the active party reports of a WALR job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.measured.report import MeasuredFigures, members_of
from blindfit.coordinator.report.reading import fullest, read
from blindfit.parties.training.report import TimingFigures
from blindfit.parties.walr.report import FitFigures, HolderRows, PrivacyFigures, RowFigures


@dataclass(frozen=True)
class Figures(MeasuredFigures):
    """Everything that the report states about a fit, and about whom."""

    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    timing: TimingFigures
    sent_by_holders: Mapping[str, int | None]

    @property
    def owners(self) -> list[str]:
        return [self.active, *self.privacy.holders]


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Return the figures of a report.

    Raises:
        DataError: a figure is missing or wrong; names the party and the figure.
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
        sent_by_holders={name: _read_sent(report, name) for name in privacy.holders if name in report["parties"]},
    )


def _read_sent(report: Mapping[str, Any], holder: str) -> int | None:
    summary = report["parties"][holder]["summary"]
    return read(HolderRows, summary, holder, "rows").sent if summary else None
