"""Configurations of the Falcon format, and what imports them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS, COLUMNS = 300, 2


PARTIES = ["party0", "party1", "party2"]


CONFIG = "tasks.model_training.input_configs.algorithm_config"


Json = dict[str, Any]


def falcon_job(parties: int = 3) -> Json:
    """Return all the fields, with other values than the defaults where they can be."""
    return {
        "job_name": "credit card/1",
        "job_info": "who pays back",
        "job_fl_type": "vertical",
        "existing_key": 1,
        "party_nums": parties,
        "task_num": 1,
        "party_info": [
            {
                "id": n,
                "addr": f"127.0.0.1:{30005 + n}",
                "party_type": "passive" if n else "active",
                "path": {"data_input": f"party{n}", "data_output": f"out{n}", "model_path": f"model{n}"},
            }
            for n in range(parties)
        ],
        "distributed_task": {"enable": 1, "worker_number": 4, "average": 1},
        "tasks": {
            "model_training": {
                "mpc_algorithm_name": "logistic_regression",
                "algorithm_name": "logistic_regression",
                "input_configs": {
                    "data_input": {"data": "client.txt", "key": "phe_keys"},
                    "algorithm_config": {
                        "batch_size": 64,
                        "max_iteration": 8,
                        "convergence_threshold": 0.001,
                        "with_regularization": True,
                        "penalty": "l2",
                        "alpha": 0.05,
                        "learning_rate": 0.25,
                        "decay": 0.2,
                        "optimizer": "sgd",
                        "multi_class": "ovr",
                        "metric": "acc",
                        "differential_privacy_budget": 0.3,
                        "fit_bias": False,
                    },
                },
                "output_configs": {"trained_model": "saved_model.pb", "evaluation_report": "report.txt"},
            }
        },
    }


def put(path: str, value: Any) -> Callable[[Json], None]:
    def change(job: Json) -> None:
        holder, last = _holder(job, path)
        holder[last] = value

    return change


def drop(path: str) -> Callable[[Json], None]:
    def change(job: Json) -> None:
        holder, last = _holder(job, path)
        del holder[last]

    return change


def _holder(job: Any, path: str) -> tuple[Any, Any]:
    *names, last = (int(name) if name.isdigit() else name for name in path.split("."))
    for name in names:
        job = job[name]
    return job, last


def make(directory: Path) -> None:
    """Write a job and everybody's rows; the labels follow from all of them."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(ROWS, COLUMNS * len(PARTIES)))
    labels = X[:, 0] + X[:, 2] - X[:, 4] + draw.logistic(size=ROWS) > 0
    for n, name in enumerate(PARTIES):
        block = X[:, n * COLUMNS :][:, :COLUMNS]
        (directory / name).mkdir()
        lines = np.column_stack([block, labels]) if n == 0 else block
        np.savetxt(directory / name / "client.txt", lines, delimiter=",")
    write(directory)


def write(directory: Path, *changes: Callable[[Json], None]) -> None:
    job = falcon_job()
    for change in changes:
        change(job)
    (directory / "job.json").write_text(json.dumps(job))
