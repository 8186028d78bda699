"""`blindfit jobs`, `logs`, `cancel`: a party's jobs, its log about a job, and the end of a running job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD

from blindfit.algorithms.errors import ConfigError, PeerAborted
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.operator.deciding import open_store
from blindfit.coordinator.running.control import ALONE_TIMEOUT_S, Control
from blindfit.coordinator.running.reaching import addresses_of, coordinator_identity
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import lines_of
from blindfit.coordinator.terminal.whole_table import WholeTable
from blindfit.parties.identity.identity import Identity
from blindfit.parties.sessions.session_log import read_log
from blindfit.parties.sessions.state import ENDS
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.protos import control_pb2 as pb
from blindfit.protos import errors_pb2

OWN_PROCESS_S = 10.0
POLL_S = 0.1
TOLD = ("timestamp", "level", "event", "session")
UNKNOWN = errors_pb2.ErrorCode.Name(errors_pb2.SESSION_UNKNOWN)  # unknown there, or proposed by another coordinator
IN_WORDS = {
    "HELD": "waits for approval",
    "ACCEPTED": "waits for its start",
    "RUNNING": "runs",
    "DONE": "done",
    "FAILED": "failed",
    "REFUSED": "refused",
    "ENDED": "cancelled",
}


def list_jobs(settings: PartySettings, base_dir: Path, *, running: bool) -> Found:
    """Return the party's jobs.

    Args:
        running: True to list only jobs that have not ended.
    """
    rows = open_store(settings, base_dir).reader().sessions()
    chosen = [row for row in rows if not (running and row.state in ENDS)]
    names = ("session", "protocol", "proposed_by", "state", "changed")
    document = {"jobs": [{name: getattr(row, name) for name in names} for row in chosen]}
    if not chosen:
        return Found(document, ("no job runs or waits here" if running else "this party has had no job",))
    table = WholeTable("session", "protocol", "by whom", "state", "since (UTC)", title="Jobs", box=SIMPLE_HEAD)
    for row in chosen:
        when = row.changed[:16].replace("T", " ")
        table.add_row(row.session, row.protocol, row.proposed_by, IN_WORDS.get(row.state, row.state), when)
    return Found(document, (table,))


def find_log(settings: PartySettings, base_dir: Path, session: str) -> Found:
    """Return the log; raise ConfigError if the party has had no such session."""
    if open_store(settings, base_dir).reader().session(session) is None:
        raise ConfigError(
            f"{settings.name} has had no session {session}", hint="`blindfit jobs PARTY.TOML` lists its sessions"
        )
    records = read_log(base_dir / settings.data_dir, session)
    lines = _lines(records) if records else (f"no line of the log of {session} is kept",)
    return Found({"session": session, "records": records}, tuple(lines))


def _lines(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for record in records:
        rest = ", ".join(f"{name}: {value}" for name, value in record.items() if name not in TOLD)
        said = f"{record.get('timestamp', '')} {record.get('level', '')} {record.get('event', '')}"
        yield from lines_of(f"{said}{f' ({rest})' if rest else ''}")


def cancel_here(settings: PartySettings, base_dir: Path, session: str) -> Found:
    """End a session at this party, for its operator; the party informs the others.

    Raises:
        ConfigError: the session does not exist or has ended, or the party is not running.
    """
    store = open_store(settings, base_dir)
    row = store.reader().session(session)
    if row is None or row.state in ENDS:
        raise ConfigError(
            f"{session} is not a job that runs or waits at {settings.name}",
            hint="`blindfit jobs --running PARTY.TOML` lists them",
        )
    with store.transaction() as transaction:
        transaction.cancel_session(session)
    state = _state_in_the_end(store, session)
    if state not in ENDS:
        raise ConfigError(
            f"{settings.name} has not ended {session} in {OWN_PROCESS_S:.0f} s",
            hint="look at the party's log; if the party is not running, the job has ended with it",
        )
    return _describe_end(session, {settings.name: state})


def _state_in_the_end(store: Store, session: str) -> str:
    """Return the state after the party's process has ended the session, or after a timeout."""
    give_up = time.monotonic() + OWN_PROCESS_S
    while (row := store.reader().session(session)) and row.state not in ENDS and time.monotonic() < give_up:
        time.sleep(POLL_S)
    return row.state if row else ""


def cancel(job: Job[Any], session: str) -> Found:
    """End a session at every party of the job, with the certificate that proposed the job; others are refused.

    Raises:
        ConfigError: no party has a session that this certificate proposed.
        TransportError: a party could not be reached; the others were informed.
    """
    own = coordinator_identity(job)
    told = asyncio.run(_cancel_everywhere(addresses_of(job), own, session))
    if not any(told.values()):
        raise ConfigError(
            f"no party of the job has a session {session} that {own.name} proposed",
            hint="`blindfit jobs PARTY.TOML`, typed at a party, lists its sessions",
        )
    return _describe_end(session, told)


def _describe_end(session: str, told: Mapping[str, str]) -> Found:
    document = {"session": session, "parties": {party: state or None for party, state in told.items()}}
    gone = "has no such session any more"
    lines = (f"{party}: {IN_WORDS.get(state, state) if state else gone}" for party, state in told.items())
    return Found(document, tuple(lines))


async def _cancel_everywhere(addresses: Mapping[str, str], own: Identity, session: str) -> dict[str, str]:
    """End the session at all parties at once: a party that ends it informs the others with less detail.

    Raises:
        TransportError: the first party that could not be reached; all parties were tried.
    """
    tried = [_cancel_at(party, address, own, session) for party, address in addresses.items()]
    found = dict(zip(addresses, await asyncio.gather(*tried, return_exceptions=True), strict=True))
    told: dict[str, str] = {}
    for party, state in found.items():
        if isinstance(state, PeerAborted) and state.code == UNKNOWN:
            told[party] = ""
        elif isinstance(state, BaseException):
            raise state
        else:
            told[party] = state
    return told


async def _cancel_at(party: str, address: str, own: Identity, session: str) -> str:
    """Return the state of the session after the request."""
    async with Control.open(own, party, address) as control:
        ended = await control.cancel(session, ALONE_TIMEOUT_S)
    return pb.SessionState.Name(ended.state)
