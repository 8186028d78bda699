"""Causes that end a running job or a plan: long computations, parties elsewhere, missing rows."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.jobs.plan import plan
from blindfit.coordinator.plan.asked import Asked
from blindfit.parties.compute import ComputeSettings
from blindfit.parties.evaluate.consumer import Scored, make_scored_rows
from blindfit.parties.evaluate.settings import EvaluateJob
from blindfit.parties.work.compute import open_workers
from blindfit.parties.work.long_work import while_wanted
from tests.hints.following import Told, refused, says
from tests.hints.measured import measured


async def test_a_long_computation() -> None:
    def work(_still_wanted: object) -> int:
        time.sleep(0.2)
        return 3

    with refused("raise timeouts.session_s"):
        await while_wanted(work, max_s=0.01)
    assert await while_wanted(work, max_s=60.0) == 3


def test_a_task_that_takes_long() -> None:
    def work() -> int:
        time.sleep(0.5)
        return 3

    def settings(timeout_s: float) -> ComputeSettings:
        return ComputeSettings(workers=2, task_timeout_s=timeout_s)

    with refused("look for a worker that is stuck or missing; if a task takes so long, raise compute.task_timeout_s"):
        with open_workers(settings(0.01)) as workers:
            workers.map(work, [()])
    with open_workers(settings(60.0)) as workers:
        assert workers.map(work, [()]) == [3]


@pytest.mark.parametrize("rows", ["held-out", "all"])
def test_an_evaluation_without_rows(rows: str) -> None:
    """An evaluation on all rows has no rows if the dataset has none; then no option leads to some."""
    job = EvaluateJob.model_validate({"evaluate": {"session": "s1", "rows": rows}, "privacy": {"epsilon": 1.0}})
    none, some = Scored((), np.zeros(0)), Scored(("a",), np.ones(1))
    with pytest.raises(DataError, match="there is no row to evaluate on") as caught:
        make_scored_rows(none, job)
    told = Told(says('train with a split.test_fraction above 0, or set evaluate.rows = "all"'))
    assert told.is_in(caught.value.hint) == (rows == "held-out")
    make_scored_rows(some, job)


def test_a_plan_of_a_party_that_is_elsewhere(tmp_path: Path) -> None:
    project = measured(tmp_path, "walr")
    asked = Asked(epsilons=(1.0,), base_rate=0.4, strength=1.0, draws=2)

    def planned(*overrides: str) -> None:
        job = load_job(tmp_path / "job.toml", overrides)
        plan(job, asked, tmp_path / "out", Console(quiet=True))

    project.set("parties.shop.config", None, "job")
    for name in project.roles:
        project.set(f"parties.{name}.address", f"{name}.example.org:7100", "job")
    project.set("coordinator", dict.fromkeys(("certificate", "key", "authority"), "none"), "job")
    with refused('set parties.{}.config = "{}.toml", or where its party file is') as told:
        planned()
    planned(*told.sets)
