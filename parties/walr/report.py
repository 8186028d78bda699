"""Reports of the parties with columns in a WALR job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.parties.measurement.servers import Released
from blindfit.parties.training.report import FittedRows, Own, Report, SumPrivacy, Table, TimingFigures
from blindfit.parties.walr.fit import FittedModel
from blindfit.parties.walr.rows import PreparedRows


@dataclass(frozen=True, repr=False, kw_only=True)
class RowFigures(FittedRows, Table):
    """Numbers of rows.

    Attributes:
        unknown: number of rows that the server does not know and counts as label 0; 0 also if it keeps that number
            private.
        features: number of features of all parties.
        left_out: names of the active party's own columns that the server left out, if several parties hold columns.
    """

    trained: int
    held_out: int
    clipped: Own[int]  # depends on values
    not_counted: int
    unknown: int | None = None
    features: int
    dropped_columns: Own[tuple[str, ...]]
    left_out: Own[tuple[str, ...]] = None

    @property
    def sent(self) -> int:
        return self.trained + self.not_counted


@dataclass(frozen=True, kw_only=True)
class PrivacyFigures(SumPrivacy):
    """Figures of the release's privacy.

    Attributes:
        holders: parties with columns, without the active party.
    """

    noise_std_of_mean: float
    holders: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False, kw_only=True)
class FitFigures(Table):
    """Figures of the end of the fit. The coordinator never sees a sum, nor a value that follows from a sum.

    A reason of infeasibility may quote a coordinate of the noisy mean. The gradient at the start of a fit, or near it,
    is the noisy mean less a known vector. For a single column its norm reveals the mean itself.

    Attributes:
        feasible: True if a sum of labels can give the mean, False if none can; None if neither was proved.
    """

    solver: str
    iterations: int
    converged: bool
    reason: str
    gradient_norm: Own[float]
    objective_history: Own[tuple[float, ...]] = None
    l2: float
    mu: str
    feasible: bool | None
    feasibility: Own[str] = None


@dataclass(frozen=True, repr=False, kw_only=True)
class OwnFitFigures(FitFigures):
    """A fit by the active party itself."""

    mean_prediction: Own[float]  # next to the base rate of the release


@dataclass(frozen=True, repr=False, kw_only=True)
class WalrReport(Report):
    """The report of an active party.

    Attributes:
        members: roles by name, if several parties hold columns.
        servers: part of each of two servers.
    """

    members: Own[Mapping[str, str]] = None
    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    bytes_sent: int
    messages_sent: int
    timing: TimingFigures
    servers: Own[list[Any]] = None


def report_of(
    prepared: PreparedRows,
    released: Released,
    fitted: FittedModel,
    tested: NDArray[np.float64],
    laps: dict[str, float],
) -> WalrReport:
    """Return the report of an active party.

    Args:
        tested: probabilities of the held-out rows.
    """
    answer, request, fit = released.aggregate.answer, released.request, fitted.fit
    return WalrReport(
        rows=RowFigures(
            trained=int(answer.rows_kept),
            held_out=len(prepared.test_ids),
            clipped=prepared.rows_clipped,
            not_counted=int(request.n_rows - answer.rows_kept),
            unknown=int(answer.rows_unknown),
            features=len(prepared.standardiser.columns),
            dropped_columns=prepared.standardiser.dropped,
        ),
        privacy=PrivacyFigures(**released.privacy(), noise_std_of_mean=fitted.noise_std),
        fit=OwnFitFigures(
            solver=fit.result.solver,
            iterations=fit.result.iterations,
            converged=bool(fit.result.converged),
            reason=fit.result.reason,
            gradient_norm=fit.result.gradient_norm,
            objective_history=fit.result.objective_history,
            l2=fit.l2,
            mu=fit.treatment,
            feasible=fit.feasibility.feasible,
            feasibility=fit.feasibility.reason,
            mean_prediction=float(tested.mean()) if len(tested) else None,
        ),
        bytes_sent=released.aggregate.bytes_sent,
        messages_sent=released.aggregate.messages_sent,
        timing=TimingFigures(**laps),
        **released.by_server(),
    )


# --- a passive party -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class HolderRows(Table):
    sent: int
    held_out: int
    trained: int
    features: int
    clipped: Own[int]
    left_out: Own[tuple[str, ...]] = None


@dataclass(frozen=True, repr=False, kw_only=True)
class HolderReport(Report):
    members: Own[Mapping[str, str]]
    rows: HolderRows
    bytes_sent: int
    messages_sent: int
    timing: TimingFigures
