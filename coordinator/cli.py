"""The command line. An error is one line and a hint, never a traceback."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.coordinator import audit as audit_
from blindfit.coordinator import calibrate as calibrate_
from blindfit.coordinator import certs, jobs, ledger_view, operator, preflight, pretrained, snapshots
from blindfit.coordinator import health as health_
from blindfit.coordinator import predict as prediction
from blindfit.coordinator import purge as purge_
from blindfit.coordinator.job import load_job, shown
from blindfit.coordinator.launcher import BLINDFIT
from blindfit.coordinator.report.party import render_party
from blindfit.parties.node import VERSION, open_identity, serve, set_up_logs
from blindfit.parties.systems import load_party
from blindfit.parties.wire.guard import where
from blindfit.parties.work import ending
from blindfit.parties.work.memory import one_heap

app = typer.Typer(
    name="blindfit",
    help="Fits one model to several organisations' data without any of them seeing another's.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(certs.app, name="certs")

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Overrides an option; may be given again."),
]
JobFile = Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)]
PartyFile = Annotated[Path, typer.Argument(metavar="PARTY.TOML", help="The party file.", show_default=False)]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where reports go.")]

console = Console(stderr=False)


@app.command()
def run(
    context: typer.Context, job: JobFile, out: OutOption = Path("runs/latest"), overrides: SetOption = None
) -> None:
    """Run a job here: one process for each party, then a report."""
    written = jobs.run_here(load_job(job, overrides or []), job.parent, out, console, context.obj)
    written.show(console)


@app.command()
def submit(job: JobFile, out: OutOption = Path("runs/latest"), overrides: SetOption = None) -> None:
    """Run a job on parties that are already up."""
    written = jobs.submit(load_job(job, overrides or []), job.parent, out, console)
    written.show(console)


@app.command()
def predict(
    context: typer.Context,
    job: JobFile,
    out: OutOption = Path("runs/predict"),
    session: Annotated[str | None, typer.Option(help="The training whose model scores the rows.")] = None,
    model: Annotated[Path | None, typer.Option(metavar="DIR", help="Its directory of reports instead.")] = None,
    overrides: SetOption = None,
) -> None:
    """Score new rows with a model that the parties have trained, every party on this machine."""
    written = jobs.run_here(
        prediction.load(job, overrides or [], session, model), job.parent, out, console, context.obj
    )
    written.show(console)


@app.command()
def check(job: JobFile, overrides: SetOption = None) -> None:
    """Say what would leak, fail or take long, before any byte leaves."""
    findings = preflight.check(load_job(job, overrides or []), job.parent)
    preflight.show(findings, console)
    if any(finding.refuses for finding in findings):
        raise typer.Exit(1)


@app.command()
def show(job: JobFile, overrides: SetOption = None) -> None:
    """Print the whole job with every default."""
    sys.stdout.write(shown(load_job(job, overrides or [])))


@app.command()
def party(
    settings: PartyFile,
    overrides: SetOption = None,
    ready_file: Annotated[Path | None, typer.Option(help="Written with the port when the party is up.")] = None,
) -> None:
    """Run one party until it is told to stop."""
    loaded = load_party(settings, overrides or [])
    set_up_logs(loaded.log_level, loaded.log_format)

    def on_ready(port: int) -> None:
        if ready_file is not None:
            ready_file.write_text(f"{port}\n")

    one_heap()
    with ending.said(loaded.name):
        ending.run(serve(loaded, settings.parent, on_ready))
    ending.leave()


@app.command()
def pretrain(
    settings: PartyFile,
    dataset: Annotated[str, typer.Option(help="A dataset of the party whose rows are public.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for walr.init or dp_lr.init.")],
    l2: Annotated[float | None, typer.Option(help="Of standardised features; default: 1 / rows.")] = None,
    overrides: SetOption = None,
) -> None:
    """Fit public rows, as the start of a private fit or what it shrinks towards."""
    loaded = load_party(settings, overrides or [])
    pretrained.pretrain(loaded, settings.parent, dataset, out, l2, console)


@app.command()
def approve(
    settings: PartyFile,
    session: Annotated[str | None, typer.Argument(help="Which; without it, all that waits is shown.")] = None,
    digest: Annotated[str | None, typer.Argument(help="Of the job as it was shown; without it you are asked.")] = None,
    refuse: Annotated[bool, typer.Option("--refuse", help="Say no instead.")] = False,
    overrides: SetOption = None,
) -> None:
    """Say yes (or no) to a job that waits for this party's operator."""
    loaded = load_party(settings, overrides or [])
    if session is None:
        operator.list_held(loaded, settings.parent, console)
    elif digest is None and not refuse:
        operator.approve_shown(loaded, settings.parent, session, console, _asks())
    else:
        operator.decide(loaded, settings.parent, session, digest, refuse=refuse, console=console)


