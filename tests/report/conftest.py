"""A job that nobody ran, with the reports and files that its parties would have made."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.ledger import Receipt
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.files.written import write_json
from tests.report.drawn_once import every_plot_drawn_once
from tests.report.jobs import renamed
from tests.reports import write_report

SESSION = "walr-0badcafe"
PARTIES = {
    "insurer": {"role": "active", "dataset": "people"},
    "clinic": {"role": "measurement", "dataset": "visits"},
}
MODEL_TABLES = ("rows", "privacy", "fit", "timing")
# Same content as `blindfit.parties.walr.report.report_of` makes; test_content.py compares the two.
PARTY_REPORT: dict[str, Any] = {
    "session": SESSION,
    "party": "insurer",
    "role": "active",
    "job": {"protocol": "walr", "seed": 7, "privacy.epsilon": 1.0, "privacy.delta": 1e-5, "walr.mu": "as-released"},
    "rows": {
        "trained": 14_130,
        "held_out": 6_056,
        "clipped": 142,
        "not_counted": 0,
        "unknown": 0,
        "features": 3,
        "dropped_columns": [],
    },
    "privacy": {
        "unit": "the label of one row",
        "neighbours": "one row's label changes, number and weights of the rows public",
        "max_rows_per_person": 0,
        "epsilon": 1.0,
        "delta": 1e-5,
        "mechanism": "analytic Gaussian, drawn as discrete Gaussian on a grid of 2^-16",
        "sensitivity": 8.8,
        "noise_std_of_sum": 32.83,
        "noise_std_of_mean": 0.002323,
        "norm_bound": 8.8,
        "population": "patients",
        "budget_epsilon": 4.0,
        "budget_delta": 1e-5,
        "spent_epsilon": 1.0,
        "releases": 1,
        "snapshot": "5eed",
        "request_id": "abcd",
        "receipt": Receipt("clinic", "patients", 1, "ab", Charges((("gaussian", 1),))).statement().decode(),
    },
    "fit": {
        "solver": "newton",
        "iterations": 4,
        "converged": True,
        "reason": "the tolerance was reached",
        "gradient_norm": 1.5e-10,
        "objective_history": [0.6931, 0.5112, 0.4803, 0.4788, 0.4787],
        "l2": 0.0061,
        "mu": "as-released",
        "feasible": True,
        "feasibility": "there are probabilities strictly between 0 and 1 that give this mu",
        "mean_prediction": 0.312,
    },
    "bytes_sent": 1_234_567,
    "messages_sent": 12,
    "timing": {"prepare_s": 0.42, "aggregate_s": 1.3, "fit_s": 0.08},
}


@dataclass
class MadeUp:
    """A finished job; a test changes what it is about, then writes."""

    out: Path
    name: str = "walr"
    weights: dict[str, float] = field(default_factory=lambda: {"age": 0.713211, "income": -0.4519, "visits": 0.0813})
    intercept: float | None = -0.931745
    report: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(PARTY_REPORT))

    def session(self, **changes: ParameterValue) -> JobSession:
        """`changes` are of the active party's summary: rows__clipped = 3."""
        # Names that the job file would refuse reach the page: it must not rely on the job file.
        job = read_job({"protocol": "walr", "privacy": {"epsilon": 1.0}, "parties": PARTIES})
        made = JobSession(renamed(job, self.name), {}, None, id=SESSION)  # type: ignore[arg-type]
        made.state = "DONE"
        made.seconds = {"launch": 1.2, "set_up": 0.3, "job": 2.5}
        made.summaries = {"insurer": self._summary(changes), "clinic": self._server_summary()}
        return made

    def _summary(self, changes: dict[str, ParameterValue]) -> dict[str, ParameterValue]:
        flat: dict[str, ParameterValue] = {
            f"{table}.{name}": tuple(value) if isinstance(value, list) else value
            for table in MODEL_TABLES
            for name, value in self.report[table].items()
            if name not in ("gradient_norm", "objective_history", "receipt", "mean_prediction") and value is not None
        }
        flat |= {"bytes_sent": self.report["bytes_sent"], "peak_memory_mib": 182.4}
        return flat | {name.replace("__", "."): value for name, value in changes.items()}

    def _server_summary(self) -> dict[str, ParameterValue]:
        return {"dataset": "visits", "dataset_rows": 20_186, "population": "patients", "peak_memory_mib": 96.1}

    def model(self) -> dict[str, Any]:
        names = tuple(self.weights)
        ones = (1.0,) * len(names)
        standardiser = Standardiser(names, tuple(range(len(names))), ones, ones)
        numbers = [*self.weights.values(), *([] if self.intercept is None else [self.intercept])]
        return WALRModel(standardiser, numbers, self.intercept is not None, 8.8).to_dict()  # type: ignore[arg-type]

    def write_party(self, directory: Path | None = None) -> Path:
        """Write what the active party writes into its own directory."""
        directory = directory or self.out / "insurer"
        write_json(directory / "model.json", self.model())
        write_json(directory / "report.json", self.report)
        return directory


@pytest.fixture(autouse=True)
def _plots() -> Iterator[None]:
    with every_plot_drawn_once():
        yield


@pytest.fixture
def made_up(tmp_path: Path) -> MadeUp:
    return MadeUp(tmp_path / "out")


@pytest.fixture
def page(made_up: MadeUp) -> Callable[..., str]:
    """The page of a run on this machine."""

    def render(**changes: ParameterValue) -> str:
        for name, value in changes.items():
            table, _, field = name.partition("__")
            made_up.report[table][field] = value
        made_up.write_party()
        return write_report(made_up.session(**changes), made_up.out, ["insurer", "clinic"]).html_path.read_text("utf-8")

    return render
