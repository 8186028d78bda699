"""What a data party of a joint prediction reports of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.parties.training.report import Own, Report, Table, TimingFigures


@dataclass(frozen=True, repr=False)
class RowFigures(Table):
    read: Own[int]  # how many rows the dataset has
    common: int


@dataclass(frozen=True)
class ModelFigures(Table):
    in_shares: bool


@dataclass(frozen=True, kw_only=True)
class ScoreFigures(Table):
    """The rows that were scored; the mean and the next three are None if there was none.

    Attributes:
        of: what a row was given, "probability" or "value".
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
    """Attributes:
    scores: at the active party.
    """

    members: Own[Mapping[str, str]]
    rows: RowFigures
    dataset: Own[str]
    model: ModelFigures
    scores: Own[ScoreFigures] = None
    timing: TimingFigures
