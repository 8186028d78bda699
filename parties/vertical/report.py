"""What a data party of a vertical training reports of it: what all such systems have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from blindfit.algorithms.messages import ParameterValue
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.budget import Charged
from blindfit.parties.training.quality import ClassFigures, ValueFigures, quality_of
from blindfit.parties.training.report import Own, Report, Table, TimingFigures, members_of
from blindfit.parties.vertical.prepared import Prepared


@dataclass(frozen=True, repr=False)
class RowFigures(Table):
    """Rows of one data party; `common` rows are the slots after linkage."""

    common: int
    trained: int
    validation: int
    test: int
    batches: int
    features: int
    shrunk: Own[int]  # whose rows stand out
    dropped_columns: Own[tuple[str, ...]]  # which columns are constant


@dataclass(frozen=True, repr=False)
class FitFigures(Table):
    """Attributes:
    weight_noise_std: at most, of a weight, in shares under differential privacy.
    settled: whether the training has settled, which follows from the values of the rows.
    """

    epochs: int
    weight_noise_std: float | None = None
    settled: Own[bool] = None


@dataclass(frozen=True)
class LabelFigures(Table):
    """Labels that are numbers; `range` is the public one, where there is one."""

    clipped: int
    range: tuple[float, ...] | None


@dataclass(frozen=True, repr=False, kw_only=True)
class VerticalReport(Report):
    """Attributes:
    evaluation: at the active party; figures that were made from labels.
    """

    members: Own[Mapping[str, str]]
    rows: RowFigures
    fit: FitFigures
    labels: Own[LabelFigures]
    evaluation: Own[ClassFigures | ValueFigures]
    privacy: Charged | None
    dataset: Own[str]
    timing: TimingFigures

    def shown_to_coordinator(self) -> dict[str, ParameterValue]:
        """Return what may leave the party: an evaluation too, unless differential privacy protects labels."""
        shown = super().shown_to_coordinator()
        if self.privacy is None and self.evaluation is not None:
            figures = self.evaluation.shown_to_coordinator()
            shown |= {f"evaluation.{name}": figure for name, figure in figures.items()}
        return shown

    @classmethod
    def of(
        cls,
        session: Session[Any],
        prepared: Prepared,
        fit: FitFigures,
        evaluation: Mapping[str, Any] | None,
        charged: Charged | None,
        laps: Mapping[str, float],
        **own: Any,
    ) -> Self:
        """Return the report of a training; `own` has the fields that only this system has."""
        plan = prepared.plan
        return cls(
            members=members_of(session),
            rows=RowFigures(
                common=len(prepared.rows.features),
                trained=len(plan.train),
                validation=len(plan.validation),
                test=len(plan.test),
                batches=len(plan.batches),
                features=len(prepared.standardiser.columns),
                shrunk=prepared.rows_shrunk,
                dropped_columns=prepared.standardiser.dropped,
            ),
            fit=fit,
            labels=LabelFigures(prepared.labels.clipped, prepared.labels.range),
            evaluation=quality_of(evaluation),
            privacy=charged,
            dataset=session.me.dataset,
            timing=TimingFigures(**laps),
            **own,
        )
