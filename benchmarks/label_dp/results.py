"""Finished outcomes of benchmarks.label_dp in a file, so that a stopped run can continue."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.label_dp.arms import Case
from benchmarks.label_dp.data import Dataset

Outcome = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """File with one outcome a line, together with all that it depends on. Outcomes of other settings are not found.

    Attributes:
        settings: settings of the training.
    """

    path: Path
    settings: Mapping[str, Any]

    def found(self, dataset: Dataset) -> dict[tuple[int, Case], Outcome]:
        """Return outcomes by seed and case; a line that a killed run left unfinished is ignored."""
        if not self.path.exists():
            return {}
        made_from, outcomes = self._made_from(dataset), {}
        for line in self.path.read_text().splitlines():
            try:
                kept = json.loads(line)
            except json.JSONDecodeError:
                continue
            if kept["made_from"] == made_from:
                outcome = kept["outcome"]
                outcomes[outcome["seed"], case_of(outcome)] = outcome
        return outcomes

    def add(self, dataset: Dataset, outcomes: Iterable[Outcome]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        made_from = self._made_from(dataset)
        lines = [json.dumps({"made_from": made_from, "outcome": outcome}) for outcome in outcomes]
        with self.path.open("a+b") as file:
            file.write(
                "".join(f"\n{line}" for line in lines).encode()
            )  # what was left unfinished stays a line of its own

    def _made_from(self, dataset: Dataset) -> dict[str, Any]:
        content = hashlib.sha256(dataset.features.tobytes() + dataset.labels.tobytes()).hexdigest()
        return {"dataset": dataset.name, "rows": content, "blindfit": version("blindfit"), **self.settings}


def case_of(outcome: Outcome) -> Case:
    return Case(**{field.name: outcome[field.name] for field in fields(Case)})


def outcome_of(case: Case, seed: int, error: float) -> Outcome:
    return {**asdict(case), "seed": seed, "mse": error}
