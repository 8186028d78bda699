"""A job from its file to its report: the common part of `blindfit run` and `blindfit submit`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import join
from typing import Any

from rich.console import Console
from rich.markup import escape

from blindfit.algorithms.errors import (
    BlindfitError,
    CannotAnswer,
    CannotTakePart,
    ComputeFailed,
    ConfigError,
    DataError,
    DuplicateId,
    PrivacyError,
    RangeError,
    TooFewRows,
    UnknownId,
)
from blindfit.algorithms.rehearsal import STAMP
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.job.out_dir import Out, make_folder, remove_stale
from blindfit.coordinator.jobs.studied import NOT_FREE, drive_on, keep_study
from blindfit.coordinator.report.kind import Written
from blindfit.coordinator.running.driving import Talk, drive, terminable
from blindfit.coordinator.running.faults import Fault, check_faults
from blindfit.coordinator.running.launcher import (
    Launched,
    cautions_in_log,
    launch,
    limits_in_log,
    party_settings,
    reason_in_log,
)
from blindfit.coordinator.running.network.relays import relays
from blindfit.coordinator.running.nursery import Nursery
from blindfit.coordinator.running.parties_up import in_words, parties_up
from blindfit.coordinator.running.reaching import addresses_of, coordinator_identity
from blindfit.coordinator.running.rehearsal import Rehearsal
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.running.snapshots import find_changed
from blindfit.coordinator.running.study import Study
from blindfit.coordinator.running.watcher import Stop, Watcher
from blindfit.coordinator.systems import view
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.stopped import Stopped


def run_here(
    job: Job[Any],
    out: Out,
    console: Console,
    command: Sequence[str] | None = None,
    talk: Talk = "normal",
    watcher: Watcher | None = None,
    *,
    rehearsal: Rehearsal | None = None,
    nursery: Nursery | None = None,
    faults: Sequence[Fault] = (),
    show: Callable[[Found], None] | None = None,
) -> Written:
    """Run every party as a process on this machine; all of them report into `out`.

    Args:
        command, nursery: arguments of `launch`.
        rehearsal: form of the rehearsal, if the job is rehearsed; all that it keeps is then in `out`.
        faults: faults of parties during the job.
        show: function that shows the timeline of these faults if the job leaves no report; by default the console.

    Raises:
        Stopped: by Ctrl-C or the watcher, also before the parties run.
    """
    watcher = watcher or Watcher()
    check_faults(faults, job.parties)
    if rehearsal is None:
        _tell_of_changes(job, console)
    if rehearsal is None and talk != "quiet" and (up := parties_up(job)):
        console.print(f"[yellow]note:[/] {escape(in_words(up))}", highlight=False, soft_wrap=True)
    say = partial(_say, console, talk)
    if faults and rehearsal is None:
        say(f"note: {NOT_FREE}")
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        cuts = any(fault.verb == "cut" for fault in faults)
        network = stack.enter_context(relays(job.network)) if job.network is not None or cuts else None
        launched = _launch(stack, job, out, console, command, talk, watcher.stop, rehearsal, nursery)
        if network is not None:
            launched = replace(launched, routes=network.open(launched.addresses))
        set_up_s, out, job = time.monotonic() - started, launched.out, launched.job or job
        cautions = _Cautions(job, out, console, quiet=talk == "quiet")
        cautions.show()
        drive_one = partial(_drive, console=console, talk=talk, watcher=watcher)
        if faults:
            study = Study(faults, job.parameters.timeouts, say, network, "" if rehearsal is None else STAMP)
            stack.enter_context(keep_study(study, out, show or (lambda found: found.show(console))))
            session = drive_on(job, launched, study, partial(drive_one, study=study))
        else:
            session = drive_one(job, launched)
        cautions.show()
        session.seconds["launch"] = set_up_s
        remove_stale(out)  # no other job writes into the folder while the parties run
        return view(job.protocol).write(session, out, list(job.parties))


def _drive(
    job: Job[Any],
    launched: Launched,
    session: JobSession | None = None,
    *,
    console: Console,
    talk: Talk,
    watcher: Watcher,
    study: Study | None = None,
) -> JobSession:
    """Run a session to its end; an error of a party on this machine has the party's own words."""
    try:
        return drive(job, launched, console, talk, session, watcher, study)
    except (CannotTakePart, CannotAnswer) as error:
        raise _in_full(error, job, launched.out) from None
    except PrivacyError as error:
        _explain_limits(error, job, launched.out)
        raise


