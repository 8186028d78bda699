"""What a data party of a vertical training reports of it: what all such systems have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.statistics.vertical.selection import PointFigure, Selection
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.budget import Charged
from blindfit.parties.training.quality import ClassFigures, ValueFigures, quality_of
from blindfit.parties.training.report import Between, Own, Report, Table, TimingFigures, members_of
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


@dataclass(frozen=True, kw_only=True)
class SelectionFigures(Table):
    """The grid of a job, and what its points are worth.

    Attributes:
        by: the figure that decided.
        points: the options of each.
        chosen: the point of the final training, counted from 0.
        figures, errors: of each point, and their standard errors; None at a passive party.
    """

    folds: int
    by: str
    points: tuple[str, ...]
    chosen: Annotated[int, Between(0)]
    figures: tuple[float, ...] | None = None
    errors: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls, selection: Selection, chosen: int, figures: Sequence[PointFigure] | None, scale: float
    ) -> SelectionFigures:
        """
        Args:
            scale: the unit of a linear model's labels, in which its errors are reported.
        """
        if figures is not None and selection.by == "mse":
            figures = [figure.times(scale**2) for figure in figures]
        return cls(
            folds=selection.folds,
            by=selection.by,
            points=tuple(point.describe() for point in selection.points),
            chosen=chosen,
            figures=None if figures is None else tuple(figure.value for figure in figures),
            errors=None if figures is None else tuple(figure.error for figure in figures),
        )

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> SelectionFigures:
        """Return what `to_dict` gave, from JSON."""
        fields: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in stored.items()}
        return cls(**fields)


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
    selection: SelectionFigures | None = None

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
