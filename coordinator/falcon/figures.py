"""Typed figures that the parties report of a training on secret shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from blindfit.algorithms.protocols.falcon import WEIGHT_BOUND, bits_of_opened_weight
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from blindfit.algorithms.statistics.vertical.row_plan import suitable_batch_rows
from blindfit.coordinator.falcon.trust import opens_weights_unrounded
from blindfit.coordinator.report.evaluation import evaluation_of
from blindfit.coordinator.report.reading import read
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical.report import JointFigures
from blindfit.coordinator.vertical.selection import find_selection
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.tables import validate
from blindfit.parties.training.budget import Charged


@dataclass(frozen=True)
class OpenedWeights:
    """Opened weights of passive parties, and the most that they reveal about labels.

    Attributes:
        weights: number of weights. bits: bits of each weight. rows: number of training rows, each with a label.
    """

    weights: int
    bits: int
    rows: int
    label_bits: float = 1.0

    @property
    def all_bits(self) -> int:
        return self.weights * self.bits

    @property
    def of_each_label(self) -> float:
        return min(self.label_bits, self.all_bits / max(1, self.rows))


@dataclass(frozen=True, kw_only=True)
class Figures(JointFigures):
    """Everything that the report states about a training, and about whom.

    Attributes:
        weights: weights of each party whose model is here, with the intercept.
        privacy: charge that each data party reported. Charges differ only in the ledger. Empty without differential
            privacy.
    """

    job: FalconJob
    weights: Mapping[str, tuple[float, ...]]
    privacy: Mapping[str, Charged]

    @property
    def macs(self) -> str:
        if self.job.falcon.is_encrypted:
            return f"and under a threshold key of {self.job.falcon.key_bits} bits"
        return "with MACs" if self.job.falcon.macs else "without MACs"

    @property
    def stays_shared(self) -> bool:
        """True if nobody has the model."""
        return self.job.falcon.stays_shared

    @property
    def owners(self) -> list[str]:
        return [] if self.stays_shared else super().owners

    @property
    def batch_rows(self) -> int:
        asked_for = self.job.falcon.batch_rows
        return suitable_batch_rows(self.shared_rows.trained) if asked_for == "auto" else asked_for

    @property
    def kept_bits(self) -> int | None:
        """Weights are opened in steps of 2^-kept_bits; None if they are not rounded."""
        if opens_weights_unrounded(self.job):
            return None
        return choose_kept_bits(max(1, self.shared_rows.trained), self.job.falcon.model)

    @property
    def weight_bits(self) -> int | None:
        """Bits of each opened weight; None if weights are not rounded."""
        return None if self.kept_bits is None else bits_of_opened_weight(self.kept_bits)

    @property
    def at_bound(self) -> dict[str, int]:
        """Number of weights that were clipped, for each party whose model is here."""
        if self.kept_bits is None:
            return {}
        most = WEIGHT_BOUND - 2.0**-self.kept_bits
        clipped = {name: sum(w >= most or w <= -WEIGHT_BOUND for w in own) for name, own in self.weights.items()}
        return {name: number for name, number in clipped.items() if number}

    @property
    def opened(self) -> dict[str, OpenedWeights]:
        """Opened weights of passive parties that reported their number of columns; empty without rounding."""
        bits, rows = self.weight_bits, self.shared_rows.trained
        if bits is None or self.stays_shared:
            return {}
        known = [name for name in self.roles.passives if name in self.rows]
        of_a_label = math.inf if self.job.falcon.model == "linear" else 1.0
        return {name: OpenedWeights(self.rows[name].features, bits, rows, of_a_label) for name in known}

    @property
    def most_told(self) -> float | None:
        """Largest number of bits of each label that a passive party has; None if a party's number is not known."""
        opened = self.opened
        if self.stays_shared or set(opened) != set(self.roles.passives):
            return None
        return max(own.of_each_label for own in opened.values())

    @property
    def pooled(self) -> OpenedWeights | None:
        """Opened weights of all passive parties together; None for one party, or if a party's number is not known."""
        opened = self.opened
        if len(opened) < 2 or set(opened) != set(self.roles.passives):
            return None
        first = next(iter(opened.values()))
        return replace(first, weights=sum(own.weights for own in opened.values()))


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Return the figures of a report.

    Raises:
        DataError: a figure is missing or wrong; names the party and the figure.
    """
    roles = joint.roles_of(report)
    told = joint.collect_summaries(report, roles)
    job = validate(_parameters(report["job"]), FalconJob, source="the job of the report")
    selected = find_selection(report, roles, job)
    if selected is not None:
        job = job.choose(selected.chosen)
    return Figures(
        roles=roles,
        job=job,
        rows=joint.rows_of(report, told),
        timing=joint.timing_of(told),
        fit=joint.fit_of(told, roles),
        selected=selected,
        evaluation=evaluation_of(report, roles.active),
        weights={name: _weights(model) for name, model in report["models"].items()},
        privacy={} if job.privacy is None else {n: read(Charged, said, n, "privacy") for n, said in told.items()},
    )


def _parameters(job: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name in FalconJob.model_fields}


def _weights(model: Mapping[str, Any]) -> tuple[float, ...]:
    intercept = model.get("intercept")
    return (*model["weights"].values(), *(() if intercept is None else (intercept,)))
