"""`blindfit jobs`, `logs`, `cancel`: what jobs a party has had, what it says of one, and the end of one that runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from blindfit.algorithms.errors import ConfigError, PeerAborted
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.operator.deciding import open_store
from blindfit.coordinator.running.control import ALONE_TIMEOUT_S, Control
from blindfit.coordinator.running.reaching import addresses_of, coordinator_identity
from blindfit.coordinator.terminal.json_output import answer
from blindfit.coordinator.terminal.terminal import lines_of
from blindfit.coordinator.terminal.whole_table import print_whole
from blindfit.parties.identity.connections import Identity
from blindfit.parties.sessions.session_log import read_log
from blindfit.parties.sessions.state import ENDS
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.protos import control_pb2 as pb
from blindfit.protos import errors_pb2

OWN_PROCESS_S = 10.0
POLL_S = 0.1
TOLD = ("timestamp", "level", "event", "session")
UNKNOWN = errors_pb2.ErrorCode.Name(errors_pb2.SESSION_UNKNOWN)  # there, or of another coordinator
IN_WORDS = {
    "HELD": "waits for approval",
    "ACCEPTED": "waits for its start",
    "RUNNING": "runs",
    "DONE": "done",
    "FAILED": "failed",
    "REFUSED": "refused",
    "ENDED": "cancelled",
}


def show(settings: PartySettings, base_dir: Path, console: Console, *, running: bool) -> None:
    """Args:
    running: those alone that have not ended.
    """
    rows = open_store(settings, base_dir).reader().sessions()
    chosen = [row for row in rows if not (running and row.state in ENDS)]
    names = ("session", "protocol", "proposed_by", "state", "changed")
    answer({"jobs": [{name: getattr(row, name) for name in names} for row in chosen]})
    if not chosen:
        console.print("no job runs or waits here" if running else "this party has had no job")
        return
    table = Table("session", "protocol", "by whom", "state", "since (UTC)", title="Jobs", box=SIMPLE_HEAD)
    for row in chosen:
        when = row.changed[:16].replace("T", " ")
        table.add_row(row.session, row.protocol, row.proposed_by, IN_WORDS.get(row.state, row.state), when)
    print_whole(console, table)


def show_log(settings: PartySettings, base_dir: Path, session: str, console: Console) -> None:
    """Raises ConfigError: the party has had no such session."""
    if open_store(settings, base_dir).reader().session(session) is None:
        raise ConfigError(
            f"{settings.name} has had no session {session}", hint="`blindfit jobs PARTY.TOML` lists those that it had"
        )
    records = read_log(base_dir / settings.data_dir, session)
    answer({"session": session, "records": records})
    if not records:
        console.print(f"nothing is kept of the log of {session}", highlight=False, markup=False)
    for record in records:
        rest = ", ".join(f"{name}: {value}" for name, value in record.items() if name not in TOLD)
        said = f"{record.get('timestamp', '')} {record.get('level', '')} {record.get('event', '')}"
        for line in lines_of(f"{said}{f' ({rest})' if rest else ''}"):
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def cancel_here(settings: PartySettings, base_dir: Path, session: str, console: Console) -> None:
    """At this party, by its operator, whoever proposed it; it tells the others.

    Raises:
        ConfigError: there is no such session, it has ended, or the party's process is not up.
    """
    store = open_store(settings, base_dir)
    row = store.reader().session(session)
    if row is None or row.state in ENDS:
        raise ConfigError(
            f"{session} is no job that runs or waits at {settings.name}",
            hint="`blindfit jobs --running PARTY.TOML` lists those that do",
        )
    with store.transaction() as transaction:
        transaction.cancel_session(session)
    state = _state_in_the_end(store, session)
    if state not in ENDS:
        raise ConfigError(
            f"{settings.name} has not ended {session} in {OWN_PROCESS_S:.0f} s",
            hint="if its process is not up, the job has ended with it; else its log says what it does",
        )
    answer({"session": session, "parties": {settings.name: state}})
    console.print(f"{settings.name}: {IN_WORDS[state]}", highlight=False, markup=False)


def _state_in_the_end(store: Store, session: str) -> str:
    """When the party's process has seen that it is to end it, or has not for too long."""
    give_up = time.monotonic() + OWN_PROCESS_S
    while (row := store.reader().session(session)) and row.state not in ENDS and time.monotonic() < give_up:
        time.sleep(POLL_S)
    return row.state if row else ""


def cancel(job: Job[Any], base_dir: Path, session: str, console: Console) -> None:
    """At every party of the job, with the certificate that proposes it; no other may.

    Raises:
        ConfigError: no party has such a session that this certificate proposed.
        TransportError: a party could not be told; the others were.
    """
    own = coordinator_identity(job, base_dir)
    told = asyncio.run(_cancel_everywhere(addresses_of(job), own, session))
    if not any(told.values()):
        raise ConfigError(
            f"no party of the job has a session {session} that {own.name} proposed",
            hint="`blindfit jobs PARTY.TOML`, typed at a party, lists the sessions that it has had",
        )
    answer({"session": session, "parties": {party: state or None for party, state in told.items()}})
    for party, state in told.items():
        words = IN_WORDS.get(state, state) if state else "has no such session any more"
        console.print(f"{party}: {words}", highlight=False, markup=False)


async def _cancel_everywhere(addresses: Mapping[str, str], own: Identity, session: str) -> dict[str, str]:
    """At all parties at once: one that has ended tells the others less than we do.

    Raises:
        TransportError: the first that could not be told; all were tried.
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
    """Return the state of the session then."""
    async with Control.open(own, party, address) as control:
        ended = await control.cancel(session, ALONE_TIMEOUT_S)
    return pb.SessionState.Name(ended.state)
