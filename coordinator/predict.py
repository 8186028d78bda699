"""Which training's model a prediction takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.job import Job, load_job
from blindfit.parties.files.written import read_json
from blindfit.parties.tables import toml_of


def load(path: Path, overrides: list[str], session: str | None, model: Path | None) -> Job[Any]:
    """A prediction job with the training whose model it takes: by its session, by its report, or as the file says.

    Raises:
        ConfigError: it is another kind of job, or two trainings are named.
    """
    if session is not None and model is not None:
        raise ConfigError("--session and --model both name a training: give one of them")
    if model is not None:
        session = training_session(model)
    chosen = [] if session is None else [f"predict.session={toml_of(session)}"]
    job = load_job(path, [*overrides, *chosen])
    if job.protocol != "predict":
        raise ConfigError(f"{path}: protocol = {job.protocol}, but `blindfit predict` takes a predict job")
    return job


def training_session(directory: Path) -> str:
    """Of the training that left its report in this directory.

    Raises:
        DataError: names the file and what is wrong with it.
    """
    path = directory / "report.json"
    content = read_json(path)
    session = content.get("session") if isinstance(content, dict) else None
    if not isinstance(session, str):
        raise DataError(f"{path} is not the report of a training", hint="give the --out directory of the training")
    return session
