"""The options and the steps that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.terminal.exit_codes import ExitCode
from blindfit.coordinator.terminal.json_output import Found, call_of, show_found

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from blindfit.coordinator.job.job import Job
    from blindfit.coordinator.report.kind import Written
    from blindfit.coordinator.running.driving import Talk
    from blindfit.coordinator.running.rehearsal import Rehearsal
    from blindfit.parties.settings import PartySettings


SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Value that replaces an option of the file. Repeatable."),
]
JobFile = Annotated[Path, typer.Argument(metavar="JOB.TOML", help="Job file.", show_default=False)]
PartyFile = Annotated[Path, typer.Argument(metavar="PARTY.TOML", help="Party file.", show_default=False)]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result and errors.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Also print what each party waits for.")]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the reports.")]
NetworkOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help='Network to simulate between the parties: one-way latency and bandwidth, such as "40ms 100mbit".',
    ),
]
PredictOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder for the reports; by default runs/predict, or runs/predict-rehearsal."
    ),
]
EvaluateOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder for the reports; by default runs/evaluate, or runs/evaluate-rehearsal."
    ),
]
RehearseOption = Annotated[
    bool,
    typer.Option(
        "--rehearse", help="Rehearse the job: nothing is charged, and what the parties keep is not read or changed."
    ),
]
WarnOnlyOption = Annotated[
    bool,
    typer.Option(
        "--warn-only", help="With --rehearse: warn where the job passes a limit of a budget or account, and go on."
    ),
]
RunOutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder for the reports; by default a new one, which runs/latest links to."
    ),
]


FaultOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="TEXT",
        help='Fault of one party to study, such as "kill shop at epoch 3"; verbs: kill, freeze, cut, restart. '
        "Repeatable.",
    ),
]


def open_console(context: typer.Context, *, stderr: bool = False) -> Console:
    """Open a console for what a command prints before it ends; with --json it prints nothing."""
    from blindfit.coordinator.terminal.terminal import terminal

    return terminal(stderr=stderr, quiet=call_of(context).as_json)


def confirm_of(context: typer.Context) -> Callable[[str], bool] | None:
    """Return a function that asks the person at the terminal; None with --json."""
    return None if call_of(context).as_json else typer.confirm


def refuse_unused(because: str, given: Mapping[str, object]) -> None:
    if useless := [option for option, value in given.items() if value]:
        raise ConfigError(f"{' and '.join(useless)} does nothing: {because}", hint="remove it")


def talk_of(*, quiet: bool, verbose: bool) -> Talk:
    if quiet and verbose:
        raise ConfigError("--quiet and --verbose cannot be combined")
    return "quiet" if quiet else "verbose" if verbose else "normal"


def rehearsal_of(*, rehearse: bool, warn_only: bool, folders: Sequence[Path | None] = ()) -> Rehearsal | None:
    """Return how a job is rehearsed; None for a real job.

    Args:
        folders: folders that may hold the rehearsal of the training whose model the job takes.
    """
    from blindfit.coordinator.running.rehearsal import Rehearsal

    if not rehearse:
        refuse_unused("without --rehearse a job is real", {"--warn-only": warn_only})
        return None
    return Rehearsal(warn_only, tuple(folder for folder in folders if folder is not None))


def read_job(path: Path, overrides: list[str] | None, more: Sequence[str] = ()) -> Job[Any]:
    """Return a job with the values of `--set`, and with `more` that other options set."""
    from blindfit.coordinator.job.job import load_job
    from blindfit.coordinator.job.overrides import read_with

    return read_with(lambda words: load_job(path, words), path, overrides, more)


def make_job(
    path: Path, overrides: list[str] | None, make: Callable[..., Job[Any]], more: Sequence[str] = ()
) -> Job[Any]:
    """Return what `make` makes of the tables of a job file."""
    from blindfit.coordinator.job.job import read_tables
    from blindfit.coordinator.job.overrides import read_with

    def read(words: list[str]) -> Job[Any]:
        return make(read_tables(path, words), folder=path.parent, called=str(path))

    return read_with(read, path, overrides, more)


def read_party(path: Path, overrides: list[str] | None) -> PartySettings:
    from blindfit.coordinator.job.file_kinds import refuse_job_file
    from blindfit.coordinator.job.overrides import read_with
    from blindfit.parties.systems import load_party

    refuse_job_file(path)
    return read_with(lambda words: load_party(path, words), path, overrides)


def set_network(network: str | None) -> list[str]:
    """Return the override that names the network."""
    from blindfit.parties.tables import toml_of

    return [] if network is None else [f"network={toml_of(network)}"]


def as_found(written: Written) -> Found:
    """Return the output of the command; a fault that never happened makes the command fail."""
    never = written.content.get("faults", {}).get("never")
    status = ExitCode.FAILED if never else ExitCode.DONE
    return Found({"file": written.json_path, "report": written.content}, written.summarise(), status)


def faults_of(context: typer.Context, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of `run_here` that are about faults."""
    if not texts:
        return {}
    from blindfit.coordinator.running.faults import parse_faults

    return {"faults": parse_faults(texts), "show": partial(show_found, as_json=call_of(context).as_json)}
