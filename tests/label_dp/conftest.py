"""A label-dp job of two parties: on disk for real processes, and as the reports and files that they would have made."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, fit
from blindfit.algorithms.privacy.ledger import Receipt
from blindfit.coordinator.job.job import Job, read_job
from blindfit.coordinator.report import Written
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.files.written import write_json
from blindfit.parties.label_dp.consumer import fit_rows, settings_on
from blindfit.parties.label_dp.fit import Rows
from blindfit.parties.label_dp.report import LabelDPReport, report_of
from blindfit.parties.measurement.calls import ReleasedLabels
from blindfit.protos import measurement_pb2 as pb
from tests.done_once import run_once
from tests.reports import write_report
from tests.world import World
from tests.world.files import write_csv

N_ROWS, COLUMNS = 3000, ("age", "income", "visits")
LABEL_RANGE = (0.0, 10.0)
SESSION = "spend-0badcafe"
PARTIES = {
    "shop": {"role": "active", "dataset": "rows"},
    "meter": {"role": "measurement", "dataset": "labels"},
}


def rows_and_labels(n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(4)
    features = generator.normal(size=(n_rows, 3))
    labels = 4 + features @ [1.5, -1.0, 0.0] + generator.normal(scale=0.5, size=n_rows)
    return features.round(4), np.clip(labels, *LABEL_RANGE).round(3)


# --- a job that nobody ran ----------------------------------------------------------------------------


@dataclass
class MadeUp:
    """Results of the parties' own functions, on labels that a mechanism drew here."""

    out: Path
    label_dp: dict[str, Any]
    epsilon: float = 4.0
    true: dict[str, Any] | None = None
    withheld: int = 0

    def job(self) -> Job:
        return read_job(
            {
                "name": "spend",
                "protocol": "label-dp",
                "privacy": {"epsilon": self.epsilon},
                "label_dp": self.label_dp,
                "parties": PARTIES,
            }
        )

    def report(self) -> LabelDPReport:
        """Return the active party's report."""
        job, (features, labels) = self.job().parameters, rows_and_labels()
        fitted = fit(settings_on(LabelGrid(*LABEL_RANGE), job, 0), labels, random.Random(1).randrange)
        noisy = fitted.mechanism.randomise(labels, random.Random(2).randrange)
        noisy[: self.withheld] = np.nan
        receipt = Receipt("meter", "people", 1, "ab", Charges((("x", 1),))).statement()
        released = ReleasedLabels(
            labels=noisy,
            mechanism=fitted.mechanism,
            epsilon=job.epsilon,
            delta=fitted.delta,
            epsilon_prior=fitted.epsilon_prior,
            prior_mechanism=fitted.prior_mechanism or "",
            rows_outside=fitted.rows_outside,
            event="e",
            unit="the label of one row",
            neighbours="one row's label changes",
            receipt=(receipt, b""),
            bytes_sent=1234,
            messages_sent=12,
        )
        rows = Rows([f"u{i}" for i in range(N_ROWS)], features[:2400], features[2400:], COLUMNS)
        me, meter = SimpleNamespace(name="shop", role="active"), SimpleNamespace(name="meter")
        session = SimpleNamespace(
            id=SESSION, me=me, job=job, parameters=job.to_parameters(), with_role=lambda _role: meter
        )
        budget = pb.BudgetDescription(population="people", epsilon=8, delta=1e-5, spent_epsilon=4, releases=1)
        told = fit_rows(rows, released, job, job.trial_randomness, lambda *_: None)
        description = pb.DatasetDescription(snapshot="v1")
        report = report_of(session, rows, released, told, self.true or {}, description, budget, {"fit_s": 0.5})  # type: ignore[arg-type]
        write_json(self.out / "shop" / "model.json", {**told.fit.model.to_dict(), "privacy": report.privacy.to_dict()})
        write_json(self.out / "shop" / "report.json", report.content(session, server="meter"))  # type: ignore[arg-type]
        return report

    def written(self, *, here: bool = True) -> Written:
        """Write the report as after `run`, or as after `submit`."""
        session = JobSession(self.job(), {}, None, id=SESSION)  # type: ignore[arg-type]
        session.state = "DONE"
        session.seconds = {"launch": 1.0, "set_up": 0.5, "job": 2.5}
        session.summaries = {"shop": self.report().fields_for_coordinator(), "meter": {"dataset_rows": N_ROWS}}
        return write_report(session, self.out, list(PARTIES) if here else [])


@pytest.fixture
def made_up(tmp_path: Path) -> Callable[..., MadeUp]:
    return lambda **label_dp: MadeUp(tmp_path / "out", label_dp)


# --- a project on disk ----------------------------------------------------------------------------------


def write_project(root: Path) -> World:
    features, labels = rows_and_labels()
    ids, number = np.array([f"u{i}" for i in range(N_ROWS)]), {"label": "spend", "label_kind": "number"}
    columns = {"id": ids, **dict(zip(COLUMNS, features.T, strict=True))}
    write_csv(root / "study.csv", {**columns, "spend": labels})
    study = {"url": "csv:study.csv", "id": "id", "features": "rest", **number}
    policy = {"systems": ["label-dp"], "max_epsilon": 5.0}
    world = World(root).active("shop", columns, file="rows.csv", policy=policy, datasets={"study": study})
    order = np.random.default_rng(5).permutation(N_ROWS)
    world.server(
        "meter",
        {"id": ids[order], "spend": labels[order]},
        dataset="labels",
        file="labels.csv",
        about={**number, "label_range": LABEL_RANGE},
        populations={"people": {"epsilon": 6.0, "delta": 1e-5}},
        policy={**policy, "min_rows": 500},
    )
    asked = {"privacy": {"epsilon": 4.0}, "label_dp": {"mechanism": "staircase", "regressor": "linear"}}
    return world.job("label-dp", name="spend", seed=3, timeouts={"step_s": 60.0, "reconnect_s": 20.0}, **asked)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[World]:
    made = write_project(tmp_path)
    yield made
    made.stop()


first_run, ran = run_once(write_project, "one")
