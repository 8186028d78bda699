"""Report of a data party about a training under encryption."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.training.report import Own, Table
from blindfit.parties.vertical.report import VerticalReport


@dataclass(frozen=True)
class Calibration(Table):
    """Figures that follow from sums over the hold-out rows that match."""

    slope: float
    offset: float


@dataclass(frozen=True, repr=False, kw_only=True)
class TaylorReport(VerticalReport):
    """The report of a data party.

    Attributes:
        calibration: calibration after a linkage, at the active party.
    """

    calibration: Own[Calibration] = None
