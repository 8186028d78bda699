"""What the active party tells of a WALR job, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report.label_dp import LabelDP
from blindfit.coordinator.report.reading import read


@dataclass(frozen=True)
class RowFigures:
    trained: int
    held_out: int
    clipped: int
    not_counted: int
    features: int
    dropped_columns: tuple[str, ...] = ()

    @property
    def sent(self) -> int:
        return self.trained + self.not_counted


@dataclass(frozen=True)
class PrivacyFigures(LabelDP):
    max_rows_per_person: int  # 0: the unit is a row
    mechanism: str
    sensitivity: float
    noise_std_of_sum: float
    noise_std_of_mean: float
    norm_bound: float
    releases: int


@dataclass(frozen=True)
class FitFigures:
    solver: str
    iterations: int
    converged: bool
    reason: str
    gradient_norm: float
    l2: float
    mu: str
    feasible: bool | None = None  # None: neither was proved
    feasibility: str = ""


@dataclass(frozen=True)
class TimingFigures:
    prepare_s: float | None = None
    aggregate_s: float | None = None
    fit_s: float | None = None


@dataclass(frozen=True)
class Figures:
    """Everything that the report says about a fit, and who it is about."""

    active: str
    server: str
    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    timing: TimingFigures


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Raises:
    DataError: names the party and the figure that is missing or not what it must be.
    """
    by_role = {party["role"]: name for name, party in report["parties"].items()}
    if not {"active", "measurement"} <= by_role.keys():
        raise DataError("the report names no active party and measurement server")
    active = by_role["active"]
    summary = report["parties"][active]["summary"]
    return Figures(
        active=active,
        server=by_role["measurement"],
        rows=read(RowFigures, summary, active, "rows"),
        privacy=read(PrivacyFigures, summary, active, "privacy"),
        fit=read(FitFigures, summary, active, "fit"),
        timing=read(TimingFigures, summary, active, "timing"),
    )
