"""What a data party of a training under encryption reports of it."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.training.report import Own, Table
from blindfit.parties.vertical.report import VerticalReport


@dataclass(frozen=True)
class Calibration(Table):
    """Follows from sums over the hold-out rows that match."""

    slope: float
    offset: float


@dataclass(frozen=True, repr=False, kw_only=True)
class TaylorReport(VerticalReport):
    """Attributes:
    calibration: at the active party, after linkage.
    """

    calibration: Own[Calibration] = None
