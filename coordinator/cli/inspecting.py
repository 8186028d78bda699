"""Commands that show what a job is or was."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.cli.common import JobFile, PartyFile, SetOption, open_console, read_job, read_party
from blindfit.coordinator.terminal import json_output

PANEL = "Inspect"
app = json_output.App()


@app.command(rich_help_panel=PANEL)
def show(job: JobFile, overrides: SetOption = None) -> None:
    """Print the whole job with every default."""
    from blindfit.coordinator.job.job import shown

    loaded = read_job(job, overrides)
    sys.stdout.write(shown(loaded))
    json_output.answer(loaded.to_dict())


@app.command(rich_help_panel=PANEL)
def explain(
    option: Annotated[
        str | None, typer.Argument(metavar="TABLE.OPTION", help="Such as taylor.epochs; without it, all tables.")
    ] = None,
) -> None:
    """Say what an option of a job or party file is for: its kind, range and default."""
    from blindfit.coordinator.explain import command as explain_

    explain_.explain(option, open_console())


@app.command(rich_help_panel=PANEL)
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where a party's report.json and model.json are.")],
) -> None:
    """Make a party's own page, with its weights, from its own files."""
    from blindfit.coordinator.jobs.party_page import render_party

    render_party(directory, open_console())


@app.command(rich_help_panel=PANEL)
def jobs(
    settings: PartyFile,
    running: Annotated[bool, typer.Option("--running", help="Those alone that run or wait.")] = False,
    overrides: SetOption = None,
) -> None:
    """List a party's jobs, and what became of them."""
    from blindfit.coordinator.operator import job_control

    job_control.show(read_party(settings, overrides), settings.parent, open_console(), running=running)


@app.command(rich_help_panel=PANEL)
def logs(
    settings: PartyFile,
    session: Annotated[str, typer.Argument(help="As `blindfit jobs` names it.")],
    overrides: SetOption = None,
) -> None:
    """Show what a party's log says of one job."""
    from blindfit.coordinator.operator import job_control

    job_control.show_log(read_party(settings, overrides), settings.parent, session, open_console())


@app.command(rich_help_panel=PANEL)
def version() -> None:
    """Print the version."""
    from blindfit.coordinator.cli import version as version_

    typer.echo(version_.version())
    json_output.answer({"version": version_.version()})
