"""A job with faults: it goes on after a party has started again, and its timeline is always kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import BlindfitError, ProtocolError, TransportError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.report.timeline import show_study
from blindfit.coordinator.running.driving import can_go_on, terminable
from blindfit.coordinator.running.launcher import Launched
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.running.study import Study, error_text
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.stopped import Stopped
from blindfit.coordinator.terminal.wording import join_names
from blindfit.parties.files.written import write_json

FILE = "faults.json"
NOT_FREE = (
    "the faults happen to a real job: its charges stay, even if it fails; add --rehearse to study faults "
    "without a charge"
)
AGAIN = "the party is running again, but there is no checkpoint to go on from: run the job again"

Drive = Callable[[Job[Any], Launched, JobSession], JobSession]


def drive_on(job: Job[Any], launched: Launched, study: Study, drive: Drive) -> JobSession:
    """Run a job, and go on from its checkpoints after each fault that restarts a party.

    Raises:
        BlindfitError: the job has failed and nothing restarts it, or it left no checkpoint.
    """
    while True:
        session = JobSession(job, launched.addresses, launched.identity, routes=launched.routes)
        try:
            drive(job, launched, session)
        except (TransportError, ProtocolError) as error:
            study.end(error, session.state)
            restarted = study.take_restarts()
            if not restarted:
                raise
            launched = _start_again(study, restarted, launched)
            if not can_go_on(session, epoch_begun=study.epoch_begun):
                error.hint = "; ".join(filter(None, [error.hint, AGAIN]))
                raise
            job = _resume(job, session.id)
        except (BlindfitError, Stopped) as error:
            study.end(error, session.state)
            raise
        else:
            study.end(None, session.state)
            session.notes["faults"] = study.document()
            return session


def _start_again(study: Study, parties: Sequence[str], launched: Launched) -> Launched:
    """Start parties again; raise Stopped by Ctrl-C or SIGTERM."""
    try:
        with terminable():
            return study.start_again(parties, launched)
    except KeyboardInterrupt:
        raise Stopped(f"{join_names(parties)} was not running again, so the job has ended") from None


def _resume(job: Job[Any], session: str) -> Job[Any]:
    """Return the job that goes on from the checkpoints of a session."""
    table, option = job.parameters.resume_option.split(".")
    tables: dict[str, Any] = {table: {option: job.parameters.resumes or session}}
    resumed = Job[Any](job, **tables)
    return resumed if job.stage is None else resumed.on_stage(job.stage)


@contextlib.contextmanager
def keep_study(study: Study, out: Path, show: Callable[[Found], None]) -> Iterator[None]:
    """Write `out/faults.json` at the end of a job, and show the timeline of a job that leaves no report."""
    try:
        yield
    except (BlindfitError, Stopped) as error:
        content = {**study.document(), "error": {"kind": type(error).__name__, "message": error_text(error)}}
        path = out / FILE
        write_json(path, content)
        show(Found({"file": path, "faults": content}, [*show_study(content), f"timeline  {path}"]))
        raise
    write_json(out / FILE, study.document())
