"""Commands of a party's operator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blindfit.coordinator.cli.common import PartyFile, SetOption, open_console, read_job, read_party, refuse_unused
from blindfit.coordinator.terminal import json_output

if TYPE_CHECKING:
    from blindfit.coordinator.operator.deciding import Confirm

PANEL = "Operate"
app = json_output.App()
ENDS_S = 5.0  # how long a party of an earlier run may take to end, when the command that started it was killed


@app.command(rich_help_panel=PANEL)
def party(
    settings: PartyFile,
    overrides: SetOption = None,
    ready_file: Annotated[Path | None, typer.Option(help="Written with the port when the party is up.")] = None,
    first_snapshots: Annotated[
        bool, typer.Option(help="Publish each dataset that has no snapshot, before the party is up.")
    ] = True,
    launcher: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", hidden=True, help="Of `blindfit run`: end, and remove DIR, when standard input ends."
        ),
    ] = None,
) -> None:
    """Run one party until it is told to stop."""
    from blindfit.parties.work import ending

    if launcher is not None:
        ending.end_with_launcher(launcher)
    from blindfit.parties.node import serve, set_up_logs
    from blindfit.parties.work.memory import one_heap
    from blindfit.parties.work.plain_arrow import leave_pandas_out

    loaded = read_party(settings, overrides)
    set_up_logs(loaded.log_level, loaded.log_format, settings.parent / loaded.data_dir)

    def on_ready(port: int) -> None:
        if ready_file is not None:
            ready_file.write_text(f"{port}\n")

    one_heap()
    leave_pandas_out()
    with ending.said(loaded.name):
        patience_s = ENDS_S if launcher else 0.0
        ending.run(serve(loaded, settings.parent, on_ready, first_snapshots=first_snapshots, patience_s=patience_s))
    ending.leave()


@app.command(rich_help_panel=PANEL)
def health(settings: PartyFile, overrides: SetOption = None) -> None:
    """Say whether a party on this machine serves; so does the exit status."""
    import asyncio

    from blindfit.coordinator.operator import health as health_
    from blindfit.parties.identity.connections import open_identity

    loaded = read_party(settings, overrides)
    asyncio.run(health_.ask(open_identity(loaded.identity, settings.parent), loaded.listen))
    open_console().print(f"{loaded.name} serves", highlight=False)
    json_output.answer({"party": loaded.name, "serves": True})


@app.command(rich_help_panel=PANEL)
def approve(
    settings: PartyFile,
    session: Annotated[str | None, typer.Argument(help="Which; without it, all that waits is shown.")] = None,
    digest: Annotated[str | None, typer.Argument(help="Of the job as it was shown; without it you are asked.")] = None,
    refuse: Annotated[bool, typer.Option("--refuse", help="Say no instead.")] = False,
    overrides: SetOption = None,
) -> None:
    """Say yes (or no) to a job that waits for this party's operator."""
    from blindfit.coordinator.operator import deciding as operator

    if session is None:
        refuse_unused("without SESSION what waits is shown", {"--refuse": refuse})
    loaded, console = read_party(settings, overrides), open_console()
    if session is None:
        operator.list_held(loaded, settings, console)
    elif digest is None and not refuse:
        operator.approve_shown(loaded, settings, session, console, _asks())
    else:
        operator.decide(loaded, settings, session, digest, refuse=refuse, console=console)


def _asks() -> Confirm | None:
    return typer.confirm if sys.stdin.isatty() and not json_output.is_asked() else None


@app.command(rich_help_panel=PANEL)
def cancel(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The job's file, by whoever submitted it; or the own party's.")
    ],
    session: Annotated[str, typer.Argument(help="As `blindfit submit` and `blindfit jobs` name it.")],
    overrides: SetOption = None,
) -> None:
    """End a job that runs on parties that are up: at all of them, or at one's own, which tells the others."""
    from blindfit.coordinator.job import file_kinds
    from blindfit.coordinator.operator import job_control

    if file_kinds.is_party_file(file):
        job_control.cancel_here(read_party(file, overrides), file.parent, session, open_console())
        return
    job_control.cancel(read_job(file, overrides), file.parent, session, open_console())


@app.command(rich_help_panel=PANEL)
def snapshot(
    settings: PartyFile,
    dataset: Annotated[str | None, typer.Argument(help="Which; without it, what is published is listed.")] = None,
    other_people: Annotated[
        bool, typer.Option("--other-people", help="Its people are not those of the population that has its rows.")
    ] = False,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable", help="Leave out columns that cannot be read. Jobs that need one are refused."
        ),
    ] = False,
    remove_older: Annotated[bool, typer.Option("--remove-older", help="Remove the snapshots before it.")] = False,
    overrides: SetOption = None,
) -> None:
    """Make the next snapshot of a dataset, which jobs read from then on, whether or not anything changed."""
    from blindfit.coordinator.operator import snapshots

    if dataset is None:
        given = {"--other-people": other_people, "--skip-unreadable": skip_unreadable, "--remove-older": remove_older}
        refuse_unused("without DATASET what is published is listed", given)
    loaded, console = read_party(settings, overrides), open_console()
    if dataset is None:
        snapshots.show(loaded, settings.parent, console)
        return
    snapshots.publish(
        loaded,
        settings.parent,
        dataset,
        other_people=other_people,
        skip_unreadable=skip_unreadable,
        remove_older=remove_older,
        console=console,
    )


@app.command(rich_help_panel=PANEL)
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
    from blindfit.coordinator.operator import ledger as ledger_view

    console = open_console()
    if verify:
        given = {"--export": export, "--acknowledge": acknowledge, "--set": overrides}
        refuse_unused("--verify checks a chain that was exported", given)
        ledger_view.verify(settings, console)
        return
    loaded = read_party(settings, overrides)
    if acknowledge:
        ledger_view.acknowledge(loaded, settings.parent, console)
    if export is not None:
        ledger_view.export(loaded, settings.parent, export, console)
    else:
        ledger_view.show(loaded, settings.parent, console)


@app.command(rich_help_panel=PANEL)
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
    from blindfit.coordinator.operator import purge as purge_

    loaded, console = read_party(settings, overrides), open_console()
    purge_.purge(loaded, settings.parent, session, ended_before, console, all_ended=all_ended, yes=yes, dry_run=dry_run)


@app.command(rich_help_panel=PANEL)
def lock(
    settings: PartyFile,
    old: Annotated[
        Path | None, typer.Option("--old-passphrase-file", metavar="FILE", help="Until now; it is changed then.")
    ] = None,
    overrides: SetOption = None,
) -> None:
    """Put the keys and checkpoints that a party keeps under its passphrase, or under another one."""
    from blindfit.coordinator.operator import deciding as operator

    operator.lock(read_party(settings, overrides), settings.parent, old, open_console())


@app.command(rich_help_panel=PANEL)
def benchmark(settings: PartyFile, overrides: SetOption = None) -> None:
    """Say whether a party's workers work, and how fast they are."""
    from blindfit.coordinator.operator import calibrate as calibrate_

    calibrate_.calibrate(read_party(settings, overrides), settings.parent, open_console())
