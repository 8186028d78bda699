"""The content of report.json, which the pages and the terminal show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import DataError, MalformedMessage, RangeError
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.rehearsal import FIELD, WARNINGS
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.network import describe_network
from blindfit.coordinator.report.rehearsed import describe_rehearsal
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.files.written import read_json
from blindfit.version import __version__


def content_of(kind: Kind[Any], session: JobSession, out: Path, parties_here: list[str]) -> dict[str, Any]:
    """Return the content of a report.

    Args:
        parties_here: parties whose own report and model are in `out/<name>/`; only summaries of the others are known.


    Raises:
        MalformedMessage, DataError: a party's summary cannot make a report.
    """
    content = {
        **_header(session.id, session.job.name, session.job.protocol, session.state),
        **describe_rehearsal(session, out, parties_here),
        "job": _job(session.job),
        **describe_network(session.job),
        "parties": {name: _party(session, name) for name in session.job.parties},
        "seconds": dict(session.seconds),
        **session.notes,
        "parties_here": list(parties_here),
        **_files_here(session.id, out, parties_here, kind),
    }
    return _complete(kind, content)


def _job(job: Job[Any]) -> dict[str, Any]:
    """Return the job with every default that its system uses."""
    return job.to_dict()


def content_of_party(kind_of: Callable[[str], Kind[Any]], directory: Path) -> dict[str, Any]:
    """Return the content of a report from the files that one party wrote into its own directory.

    Args:
        kind_of: function that finds the kind of report by the name of its system.

    Raises:
        DataError: a file is wrong; names the file and the error.
    """
    path = directory / "report.json"
    report = _read_table(path)
    if "parties" in report:
        raise DataError(f"{path} is a whole job's report, not a party's", hint="its report.html is next to it")
    try:
        name, job = str(report["party"]), dict(report["job"])
        kind = kind_of(str(job["protocol"]))
        model = _model(directory, kind)
        content = {
            **_header(str(report["session"]), str(report["session"]), str(job["protocol"]), "DONE"),
            **{name: report[name] for name in (FIELD, WARNINGS) if name in report},
            "job": nest(job, name),
            "parties": {
                name: {"role": str(report["role"]), "dataset": str(report.get("dataset", "")), "summary": report},
                **{
                    peer: {"role": role, "dataset": "", "summary": {}} for peer, role in kind.members_in(report).items()
                },
            },
            "seconds": {},
            "parties_here": [],
            "models": {} if model is None else {name: model},
            "party_reports": {name: report},
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError(f"{path} is not the report of an active or a passive party") from None
    return _complete(kind, content)


def _header(session: str, name: str, protocol: str, state: str) -> dict[str, Any]:
    return {
        "blindfit": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "session": session,
        "name": name,
        "protocol": protocol,
        "state": state,
    }


def _complete(kind: Kind[Any], content: dict[str, Any]) -> dict[str, Any]:
    check_finite(content, "the report")
    statement = [asdict(section) for section in kind.statement.privacy_statement(content)]
    return {**content, "privacy_statement": statement}


# --- summaries of the parties -------------------------------------------------------------------------


def _party(session: JobSession, name: str) -> dict[str, Any]:
    party = session.job.parties[name]
    return {
        "role": party.role,
        "dataset": party.dataset,
        "summary": nest(session.summaries.get(name, {}), name),
    }


def nest(flat: Mapping[str, ParameterValue], party: str) -> dict[str, Any]:
    """Return nested tables: {"a.b": 1} -> {"a": {"b": 1}}."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        table = tree
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise MalformedMessage(culprit=party, field="summary", reason="has a name that is value and table")
        if last in table:
            raise MalformedMessage(culprit=party, field="summary", reason="has a name that is value and table")
        table[last] = list(value) if isinstance(value, tuple) else value
    return tree


def check_finite(value: object, path: str) -> None:
    """Raise DataError: a number is not finite. JSON has no NaN, and a page should not show it."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{path} is not a finite number")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        check_finite(item, f"{path}: {name}" if path == "the report" else f"{path}.{name}")


# --- own reports of parties on this machine -----------------------------------------------------


def _files_here(session: str, out: Path, parties_here: list[str], kind: Kind[Any]) -> dict[str, Any]:
    reports, found = {}, {}
    for name in parties_here:
        path = out / name / "report.json"
        report = _read_table(path) if path.exists() else {}
        # The directory may hold an earlier run's files.
        if report.get("session") != session:
            continue
        reports[name] = report
        model = _model(out / name, kind)
        if model is not None:
            found[name] = model
    return {"models": found, "party_reports": reports}


def _model(directory: Path, kind: Kind[Any]) -> dict[str, Any] | None:
    path = directory / "model.json"
    if kind.check_model is None or not path.exists():
        return None
    content = _read_table(path)
    try:
        kind.check_model(content)
    except (DataError, RangeError) as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from None
    return content


def _read_table(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a table")
    return content
