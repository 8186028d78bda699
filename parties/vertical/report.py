"""The part of a data party's report that all vertical systems have in common."""

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
    shrunk: Own[int]  # depends on whose rows stand out
    dropped_columns: Own[tuple[str, ...]]  # depends on which columns are constant


@dataclass(frozen=True, repr=False)
class FitFigures(Table):
    """Figures of the fit.

    Attributes:
        weight_noise_std: upper bound of a weight's noise, in shares under differential privacy.
        settled: True if the training has settled, which follows from the values of the rows.
    """

    epochs: int
    weight_noise_std: float | None = None
    settled: Own[bool] = None


@dataclass(frozen=True)
class LabelFigures(Table):
    """Figures of labels that are numbers; `range` is the public range, if there is one."""

    clipped: int
    range: tuple[float, ...] | None


@dataclass(frozen=True, kw_only=True)
class SelectionFigures(Table):
    """The grid of a job, and the figures of its points.

    Attributes:
        by: figure that decided.
        points: options of each point.
        chosen: place of the final training's point, counted from 0.
        figures: figure of each point; None at a passive party.
        errors: standard error of each figure; None at a passive party.
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
        """Return the figures of a selection.

        Args:
            scale: unit of a linear model's labels, in which its errors are reported.
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
        """Return the figures that `to_dict` wrote, from JSON."""
        fields: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in stored.items()}
        return cls(**fields)


@dataclass(frozen=True, repr=False, kw_only=True)
class VerticalReport(Report):
    """The report of a data party.

    Attributes:
        evaluation: figures that were computed from labels; only at the active party.
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

    def fields_for_coordinator(self) -> dict[str, ParameterValue]:
        """Return the figures that may leave the party; an evaluation leaves only if differential privacy does not
        protect labels.
        """
        shown = super().fields_for_coordinator()
        if self.privacy is None and self.evaluation is not None:
            figures = self.evaluation.fields_for_coordinator()
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
        """Return the report of a training; `own` has the fields of one system."""
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
