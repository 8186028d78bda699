"""What the active party writes of a job into its own report, and what of it the coordinator may see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.messages import ParameterValue
from blindfit.parties.measurement.servers import Released
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.summary import told
from blindfit.parties.walr.fit import FittedModel
from blindfit.parties.walr.rows import PreparedRows
from blindfit.parties.walr.settings import WalrJob


def header(session: Session[WalrJob]) -> dict[str, Any]:
    """Of a party's report: whose it is, and of which job."""
    return {
        "session": session.id,
        "party": session.me.name,
        "role": session.me.role,
        "job": dict(session.parameters),
    }


def report_of(
    session: Session[WalrJob],
    prepared: PreparedRows,
    released: Released,
    fitted: FittedModel,
    tested: NDArray[np.float64],
    laps: dict[str, float],
) -> dict[str, Any]:
    """Args:
    tested: the probabilities of the held-out rows.
    """
    answer, request = released.aggregate.answer, released.request
    return {
        **header(session),
        "rows": {
            "trained": int(answer.rows_kept),
            "held_out": len(prepared.test_ids),
            "clipped": prepared.rows_clipped,
            "not_counted": int(request.n_rows - answer.rows_kept),
            "unknown": int(answer.rows_unknown),
            "features": len(prepared.standardiser.columns),
            "dropped_columns": list(prepared.standardiser.dropped),
        },
        "privacy": {
            **released.privacy(),
            "noise_std_of_mean": fitted.noise_std,
        },
        "fit": {
            "solver": fitted.fit.result.solver,
            "iterations": fitted.fit.result.iterations,
            "converged": bool(fitted.fit.result.converged),
            "reason": fitted.fit.result.reason,
            "gradient_norm": fitted.fit.result.gradient_norm,
            "objective_history": list(fitted.fit.result.objective_history),
            "l2": fitted.fit.l2,
            "mu": fitted.fit.treatment,
            "feasible": fitted.fit.feasibility.feasible,
            "feasibility": fitted.fit.feasibility.reason,
            "mean_prediction": float(tested.mean()) if len(tested) else None,  # beside the base rate of the release
        },
        "bytes_sent": released.aggregate.bytes_sent,
        "timing": laps,
        **released.told(),
    }


# A reason of infeasibility may quote a coordinate of the noisy mean; and the gradient where a fit begins, or has hardly
# moved from, is the noisy mean less a known vector: of one column its norm is that. The coordinator never sees a sum.
OF_THE_SUM = ("gradient_norm", "objective_history", "receipt", "mean_prediction", "feasibility")
# How many were clipped, which columns are constant, and a hash of them.
OF_THE_ROWS = ("clipped", "dropped_columns", "request_id")


def summary(report: dict[str, Any]) -> dict[str, ParameterValue]:
    """What the coordinator may see: no weight, no score, no sum."""
    parts = ("rows", "privacy", "fit", "timing")
    return {**told(report, parts, OF_THE_SUM + OF_THE_ROWS), "bytes_sent": report["bytes_sent"]}
