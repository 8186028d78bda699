"""Report of the active party of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from blindfit.algorithms.statistics.walr.evaluation import ScoredRows
from blindfit.algorithms.statistics.walr.evaluation_bins import Interval
from blindfit.parties.measurement.servers import Released
from blindfit.parties.training.report import Own, Report, SumPrivacy, Table, TimingFigures


@dataclass(frozen=True)
class RowFigures(Table):
    """Numbers of rows.

    Attributes:
        unknown: number of rows that the server does not know and counts as label 0; 0 also if it keeps that number
            private.
    """

    sent: int
    counted: int
    unknown: int


@dataclass(frozen=True, repr=False, kw_only=True)
class EvaluationReport(Report):
    """The report of an evaluation.

    Attributes:
        servers: part of each of two servers.
    """

    rows: RowFigures
    privacy: SumPrivacy
    figures: Own[Mapping[str, Any]]
    score_bound: Own[float]
    bins: Own[int]
    timing: TimingFigures
    servers: Own[list[Any]] = None


def report_of(
    rows: ScoredRows, released: Released, figures: Mapping[str, Interval], laps: dict[str, float]
) -> EvaluationReport:
    answer = released.aggregate.answer
    return EvaluationReport(
        rows=RowFigures(int(released.request.n_rows), int(answer.rows_kept), int(answer.rows_unknown)),
        privacy=SumPrivacy(**released.privacy()),
        figures={name: asdict(figure) for name, figure in figures.items()},
        score_bound=rows.bound,
        bins=rows.n_bins,
        timing=TimingFigures(**laps),
        **released.by_server(),
    )
