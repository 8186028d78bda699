"""Commands as Python calls: each takes a job as a file, as tables or as a `Job`, and returns what it found.

A call works with and without a running event loop, as in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from rich.console import Console

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.export_model import command as exporting_models
from blindfit.coordinator.init import asked as drafts
from blindfit.coordinator.init import command as drafting
from blindfit.coordinator.job.folders import folder_of, new_folder
from blindfit.coordinator.job.job import Job, load_job
from blindfit.coordinator.job.trained import evaluation_of, job_with_model, prediction_of
from blindfit.coordinator.jobs import check as preflight
from blindfit.coordinator.jobs import plan as planning
from blindfit.coordinator.jobs import run as jobs
from blindfit.coordinator.operator import ledger as book
from blindfit.coordinator.plan.asked import Asked
from blindfit.coordinator.preflight.findings import Finding, table_of
from blindfit.coordinator.python.result import Result
from blindfit.coordinator.python.running_job import RunningJob
from blindfit.coordinator.report.kind import Written
from blindfit.coordinator.running.faults import parse_faults
from blindfit.coordinator.running.rehearsal import Rehearsal
from blindfit.coordinator.running.watcher import Watcher
from blindfit.coordinator.terminal.html import render_html
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import terminal
from blindfit.coordinator.verify import export as exporting
from blindfit.coordinator.verify import shown as verifying
from blindfit.parties.systems import load_party

if TYPE_CHECKING:
    from blindfit.algorithms.statistics.models import Model

P = ParamSpec("P")
T = TypeVar("T")
AnyJob = str | Path | Mapping[str, Any] | Job[Any]
Folder = str | Path


class Findings(Sequence[Finding]):
    """The findings of `check`, in the order of its table."""

    def __init__(self, found: Iterable[Finding]) -> None:
        self._found = tuple(found)

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, place: int | slice) -> Finding | tuple[Finding, ...]:
        return self._found[place]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __repr__(self) -> str:
        return "\n".join(f"{finding.level}: {finding.about}: {finding.text}" for finding in self._found)

    def _repr_html_(self) -> str:
        return render_html([table_of(self._found)])

    @property
    def refuses(self) -> bool:
        """Return whether a finding says that `run` would refuse the job."""
        return any(finding.refuses for finding in self._found)


def init(
    tables: Sequence[Folder],
    *,
    system: str,
    label: str,
    row_id: str | None = None,
    positive: str | None = None,
    label_range: tuple[float, float] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    public: Folder = "",
    hosts: Mapping[str, str] | None = None,
    out: Folder = "joint",
    show: bool = True,
) -> Job[Any]:
    """Write party files and a job for tables that are here, and return the job, ready to be checked and run.

    Args:
        tables: a file or a database's table of each organisation.
        system: walr, label-dp, dp-lr, taylor or falcon.
        label: the column to learn.
        row_id: the column that names a row; by default the one that is in all tables.
        positive: the text of label 1; by default guessed.
        label_range: the public range of labels that are numbers, for label-dp.
        bounds: public bounds of features, by name, for dp-lr; "*" stands for all others.
        public: a table of rows that anyone may have, where dp-lr starts.
        hosts: "HOST" or "HOST:PORT" of parties, by name; by default localhost.
        out: a new folder for the files.
        show: whether to print what each table is taken for, and what to type next.

    Raises:
        ConfigError, DataError: which file or column, and what to say.
    """
    asked = drafts.Asked(
        system,
        tuple(str(table) for table in tables),
        label,
        row_id,
        positive,
        "" if label_range is None else f"{label_range[0]!r}:{label_range[1]!r}",
        tuple(f"{name}:{low!r}:{high!r}" for name, (low, high) in (bounds or {}).items()),
        str(public),
        tuple(f"{name}={host}" for name, host in (hosts or {}).items()),
    )
    found = drafting.init(asked, Path(out))
    if show:
        found.show(terminal())
    return load_job(Path(out) / "job.toml")


@overload
def run(
    job: AnyJob,
    *,
    out: Folder | None = ...,
    rehearse: bool = ...,
    warn_only: bool = ...,
    wait: Literal[True] = ...,
    progress: bool = ...,
    faults: Sequence[str] = ...,
    **tables: Any,
) -> Result: ...
@overload
def run(
    job: AnyJob,
    *,
    out: Folder | None = ...,
    rehearse: bool = ...,
    warn_only: bool = ...,
    wait: Literal[False],
    progress: bool = ...,
    faults: Sequence[str] = ...,
    **tables: Any,
) -> RunningJob: ...
def run(
    job: AnyJob,
    *,
    out: Folder | None = None,
    rehearse: bool = False,
    warn_only: bool = False,
    wait: bool = True,
    progress: bool = True,
    faults: Sequence[str] = (),
    **tables: Any,
) -> Result | RunningJob:
    """Run a job on this machine: one process for each party, then a report.

    Args:
        out: the folder of the reports; by default a new one in `runs`.
        rehearse: whether to rehearse the job: nothing is charged, and what the parties keep is not read or changed.
        warn_only: whether a rehearsal only warns where the job passes a limit of a budget or an account.
        wait: whether to wait for the end. If not, the running job is returned.
        progress: whether to show what the parties do while this call waits.
        faults: faults of parties to study, such as "kill shop at epoch 3"; `blindfit run --fault` takes the same
            texts. The folder of the reports gets faults.json, also if the job fails.
        tables: tables and values of the job that take the place of those in `job`, such as `privacy={"epsilon": 2}`.

    Raises:
        Stopped: somebody has cancelled the job.
        BlindfitError: why the job was refused or failed.
    """
    work = _work_here(faults, _rehearsal_of(rehearse, warn_only))
    running = _begin(Job(job, **tables), work, out, quiet=not (wait and progress), rehearses=rehearse)
    return _finish(running, progress=progress) if wait else running


@overload
def submit(
    job: AnyJob, *, out: Folder | None = ..., wait: Literal[True] = ..., progress: bool = ..., **tables: Any
) -> Result: ...
@overload
def submit(
    job: AnyJob, *, out: Folder | None = ..., wait: Literal[False], progress: bool = ..., **tables: Any
) -> RunningJob: ...
def submit(
    job: AnyJob, *, out: Folder | None = None, wait: bool = True, progress: bool = True, **tables: Any
) -> Result | RunningJob:
    """Run a job on parties that are already up. Arguments, result and errors are those of `run`."""
    running = _begin(Job(job, **tables), jobs.submit, out, quiet=not (wait and progress))
    return _finish(running, progress=progress) if wait else running


def predict(
    job: AnyJob,
    *,
    model: Folder | Result | None = None,
    session: str | None = None,
    out: Folder | None = None,
    rehearse: bool = False,
    warn_only: bool = False,
    progress: bool = True,
    faults: Sequence[str] = (),
    **tables: Any,
) -> Result:
    """Score new rows with a model that the parties have trained, every party on this machine.

    Args:
        model: the training's result, or the folder of its reports; or `session`, the name of its session. By default
            the job says it.
        out: the folder of the reports; by default runs/predict, and runs/predict-rehearsal for a rehearsal.
        rehearse, warn_only: as `run` takes them; the model must come from a rehearsal too.
        faults: as `run` takes them.

    Raises: as `run`.
    """
    asked = prediction_of(job, session, _folder_of(model), rehearses=rehearse, **tables)
    work = _work_here(faults, _rehearsal_of(rehearse, warn_only, [model]))
    where = out or folder_of(asked, rehearses=rehearse)
    return _finish(_begin(asked, work, where, quiet=not progress), progress=progress)


def evaluate(
    job: AnyJob,
    *,
    model: Folder | Result | None = None,
    session: str | None = None,
    scores: Folder | Result | None = None,
    out: Folder | None = None,
    rehearse: bool = False,
    warn_only: bool = False,
    progress: bool = True,
    faults: Sequence[str] = (),
    **tables: Any,
) -> Result:
    """Say how good a model is, from one noisy sum over labels, every party on this machine.

    Args:
        model, session: as `predict` takes them.
        scores: the prediction's result, or the folder of its reports, if several parties hold columns.
        out: the folder of the reports; by default runs/evaluate, and runs/evaluate-rehearsal for a rehearsal.
        rehearse, warn_only: as `predict` takes them.
        faults: as `run` takes them.

    Raises: as `run`.
    """
    asked = evaluation_of(job, session, _folder_of(model), _folder_of(scores), rehearses=rehearse, **tables)
    work = _work_here(faults, _rehearsal_of(rehearse, warn_only, [scores, model]))
    where = out or folder_of(asked, rehearses=rehearse)
    return _finish(_begin(asked, work, where, quiet=not progress), progress=progress)


def check(
    job: AnyJob,
    *,
    model: Folder | Result | None = None,
    rehearse: bool = False,
    warn_only: bool = False,
    **tables: Any,
) -> Findings:
    """Report what would leak, fail or take long, before any data leaves a party.

    Args:
        model: the training's result, or the folder of its reports, for a job that takes its model.
        rehearse, warn_only: as `run` takes them: then the findings are about the rehearsal.
    """
    asked = job_with_model(job, _folder_of(model), rehearses=rehearse, **tables)
    return Findings(_outside_any_loop(preflight.check, asked, _rehearsal_of(rehearse, warn_only, [model])))


def plan(
    job: AnyJob,
    *,
    epsilon: float | Sequence[float] = (),
    base_rate: float | None = None,
    strength: float | None = None,
    model: Folder | None = None,
    wanted: float | None = None,
    draws: int | None = None,
    cadences: int | None = None,
    out: Folder = "runs/plan",
    progress: bool = True,
    **tables: Any,
) -> Found:
    """Say what each epsilon would buy, before any is spent. Arguments are the options of `blindfit plan`."""
    asked, epsilons = Job[Any](job, **tables), epsilon if isinstance(epsilon, Sequence) else (epsilon,)
    assumed = None if model is None else Path(model)
    wish = Asked(tuple(epsilons), base_rate, strength, assumed, wanted, draws, cadences)
    return _outside_any_loop(planning.plan, asked, wish, Path(out), terminal(quiet=not progress))


def ledger(party: str | Path, overrides: Sequence[str] = ()) -> Found:
    """Show a party's budgets, charges, and what was revealed without a charge.

    Args:
        party: the party's file.
        overrides: options that take the place of those in the file, as `--set` takes them: "policy.min_rows=50".
    """
    path = Path(party)
    return book.describe(load_party(path, overrides), path.parent)


def export(training: Folder | Result, out: str | Path) -> Found:
    """Make one file of a finished walr training for an auditor.

    Args:
        training: the training's result, or the folder of its reports.
    """
    return exporting.export(training.folder if isinstance(training, Result) else Path(training), Path(out))


def export_model(
    models: Result | Model | Folder | Sequence[Model | Folder],
    format: Literal["onnx", "pmml", "python", "sql"],  # noqa: A002 - the word of the command line
    *,
    dialect: Literal["sqlite", "postgresql"] | None = None,
    out: str | Path | None = None,
) -> Found:
    """Write a linear model for another system: ONNX, PMML, SQL, or Python without packages.

    Args:
        models: the training's result, a model.json or a fitted model; or a list of all parts of one model.
        dialect: the database for "sql"; SQLite by default.
        out: the new file; by default next to the first model's file.

    Raises:
        ConfigError: the format or dialect is unknown, a package is missing, or the file cannot be written.
        DataError: this is not a model that can be exported.
    """
    named = models.model_files if isinstance(models, Result) else models
    listed = [named] if isinstance(named, str) or not isinstance(named, Sequence) else named
    return exporting_models.export_model(listed, format, dialect, None if out is None else Path(out))


def verify(
    release: str | Path,
    *,
    authority: str | Path | None = None,
    servers: Sequence[str] = (),
    starts: Sequence[str | Path] = (),
    features: str | None = None,
    rows: str | Path | None = None,
    row_id: str = "id",
) -> Found:
    """Check a release file offline, without trust in any party. Arguments are the options of `blindfit verify`."""
    return verifying.verify(
        Path(release),
        authority=None if authority is None else Path(authority),
        servers=servers,
        starts=[Path(start) for start in starts],
        features=features,
        rows=None if rows is None else Path(rows),
        row_id=row_id,
    )


def _outside_any_loop(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Call a function that may run an event loop of its own, which the thread of a notebook does not allow."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments, **more).result()


def _work_here(faults: Sequence[str], rehearsal: Rehearsal | None) -> Callable[..., Written]:
    """Return what runs a job on this machine. Raises ConfigError: a text that is no fault."""
    return partial(jobs.run_here, rehearsal=rehearsal, faults=parse_faults(faults))


def _rehearsal_of(rehearse: bool, warn_only: bool, folders: Sequence[Folder | Result | None] = ()) -> Rehearsal | None:
    """Return how a job is rehearsed, if it is.

    Raises:
        ConfigError: `warn_only` without `rehearse`.
    """
    if rehearse:
        return Rehearsal(warn_only, tuple(path for path in map(_folder_of, folders) if path is not None))
    if warn_only:
        raise ConfigError("without rehearse=True a job is real, and warn_only does nothing", hint="remove it")
    return None


def _begin(
    job: Job[Any], work: Callable[..., Written], out: Folder | None, *, quiet: bool, rehearses: bool = False
) -> RunningJob:
    console = terminal(quiet=quiet)
    where = partial(new_folder, job.name, rehearses=rehearses) if out is None else Path(out)
    return RunningJob(job, partial(_work, work, job, where, console), console)


def _finish(running: RunningJob, *, progress: bool) -> Result:
    with running:
        if progress:
            running.show()
        return running.result()


def _work(work: Callable[..., Written], job: Job[Any], out: Any, console: Console, watcher: Watcher) -> Written:
    return work(job, out, console, watcher=watcher)


def _folder_of(model: Folder | Result | None) -> Path | None:
    return model.folder if isinstance(model, Result) else None if model is None else Path(model)
