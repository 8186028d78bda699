"""Prediction and evaluation jobs, with the training whose model they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.job.job import Job, load_job
from blindfit.parties.files.written import read_json
from blindfit.parties.tables import toml_of


def load_prediction(path: Path, overrides: list[str], session: str | None, model: Path | None) -> Job[Any]:
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


def load_evaluation(
    path: Path, overrides: list[str], session: str | None, model: Path | None, scores: Path | None = None
) -> Job[Any]:
    """An evaluation with the training whose model it takes: by its session, by its report, or as the file says.

    Args:
        scores: where the joint prediction left its report, of a model whose columns several parties hold.

    Raises:
        ConfigError: it is another kind of job, two trainings are named, or the scores are of another model.
        DataError: names a report and what is wrong with it.
    """
    if session is not None and model is not None:
        raise ConfigError("--session and --model both name a training: give one of them")
    if model is not None:
        session = training_session(model)
    chosen = [] if session is None else [f"evaluate.session={toml_of(session)}"]
    if scores is not None:
        chosen.append(f"evaluate.scores={toml_of(training_session(scores))}")
    job = load_job(path, [*overrides, *chosen])
    if job.protocol != "evaluate":
        raise ConfigError(f"{path}: protocol = {job.protocol}, but `blindfit evaluate` takes an evaluate job")
    if scores is not None:
        _check_model_of(scores, job.parameters.evaluate.session)
    return job


def _check_model_of(scores: Path, session: str) -> None:
    """Raises as `load_evaluation`."""
    path = scores / "report.json"
    content = read_json(path)
    job = content.get("job") if isinstance(content, dict) else None
    of = job.get("predict.session", job.get("predict")) if isinstance(job, dict) else None  # a party's report is flat
    of = of.get("session") if isinstance(of, dict) else of
    if not isinstance(of, str):
        raise DataError(f"{path} is not the report of a prediction", hint="give the --out directory of the prediction")
    if of != session:
        raise ConfigError(
            f"{path}: the model of {of} has scored these rows, and evaluate.session is {session}",
            hint="predict with the model that is to be evaluated, or evaluate the one that was predicted with",
        )
