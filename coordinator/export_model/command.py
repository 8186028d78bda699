"""`blindfit export-model`: read models, and write them in another system's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, Literal, get_args

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.model_export.formula import Formula, formula_of
from blindfit.algorithms.statistics.linear.fitted_model import FittedModel
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.terminal.json_output import Found
from blindfit.parties.files.written import read_json, write_file
from blindfit.parties.systems import load_model

Format = Literal["onnx", "pmml", "python", "sql"]
Dialect = Literal["sqlite", "postgresql"]
SUFFIXES: Mapping[str, str] = {"onnx": ".onnx", "pmml": ".pmml", "python": ".py", "sql": ".sql"}
REPORT = "report.json"


def export_model(models: Sequence[object], form: str, dialect: str | None = None, out: Path | None = None) -> Found:
    """Write one model, or all parts of one, in another format.

    Args:
        models: paths of model files, or models in memory.
        out: the file to write; by default it stands next to the first model's file.

    Raises:
        ConfigError: the format or dialect is unknown, a package is missing, or the file cannot be written.
        DataError: a file is not a model that can be exported.
    """
    if form not in get_args(Format):
        raise ConfigError(f"{form!a} is not a format", hint=f"take one of {', '.join(get_args(Format))}")
    if dialect is not None and form != "sql":
        raise ConfigError(f"--dialect does nothing in an export to {form}", hint="remove it")
    if dialect is not None and dialect not in get_args(Dialect):
        raise ConfigError(f"{dialect!a} is not a dialect", hint=f"take one of {', '.join(get_args(Dialect))}")
    if not models:
        raise ConfigError("no model is named", hint="name a model.json")
    paths = [Path(each) for each in models if isinstance(each, str | Path)]
    for path in paths:
        _refuse_folder(path)
    fitted = [load_model(each) if isinstance(each, str | Path) else each for each in models]
    for each, model in zip(models, fitted, strict=True):
        if stamp := getattr(model, "rehearsal", ""):
            named = each if isinstance(each, str | Path) else "the model"
            raise DataError(f"{named} comes from a {stamp}", hint="export the model of a job that ran for real")
    formula = formula_of(fitted, _about(paths, fitted))
    content = _write(formula, form, dialect or "sqlite", fitted)
    target = out or (paths[0] if paths else Path("model.json")).with_suffix(SUFFIXES[form])
    write_file(target, content)
    document = {
        "file": target,
        "format": form,
        "inputs": [each.name for each in formula.inputs],
        "outputs": formula.outputs,
    }
    lines = [f"{target}: {len(formula.inputs)} columns in, {', '.join(formula.outputs)} out"]
    if formula.predicts == "none" and isinstance(fitted[0], VerticalModelPart):
        others = ", ".join(set(fitted[0].data_parties) - {formula.parts[0].party})
        lines.append(f"score_part is only this party's part of a score: add the parts of {others}")
    return Found(document, lines)


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        found = [quote(str(each)) for each in sorted(path.glob("*/model.json"))]
        raise ConfigError(
            f"{path} is a folder, and an export takes model files",
            hint=f"name {' '.join(found)}" if found else "name a model.json",
        )


def _write(formula: Formula, form: str, dialect: str, fitted: Sequence[Any]) -> bytes:
    if form == "onnx":
        from blindfit.algorithms.model_export.onnx_graph import write_onnx

        return write_onnx(formula)
    if form == "pmml":
        from blindfit.algorithms.model_export.pmml import write_pmml

        return write_pmml(formula)
    if form == "sql":
        from blindfit.algorithms.model_export.sql import write_sql

        return write_sql(formula, dialect).encode()
    from blindfit.coordinator.export_model.python_file import write_python

    order = {part.party: place for place, part in enumerate(formula.parts)}
    in_order = sorted(fitted, key=lambda model: order.get(getattr(model, "party", ""), 0))
    return write_python(formula, [model.to_dict() for model in in_order]).encode()


def _about(paths: Sequence[Path], fitted: Sequence[Any]) -> dict[str, str]:
    """Return the session of the files and their privacy statement.

    Raises:
        DataError: the files are of several sessions.
    """
    sessions = {path: read_json(path).get("session") for path in paths}
    if len(set(sessions.values())) > 1:
        raise DataError("the parts are not from one training", hint="take the files of one session")
    session = next(iter(sessions.values()), None)
    about = {"session": str(session)} if session else {}
    if isinstance(fitted[0], VerticalModelPart):
        about["parties of the training"] = ", ".join(fitted[0].data_parties)
        about["privacy"] = _statement(paths, session) or "the report of the training has the privacy statement"
    elif isinstance(fitted[0], FittedModel):
        about["privacy"] = fitted[0].privacy_statement_
    return about


def _statement(paths: Sequence[Path], session: object) -> str:
    """Return the statement of the training's report, which is in the folder of the model or above it."""
    for path in paths:
        for folder in (path.parent, path.parent.parent):
            if session is None or not (folder / REPORT).is_file():
                continue
            report = read_json(folder / REPORT)
            if isinstance(report, dict) and report.get("session") == session and "privacy_statement" in report:
                sections = report["privacy_statement"]
                return " ".join(f"{each['title']}: {' '.join(each['sentences'])}" for each in sections)
    return ""
