"""Commands that show a job, before and after it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.cli.common import JobFile, PartyFile, SetOption, read_job, read_party
from blindfit.coordinator.terminal.json_output import App, Found

PANEL = "Inspect"
app = App()


@app.command(rich_help_panel=PANEL)
def show(job: JobFile, overrides: SetOption = None) -> Found:
    """Print the whole job with every default."""
    from blindfit.coordinator.job.job import to_toml

    loaded = read_job(job, overrides)
    return Found(loaded.to_dict(), (to_toml(loaded).removesuffix("\n"),))


@app.command(rich_help_panel=PANEL)
def explain(
    option: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE.OPTION", help="Option, such as taylor.epochs. Without it, all tables are listed."
        ),
    ] = None,
) -> Found:
    """Explain an option of a job or party file: its purpose, kind, range and default."""
    from blindfit.coordinator.explain import command as explain_

    return explain_.explain(option)


@app.command(rich_help_panel=PANEL)
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with a party's report.json and model.json.")],
) -> Found:
    """Write a party's own report page, with its weights, from its own files."""
    from blindfit.coordinator.jobs.party_page import render_party

    return render_party(directory)


@app.command(rich_help_panel=PANEL)
def jobs(
    settings: PartyFile,
    running: Annotated[bool, typer.Option("--running", help="Show only jobs that are running or waiting.")] = False,
    overrides: SetOption = None,
) -> Found:
    """List a party's jobs and how each of them ended."""
    from blindfit.coordinator.operator import job_control

    return job_control.list_jobs(read_party(settings, overrides), settings.parent, running=running)


@app.command(rich_help_panel=PANEL)
def logs(
    settings: PartyFile,
    session: Annotated[str, typer.Argument(help="Session, as `blindfit jobs` lists it.")],
    overrides: SetOption = None,
) -> Found:
    """Show the lines of a party's log about one job."""
    from blindfit.coordinator.operator import job_control

    return job_control.find_log(read_party(settings, overrides), settings.parent, session)


@app.command(rich_help_panel=PANEL)
def version() -> Found:
    """Print the version."""
    from blindfit.coordinator.cli import version as version_

    return Found({"version": version_.version()}, (version_.version(),))
