"""Report of the active party of a label-dp job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blindfit.algorithms.estimators.label_noise import law_points
from blindfit.parties.label_dp.settings import HAVE_A_BIAS, LabelDPJob
from blindfit.parties.measurement.calls import ReleasedLabels
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.report import (
    FittedRows,
    MeasuredPrivacy,
    Own,
    Report,
    Table,
    TimingFigures,
)
from blindfit.protos import measurement_pb2

if TYPE_CHECKING:
    from blindfit.parties.label_dp.fit import Fitted, Rows

MOST_DRAWN_ROWS = 400
DRAWN_LABELS = (0.1, 0.5, 0.9)  # places within the range at which the mechanism's law is drawn


@dataclass(frozen=True, repr=False, kw_only=True)
class RowFigures(FittedRows, Table):
    """Numbers of rows.

    Attributes:
        sent: number of ids. Withheld rows are in the training rows and in the held-out rows.
    """

    sent: int
    trained: int
    held_out: int
    withheld: int
    features: int
    dropped_columns: Own[tuple[str, ...]]


@dataclass(frozen=True, repr=False, kw_only=True)
class PrivacyFigures(MeasuredPrivacy):
    """Figures of the release's privacy.

    Attributes:
        epsilon_of_row: epsilon of one row.
        epsilon_prior: part of it for the prior.
        noise_std: standard deviation of one label's noise.
    """

    epsilon_of_row: float
    epsilon_prior: float
    prior_mechanism: str
    rows_outside: float | None
    label_lo: float
    label_hi: float
    grid_cells: int
    noise_std: float
    largest_bias: float

    @property
    def width(self) -> float:
        return self.label_hi - self.label_lo

    @property
    def has_a_bias(self) -> bool:
        return self.mechanism in HAVE_A_BIAS


@dataclass(frozen=True)
class FitFigures(Table):
    regressor: str
    debiased: bool
    converged: bool
    evaluated_on_true_labels: bool


@dataclass(frozen=True, repr=False, kw_only=True)
class LabelDPReport(Report):
    """The report of an active party. Its own fields are within the promise too, but the coordinator does not need
    them.
    """

    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    evaluation: Own[Mapping[str, Any]]
    mechanism: Own[Mapping[str, Any]]
    plots: Own[Mapping[str, Any]]
    bytes_sent: int
    messages_sent: int
    timing: TimingFigures


def report_of(
    session: Session[LabelDPJob],
    rows: Rows,
    released: ReleasedLabels,
    fitted: Fitted,
    true: Mapping[str, Any],
    description: measurement_pb2.DatasetDescription,
    budget: measurement_pb2.BudgetDescription,
    laps: Mapping[str, float],
) -> LabelDPReport:
    """Return the report.

    Args:
        true: evaluation on true labels; empty without such labels.
    """
    chosen, model = session.job.label_dp, fitted.fit.model
    return LabelDPReport(
        rows=_rows(rows, released, fitted),
        privacy=_privacy(session.job, released, fitted, description, budget),
        fit=FitFigures(model.regressor, model.debiased, fitted.fit.converged, bool(chosen.evaluate_on)),
        evaluation={"released": fitted.evaluation, "true": true},
        mechanism=released.mechanism.parameters(),
        plots={"held_out": _points(rows, fitted), "laws": _laws(released)},
        bytes_sent=released.bytes_sent,
        messages_sent=released.messages_sent,
        timing=TimingFigures(**laps),
    )


def _rows(rows: Rows, released: ReleasedLabels, fitted: Fitted) -> RowFigures:
    kept, n = released.kept, rows.n_trained
    standardiser = fitted.fit.model.standardiser
    return RowFigures(
        sent=len(kept),
        trained=int(kept[:n].sum()),
        held_out=len(kept) - n,
        withheld=int((~kept).sum()),
        features=len(standardiser.columns),
        dropped_columns=standardiser.dropped,
    )


def _privacy(
    job: LabelDPJob,
    released: ReleasedLabels,
    fitted: Fitted,
    description: measurement_pb2.DatasetDescription,
    budget: measurement_pb2.BudgetDescription,
) -> PrivacyFigures:
    mechanism = released.mechanism
    most = job.required_privacy.max_rows_per_person or description.max_rows_per_person
    return PrivacyFigures(
        unit=released.unit,
        neighbours=released.neighbours,
        max_rows_per_person=int(most),
        epsilon=released.epsilon,
        delta=released.delta,
        mechanism=job.label_dp.mechanism,
        epsilon_of_row=mechanism.epsilon + released.epsilon_prior,
        epsilon_prior=released.epsilon_prior,
        prior_mechanism=released.prior_mechanism,
        rows_outside=released.rows_outside,
        label_lo=mechanism.grid.lo,
        label_hi=mechanism.grid.hi,
        grid_cells=mechanism.grid.cells,
        noise_std=fitted.noise_std,
        largest_bias=fitted.profile.largest_bias,
        population=budget.population,
        budget_epsilon=budget.epsilon,
        budget_delta=budget.delta,
        spent_epsilon=budget.spent_epsilon,
        releases=int(budget.releases),
        snapshot=description.snapshot,
        receipt=released.receipt[0].decode("ascii", "replace"),
    )


def _points(rows: Rows, fitted: Fitted) -> dict[str, list[float]]:
    """Return points of held-out rows, evenly spaced: the fitted value, and the noisy label."""
    labels = fitted.labels[rows.n_trained :]
    kept = np.flatnonzero(~np.isnan(labels))
    chosen = kept[np.unique(np.linspace(0, len(kept) - 1, min(len(kept), MOST_DRAWN_ROWS)).astype(int))]
    return {"fitted": fitted.test_predictions[chosen].tolist(), "noisy": labels[chosen].tolist()}


def _laws(released: ReleasedLabels) -> list[dict[str, Any]]:
    grid = released.mechanism.grid
    return [law_points(released.mechanism, grid.lo + share * grid.width) for share in DRAWN_LABELS]
