"""Commands of a party's operator."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.cli.common import (
    PartyFile,
    SetOption,
    confirm_of,
    open_console,
    read_job,
    read_party,
    refuse_unused,
)
from blindfit.coordinator.terminal.json_output import App, Found, call_of

PANEL = "Operate"
app = App()
ENDS_S = 5.0  # for a party of an earlier run to end, if the command that started it was killed


class AtLimit(StrEnum):
    """Behaviour of a rehearsed party if the job passes a limit of a budget or an account."""

    REFUSE = "refuse"
    WARN = "warn"


@app.command(rich_help_panel=PANEL)
def party(
    settings: PartyFile,
    overrides: SetOption = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="File that receives the port when the party is running.")
    ] = None,
    first_snapshots: Annotated[
        bool, typer.Option(help="Publish each dataset that has no snapshot, before the party serves.")
    ] = True,
    launcher: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            hidden=True,
            help="Folder that `blindfit run` gives: remove it and end when standard input ends.",
        ),
    ] = None,
    rehearse: Annotated[
        AtLimit | None, typer.Option(hidden=True, help="Rehearse, and refuse or warn at a limit.")
    ] = None,
) -> None:
    """Run one party until a signal stops it."""
    from blindfit.parties.work import ending, late_arrow

    if launcher is not None:
        ending.end_with_launcher(launcher)
    late_arrow.defer_arrow()
    from blindfit.coordinator.job.stage import check_is_no_stage, check_is_stage
    from blindfit.parties.node import serve, set_up_logs
    from blindfit.parties.store.excess import Excess
    from blindfit.parties.work.memory import one_heap

    loaded = read_party(settings, overrides)
    data_dir = settings.parent / loaded.data_dir
    if rehearse is None:
        check_is_no_stage(data_dir)
    else:
        check_is_stage(data_dir)
        loaded = loaded.in_rehearsal(Excess(only_warns=rehearse is AtLimit.WARN))
    set_up_logs(loaded.log_level, loaded.log_format, data_dir)

    def on_ready(port: int) -> None:
        if ready_file is not None:
            ready_file.write_text(f"{port}\n")

    one_heap()
    with ending.log_ending(loaded.name):
        patience_s = ENDS_S if launcher else 0.0
        ending.run(serve(loaded, settings.parent, on_ready, first_snapshots=first_snapshots, patience_s=patience_s))
    ending.leave()


@app.command(hidden=True)
def nursery(context: typer.Context) -> None:
    """Fork a party for each request on standard input, until that ends. `blindfit run` starts this."""
    from blindfit.coordinator.running.forking import serve
    from blindfit.parties.work import ending

    words = serve()
    if words is None:
        ending.leave()
    sys.argv[1:] = words
    context.find_root().command.main(args=words, prog_name="blindfit", obj=call_of(context))


@app.command(rich_help_panel=PANEL)
def health(settings: PartyFile, overrides: SetOption = None) -> Found:
    """Check whether a party on this machine is running.

    The exit status is 0 if it is.
    """
    import asyncio

    from blindfit.coordinator.operator import health as health_
    from blindfit.parties.identity.identity import open_identity

    loaded = read_party(settings, overrides)
    asyncio.run(health_.ask(open_identity(loaded.identity, settings.parent), loaded.listen))
    return Found({"party": loaded.name, "serves": True}, (f"{loaded.name} serves",))


@app.command(rich_help_panel=PANEL)
def approve(
    context: typer.Context,
    settings: PartyFile,
    session: Annotated[
        str | None, typer.Argument(help="Session to decide on. Without it, all waiting jobs are shown.")
    ] = None,
    digest: Annotated[
        str | None, typer.Argument(help="Digest of the job as it was shown. Without it, the command asks you.")
    ] = None,
    refuse: Annotated[bool, typer.Option("--refuse", help="Refuse the job instead.")] = False,
    overrides: SetOption = None,
) -> Found:
    """Approve or refuse a job that waits for this party's operator."""
    from blindfit.coordinator.operator import deciding as operator

    if session is None:
        refuse_unused("without SESSION, waiting jobs are listed", {"--refuse": refuse})
    loaded = read_party(settings, overrides)
    if session is None:
        return operator.list_held(loaded, settings)
    if digest is None and not refuse:
        confirm = confirm_of(context) if sys.stdin.isatty() else None
        return operator.approve_shown(loaded, settings, session, open_console(context), confirm)
    return operator.decide(loaded, settings, session, digest, refuse=refuse)


@app.command(rich_help_panel=PANEL)
def cancel(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The job file, if you submitted the job, or your own party file.")
    ],
    session: Annotated[str, typer.Argument(help="Session, as `blindfit submit` and `blindfit jobs` print it.")],
    overrides: SetOption = None,
) -> Found:
    """End a running job. With a party file, that party informs the others."""
    from blindfit.coordinator.job import file_kinds
    from blindfit.coordinator.operator import job_control

    if file_kinds.is_party_file(file):
        return job_control.cancel_here(read_party(file, overrides), file.parent, session)
    return job_control.cancel(read_job(file, overrides), session)


