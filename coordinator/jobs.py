"""Running a job from its file to its report: what `blindfit run` and `blindfit submit` share."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from blindfit.algorithms.errors import (
    BlindfitError,
    CannotTakePart,
    ComputeFailed,
    ConfigError,
    DataError,
    ProtocolError,
    RangeError,
    TransportError,
)
from blindfit.coordinator.job import Job
from blindfit.coordinator.launcher import Launched, launch, party_settings, reason_in_log
from blindfit.coordinator.out_dir import make_out
from blindfit.coordinator.progress import JobProgress
from blindfit.coordinator.report.kind import Written
from blindfit.coordinator.session import JobSession
from blindfit.coordinator.snapshots import changed
from blindfit.coordinator.systems import view
from blindfit.parties.identity.connections import Identity, open_identity


def run_here(
    job: Job[Any], base_dir: Path, out: Path, console: Console, command: Sequence[str] | None = None
) -> Written:
    """Every party as a process on this machine, started by `command` (see `launch`); all of them report into `out`."""
    make_out(out)
    _tell_of_changes(job, base_dir, console)
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        with console.status(f"starting {len(job.parties)} processes"):
            launched = stack.enter_context(launch(job, base_dir, out, command))
        set_up_s = time.monotonic() - started
        try:
            session = drive(job, launched, console)
        except CannotTakePart as error:
            raise _in_full(error, job, out) from None
    session.seconds["launch"] = set_up_s
    return view(job.protocol).write(session, out, list(job.parties))


def _tell_of_changes(job: Job[Any], base_dir: Path, console: Console) -> None:
    """A job reads what was published, and whoever edits a file expects the edit to count."""
    for name, party in job.parties.items():
        path, settings = party_settings(job, name, base_dir)
        for snapshot in (s for s in changed(settings, path.parent) if s.row.dataset == party.dataset):
            row = snapshot.row
            console.print(
                f"[yellow]{name}: {row.dataset} has changed since snapshot {row.number}, which this job reads;[/] "
                f"the next one is made by: blindfit publish {path} {row.dataset}",
                highlight=False,
                soft_wrap=True,
            )


def _in_full(error: CannotTakePart, job: Job[Any], out: Path) -> BlindfitError:
    """On this machine the party's own words are at hand: the file, row and column that it tells no peer."""
    for kind in (DataError, ConfigError, RangeError, ComputeFailed):
        reason, hint = reason_in_log(out, error.party, kind.__name__) if error.party in job.parties else ("", "")
        if reason:
            return (ConfigError if kind is ConfigError else DataError)(reason, hint=hint)
    return error


def submit(job: Job[Any], base_dir: Path, out: Path, console: Console) -> Written:
    """On parties that are already up; each keeps its own model and report."""
    where = Launched(addresses_of(job), coordinator_identity(job, base_dir))
    make_out(out)
    session = JobSession(job, where.addresses, where.identity)
    console.print(f"session {session.id}", highlight=False, markup=False)
    drive(job, where, console, session)
    return view(job.protocol).write(session, out, [])


def addresses_of(job: Job[Any]) -> dict[str, str]:
    addresses = {}
    for name, party in job.parties.items():
        if party.address is None:
            raise ConfigError(
                f"parties.{name}.address is missing: `blindfit submit` needs to know where every party is up",
                hint='such as address = "party.example.org:7100"',
            )
        addresses[name] = party.address
    return addresses


def coordinator_identity(job: Job[Any], base_dir: Path) -> Identity:
    if job.coordinator is None:
        raise ConfigError(
            "[coordinator] is missing: parties that are up ask who proposes the job",
            hint="name its certificate, key and authority (`blindfit certs issue DIR coordinator` makes them)",
        )
    return open_identity(job.coordinator, base_dir)


def drive(job: Job[Any], launched: Launched, console: Console, session: JobSession | None = None) -> JobSession:
    session = session or JobSession(job, launched.addresses, launched.identity)
    with JobProgress(list(job.parties), console) as progress:
        session.on_event = progress.show
        with _terminable():
            try:
                asyncio.run(session.run())
            except (TransportError, ProtocolError) as error:
                found = launched.lost_process(error)
                found.hint = "; ".join(filter(None, [found.hint, _way_on(session)]))
                raise found from None
    return session


def _way_on(session: JobSession) -> str:
    """A training that had begun left checkpoints at its parties."""
    job = session.job
    asked = job.parameters
    if not asked.resume_option or "set_up" not in session.seconds:
        return ""
    return f"when it is mended, go on from the last epoch: --set {asked.resume_option}={asked.resumes or session.id}"


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends a job as Ctrl-C does: parties are told, processes stopped."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
