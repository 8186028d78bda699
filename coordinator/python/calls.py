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
    """Findings of `check`, in the order of its table: a sequence of `Finding`.

    Args:
        found: the findings.

    Example:
        >>> findings = blindfit.check("job.toml")
        >>> findings.refuses, len(findings) > 0
        (False, True)
        >>> findings[0].level in ("ok", "note", "warning", "refuses")
        True
    """

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
        """True if `run` would refuse the job."""
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
    """Write party files and a job for tables on this machine, ready to be checked and run.

    Args:
        tables: one table of each organisation: a file (CSV, Parquet, Excel) or the address of a database's table.
        system: "walr", "label-dp", "dp-lr", "taylor" or "falcon".
        label: column with the labels.
        row_id: column that names a row; by default the column that all tables have.
        positive: text that stands for label 1; guessed by default.
        label_range: public range of labels that are numbers, for label-dp.
        bounds: public bounds of features by name, for dp-lr; "*" stands for all others.
        public: a table of rows that anyone may have, from which dp-lr starts.
        hosts: "HOST" or "HOST:PORT" of each party by name; localhost by default.
        out: a new folder for the files.
        show: True to print how each table is read, and which command comes next.

    Returns:
        The job, as in OUT/job.toml.

    Raises:
        ConfigError: an option is missing or wrong; the message names it.
        DataError: a table is wrong; the message names the file and the column.

    Example:
        >>> job = blindfit.init(["features.csv", "visits.csv"], system="walr", label="label", out="joint", show=False)
        >>> job.parties["features"].role, job.parties["visits"].role
        ('active', 'measurement')
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
        job: path of a job file, its tables as a mapping, or a `Job`.
        out: folder for the reports; by default a new one in `runs`.
        rehearse: True to rehearse the job: nothing is charged, and no state of a party is read or changed.
        warn_only: True if a rehearsal only warns where the job passes a limit of a budget or an account.
        wait: False to return at once, with the running job.
        progress: True to show the progress of the parties while this call waits.
        faults: faults of parties to study, such as "kill shop at epoch 3", as `blindfit run --fault` takes them. The
            folder of the reports gets faults.json, also if the job fails.
        tables: tables and values that replace those of `job`, such as `privacy={"epsilon": 2}`.

    Returns:
        The result; a RunningJob if `wait` is False.

    Raises:
        Stopped: the job was cancelled.
        BlindfitError: the job was refused or failed; the message gives the first cause.

    Example:
        >>> result = blindfit.run("job.toml", privacy={"epsilon": 1.0}, progress=False)
        >>> result.report.privacy.epsilon
        1.0
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
    """Run a job on parties that are already running, each at the address that the job names.

    Args:
        job: path of a job file, its tables as a mapping, or a `Job`. Its `[coordinator]` table has the certificate.
        out: folder for the reports; by default a new one in `runs`.
        wait: False to return at once, with the running job.
        progress: True to show the progress of the parties while this call waits.
        tables: tables and values that replace those of `job`.

    Returns:
        The result; a RunningJob if `wait` is False.

    Raises:
        Stopped: the job was cancelled.
        BlindfitError: the job was refused or failed; the message gives the first cause.

    Example:
        >>> result = blindfit.submit("job.toml", progress=False)  # `blindfit party` runs at shop and at meter
        >>> sorted(result.job.parties)
        ['meter', 'shop']
    """
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
    """Score new rows with a model that the parties have trained. Every party runs on this machine.

    Args:
        job: path of a prediction's job file, its tables as a mapping, or a `Job`.
        model: the training's result, or the folder of its reports. By default the job names the training.
        session: name of the training's session, instead of `model`.
        out: folder for the reports; by default runs/predict, and runs/predict-rehearsal for a rehearsal.
        rehearse: True to rehearse the prediction, with the model of a rehearsed training.
        warn_only: True if a rehearsal only warns where the job passes a limit of an account.
        progress: True to show the progress of the parties.
        faults: faults of parties to study, as `run` takes them.
        tables: tables and values that replace those of `job`.

    Returns:
        The result; its `scores` is a data frame.

    Raises:
        Stopped: the job was cancelled.
        BlindfitError: the job was refused or failed; the message gives the first cause.

    Example:
        >>> training = blindfit.run("bank/job.toml", progress=False)
        >>> result = blindfit.predict("bank/predict.toml", model=training, progress=False)
        >>> list(result.scores)
        ['id', 'score', 'probability']
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
    """Measure the quality of a model from one noisy sum over labels. Every party runs on this machine.

    Args:
        job: path of an evaluation's job file, its tables as a mapping, or a `Job`.
        model: the training's result, or the folder of its reports. By default the job names the training.
        session: name of the training's session, instead of `model`.
        scores: result of a prediction, or the folder of its reports, if several parties have columns.
        out: folder for the reports; by default runs/evaluate, and runs/evaluate-rehearsal for a rehearsal.
        rehearse: True to rehearse the evaluation, with the model of a rehearsed training.
        warn_only: True if a rehearsal only warns where the job passes a limit of a budget.
        progress: True to show the progress of the parties.
        faults: faults of parties to study, as `run` takes them.
        tables: tables and values that replace those of `job`.

    Returns:
        The result; its `report` has ranges for AUC, log loss and calibration.

    Raises:
        Stopped: the job was cancelled.
        BlindfitError: the job was refused or failed; the message gives the first cause.

    Example:
        >>> training = blindfit.run("job.toml", progress=False)
        >>> result = blindfit.evaluate("evaluate.toml", model=training, progress=False)
        >>> result.job.protocol
        'evaluate'
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
        job: path of a job file, its tables as a mapping, or a `Job`.
        model: the training's result, or the folder of its reports, for a job that takes its model.
        rehearse: True if the findings are about a rehearsal.
        warn_only: True if limits of budgets and accounts only warn, as in a rehearsal.
        tables: tables and values that replace those of `job`.

    Returns:
        The findings; `findings.refuses` is True if `run` would refuse the job.

    Raises:
        ConfigError: the job cannot be read.

    Example:
        >>> blindfit.check("job.toml", privacy={"epsilon": 20.0}).refuses
        True
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
    """Forecast the accuracy of each epsilon before any is spent. The plan reads features and no labels.

    Args:
        job: path of a walr or label-dp job file, its tables as a mapping, or a `Job`.
        epsilon: one epsilon or several, in addition to the job's own; by default a range of them.
        base_rate: share of label 1 to assume, between 0 and 1.
        strength: standard deviation of the true scores to assume; 1 is a fair model.
        model: weights to assume instead: path of the last model.json, or of public ones.
        wanted: loss to reach, as a share of a constant's loss; the plan names an epsilon for it.
        draws: number of draws of labels and noise; 20 by default.
        cadences: number of releases about the same people; the plan has their joint cost.
        out: folder for the page and the figures.
        progress: True to show how far the plan is.
        tables: tables and values that replace those of `job`.

    Returns:
        The forecast: `document` for a program; it prints as the command's table.

    Raises:
        ConfigError: an option is wrong, or the job has no plan.
        DataError: a row cannot be read.

    Example:
        >>> found = blindfit.plan("job.toml", epsilon=[0.5, 2.0], base_rate=0.5, draws=2, progress=False)
        >>> [setting["epsilon"] for setting in found.document["plan"]["epsilons"]]  # with that of the job
        [0.5, 1.0, 2.0]
    """
    asked, epsilons = Job[Any](job, **tables), epsilon if isinstance(epsilon, Sequence) else (epsilon,)
    assumed = None if model is None else Path(model)
    wish = Asked(tuple(epsilons), base_rate, strength, assumed, wanted, draws, cadences)
    return _outside_any_loop(planning.plan, asked, wish, Path(out), terminal(quiet=not progress))


def ledger(party: str | Path, overrides: Sequence[str] = ()) -> Found:
    """List a party's budgets and charges, and what was revealed without a charge.

    Args:
        party: path of the party's file.
        overrides: values that replace options of the file, such as "policy.min_rows=50".

    Returns:
        The ledger: `document` for a program; it prints as the command's tables.

    Raises:
        ConfigError: the file is not a party file, or the party has no database yet.

    Example:
        >>> blindfit.ledger("meter.toml").document["entries"][0]["epsilon"]
        1.0
    """
    path = Path(party)
    return book.describe(load_party(path, overrides), path.parent)


def export(training: Folder | Result, out: str | Path) -> Found:
    """Write a release file for an auditor: charge, noisy sum and model of a finished walr training.

    Args:
        training: the training's result, or the folder of its reports.
        out: the new file.

    Returns:
        Name and size of the file.

    Raises:
        ConfigError: the file cannot be written.
        DataError: the folder has no finished walr training of this machine.

    Example:
        >>> training = blindfit.run("job.toml", progress=False)
        >>> found = blindfit.export(training, "release.json")
        >>> Path("release.json").exists()
        True
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
        models: the training's result, path of a model.json, or a fitted model; or a list of all parts of one model.
        format: the language: "onnx", "pmml", "python" or "sql".
        dialect: database for "sql": "sqlite" (default) or "postgresql".
        out: the new file; by default next to the first model's file.

    Returns:
        Name of the file, its inputs and its outputs.

    Raises:
        ConfigError: the format or dialect is unknown, a package is missing, or the file cannot be written.
        DataError: the model cannot be exported.

    Example:
        >>> training = blindfit.run("job.toml", progress=False)
        >>> blindfit.export_model(training, "sql", out="model.sql").document["outputs"]
        ('score', 'probability')
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
    """Check a release file offline, without trust in the active party.

    Args:
        release: the file that `export` wrote.
        authority: certificate of the authority that you trust.
        servers: names of the measurement servers that you expect: one, or both of a job of two servers.
        starts: release files of the models from which the training started.
        features: the active party's table, to fit the model again.
        rows: the training's training_rows.json; needed with `features`.
        row_id: column of ids in `features`.

    Returns:
        The checks, and a last line with what the file does not prove.

    Raises:
        ConfigError: an option is wrong.
        DataError: a check failed, or the file is not a release file.

    Example:
        >>> training = blindfit.run("job.toml", progress=False)
        >>> _ = blindfit.export(training, "release.json")
        >>> found = blindfit.verify("release.json", servers=["meter"])
        >>> found.document["passed"], len(found.document["checks"]) > 10
        (True, True)
    """
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
    """Return the function that runs a job on this machine.

    Raises:
        ConfigError: a text does not describe a fault.
    """
    return partial(jobs.run_here, rehearsal=rehearsal, faults=parse_faults(faults))


def _rehearsal_of(rehearse: bool, warn_only: bool, folders: Sequence[Folder | Result | None] = ()) -> Rehearsal | None:
    """Return the settings of a rehearsal; None for a job that is not rehearsed.

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
