"""The command line. An error is one line and a hint, never a traceback.

Signatures alone are read when the process starts; what a command does is imported when it is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from blindfit.algorithms.errors import NO_MEMORY, BlindfitError, ConfigError, where
from blindfit.coordinator import audit as audit_
from blindfit.coordinator import certs, json_output
from blindfit.coordinator import version as version_
from blindfit.coordinator.exit_codes import ExitCode
from blindfit.coordinator.stopped import Stopped

if TYPE_CHECKING:
    from rich.console import Console

    from blindfit.coordinator.job import Job
    from blindfit.coordinator.jobs import Talk
    from blindfit.coordinator.operator import Confirm
    from blindfit.coordinator.report.kind import Written
    from blindfit.parties.settings import PartySettings

ENDS_S = 5.0  # how long a party of an earlier run may take to end, when the command that started it was killed

app = json_output.App(
    name="blindfit",
    help="Fits one model to several organisations' data without any of them seeing another's.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(certs.app, name="certs")

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Overrides an option; may be given again."),
]
JobFile = Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)]
PartyFile = Annotated[Path, typer.Argument(metavar="PARTY.TOML", help="The party file.", show_default=False)]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result alone, and errors.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Print also what each party waits for.")]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where reports go.")]
RunOutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where reports go; by default a new folder, to which runs/latest leads."),
]


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=version_.show)
    ] = False,
) -> None:
    pass


def _console(*, stderr: bool = False) -> Console:
    from blindfit.coordinator.terminal import terminal

    return terminal(stderr=stderr)


def _refuse_unused(because: str, given: Mapping[str, object]) -> None:
    if useless := [option for option, value in given.items() if value]:
        raise ConfigError(f"{because}, for which {' and '.join(useless)} does nothing", hint="remove it")


def _talk(*, quiet: bool, verbose: bool) -> Talk:
    if quiet and verbose:
        raise ConfigError("--quiet and --verbose: which of them?")
    return "quiet" if quiet else "verbose" if verbose else "normal"


def _job(path: Path, overrides: list[str] | None) -> Job[Any]:
    from blindfit.coordinator.job import load_job

    return load_job(path, overrides or [])


def _party(path: Path, overrides: list[str] | None) -> PartySettings:
    from blindfit.coordinator.file_kinds import refuse_job_file
    from blindfit.parties.systems import load_party

    refuse_job_file(path)
    return load_party(path, overrides or [])


def _show(written: Written, console: Console) -> None:
    written.show(console)
    json_output.answer({"file": written.json_path, "report": written.content})


@app.command()
def run(
    context: typer.Context,
    job: JobFile,
    out: RunOutOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    overrides: SetOption = None,
) -> None:
    """Run a job here: one process for each party, then a report."""
    from blindfit.coordinator import jobs
    from blindfit.coordinator.folders import new_folder

    console, asked, talk = _console(), _job(job, overrides), _talk(quiet=quiet, verbose=verbose)
    where = out or partial(new_folder, asked.name)
    _show(jobs.run_here(asked, job.parent, where, console, context.obj, talk), console)


@app.command()
def submit(
    job: JobFile,
    out: RunOutOption = None,
    session: Annotated[
        str | None, typer.Option(help="Of a predict or evaluate job: the training whose model it takes.")
    ] = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    overrides: SetOption = None,
) -> None:
    """Run a job on parties that are already up."""
    from blindfit.coordinator import jobs
    from blindfit.coordinator.folders import new_folder
    from blindfit.coordinator.job import with_session

    asked = _job(job, [*(overrides or []), *with_session(job, overrides or [], session)])
    console, talk = _console(), _talk(quiet=quiet, verbose=verbose)
    _show(jobs.submit(asked, job.parent, out or partial(new_folder, asked.name), console, talk), console)


@app.command()
def jobs(
    settings: PartyFile,
    running: Annotated[bool, typer.Option("--running", help="Those alone that run or wait.")] = False,
    overrides: SetOption = None,
) -> None:
    """List a party's jobs, and what became of them."""
    from blindfit.coordinator import job_control

    job_control.show(_party(settings, overrides), settings.parent, _console(), running=running)


@app.command()
def logs(
    settings: PartyFile,
    session: Annotated[str, typer.Argument(help="As `blindfit jobs` names it.")],
    overrides: SetOption = None,
) -> None:
    """Show what a party's log says of one job."""
    from blindfit.coordinator import job_control

    job_control.show_log(_party(settings, overrides), settings.parent, session, _console())


@app.command()
def cancel(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The job's file, by whoever submitted it; or the own party's.")
    ],
    session: Annotated[str, typer.Argument(help="As `blindfit submit` and `blindfit jobs` name it.")],
    overrides: SetOption = None,
) -> None:
    """End a job that runs on parties that are up: at all of them, or at one's own, which tells the others."""
    from blindfit.coordinator import file_kinds, job_control

    if file_kinds.is_party_file(file):
        job_control.cancel_here(_party(file, overrides), file.parent, session, _console())
        return
    job_control.cancel(_job(file, overrides), file.parent, session, _console())


@app.command()
def predict(
    context: typer.Context,
    job: JobFile,
    out: OutOption = Path("runs/predict"),
    session: Annotated[str | None, typer.Option(help="The training whose model scores the rows.")] = None,
    model: Annotated[Path | None, typer.Option(metavar="DIR", help="Its directory of reports instead.")] = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    overrides: SetOption = None,
) -> None:
    """Score new rows with a model that the parties have trained, every party on this machine."""
    from blindfit.coordinator import jobs
    from blindfit.coordinator import predict as prediction

    console = _console()
    asked = prediction.load(job, overrides or [], session, model)
    talk = _talk(quiet=quiet, verbose=verbose)
    _show(jobs.run_here(asked, job.parent, out, console, context.obj, talk), console)


@app.command()
def evaluate(
    context: typer.Context,
    job: JobFile,
    out: OutOption = Path("runs/evaluate"),
    session: Annotated[str | None, typer.Option(help="The training whose model is evaluated.")] = None,
    model: Annotated[Path | None, typer.Option(metavar="DIR", help="Its directory of reports instead.")] = None,
    scores: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of the prediction, if several parties hold columns.")
    ] = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    overrides: SetOption = None,
) -> None:
    """Say how good a model is, from one noisy sum over labels, every party on this machine."""
    from blindfit.coordinator import evaluate as evaluation
    from blindfit.coordinator import jobs

    console = _console()
    asked = evaluation.load(job, overrides or [], session, model, scores)
    talk = _talk(quiet=quiet, verbose=verbose)
    _show(jobs.run_here(asked, job.parent, out, console, context.obj, talk), console)


@app.command()
def check(job: JobFile, overrides: SetOption = None) -> None:
    """Say what would leak, fail or take long, before any byte leaves."""
    from blindfit.coordinator import preflight

    findings = preflight.check(_job(job, overrides), job.parent)
    preflight.show(findings, _console())
    json_output.answer({"findings": findings})
    if any(finding.refuses for finding in findings):
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def plan(
    job: JobFile,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="To plan for, beside the job's own; may be given again.")
    ] = None,
    base_rate: Annotated[float | None, typer.Option(help="Share of positive labels to assume.")] = None,
    strength: Annotated[
        float | None, typer.Option(help="Standard deviation of the true scores to assume; 1 is a fair model.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights to assume: the last model.json, or public ones.")
    ] = None,
    wanted: Annotated[
        float | None, typer.Option(help="A loss (1: a constant's); says which epsilon is expected to reach it.")
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Of labels and noise; default: 20.")] = None,
    cadences: Annotated[
        int | None, typer.Option(help="Releases about the same people; says what they cost together.")
    ] = None,
    out: OutOption = Path("runs/plan"),
    overrides: SetOption = None,
) -> None:
    """Say what each epsilon would buy, before any is spent. Reads features, never labels."""
    from blindfit.coordinator.plan import command
    from blindfit.coordinator.plan.asked import Asked

    asked = Asked(tuple(epsilon or ()), base_rate, strength, model, wanted, draws, cadences)
    command.plan(_job(job, overrides), job.parent, asked, out, _console())


@app.command()
def init(
    tables: Annotated[list[Path] | None, typer.Argument(metavar="TABLE...", help="CSV or Parquet files.")] = None,
    vertical: Annotated[bool, typer.Option("--vertical", help="All have columns of the same people.")] = False,
    walr: Annotated[bool, typer.Option("--walr", help="One has features, one has labels and a budget.")] = False,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to learn.")] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Names a row; by default the one that all have.")
    ] = None,
    positive: Annotated[str | None, typer.Option(metavar="TEXT", help="Which label is 1.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A new folder.")] = Path("joint"),
) -> None:
    """Write party files and a job for tables that are here, ready to be checked and run."""
    from blindfit.coordinator.init import command

    if vertical and walr:
        raise ConfigError("--vertical and --walr: which of them?")
    kind, paths, column = command.ask("vertical" if vertical else "walr" if walr else None, tables or [], label)
    command.init(command.Asked(kind, paths, column, row_id, positive), out, _console())


@app.command()
def explain(
    option: Annotated[
        str | None, typer.Argument(metavar="TABLE.OPTION", help="Such as taylor.epochs; without it, all tables.")
    ] = None,
) -> None:
    """Say what an option of a job or party file is for: its kind, range and default."""
    from blindfit.coordinator import explain as explain_

    explain_.explain(option, _console())


@app.command()
def show(job: JobFile, overrides: SetOption = None) -> None:
    """Print the whole job with every default."""
    from blindfit.coordinator.job import shown

    loaded = _job(job, overrides)
    sys.stdout.write(shown(loaded))
    json_output.answer(loaded.to_dict())


@app.command()
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

    loaded = _party(settings, overrides)
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


@app.command()
def pretrain(
    settings: PartyFile,
    dataset: Annotated[str, typer.Option(help="A dataset of the party whose rows are public.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for walr.init or dp_lr.init.")],
    l2: Annotated[float | None, typer.Option(help="Of standardised features; default: 1 / rows.")] = None,
    overrides: SetOption = None,
) -> None:
    """Fit public rows, as the start of a private fit or what it shrinks towards."""
    from blindfit.coordinator import pretrained

    pretrained.pretrain(_party(settings, overrides), settings.parent, dataset, out, l2, _console())


@app.command()
def split_labels(
    settings: PartyFile,
    dataset: Annotated[str, typer.Option(help="A dataset of the party, with labels 0 and 1.")],
    out: Annotated[tuple[Path, Path], typer.Option(metavar="A.PARQUET B.PARQUET", help="Two new files.")],
    overrides: SetOption = None,
) -> None:
    """Split every label in two, for two measurement servers of which neither is to know it."""
    from blindfit.coordinator import split_labels as split_

    split_.split_labels(_party(settings, overrides), settings.parent, dataset, out, _console())


@app.command()
def import_falcon(
    job: Annotated[Path, typer.Argument(metavar="JOB.JSON", help="A job file of the Falcon code.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder, for job.toml and each party's file.")],
    without: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Go on without what it asks; may be given again.")
    ] = None,
) -> None:
    """Make a falcon job of one for the public Falcon code, and say what became of every field."""
    from blindfit.coordinator import import_falcon as import_

    import_.import_falcon(job, out, without or [], _console())


@app.command()
def approve(
    settings: PartyFile,
    session: Annotated[str | None, typer.Argument(help="Which; without it, all that waits is shown.")] = None,
    digest: Annotated[str | None, typer.Argument(help="Of the job as it was shown; without it you are asked.")] = None,
    refuse: Annotated[bool, typer.Option("--refuse", help="Say no instead.")] = False,
    overrides: SetOption = None,
) -> None:
    """Say yes (or no) to a job that waits for this party's operator."""
    from blindfit.coordinator import operator

    if session is None:
        _refuse_unused("without SESSION what waits is shown", {"--refuse": refuse})
    loaded, console = _party(settings, overrides), _console()
    if session is None:
        operator.list_held(loaded, settings, console)
    elif digest is None and not refuse:
        operator.approve_shown(loaded, settings, session, console, _asks())
    else:
        operator.decide(loaded, settings, session, digest, refuse=refuse, console=console)


def _asks() -> Confirm | None:
    return typer.confirm if sys.stdin.isatty() and not json_output.is_asked() else None


@app.command()
def publish(
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
    from blindfit.coordinator import snapshots

    if dataset is None:
        given = {"--other-people": other_people, "--skip-unreadable": skip_unreadable, "--remove-older": remove_older}
        _refuse_unused("without DATASET what is published is listed", given)
    loaded, console = _party(settings, overrides), _console()
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
    from blindfit.coordinator import ledger_view

    console = _console()
    if verify:
        given = {"--export": export, "--acknowledge": acknowledge, "--set": overrides}
        _refuse_unused("--verify checks a chain that was exported", given)
        ledger_view.verify(settings, console)
        return
    loaded = _party(settings, overrides)
    if acknowledge:
        ledger_view.acknowledge(loaded, settings.parent, console)
    if export is not None:
        ledger_view.export(loaded, settings.parent, export, console)
    else:
        ledger_view.show(loaded, settings.parent, console)


@app.command()
def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Of a walr run, or the active party's own.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for auditors.")],
) -> None:
    """Make one file of a finished walr training, for an auditor: charge, noisy sum, model, and who signed them."""
    from blindfit.coordinator.verify import export as export_

    export_.export(directory, out, _console())


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(metavar="FILE", help="What `blindfit export` made.", show_default=False)],
    authority: Annotated[Path | None, typer.Option(metavar="FILE", help="The authority that you trust.")] = None,
    features: Annotated[str | None, typer.Option(metavar="TABLE", help="The features, to fit the model again.")] = None,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="training_rows.json, with --features.")] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="The table's column of ids, with --features.  [default: id]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Check such a file, offline and without trust in any party; exit status 1: something does not hold."""
    from blindfit.coordinator.verify import shown

    if features is None:
        _refuse_unused("without --features no model is fitted again", {"--id": row_id})
    console, column = _console(), row_id or "id"
    if not shown.run(
        release, console, authority=authority, features=features, rows=rows, row_id=column, as_json=as_json
    ):
        raise typer.Exit(ExitCode.FAILED)


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
    from blindfit.coordinator import purge as purge_

    loaded, console = _party(settings, overrides), _console()
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
    from blindfit.coordinator import operator

    operator.lock(_party(settings, overrides), settings.parent, old, _console())


@app.command()
def health(settings: PartyFile, overrides: SetOption = None) -> None:
    """Say whether a party on this machine serves; so does the exit status."""
    import asyncio

    from blindfit.coordinator import health as health_
    from blindfit.parties.identity.connections import open_identity

    loaded = _party(settings, overrides)
    asyncio.run(health_.ask(open_identity(loaded.identity, settings.parent), loaded.listen))
    _console().print(f"{loaded.name} serves", highlight=False)
    json_output.answer({"party": loaded.name, "serves": True})


@app.command()
def calibrate(settings: PartyFile, overrides: SetOption = None) -> None:
    """Say whether a party's workers work, and how fast they are."""
    from blindfit.coordinator import calibrate as calibrate_

    calibrate_.calibrate(_party(settings, overrides), settings.parent, _console())


app.command()(audit_.audit)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where a party's report.json and model.json are.")],
) -> None:
    """Make a party's own page, with its weights, from its own files."""
    from blindfit.coordinator.report.party import render_party

    render_party(directory, _console())


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(version_.version())
    json_output.answer({"version": version_.version()})


def main(command: Sequence[str] | None = None) -> None:
    """Args:
    command: how this command line is started, for the processes of parties; None: as `python -m blindfit`.
    """
    _print_somewhere()
    json_output.begin()
    try:
        app(obj=command)
    except Stopped as stopped:
        _end("Stopped", str(stopped), stopped.hint, ExitCode.STOPPED, word="stopped")
    except BlindfitError as error:
        _end(
            type(error).__name__,
            error.message,
            error.hint,
            ExitCode.WRONG_INPUT if isinstance(error, ConfigError) else ExitCode.FAILED,
        )
    except MemoryError:
        _end("MemoryError", NO_MEMORY, "run it where there is more, or with fewer rows or workers", ExitCode.FAILED)
    except Exception as error:
        from blindfit.coordinator.out_dir import refused_by_system

        if isinstance(error, OSError) and (reason := refused_by_system(error)):
            _end("OSError", reason, "check the path, the file's owner and the room on the disk", ExitCode.FAILED)
        if os.environ.get("BLINDFIT_TRACEBACK"):
            raise
        _end(
            type(error).__name__,
            f"a bug in Blindfit: {type(error).__name__} at {where(error)}",
            "set BLINDFIT_TRACEBACK=1 to see all of it, and please report it",
            ExitCode.BUG,
        )
    except KeyboardInterrupt:
        _end("Stopped", "nothing was under way between parties", "", ExitCode.STOPPED, word="stopped")


def _print_somewhere() -> None:
    """Whoever closes standard output (`>&-`) wants none of it; and no file that is opened later may take its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _end(kind: str, what: str, hint: str, status: int, word: str = "error") -> NoReturn:
    if json_output.is_asked():
        sys.stderr.write(json_output.error_line(kind, what, hint, status))
        raise SystemExit(status) from None
    from rich.markup import escape

    from blindfit.algorithms.texts import printable

    errors = _console(stderr=True)
    errors.print(f"[bold red]{word}:[/] {escape(printable(what))}", highlight=False, soft_wrap=True)
    if hint:
        errors.print(f"[dim]hint:[/] {escape(printable(hint))}", highlight=False, soft_wrap=True)
    raise SystemExit(status) from None
