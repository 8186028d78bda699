"""A vertical training that nobody ran, with the reports and files that its parties would have made."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.job.job import Job, read_job
from blindfit.coordinator.report import Written
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.files.written import write_json
from blindfit.parties.training.budget import Charged
from blindfit.parties.training.quality import quality_of
from blindfit.parties.training.report import TimingFigures
from blindfit.parties.vertical.report import FitFigures, LabelFigures, RowFigures, VerticalReport
from tests.report.jobs import renamed
from tests.reports import write_report

SESSION = "taylor-0badcafe"
ROLES = {"bank": "active", "shop": "passive", "post": "passive", "notary": "key-node"}
EVALUATION: dict[str, Any] = {
    "rows": 240,
    "auc": 0.8731,
    "average_precision": 0.8612,
    "ks": 0.6123,
    "accuracy": 0.8125,
    "log_loss": 0.4321,
    "threshold": 0.5,
    "confusion": {"true_positives": 91, "false_positives": 23, "true_negatives": 104, "false_negatives": 22},
    "lift": [{"share": 0.1 * i, "lift": 2.1 - 0.11 * i} for i in range(1, 11)],
    "calibration": [{"rows": 24, "probability": 0.1 * i - 0.05, "positives": 0.1 * i - 0.04} for i in range(1, 11)],
    "ranking": [
        {"threshold": 1.05 - 0.1 * i, "true_positives": 11 * i + 3, "false_positives": i * i + 2 * i + 7}
        for i in range(1, 11)
    ],
    "histogram": [{"low": 0.05 * i, "high": 0.05 * (i + 1), "positives": i, "negatives": 20 - i} for i in range(20)],
}
OF_THE_ACTIVE_PARTY = {"lift", "calibration", "ranking", "histogram", "average_precision"}
VALUES: dict[str, Any] = {"rows": 240, "mse": 3.25, "mae": 1.1312, "r2": 0.7153}
# Same content as `blindfit.parties.taylor.data_party._report` makes; test_content.py compares the two.
PARTY_REPORT: dict[str, Any] = {
    "session": SESSION,
    "party": "bank",
    "role": "active",
    "job": {},
    "members": ROLES,
    "rows": {
        "common": 1200,
        "trained": 780,
        "validation": 180,
        "test": 240,
        "batches": 6,
        "features": 3,
        "shrunk": 0,
        "dropped_columns": [],
    },
    "fit": {"epochs": 4},
    "labels": {"clipped": 0, "range": None},
    "evaluation": EVALUATION,
    "privacy": None,
    "dataset": "loans",
    "timing": {"read_s": 0.21, "align_s": 0.42, "prepare_s": 0.03, "train_s": 8.4, "evaluate_s": 0.02},
}
PRIVACY: dict[str, Any] = {
    "population": "customers",
    "unit": "the label of one row, a loan",
    "neighbours": "one row's label changes, number and weights of the rows public",
    "epsilon": 2.0,
    "delta": 1e-5,
    "noise_multiplier": 1.9938,
    "spent_epsilon": 3.0,
    "spent_neighbours": "one row's label changes, number and weights of the rows public",
    "budget_epsilon": 8.0,
    "budget_delta": 1e-5,
}
WEIGHTS = {
    "bank": {"income": 0.713211, "debt": -0.4519, "age": 0.0813},
    "shop": {"spent": 0.29},
    "post": {"mails": -0.1},
}


def shown_of(report: dict[str, Any]) -> dict[str, ParameterValue]:
    """Return the figures of this report that its party shows to the coordinator."""
    return VerticalReport(
        members=report["members"],
        rows=RowFigures(**report["rows"]),
        fit=FitFigures(**report["fit"]),
        labels=LabelFigures(**report["labels"]),
        evaluation=quality_of(report["evaluation"]),
        privacy=None if report["privacy"] is None else Charged(**report["privacy"]),
        dataset=report["dataset"],
        timing=TimingFigures(**report["timing"]),
    ).fields_for_coordinator()


@dataclass
class MadeUpTraining:
    """A finished training; a test changes what it is about, then writes."""

    out: Path
    name: str = "loans"
    roles: dict[str, str] = field(default_factory=lambda: dict(ROLES))
    weights: dict[str, dict[str, float]] = field(default_factory=lambda: copy.deepcopy(WEIGHTS))
    intercept: float = -0.931745
    report: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(PARTY_REPORT))
    losses: tuple[str, ...] = ("0.611230", "0.542110", "0.520010", "0.519020")
    settings: dict[str, Any] = field(default_factory=dict)  # settings of the job
    protocol: str = "taylor"
    session_id: str = SESSION

    def with_label_dp(self, **changes: Any) -> MadeUpTraining:
        self.settings["privacy"] = {"epsilon": 2.0}
        self.report["privacy"] = {**PRIVACY, **changes}
        self.report["rows"] |= {"validation": 0, "trained": 960, "batches": 8}
        self.losses = ()
        return self

    def with_roles(self, **roles: str) -> MadeUpTraining:
        self.roles = {name.replace("_", "-"): role.replace("_", "-") for name, role in roles.items()}
        return self

    @property
    def chain(self) -> list[str]:
        return [name for name, role in self.roles.items() if role != "key-node"]

    def job(self) -> Job:
        parties = {
            n: {"role": role, "dataset": "" if role == "key-node" else "loans"} for n, role in self.roles.items()
        }
        # Names that the job file would refuse reach the page: it must not rely on the job file.
        return renamed(read_job({"protocol": self.protocol, "parties": parties, **self.settings}), self.name)

    def session(self, **changes: ParameterValue) -> JobSession:
        """`changes` are of the active party's summary: rows__shrunk = 3."""
        made = JobSession(self.job(), {}, None, id=self.session_id)  # type: ignore[arg-type]
        made.state = "DONE"
        made.seconds = {"launch": 1.2, "set_up": 0.3, "job": 9.5}
        process = {"peak_memory_mib": 182.4, "bytes_sent": 1_234_567}
        told = {name: {**shown_of(self.report_of(name)), **process} for name in self.chain}
        told["bank"] |= {name.replace("__", "."): value for name, value in changes.items()}
        key_node = next(name for name, role in self.roles.items() if role == "key-node")
        told[key_node] = {**self.told_by_key_node(), **process}
        made.summaries = told
        return made

    def told_by_key_node(self) -> dict[str, ParameterValue]:
        return {"fit.epochs": 4, "fit.losses": self.losses, "rows.common": 1200, "key_bits": 2048}

    def report_of(self, party: str) -> dict[str, Any]:
        """Return what the party writes into its own directory."""
        own = copy.deepcopy(self.report) | {"party": party, "role": self.roles[party], "members": self.roles}
        own["job"] = self.job().parameters.to_parameters()
        own["rows"]["features"] = len(self.weights[party])
        return own if self.roles[party] == "active" else own | {"evaluation": None, "privacy": None}

    def model_of(self, party: str) -> dict[str, Any]:
        names = tuple(self.weights[party])
        ones = (1.0,) * len(names)
        standardiser = Standardiser(names, tuple(range(len(names))), ones, ones)
        is_active = self.roles[party] == "active"
        numbers = np.array(list(self.weights[party].values()))
        intercept = self.intercept if is_active else None
        return VerticalModelPart(
            party=party,
            role=self.roles[party],
            model="logistic",
            data_parties=tuple(self.chain),
            standardiser=standardiser,
            weights=numbers,
            intercept=intercept,
        ).to_dict()

    def write_party(self, party: str, directory: Path | None = None) -> Path:
        directory = directory or self.out / party
        write_json(directory / "model.json", self.model_of(party))
        write_json(directory / "report.json", self.report_of(party))
        return directory

    def written(self, **changes: ParameterValue) -> Written:
        """Write the report of a run on this machine; `changes` concern the rows of all parties."""
        for name, value in changes.items():
            table, _, field = name.partition("__")
            self.report[table][field] = value
        for party in self.chain:
            self.write_party(party)
        return write_report(self.session(**changes), self.out, list(self.roles))

    def submitted(self, **changes: ParameterValue) -> Written:
        """Write the report for parties elsewhere."""
        return write_report(self.session(**changes), self.out, [])


@pytest.fixture
def training(tmp_path: Path) -> MadeUpTraining:
    return MadeUpTraining(tmp_path / "out")


@pytest.fixture
def page(training: MadeUpTraining) -> Callable[..., str]:
    """The page of a run on this machine."""
    return lambda **changes: training.written(**changes).html_path.read_text("utf-8")