def _launch(
    stack: contextlib.ExitStack,
    job: Job[Any],
    out: Out,
    console: Console,
    command: Sequence[str] | None,
    talk: Talk,
    stop: Stop,
    rehearsal: Rehearsal | None,
    nursery: Nursery | None,
) -> Launched:
    say = partial(_say, console, talk)
    waiting = contextlib.nullcontext() if talk == "quiet" else console.status(f"starting {len(job.parties)} processes")
    try:
        with waiting, terminable():
            return stack.enter_context(launch(job, out, command, say, stop, rehearsal, nursery))
    except KeyboardInterrupt:
        raise Stopped("all processes of this machine have ended, and no job had begun") from None


def _say(console: Console, talk: Talk, line: str) -> None:
    if talk != "quiet":
        console.print(escape(line), highlight=False, soft_wrap=True)


@dataclass
class _Cautions:
    """Cautions of the parties' logs about their datasets: the person who runs every party is every party's operator."""

    job: Job[Any]
    out: Path
    console: Console
    quiet: bool
    _shown: set[tuple[str, str]] = field(default_factory=set)

    def show(self) -> None:
        """Print cautions that are new."""
        for name in () if self.quiet else self.job.parties:
            for caution in cautions_in_log(self.out, name):
                if (name, caution) not in self._shown:
                    self._shown.add((name, caution))
                    self.console.print(f"[yellow]{name}:[/] {escape(caution)}", highlight=False, soft_wrap=True)


def _tell_of_changes(job: Job[Any], console: Console) -> None:
    """Print a note for each changed file.

    A job reads the published snapshot, and a person who edits a file may forget.
    """
    for name, party in job.parties.items():
        path, settings = party_settings(job, name)
        for snapshot in (s for s in find_changed(settings, path.parent) if s.row.dataset == party.dataset):
            row, dataset = snapshot.row, escape(snapshot.row.dataset)
            command = join(["blindfit", "snapshot", str(path), row.dataset])
            console.print(
                f"[yellow]{name}: {dataset} has changed since snapshot {row.number}, which this job reads;[/] "
                f"make the next snapshot by: {escape(command)}",
                highlight=False,
                soft_wrap=True,
            )


def _in_full(error: CannotTakePart | CannotAnswer, job: Job[Any], out: Path) -> BlindfitError:
    """Return the error in the party's own words, with file, row and column, which peers never learn."""
    for kind in (DataError, ConfigError, RangeError, ComputeFailed, UnknownId, DuplicateId, TooFewRows):
        reason, hint = reason_in_log(out, error.party, kind.__name__) if error.party in job.parties else ("", "")
        if reason:
            return (ConfigError if kind is ConfigError else DataError)(reason, hint=hint)
    return error


def _explain_limits(error: PrivacyError, job: Job[Any], out: Path) -> None:
    """Add a hint about how to study a job that a budget or an account refuses: all parties belong to this user."""
    if not any(limits_in_log(out, name) for name in job.parties):
        return
    if job.stage is None:
        _advise(error, hint="to study the job without spending anything, add --rehearse (in Python, rehearse=True)")
    else:
        _advise(error, hint="to go on with a warning, add --warn-only (in Python, warn_only=True)")


def _advise(error: BlindfitError, hint: str) -> None:
    error.hint = "; ".join(filter(None, [error.hint, hint]))


def submit(
    job: Job[Any],
    out: Out,
    console: Console,
    talk: Talk = "normal",
    watcher: Watcher | None = None,
) -> Written:
    """Run the job on running parties; each keeps its own model and report.

    Raises:
        ConfigError: the job asks for a simulated network.
    """
    if job.network is not None:
        raise ConfigError(
            f"network = {job.network.in_words()}: running parties use their own network",
            hint="remove [network] from the job file, or start the parties here with `blindfit run`",
        )
    where = Launched(addresses_of(job), coordinator_identity(job))
    out = make_folder(out, job.protocol)
    session = JobSession(job, where.addresses, where.identity)
    if talk != "quiet" and where.identity.revoked.is_missing:
        hint = escape(where.identity.revoked.hint_if_missing)
        console.print(f"[yellow]note:[/] no revocation list; {hint}", highlight=False, soft_wrap=True)
    if talk != "quiet":
        console.print(f"session {session.id}", highlight=False, markup=False)
    drive(job, where, console, talk, session, watcher)
    return view(job.protocol).write(session, out, [])
