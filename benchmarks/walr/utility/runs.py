"""Runs of benchmarks.walr.utility: options chosen on validation rows, and losses on held-out rows, kept at once."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.walr.utility.bags import Proportions
from benchmarks.walr.utility.bins import BinnedWalr
from benchmarks.walr.utility.buckets import Pairs, Singles
from benchmarks.walr.utility.descent import Descent
from benchmarks.walr.utility.means import DEFAULT_WALR, Objective, RandomisedResponse, Walr
from benchmarks.walr.utility.task import DELTA, Arm, Floats, Option, Task
from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.statistics.quality import metrics

ARMS: tuple[Arm, ...] = (
    DEFAULT_WALR,
    Walr("WALR, mu clipped", automatic=True, treatment="clip"),
    Walr("WALR, l2 = 1/rows, mu projected", automatic=False, treatment="project"),
    Walr("WALR, l2 = 1/rows, mu as released", automatic=False, treatment="as-released"),
    BinnedWalr(),
    Singles(),
    Pairs(),
    Proportions(),
    RandomisedResponse(),
    Objective(),
    Descent(),
)
TUNING_SEED = 1_000  # first seed of the tuning; figures have smaller ones


@dataclass(frozen=True)
class Effort:
    """
    Args:
        seeds: draws of the noise behind a figure.
        tuning_seeds: draws behind a choice of options; with 0 the first option is taken.
        tuned_at: epsilons at which options are chosen; the others take the options of the nearest one.
    """

    seeds: int
    tuning_seeds: int
    epsilons: tuple[float, ...]
    tuned_at: tuple[float, ...]


@dataclass
class Results:
    """Figures so far, kept in a file after each; a figure in the file is not measured again."""

    figures: dict[str, Any]
    path: Path | None

    @classmethod
    def of(cls, path: Path | None, machine: Mapping[str, Any]) -> Results:
        kept = json.loads(path.read_text()) if path and path.exists() else {}
        return cls({"machine": machine, "delta": DELTA, "data": kept.get("data", {})}, path)

    def of_data(self, task: Task, effort: Effort) -> dict[str, Any]:
        made_from = {"rows": digest_of(task), "effort": asdict(effort) | {"epsilons": 0}, "version": 1}
        made_from = json.loads(json.dumps(made_from))
        if self.figures["data"].get(task.name, {}).get("made_from") != made_from:
            self.figures["data"][task.name] = {"made_from": made_from} | described(task, effort)
        found: dict[str, Any] = self.figures["data"][task.name]
        return found

    def write(self) -> None:
        if self.path:
            unfinished = self.path.with_name(f".{self.path.name}.unfinished")
            unfinished.write_text(json.dumps(self.figures, indent=2) + "\n")
            os.replace(unfinished, self.path)


def digest_of(task: Task) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(task.integers).data)
    for part in task.labels.values():
        digest.update(part.tobytes())
    return digest.hexdigest()


def described(task: Task, effort: Effort) -> dict[str, Any]:
    return {
        "rows": {part: len(labels) for part, labels in task.labels.items()},
        "features": len(task.groups),
        "columns": task.rows["train"].shape[1],
        "base_rate": float(task.trained_on.mean()),
        "norm_bound": task.norm_bound,
        "seeds": effort.seeds,
        "without_privacy": without_privacy(task),
        "processor_s": 0.0,
        "arms": {},
    }


def without_privacy(task: Task) -> float:
    """Return the normalised entropy of scikit-learn's maximum likelihood on standardised rows that are not clipped."""
    model = LogisticRegression(C=np.inf, tol=1e-6, max_iter=1000).fit(task.columns["train"], task.trained_on)
    return loss(task, "test", lambda part: model.predict_proba(task.columns[part])[:, 1])


def loss(task: Task, part: str, predict: Callable[[str], Floats]) -> float:
    """Return the normalised entropy: log loss over that of the part's own base rate."""
    return metrics.normalised_entropy(task.labels[part], predict(part))


def measure(
    task: Task, arms: Sequence[Arm], effort: Effort, results: Results, say: Callable[[str], None]
) -> dict[str, Any]:
    figures = results.of_data(task, effort)
    for arm in (arm for arm in arms if arm.options(task)):
        rows = figures["arms"].setdefault(arm.title, [])
        done = {row["epsilon"] for row in rows}
        chosen: dict[float, Option] = {row["tuned_at"]: row["option"] for row in rows}
        for epsilon in effort.epsilons:
            if epsilon in done:
                continue
            started = time.process_time()
            near = min(effort.tuned_at, key=lambda known: abs(math.log(known / epsilon)))
            if near not in chosen:
                chosen[near] = choose(task, arm, near, effort.tuning_seeds)
            drawn = [drawn_loss(task, "test", arm, epsilon, chosen[near], seed) for seed in range(effort.seeds)]
            rows.append({"epsilon": epsilon, "option": chosen[near], "tuned_at": near} | spread(drawn))
            figures["processor_s"] += time.process_time() - started
            results.write()
            say(f"{task.name}, {arm.title}, epsilon {epsilon:g}: {rows[-1]['median']} {dict(chosen[near])}")
    return figures


def choose(task: Task, arm: Arm, epsilon: float, seeds: int) -> Option:
    """Return the option with the least median loss on validation rows, at no cost in privacy."""
    options = arm.options(task)
    if len(options) == 1 or not seeds:
        return options[0]

    def median(option: Option) -> float:
        drawn = range(TUNING_SEED, TUNING_SEED + seeds)
        return float(np.median([drawn_loss(task, "validation", arm, epsilon, option, seed) for seed in drawn]))

    return min(options, key=median)


def drawn_loss(task: Task, part: str, arm: Arm, epsilon: float, option: Option, seed: int) -> float:
    """Return the loss of one draw, which is infinite where the release has no model."""
    try:
        return loss(task, part, arm.fit(task, epsilon, option, seed))
    except RangeError:
        return math.inf


def spread(drawn: Sequence[float]) -> dict[str, Any]:
    """Return the median and percentiles of draws; None stands for infinity, which JSON does not know."""
    low, median, high = np.quantile(drawn, [0.05, 0.5, 0.95], method="inverted_cdf")
    return {
        "median": finite(median),
        "low": finite(low),
        "high": finite(high),
        "of_each_draw": [finite(one) for one in drawn],
    }


def finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
