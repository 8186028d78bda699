"""What a data party of a training in shares reports of it."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.training.report import Own, Table
from blindfit.parties.vertical.report import VerticalReport


@dataclass(frozen=True, kw_only=True)
class WeightFigures(Table):
    """What opened weights reveal.

    Attributes:
        opened_bits: of each weight; None where they are not rounded.
        label_bits: of each label at most; None where differential privacy bounds what weights reveal.
    """

    in_shares: bool = False
    opened_bits: int | None
    label_bits: float | None


@dataclass(frozen=True, repr=False, kw_only=True)
class FalconReport(VerticalReport):
    """Attributes:
    answered_in: the session that trained, where an answer was given again.
    """

    weights: Own[WeightFigures]
    answered_in: Own[str]
