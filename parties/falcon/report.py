"""Report of a data party about a training in shares."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.training.report import Own, Table
from blindfit.parties.vertical.report import VerticalReport


@dataclass(frozen=True, kw_only=True)
class WeightFigures(Table):
    """Information in opened weights.

    Attributes:
        opened_bits: bits of each weight; None if weights are not rounded.
        label_bits: largest number of bits about each label; None if differential privacy bounds the information.
    """

    in_shares: bool = False
    opened_bits: int | None
    label_bits: float | None


@dataclass(frozen=True, repr=False, kw_only=True)
class FalconReport(VerticalReport):
    """The report of a data party.

    Attributes:
        answered_in: session that trained, if a stored answer was given again.
    """

    weights: Own[WeightFigures]
    answered_in: Own[str]
