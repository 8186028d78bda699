"""Typed figures that parties report of a prediction, and the scores if the active party's own report is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report.curves import RowBin, points_of
from blindfit.coordinator.report.kind import Report
from blindfit.coordinator.report.reading import fullest, read
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.predict.report import ModelFigures, RowFigures, ScoreFigures
from blindfit.parties.training.report import TimingFigures


@dataclass(frozen=True)
class Figures:
    """Figures of a prediction.

    Attributes:
        training: session whose model gave the scores.
        rows: rows of each data party that reported.
        scores: figures of the scores; None if the active party's own report is elsewhere.
    """

    roles: Roles
    training: str
    in_shares: bool
    rows: Mapping[str, RowFigures]
    timing: TimingFigures
    scores: ScoreFigures | None
    histogram: tuple[RowBin, ...]

    @property
    def owners(self) -> list[str]:
        """Parties that have the model, or a part of it."""
        return []

    @property
    def common(self) -> int:
        return next(iter(self.rows.values())).common


@dataclass(frozen=True)
class _Training:
    session: str


def figures_of(report: Report) -> Figures:
    """Return the figures of a report.

    Raises:
        DataError: a figure is missing or wrong; names the party and the figure.
    """
    roles = joint.roles_of(report)
    told = {name: own for name in roles.chain if "rows" in (own := fullest(report, name))}
    first = next(iter(told), roles.active)
    rows = {name: read(RowFigures, own, name, "rows") for name, own in told.items()}
    if not rows or any(each.common < 0 for each in rows.values()):
        raise DataError(f"the report of {first}: rows.common is not a number of rows")
    own = fullest(report, roles.active)
    scores = own.get("scores")
    return Figures(
        roles=roles,
        training=read(_Training, report["job"], first, "predict").session,
        in_shares=read(ModelFigures, told[first], first, "model").in_shares,
        rows=rows,
        timing=read(TimingFigures, told[first], first, "timing"),
        scores=None if scores is None else read(ScoreFigures, own, roles.active, "scores"),
        histogram=() if scores is None else points_of(RowBin, scores, roles.active, "histogram"),
    )
