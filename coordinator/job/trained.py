"""Prediction and evaluation jobs, with the training that made their model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.rehearsal import NOTHING, stamp_of
from blindfit.coordinator.job.job import Job, merge, read_tables
from blindfit.parties.files.written import read_json
from blindfit.parties.systems import SYSTEMS


def prediction_of(
    source: Mapping[str, Any] | str | Path | Job[Any],
    session: str | None = None,
    model: Path | None = None,
    *,
    rehearses: bool = False,
    **how: Any,
) -> Job[Any]:
    """Return a prediction job with the training that made its model: by session, by report, or as in the source.

    Args:
        how: `folder`, `called` and tables, as `Job` takes them.

    Raises:
        ConfigError: it is another kind of job, or two trainings are named.
        DataError: a report is wrong; names the report and the error.
    """
    return _with_model("predict", source, _choose(session, model, rehearses=rehearses), how)


def job_with_model(
    source: Mapping[str, Any] | str | Path | Job[Any], model: Path | None, *, rehearses: bool, **how: Any
) -> Job[Any]:
    """Return the job of any kind that a source describes. A folder may name the training that made its model.

    Raises:
        ConfigError: a job of this kind takes no model.
        DataError: a report is wrong; names the report and the error.
    """
    if model is None:
        return Job(source, **how)
    given = _protocol_of(source, how)
    if given == "evaluate":
        return evaluation_of(source, None, model, rehearses=rehearses, **how)
    if given in SYSTEMS and given != "predict":
        called = how.get("called") or "the job"
        raise ConfigError(
            f"{called}: protocol = {given}, and only a predict or an evaluate job takes a model",
            hint="leave out --model (in Python, model)",
        )
    return prediction_of(source, None, model, rehearses=rehearses, **how)


def _choose(session: str | None, model: Path | None, *, rehearses: bool) -> str | None:
    if session is not None and model is not None:
        raise ConfigError("--session and --model both name a training: give one of them")
    return session if model is None else training_session(model, rehearses=rehearses)


def _with_model(
    protocol: str,
    source: Mapping[str, Any] | str | Path | Job[Any],
    session: str | None,
    how: dict[str, Any],
) -> Job[Any]:
    """Return the job; raise errors as `prediction_of`."""
    given = _protocol_of(source, how)
    if given in SYSTEMS and given != protocol:  # first, because a table of the wanted kind would be refused by its name
        called, article = how.get("called") or "the job", "an evaluate" if protocol == "evaluate" else "a predict"
        raise ConfigError(f"{called}: protocol = {given}, but `blindfit {protocol}` takes {article} job")
    return Job(source, **merge(how, {} if session is None else {protocol: {"session": session}}))


def _protocol_of(source: Mapping[str, Any] | str | Path | Job[Any], how: Mapping[str, Any]) -> Any:
    """Return the protocol that the source names, or the one that replaces it."""
    if "protocol" in how:
        return how["protocol"]
    if isinstance(source, Job):
        return source.protocol
    tables = source if isinstance(source, Mapping) else read_tables(Path(source))
    return tables.get("protocol")


def training_session(directory: Path, *, rehearses: bool = False) -> str:
    """Return the session of the training that left its report in this directory.

    Raises:
        DataError: the file is wrong; names the file and the error. Or a real job would take a rehearsed model, or the
            reverse.
    """
    path = directory / "report.json"
    content = read_json(path)
    if stamp_of(content) and not rehearses:
        raise DataError(
            f"{path} comes from a rehearsal: {NOTHING}",
            hint="add --rehearse (in Python, rehearse=True), or name a real training",
        )
    session = content.get("session") if isinstance(content, dict) else None
    if not isinstance(session, str):
        raise DataError(f"{path} is not the report of a training", hint="give the --out directory of the training")
    return session


def evaluation_of(
    source: Mapping[str, Any] | str | Path | Job[Any],
    session: str | None = None,
    model: Path | None = None,
    scores: Path | None = None,
    *,
    rehearses: bool = False,
    **how: Any,
) -> Job[Any]:
    """Return an evaluation with the training that made its model: by session, by report, or as in the source.

    Args:
        scores: folder of the joint prediction's report, for a model whose columns several parties hold.
        how: `folder`, `called` and tables, as `Job` takes them.

    Raises:
        ConfigError: it is another kind of job, two trainings are named, or the scores come from another model.
        DataError: a report is wrong; names the report and the error.
    """
    scored = {} if scores is None else {"evaluate": {"scores": training_session(scores, rehearses=rehearses)}}
    chosen = _choose(session, model, rehearses=rehearses)
    job = _with_model("evaluate", source, chosen, merge(how, scored))
    if scores is not None:
        _check_model_of(scores, job.parameters.evaluate.session)
    return job


def _check_model_of(scores: Path, session: str) -> None:
    """Check the model of the scores; raise errors as `evaluation_of`."""
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
            hint="predict with the model to evaluate, or evaluate the model of that prediction",
        )
