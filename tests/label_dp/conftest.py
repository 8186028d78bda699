"""A label-dp job of two parties: on disk for real processes, and as what its parties would have told and written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tomli_w

from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, fit
from blindfit.algorithms.privacy.ledger import Receipt
from blindfit.coordinator.job.job import Job, read_job
from blindfit.coordinator.report import Written
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.files.written import write_json
from blindfit.parties.label_dp.consumer import fit_rows, settings_on
from blindfit.parties.label_dp.fit import Rows
from blindfit.parties.label_dp.report import Outcome, report_of, summary_of
from blindfit.parties.measurement.client import ReleasedLabels
from blindfit.protos import measurement_pb2 as pb
from tests.processes.conftest import Kept, Project, folder
from tests.reports import write_report

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
    """The parties' own functions, on labels that a mechanism drew here."""

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

    def report(self) -> dict[str, Any]:
        """What the active party writes."""
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
        )
        rows = Rows([f"u{i}" for i in range(N_ROWS)], features[:2400], features[2400:], COLUMNS)
        me, meter = SimpleNamespace(name="shop", role="active"), SimpleNamespace(name="meter")
        session = SimpleNamespace(
            id=SESSION, me=me, job=job, parameters=job.to_parameters(), with_role=lambda _role: meter
        )
        budget = pb.BudgetDescription(population="people", epsilon=8, delta=1e-5, spent_epsilon=4, releases=1)
        told = fit_rows(rows, released, job, job.trial_randomness, lambda *_: None)
        description = pb.DatasetDescription(snapshot="v1")
        report = report_of(Outcome(session, rows, released, told, self.true or {}, description, budget, {"fit_s": 0.5}))  # type: ignore[arg-type]
        write_json(self.out / "shop" / "model.json", {**told.fit.model.to_dict(), "privacy": report["privacy"]})
        write_json(self.out / "shop" / "report.json", report)
        return report

    def written(self, *, here: bool = True) -> Written:
        """As after `run`, or as after `submit`."""
        session = JobSession(self.job(), {}, None, id=SESSION)  # type: ignore[arg-type]
        session.state = "DONE"
        session.seconds = {"launch": 1.0, "set_up": 0.5, "job": 2.5}
        session.summaries = {"shop": summary_of(self.report()), "meter": {"dataset_rows": N_ROWS}}
        return write_report(session, self.out, list(PARTIES) if here else [])


@pytest.fixture
def made_up(tmp_path: Path) -> Callable[..., MadeUp]:
    return lambda **label_dp: MadeUp(tmp_path / "out", label_dp)


# --- a project on disk ----------------------------------------------------------------------------------


def party(name: str, role: str, other: str, other_role: str, dataset: dict[str, Any]) -> dict[str, Any]:
    files = {"certificate": "unread", "key": "unread", "authority": "unread"}
    return {
        "name": name,
        "role": role,
        "data_dir": f"state/{name}",
        "identity": files,
        "peers": {"coordinator": {"role": "coordinator"}, other: {"role": other_role}},
        "policy": {"accept_seed": True, "systems": ["label-dp"], "max_epsilon": 5.0},
        "datasets": {"rows" if role == "active" else "labels": {"id": "id", **dataset}},
    }


def write_project(directory: Path) -> None:
    features, labels = rows_and_labels()
    lines = [f"u{i}," + ",".join(map(str, row)) for i, row in enumerate(features)]
    (directory / "rows.csv").write_text("id," + ",".join(COLUMNS) + "\n" + "\n".join(lines) + "\n")
    order = np.random.default_rng(5).permutation(N_ROWS)
    (directory / "labels.csv").write_text("id,spend\n" + "".join(f"u{i},{labels[i]}\n" for i in order))
    study = [f"{line},{label}" for line, label in zip(lines, labels, strict=True)]
    (directory / "study.csv").write_text("id," + ",".join(COLUMNS) + ",spend\n" + "\n".join(study) + "\n")
    shop = party("shop", "active", "meter", "measurement", {"url": "csv:rows.csv", "features": "rest"})
    shop["datasets"]["study"] = {
        "url": "csv:study.csv", "id": "id", "features": "rest", "label": "spend", "label_kind": "number"
    }  # fmt: skip
    labels_of = {"url": "csv:labels.csv", "label": "spend", "label_kind": "number", "label_range": list(LABEL_RANGE)}
    meter = party(
        "meter", "measurement", "shop", "active", {**labels_of, "population": "people", "active_parties": ["shop"]}
    )
    meter["policy"]["min_rows"] = 500
    meter["populations"] = {"people": {"epsilon": 6.0, "delta": 1e-5}}
    job = {
        "name": "spend",
        "protocol": "label-dp",
        "seed": 3,
        "parties": {name: {**seat, "config": f"{name}.toml"} for name, seat in PARTIES.items()},
        "privacy": {"epsilon": 4.0},
        "label_dp": {"mechanism": "staircase", "regressor": "linear"},
        "timeouts": {"step_s": 60.0, "reconnect_s": 20.0},
    }
    for name, content in (("job", job), ("shop", shop), ("meter", meter)):
        (directory / f"{name}.toml").write_text(tomli_w.dumps(content))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    write_project(tmp_path)
    made = Project(tmp_path)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    project = Project(folder(tmp_path_factory))
    write_project(project.directory)
    return Kept.after_a_run(project, "one")


@pytest.fixture
def ran(first_run: Kept) -> Iterator[Project]:
    """A project whose job has run once, into one."""
    with first_run.anew() as project:
        yield project
