"""Typed figures that the parties report of a vertical training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.statistics.vertical.row_plan import suitable_batch_rows
from blindfit.coordinator.report.evaluation import evaluation_of
from blindfit.coordinator.report.reading import read
from blindfit.coordinator.terminal.wording import figure
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical.report import JointFigures
from blindfit.coordinator.vertical.selection import find_selection
from blindfit.parties.tables import validate
from blindfit.parties.taylor.report import Calibration
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import Charged
from blindfit.parties.vertical.report import FitFigures, LabelFigures


@dataclass(frozen=True)
class KeyNodeFigures:
    losses: tuple[float, ...] = ()  # hold-out loss after each epoch


@dataclass(frozen=True, kw_only=True)
class Figures(JointFigures):
    """Everything that the report states about a training, and about whom.

    Attributes:
        unsettled: parties whose own report is here and states that the training has not settled.
    """

    job: TaylorJob
    losses: tuple[float, ...]
    privacy: Charged | None
    labels: LabelFigures | None
    calibration: Calibration | None
    unsettled: tuple[str, ...] = ()

    @property
    def relative_losses(self) -> bool:
        """True if losses are shares of the first loss: after linkage a mean would reveal how many rows match."""
        return self.job.align.method == "linkage"

    @property
    def newest_loss(self) -> str:
        newest = figure(self.losses[-1])
        return f"hold-out loss {newest} of the first epoch's" if self.relative_losses else f"hold-out loss {newest}"

    @property
    def batch_rows(self) -> int:
        taylor = self.job.taylor
        if taylor.batch_rows == "auto":
            return suitable_batch_rows(self.shared_rows.trained, taylor.batch_sizes)
        return taylor.batch_rows

    @property
    def smallest_batch(self) -> int:
        rows, batch_rows = self.shared_rows, self.batch_rows
        return rows.trained if rows.batches == 1 else min(rows.trained // rows.batches, batch_rows)

    @property
    def columns(self) -> int | None:
        """Number of columns with the intercept; None if a party's number is not known."""
        return None if self.features is None else self.features + self.job.taylor.intercept


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Return the figures of a report.

    Raises:
        DataError: a figure is missing or wrong; names the party and the figure.
    """
    roles = joint.roles_of(report)
    told = joint.collect_summaries(report, roles)
    job = validate(_parameters(report["job"]), TaylorJob, source="the job of the report")
    selected = find_selection(report, roles, job)
    if selected is not None:
        job = job.choose(selected.chosen)
    key_node = report["parties"][roles.key_node]["summary"]
    return Figures(
        roles=roles,
        job=job,
        selected=selected,
        rows=joint.rows_of(report, told),
        timing=joint.timing_of(told),
        fit=joint.fit_of(told, roles),
        losses=read(KeyNodeFigures, key_node, roles.key_node, "fit").losses if key_node else (),
        privacy=_privacy(job, told, roles.active),
        labels=_labels(report, roles.active),
        calibration=_calibration(report, roles.active),
        unsettled=tuple(name for name in roles.chain if not _has_settled(report, name)),
        evaluation=evaluation_of(report, roles.active),
    )


def _has_settled(report: Mapping[str, Any], party: str) -> bool:
    own = report["party_reports"].get(party)
    return own is None or read(FitFigures, own, party, "fit").settled is not False


def _parameters(job: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name in TaylorJob.model_fields}


def _privacy(job: TaylorJob, told: Mapping[str, Any], active: str) -> Charged | None:
    if job.privacy is None or active not in told:
        return None
    return read(Charged, told[active], active, "privacy")


def _labels(report: Mapping[str, Any], active: str) -> LabelFigures | None:
    own = report["party_reports"].get(active)
    return None if own is None else read(LabelFigures, own, active, "labels")


def _calibration(report: Mapping[str, Any], active: str) -> Calibration | None:
    own = report["party_reports"].get(active) or {}
    return read(Calibration, own, active, "calibration") if "calibration" in own else None