def _asks() -> operator.Confirm | None:
    return typer.confirm if sys.stdin.isatty() else None


@app.command()
def publish(
    settings: PartyFile,
    dataset: Annotated[str | None, typer.Argument(help="Which; without it, what is published is listed.")] = None,
    other_people: Annotated[
        bool, typer.Option("--other-people", help="Its people are not those of the population that has its rows.")
    ] = False,
    remove_older: Annotated[bool, typer.Option("--remove-older", help="Remove the snapshots before it.")] = False,
    overrides: SetOption = None,
) -> None:
    """Make the next snapshot of a dataset, which jobs read from then on, whether or not anything changed."""
    loaded = load_party(settings, overrides or [])
    if dataset is None:
        snapshots.show(loaded, settings.parent, console)
        return
    snapshots.publish(
        loaded, settings.parent, dataset, other_people=other_people, remove_older=remove_older, console=console
    )


@app.command()
def ledger(
    settings: Annotated[
        Path, typer.Argument(metavar="PARTY.TOML", help="The party file, or with --verify an exported chain.")
    ],
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the chain for an auditor.")] = None,
    verify: Annotated[bool, typer.Option(help="Check an exported chain instead.")] = False,
    acknowledge: Annotated[bool, typer.Option(help="The ledger was restored: charge again what was lost.")] = False,
    overrides: SetOption = None,
) -> None:
    """What was spent, on what, by whom, and what is left."""
    if verify:
        ledger_view.verify(settings, console)
        return
    loaded = load_party(settings, overrides or [])
    if acknowledge:
        ledger_view.acknowledge(loaded, settings.parent, console)
    if export is not None:
        ledger_view.export(loaded, settings.parent, export, console)
    else:
        ledger_view.show(loaded, settings.parent, console)


@app.command()
def purge(
    settings: PartyFile,
    session: Annotated[str | None, typer.Argument(help="A session that has ended.")] = None,
    ended_before: Annotated[str | None, typer.Option(metavar="DATE", help="All that ended before a day (UTC).")] = None,
    all_ended: Annotated[bool, typer.Option("--all-ended", help="All that have ended.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    overrides: SetOption = None,
) -> None:
    """Remove what a party keeps of sessions: checkpoints, model parts, reports, transcripts, predictions."""
    loaded = load_party(settings, overrides or [])
    purge_.purge(loaded, settings.parent, session, ended_before, console, all_ended=all_ended, yes=yes, dry_run=dry_run)


@app.command()
def lock(
    settings: PartyFile,
    old: Annotated[
        Path | None, typer.Option("--old-passphrase-file", metavar="FILE", help="Until now; it is changed then.")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Put the keys and checkpoints that a party keeps under its passphrase, or under another one."""
    operator.lock(load_party(settings, overrides or []), settings.parent, old, console)


@app.command()
def health(settings: PartyFile, overrides: SetOption = None) -> None:
    """Say whether a party on this machine serves; so does the exit status."""
    loaded = load_party(settings, overrides or [])
    asyncio.run(health_.ask(open_identity(loaded.identity, settings.parent), loaded.listen))
    console.print(f"{loaded.name} serves", highlight=False)


@app.command()
def calibrate(settings: PartyFile, overrides: SetOption = None) -> None:
    """Say whether a party's workers work, and how fast they are."""
    calibrate_.calibrate(load_party(settings, overrides or []), settings.parent, console)


app.command()(audit_.audit)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where a party's report.json and model.json are.")],
) -> None:
    """Make a party's own page, with its weights, from its own files."""
    render_party(directory, console)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(VERSION)


def main(command: Sequence[str] = BLINDFIT) -> None:
    """Args:
    command: how this command line is started, for the processes of parties.
    """
    errors = Console(stderr=True)
    try:
        app(obj=command)
    except BlindfitError as error:
        errors.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        if error.hint:
            errors.print(f"[dim]hint:[/] {escape(error.hint)}", highlight=False, soft_wrap=True)
        raise SystemExit(2 if isinstance(error, ConfigError) else 1) from None
    except MemoryError:
        errors.print(f"[bold red]error:[/] {ending.NO_MEMORY}", highlight=False)
        errors.print("[dim]hint:[/] run it where there is more, or with fewer rows or workers", highlight=False)
        raise SystemExit(1) from None
    except Exception as error:
        if os.environ.get("BLINDFIT_TRACEBACK"):
            raise
        errors.print(
            f"[bold red]error:[/] a bug in Blindfit: {type(error).__name__} at {where(error)}", highlight=False
        )
        errors.print("[dim]hint:[/] set BLINDFIT_TRACEBACK=1 to see all of it, and please report it", highlight=False)
        raise SystemExit(70) from None
    except KeyboardInterrupt:
        errors.print("[bold red]stopped[/]: the parties were told", highlight=False)
        raise SystemExit(130) from None
