"""Report of a data party of a joint prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.parties.training.report import Own, Report, Table, TimingFigures


@dataclass(frozen=True, repr=False)
class RowFigures(Table):
    read: Own[int]  # number of rows of the dataset
    common: int


@dataclass(frozen=True)
class ModelFigures(Table):
    in_shares: bool


@dataclass(frozen=True, kw_only=True)
class ScoreFigures(Table):
    """Figures of the scored rows; the mean and the next three are None without a scored row.

    Attributes:
        of: kind of the numbers, "probability" or "value".
    """

    where: str
    of: str
    mean: float | None = None
    least: float | None = None
    median: float | None = None
    largest: float | None = None
    histogram: list[Any]


@dataclass(frozen=True, repr=False, kw_only=True)
class PredictReport(Report):
    """The report of a data party.

    Attributes:
        scores: figures of the scores, at the active party.
    """

    members: Own[Mapping[str, str]]
    rows: RowFigures
    dataset: Own[str]
    model: ModelFigures
    scores: Own[ScoreFigures] = None
    timing: TimingFigures
