"""Joint prediction as the coordinator sees it: which training, how many rows, who learnt what. Scores it never sees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from blindfit import __version__
from blindfit.algorithms.errors import ConfigError, DataError, MalformedMessage
from blindfit.coordinator.job import Job, load_job
from blindfit.coordinator.report.wording import counted, duration
from blindfit.coordinator.session import JobSession
from blindfit.parties.files.written import read_json, write_json


def load(path: Path, overrides: list[str], session: str | None, model: Path | None) -> Job[Any]:
    """A prediction job with the training whose model it takes: by its session, by its report, or as the file says.

    Raises:
        ConfigError: it is another kind of job, or two trainings are named.
    """
    if session is not None and model is not None:
        raise ConfigError("--session and --model both name a training: give one of them")
    if model is not None:
        session = training_session(model)
    chosen = [] if session is None else [f"predict.session={json.dumps(session)}"]
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
        raise DataError(f"{path} is not the report of a training", hint="name the --out directory of the training")
    return session


# --- what is left ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """report.json on the disk."""

    json_path: Path
    content: Mapping[str, Any] = field(repr=False)

    def show(self, console: Console) -> None:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold")
        table.add_column()
        for label, value in self._lines():
            table.add_row(label, Text(value))
        console.print(table)
        for sentence in self.content["learnt"].values():
            console.print(Text(sentence, style="dim"))
        # A path is for copying: it is neither wrapped nor read as markup.
        for label, path in (("report", str(self.json_path)), ("scores", _place(self.content["scores"]))):
            console.print(Text.assemble((f"{label:<8}", "bold"), path), soft_wrap=True)

    def _lines(self) -> Iterator[tuple[str, str]]:
        content = self.content
        yield "job", f"{content['name']} ({content['session']})"
        held = ", in shares: nobody has it" if content["model_in_shares"] else ""
        yield "model", f"of the training {content['job']['predict']['session']}{held}"
        yield "rows", f"{counted(content['rows'], 'row')} scored: those that every data party has"
        yield "time", duration(content["seconds"]["job"])


def _place(scores: Mapping[str, Any]) -> str:
    return str(scores["where"]) if "where" in scores else f"kept by {scores['party']}, with its own report"


def write(session: JobSession, out: Path, parties_here: list[str]) -> Written:
    """Writes `out/report.json`.

    Args:
        parties_here: parties whose own directories are `out/<name>/`; of the others only their summary is known.

    Raises:
        MalformedMessage, DataError: a party's summary or file is not what a report can be made of; nothing is written.
    """
    job, active = session.job, session.job.with_role("active")[0]
    common = session.summaries[active].get("rows.common")
    if type(common) is not int:
        raise MalformedMessage(culprit=active, field="summary", reason="has no number of rows")
    in_shares = session.summaries[active].get("model.in_shares") is True
    content = {
        "blindfit": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "session": session.id,
        "name": job.name,
        "protocol": job.protocol,
        "state": session.state,
        "job": {name: value for name, value in job.to_dict().items() if name != "coordinator"},
        "rows": common,
        "scores": {"party": active, **(_own_word(out / active, session.id) if active in parties_here else {})},
        "learnt": who_learnt_what(job, common, in_shares=in_shares),
        "model_in_shares": in_shares,
        "seconds": dict(session.seconds),
    }
    written = Written(out / "report.json", content)
    write_json(written.json_path, content)
    return written


def _own_word(directory: Path, session: str) -> dict[str, Any]:
    """What the active party's own report says of its scores; the directory may hold an earlier run's."""
    report = read_json(directory / "report.json")
    if not isinstance(report, dict) or report.get("session") != session:
        return {}
    return dict(report["scores"])


def who_learnt_what(job: Job[Any], common: int, *, in_shares: bool = False) -> dict[str, str]:
    """
    Args:
        in_shares: the model is, and nobody has it.
    """
    (active,), passives, (key_node,) = (job.with_role(role) for role in ("active", "passive", "key-node"))
    parts = "less its own part these are the other's, which no protocol can hide from it"
    if len(passives) > 1:
        parts = "of the parts that these are sums of it learnt none but its own"
    aligned = "how many rows each data party brought, and which of its own rows all of them have"
    if in_shares:
        parts = (
            "it has no weights, but scores of as many rows as there are columns, whose features somebody tells it, or "
            "that differ in its own alone, are equations that give weights away"
        )
    learnt = {active: f"{active} learnt the scores of {counted(common, 'row')}; {parts}. It also learnt {aligned}."}
    learnt |= {name: f"{name} learnt {aligned}; no score." for name in passives}
    learnt[key_node] = f"{key_node} learnt how many rows each data party brought and which match; no id, no score."
    if in_shares:
        learnt[key_node] += " It dealt, under seeds of this prediction alone, and keeps nothing of it."
    return learnt
