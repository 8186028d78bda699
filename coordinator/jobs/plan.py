"""`blindfit plan`: make a plan, print it, and write it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.progress import Progress
from rich.table import Table as Shown
from rich.text import Text

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.plan.asked import Asked, Plan, Table
from blindfit.coordinator.plan.page import render_plan
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.systems import view
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.summary_table import places, summary_table
from blindfit.coordinator.terminal.titles import with_title
from blindfit.parties.files.written import write_file, write_json


def plan(job: Job[Any], asked: Asked, out: Path, console: Console) -> Found:
    """Write `out/plan.json` and `out/plan.html`.

    Raises:
        ConfigError, DataError: the job cannot be planned; nothing is written.
    """
    planned = _make_plan(job, asked, console)
    json_path, html_path = out / "plan.json", out / "plan.html"
    page = render_plan(job.name, job.protocol, planned)
    write_json(json_path, {"name": job.name, "protocol": job.protocol, **planned.content})
    write_file(html_path, page.encode())
    files = places([("report", html_path), ("", json_path)])
    return Found(
        {"files": [json_path, html_path], "plan": planned.content},
        (*_render_plan(job, planned), *planned.advice, *files),
    )


def _render_plan(job: Job[Any], planned: Plan) -> Iterator[RenderableType]:
    yield summary_table([("plan", f"{with_title(job.protocol)}, {job.name}"), *planned.facts])
    yield from map(_as_shown, planned.tables)


def _make_plan(job: Job[Any], asked: Asked, console: Console) -> Plan:
    planner = view(job.protocol).plan
    if planner is None:
        raise ConfigError(
            f"a {job.protocol} job has no plan: walr and label-dp have one",
            hint="`blindfit check JOB.TOML` finds what would leak, fail or take long",
        )
    (name,) = job.with_role("active")
    if job.parties[name].config is None:
        raise ConfigError(
            f"parties.{name}.config is missing: a plan is made where the active party's features are",
            hint=f'set parties.{name}.config = "{name}.toml", or where its party file is',
        )
    active = PartyHere.of(job, name)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("simulate", total=None)
        return planner(job, active, asked, lambda done, total: progress.update(task, completed=done, total=total))


def _as_shown(table: Table) -> Shown:
    shown = Shown(title=table.title, caption=table.note, title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    first, *others = table.columns
    shown.add_column(first, no_wrap=True)
    for column in others:
        shown.add_column(column, justify="right")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown
