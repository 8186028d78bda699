"""Commands that make and run jobs."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.cli.common import (
    EvaluateOutOption,
    FaultOption,
    JobFile,
    NetworkOption,
    OutOption,
    PartyFile,
    PredictOutOption,
    QuietOption,
    RehearseOption,
    RunOutOption,
    SetOption,
    VerboseOption,
    WarnOnlyOption,
    as_found,
    confirm_of,
    faults_of,
    make_job,
    open_console,
    read_job,
    read_party,
    rehearsal_of,
    set_network,
    talk_of,
)
from blindfit.coordinator.terminal.exit_codes import ExitCode
from blindfit.coordinator.terminal.json_output import App, Found, call_of
from blindfit.coordinator.terminal.titles import TITLES, with_title
from blindfit.coordinator.terminal.wording import join_names

PANEL = "Train"
app = App()


@app.command(rich_help_panel=PANEL)
def init(
    context: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE...",
            help="Table of each organisation: a CSV, Parquet or Excel file, sqlite:///PATH?table=NAME or "
            "postgresql://USER@HOST/DATABASE?table=NAME.",
        ),
    ] = None,
    system: Annotated[
        str,
        typer.Option(
            metavar="SYSTEM", help=f"System of the job: {join_names([with_title(name) for name in TITLES], 'or')}."
        ),
    ] = "",
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column to learn.")] = "",
    row_id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column that names a row; by default the one in all tables."),
    ] = None,
    positive: Annotated[str | None, typer.Option(metavar="TEXT", help="Text of label 1.")] = None,
    label_range: Annotated[
        str, typer.Option(metavar="LOW:HIGH", help="Public range of labels that are numbers, for label-dp.")
    ] = "",
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:LOW:HIGH", help="Public bounds of a feature, for dp-lr; * stands for all others. Repeatable."
        ),
    ] = None,
    public: Annotated[
        str, typer.Option(metavar="TABLE", help="Table of rows that anyone may have, where dp-lr starts.")
    ] = "",
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=HOST[:PORT]", help="Host of a party; by default localhost. Repeatable."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="New folder for the files.")] = Path("joint"),
) -> Found:
    """Write party files and a job for tables on this machine, ready to check and run."""
    from blindfit.coordinator.init import command
    from blindfit.coordinator.init.asked import Asked

    given = (tuple(words or ()) for words in (tables, bounds, host))
    asked = Asked(system, next(given), label, row_id, positive, label_range, next(given), public, next(given))
    may_ask = sys.stdin.isatty() and confirm_of(context) is not None
    return command.init(asked, out, typer.prompt if may_ask else None)


@app.command(rich_help_panel=PANEL)
def import_falcon(
    job: Annotated[
        Path, typer.Argument(metavar="JOB.JSON", help="Job file of the public Falcon code.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder, for job.toml and the party files.")],
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Field to ignore, if falcon cannot do what it asks for. Repeatable."),
    ] = None,
) -> Found:
    """Convert a job of the public Falcon code, and report each field."""
    from blindfit.coordinator.import_falcon import command as import_

    return import_.import_falcon(job, out, without or [])


@app.command(rich_help_panel=PANEL)
def check(
    job: JobFile,
    model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of a training's reports, for a job that takes its model."),
    ] = None,
    rehearse: RehearseOption = False,
    warn_only: WarnOnlyOption = False,
    overrides: SetOption = None,
) -> Found:
    """Report what would leak, fail or take long, before data leaves a party."""
    from blindfit.coordinator.job.trained import job_with_model
    from blindfit.coordinator.jobs import check as preflight
    from blindfit.coordinator.preflight.findings import table_of, verdict_of

    rehearsal = rehearsal_of(rehearse=rehearse, warn_only=warn_only, folders=[model])
    asked = make_job(job, overrides, partial(job_with_model, model=model, rehearses=rehearse))
    findings = preflight.check(asked, rehearsal)
    status = ExitCode.FAILED if any(finding.refuses for finding in findings) else ExitCode.DONE
    shown = (f"{asked.name}: {with_title(asked.protocol)}", table_of(findings), verdict_of(findings))
    return Found({"findings": findings}, shown, status)


@app.command(rich_help_panel=PANEL)
def plan(
    context: typer.Context,
    job: JobFile,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Epsilon to plan for, in addition to the job's own. Repeatable.")
    ] = None,
    base_rate: Annotated[float | None, typer.Option(help="Share of positive labels to assume, 0 to 1.")] = None,
    strength: Annotated[
        float | None, typer.Option(help="Standard deviation of the true scores to assume; 1 is a fair model.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights to assume: the last model.json, or public ones.")
    ] = None,
    wanted: Annotated[
        float | None,
        typer.Option(
            help="Loss to reach, as a share of the loss of a constant model. The plan names an epsilon for it."
        ),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Number of draws of labels and noise; default: 20.")] = None,
    cadences: Annotated[
        int | None, typer.Option(help="Number of releases about the same people. The plan prints their joint cost.")
    ] = None,
    out: OutOption = Path("runs/plan"),
    overrides: SetOption = None,
) -> Found:
    """Forecast the accuracy of each epsilon before any is spent.

    The plan reads features and no labels.
    """
    from blindfit.coordinator.jobs import plan as command
    from blindfit.coordinator.plan.asked import Asked

    asked = Asked(tuple(epsilon or ()), base_rate, strength, model, wanted, draws, cadences)
    return command.plan(read_job(job, overrides), asked, out, open_console(context))


@app.command(rich_help_panel=PANEL)
def run(
    context: typer.Context,
    job: JobFile,
    out: RunOutOption = None,
    network: NetworkOption = None,
    rehearse: RehearseOption = False,
    warn_only: WarnOnlyOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    faults: FaultOption = None,
    overrides: SetOption = None,
) -> Found:
    """Run a job on this machine: one process for each party, then a report."""
    from blindfit.coordinator.job.folders import new_folder
    from blindfit.coordinator.jobs import run as jobs

    rehearsal = rehearsal_of(rehearse=rehearse, warn_only=warn_only)
    console, talk = open_console(context), talk_of(quiet=quiet, verbose=verbose)
    asked = read_job(job, overrides, set_network(network))
    where = out or partial(new_folder, asked.name, rehearses=rehearse)
    command, fault_options = call_of(context).command, faults_of(context, faults)
    return as_found(jobs.run_here(asked, where, console, command, talk, rehearsal=rehearsal, **fault_options))


@app.command(rich_help_panel=PANEL)
def submit(
    context: typer.Context,
    job: JobFile,
    out: RunOutOption = None,
    session: Annotated[str | None, typer.Option(help="Training whose model a predict or evaluate job takes.")] = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    overrides: SetOption = None,
) -> Found:
    """Run a job on parties that are already running."""
    from blindfit.coordinator.job.folders import new_folder
    from blindfit.coordinator.job.job import with_session
    from blindfit.coordinator.jobs import run as jobs

    asked = read_job(job, overrides, with_session(job, overrides or [], session))
    console, talk = open_console(context), talk_of(quiet=quiet, verbose=verbose)
    return as_found(jobs.submit(asked, out or partial(new_folder, asked.name), console, talk))


@app.command(rich_help_panel=PANEL)
def predict(
    context: typer.Context,
    job: JobFile,
    out: PredictOutOption = None,
    rehearse: RehearseOption = False,
    warn_only: WarnOnlyOption = False,
    session: Annotated[str | None, typer.Option(help="Session of the training whose model scores the rows.")] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of that training's reports, instead of --session.")
    ] = None,
    network: NetworkOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    faults: FaultOption = None,
    overrides: SetOption = None,
) -> Found:
    """Score new rows with a trained model. Every party runs on this machine."""
    from blindfit.coordinator.job.folders import folder_of
    from blindfit.coordinator.job.trained import prediction_of
    from blindfit.coordinator.jobs import run as jobs

    rehearsal = rehearsal_of(rehearse=rehearse, warn_only=warn_only, folders=[model])
    console = open_console(context)
    make = partial(prediction_of, session=session, model=model, rehearses=rehearse)
    asked = make_job(job, overrides, make, set_network(network))
    talk, command = talk_of(quiet=quiet, verbose=verbose), call_of(context).command
    where, fault_options = out or folder_of(asked, rehearses=rehearse), faults_of(context, faults)
    return as_found(jobs.run_here(asked, where, console, command, talk, rehearsal=rehearsal, **fault_options))


@app.command(rich_help_panel=PANEL)
def evaluate(
    context: typer.Context,
    job: JobFile,
    out: EvaluateOutOption = None,
    rehearse: RehearseOption = False,
    warn_only: WarnOnlyOption = False,
    session: Annotated[str | None, typer.Option(help="Session of the training whose model is evaluated.")] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of that training's reports, instead of --session.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the prediction, if several parties hold columns.")
    ] = None,
    network: NetworkOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    faults: FaultOption = None,
    overrides: SetOption = None,
) -> Found:
    """Measure how good a model is, from one noisy sum over labels.

    Every party runs on this machine.
    """
    from blindfit.coordinator.job.folders import folder_of
    from blindfit.coordinator.job.trained import evaluation_of
    from blindfit.coordinator.jobs import run as jobs

    rehearsal = rehearsal_of(rehearse=rehearse, warn_only=warn_only, folders=[scores, model])
    console = open_console(context)
    make = partial(evaluation_of, session=session, model=model, scores=scores, rehearses=rehearse)
    asked = make_job(job, overrides, make, set_network(network))
    talk, command = talk_of(quiet=quiet, verbose=verbose), call_of(context).command
    where, fault_options = out or folder_of(asked, rehearses=rehearse), faults_of(context, faults)
    return as_found(jobs.run_here(asked, where, console, command, talk, rehearsal=rehearsal, **fault_options))


@app.command(rich_help_panel=PANEL)
def export_model(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL.JSON...", help="A model, or all parts of one.", show_default=False)
    ],
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="onnx, pmml, python or sql.")],
    dialect: Annotated[
        str | None, typer.Option(metavar="NAME", help="The database for sql: sqlite (the default) or postgresql.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The new file; by default next to the first model.")
    ] = None,
) -> Found:
    """Write a linear model for other software: ONNX, PMML, SQL or plain Python."""
    from blindfit.coordinator.export_model import command

    return command.export_model(models, form, dialect, out)


@app.command(rich_help_panel=PANEL)
def pretrain(
    settings: PartyFile,
    dataset: Annotated[str, typer.Option(help="A dataset of the party whose rows are public.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for walr.init or dp_lr.init.")],
    l2: Annotated[float | None, typer.Option(help="Ridge penalty on standardised features; default: 1 / rows.")] = None,
    overrides: SetOption = None,
) -> Found:
    """Fit a model to public rows. A private fit starts from it or shrinks towards it."""
    from blindfit.coordinator.operator import pretrained

    return pretrained.pretrain(read_party(settings, overrides), settings.parent, dataset, out, l2)


@app.command(rich_help_panel=PANEL)
def split_labels(
    settings: PartyFile,
    dataset: Annotated[str, typer.Option(help="A dataset of the party, with labels 0 and 1.")],
    out: Annotated[tuple[Path, Path], typer.Option(metavar="A.PARQUET B.PARQUET", help="Two new files.")],
    overrides: SetOption = None,
) -> Found:
    """Split labels into two shares, so that neither of two servers knows a label."""
    from blindfit.coordinator.operator import split_labels as split_

    return split_.split_labels(read_party(settings, overrides), settings.parent, dataset, out)
