"""What the active party of a label-dp job writes into its report, and what of it the coordinator is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blindfit.algorithms.estimators.label_noise import law_points
from blindfit.algorithms.messages import ParameterValue
from blindfit.parties.label_dp.settings import LabelDPJob
from blindfit.parties.measurement.client import ReleasedLabels
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.summary import told
from blindfit.protos import measurement_pb2

if TYPE_CHECKING:
    from blindfit.parties.label_dp.fit import Fitted, Rows

MOST_DRAWN_ROWS = 400
DRAWN_LABELS = (0.1, 0.5, 0.9)  # of the way through the range: where the mechanism's law is drawn
# The rest is within the promise too, but the coordinator has no use for it.
TOLD = ("rows", "privacy", "fit", "timing")


@dataclass(frozen=True, repr=False)
class Outcome:
    """Args:
    true: the evaluation on true labels; empty where there are none.
    """

    session: Session[LabelDPJob]
    rows: Rows
    released: ReleasedLabels
    fitted: Fitted
    true: dict[str, Any]
    description: measurement_pb2.DatasetDescription
    budget: measurement_pb2.BudgetDescription
    laps: dict[str, float]


def report_of(outcome: Outcome) -> dict[str, Any]:
    session, released, fit = outcome.session, outcome.released, outcome.fitted.fit
    return {
        "session": session.id,
        "party": session.me.name,
        "role": session.me.role,
        "server": session.with_role("measurement").name,
        "job": dict(session.parameters),
        "rows": _rows(outcome),
        "privacy": _privacy(outcome),
        "fit": {
            "regressor": fit.model.regressor,
            "debiased": fit.model.debiased,
            "converged": fit.converged,
            "evaluated_on_true_labels": bool(session.job.label_dp.evaluate_on),
        },
        "evaluation": {"released": outcome.fitted.evaluation, "true": outcome.true},
        "mechanism": released.mechanism.parameters(),
        "plots": {"held_out": _points(outcome), "laws": _laws(released)},
        "bytes_sent": released.bytes_sent,
        "timing": outcome.laps,
    }


def _rows(outcome: Outcome) -> dict[str, Any]:
    kept, n = outcome.released.kept, outcome.rows.n_trained
    standardiser = outcome.fitted.fit.model.standardiser
    return {
        "sent": len(kept),
        "trained": int(kept[:n].sum()),
        "held_out": len(kept) - n,
        "withheld": int((~kept).sum()),
        "features": len(standardiser.columns),
        "dropped_columns": list(standardiser.dropped),
    }


def _privacy(outcome: Outcome) -> dict[str, Any]:
    released, budget, fitted = outcome.released, outcome.budget, outcome.fitted
    mechanism, settings = released.mechanism, outcome.session.job.label_dp
    most = outcome.session.job.required_privacy.max_rows_per_person or outcome.description.max_rows_per_person
    return {
        "unit": released.unit,
        "neighbours": released.neighbours,
        "max_rows_per_person": int(most),
        "epsilon": released.epsilon,
        "delta": released.delta,
        "mechanism": settings.mechanism,
        "epsilon_of_row": mechanism.epsilon + released.epsilon_prior,
        "epsilon_prior": released.epsilon_prior,
        "prior_mechanism": released.prior_mechanism,
        "rows_outside": released.rows_outside,
        "label_lo": mechanism.grid.lo,
        "label_hi": mechanism.grid.hi,
        "grid_cells": mechanism.grid.cells,
        "noise_std": fitted.noise_std,
        "largest_bias": fitted.profile.largest_bias,
        "population": budget.population,
        "budget_epsilon": budget.epsilon,
        "budget_delta": budget.delta,
        "spent_epsilon": budget.spent_epsilon,
        "releases": int(budget.releases),
        "snapshot": outcome.description.snapshot,
        "receipt": released.receipt[0].decode("ascii", "replace"),
    }


def _points(outcome: Outcome) -> dict[str, list[float]]:
    """Of held-out rows, evenly through them: what was fitted, and the noisy label."""
    labels = outcome.fitted.labels[outcome.rows.n_trained :]
    kept = np.flatnonzero(~np.isnan(labels))
    chosen = kept[np.unique(np.linspace(0, len(kept) - 1, min(len(kept), MOST_DRAWN_ROWS)).astype(int))]
    return {"fitted": outcome.fitted.test_predictions[chosen].tolist(), "noisy": labels[chosen].tolist()}


def _laws(released: ReleasedLabels) -> list[dict[str, Any]]:
    grid = released.mechanism.grid
    return [law_points(released.mechanism, grid.lo + share * grid.width) for share in DRAWN_LABELS]


def summary_of(report: dict[str, Any]) -> dict[str, ParameterValue]:
    """What the coordinator may see: no label, prediction or weight, nor how well they go together."""
    return {**told(report, TOLD, ("receipt", "dropped_columns")), "bytes_sent": report["bytes_sent"]}