@app.command(rich_help_panel=PANEL)
def snapshot(
    context: typer.Context,
    settings: PartyFile,
    dataset: Annotated[
        str | None, typer.Argument(help="Dataset. Without it, the published snapshots are listed.")
    ] = None,
    other_people: Annotated[
        bool,
        typer.Option(
            "--other-people", help="Confirm that these are different people, though the rows match another population."
        ),
    ] = False,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable", help="Leave out columns that cannot be read. Jobs that need one are refused."
        ),
    ] = False,
    remove_older: Annotated[bool, typer.Option("--remove-older", help="Remove older snapshots.")] = False,
    overrides: SetOption = None,
) -> Found:
    """Make the next snapshot of a dataset. Later jobs read it.

    The command makes a snapshot even if nothing changed.
    """
    from blindfit.coordinator.operator import snapshots

    if dataset is None:
        given = {"--other-people": other_people, "--skip-unreadable": skip_unreadable, "--remove-older": remove_older}
        refuse_unused("without DATASET, published snapshots are listed", given)
    loaded = read_party(settings, overrides)
    if dataset is None:
        return snapshots.describe(loaded, settings.parent)
    return snapshots.publish(
        loaded,
        settings.parent,
        dataset,
        other_people=other_people,
        skip_unreadable=skip_unreadable,
        remove_older=remove_older,
        console=open_console(context),
    )


@app.command(rich_help_panel=PANEL)
def ledger(
    settings: Annotated[
        Path, typer.Argument(metavar="PARTY.TOML", help="Party file; with --verify an exported chain.")
    ],
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the chain for an auditor.")] = None,
    verify: Annotated[bool, typer.Option(help="Check an exported chain instead.")] = False,
    acknowledge: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Reason why the database was lost or restored. The reason stays in the ledger, the party starts "
            "again, and charges that receipts prove are charged again.",
        ),
    ] = None,
    reset_account: Annotated[
        str | None,
        typer.Option(metavar="DATASET", help="Start the disclosure account of a dataset's people again."),
    ] = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Reason for --reset-account. It stays in the account.")
    ] = "",
    overrides: SetOption = None,
) -> Found:
    """List what was spent and revealed, to whom, and what is left."""
    from blindfit.coordinator.operator import account
    from blindfit.coordinator.operator import ledger as ledger_view
    from blindfit.coordinator.operator.deciding import open_store

    if verify:
        others = {"--export": export, "--acknowledge": acknowledge, "--reset-account": reset_account}
        unused = {**others, "--reason": reason, "--set": overrides}
        refuse_unused("--verify checks an exported chain", unused)
        return ledger_view.verify(settings)
    loaded, base_dir = read_party(settings, overrides), settings.parent
    if reset_account is None:
        refuse_unused("without --reset-account, no account starts again", {"--reason": reason})
    else:
        given = {"--export": export, "--acknowledge": acknowledge}
        refuse_unused("--reset-account starts an account again", given)
        return account.reset(loaded, open_store(loaded, base_dir), reset_account, reason)
    before = Found({}) if acknowledge is None else ledger_view.acknowledge(loaded, base_dir, acknowledge)
    found = ledger_view.describe(loaded, base_dir) if export is None else ledger_view.export(loaded, base_dir, export)
    return Found({**before.document, **found.document}, (*before.shown, *found.shown))


@app.command(rich_help_panel=PANEL)
def purge(
    context: typer.Context,
    settings: PartyFile,
    session: Annotated[str | None, typer.Argument(help="Session that has ended.")] = None,
    ended_before: Annotated[
        str | None, typer.Option(metavar="DATE", help="Remove every session that ended before this day (UTC).")
    ] = None,
    all_ended: Annotated[bool, typer.Option("--all-ended", help="Remove every session that has ended.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without a question.")] = False,
    overrides: SetOption = None,
) -> Found:
    """Remove files of ended sessions, such as checkpoints and reports.

    The files are checkpoints, model parts, reports, transcripts and predictions.
    """
    from blindfit.coordinator.operator import purge as purge_

    loaded, console, confirm = read_party(settings, overrides), open_console(context), confirm_of(context)
    how = {"all_ended": all_ended, "yes": yes, "dry_run": dry_run}
    return purge_.purge(loaded, settings.parent, session, ended_before, console, confirm, **how)


@app.command(rich_help_panel=PANEL)
def lock(
    settings: PartyFile,
    old: Annotated[
        Path | None,
        typer.Option("--old-passphrase-file", metavar="FILE", help="File with the current passphrase, to change it."),
    ] = None,
    overrides: SetOption = None,
) -> Found:
    """Encrypt a party's keys and checkpoints with its passphrase, or change it."""
    from blindfit.coordinator.operator import deciding as operator

    return operator.lock(read_party(settings, overrides), settings.parent, old)


@app.command(rich_help_panel=PANEL)
def benchmark(settings: PartyFile, overrides: SetOption = None) -> Found:
    """Test whether a party's workers answer, and measure their speed."""
    from blindfit.coordinator.operator import benchmark as benchmark_

    return benchmark_.calibrate(read_party(settings, overrides), settings.parent)
