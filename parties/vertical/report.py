"""What a data party of a vertical training writes into its report, and what of it the coordinator is told."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from blindfit.algorithms.messages import ParameterValue
from blindfit.parties.data.source import Source
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.budget import Charged
from blindfit.parties.training.summary import told
from blindfit.parties.vertical.prepared import Prepared

# Whose rows stand out, which columns are constant, whether the training has settled.
KEPT_HERE = ("shrunk", "dropped_columns", "settled")
TOLD_FIGURES = (
    "rows",
    "auc",
    "ks",
    "accuracy",
    "log_loss",
    "log_loss_before",
    "slope",
    "offset",
    "threshold",
    "mse",
    "mae",
    "r2",
)


def report_of(
    session: Session[JobParameters],
    source: Source,
    prepared: Prepared,
    epochs: int,
    evaluation: dict[str, Any] | None,
    charged: Charged | None,
) -> dict[str, Any]:
    plan = prepared.plan
    return {
        "session": session.id,
        "party": session.me.name,
        "role": session.me.role,
        "job": dict(session.parameters),
        "members": {name: member.role for name, member in session.members.items()},
        "rows": {
            "common": len(prepared.rows.features),
            "trained": len(plan.train),
            "validation": len(plan.validation),
            "test": len(plan.test),
            "batches": len(plan.batches),
            "features": len(prepared.standardiser.columns),
            "shrunk": prepared.rows_shrunk,
            "dropped_columns": list(prepared.standardiser.dropped),
        },
        "fit": {"epochs": epochs},
        "labels": {"clipped": prepared.labels.clipped, "range": prepared.labels.range},
        "evaluation": evaluation,
        "privacy": None if charged is None else asdict(charged),
        "dataset": source.name,
    }


def summary_of(report: dict[str, Any]) -> dict[str, ParameterValue]:
    """What the coordinator may see: no weight, no score, nothing that hangs on values in the columns; under label DP no
    figure that was made from labels either.
    """
    summary = told(report, ("rows", "fit", "privacy", "timing"), KEPT_HERE)
    evaluation = (not report["privacy"] and report["evaluation"]) or {}
    for name, value in evaluation.items():
        if name in TOLD_FIGURES:
            summary[f"evaluation.{name}"] = value
    for name, value in evaluation.get("confusion", {}).items():
        summary[f"evaluation.confusion.{name}"] = value
    return summary
