"""Parties of a job that is only checked, in a session that sends nothing. They check the job as in a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.database import Store
from blindfit.parties.systems import read_proposed
from blindfit.parties.wire.exchange import ExchangeChannel
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.link import Timeouts

SESSION = "check"  # session of a job that nobody keeps
Seats = Mapping[str, tuple[Party, Session[Any]]]


@contextlib.contextmanager
def seat_parties(job: Job[Any], here: Mapping[str, PartyHere]) -> Iterator[Seats]:
    """Yield each party in a session, with its open database and the snapshot of its dataset."""
    members = {name: Member(name, seat.role, "", seat.dataset) for name, seat in job.parties.items()}
    roles = {member.name: member.role for member in members.values()}
    asked = read_proposed(job.parameters.to_parameters())
    with contextlib.ExitStack() as stack:
        parties = {name: stack.enter_context(open_party(party)) for name, party in here.items()}
        read = {name: p.snapshots.to_read(members[name].dataset, asked.resumes) for name, p in parties.items()}
        ids = {name: snapshot.id for name, snapshot in read.items()}
        seats = {}
        for name, party in parties.items():
            channel = ExchangeChannel(SESSION, name, {}, roles, frozenset(), _open_nobody, Limits(), Timeouts())
            session = Session[Any](
                SESSION, "", members, {}, asked, channel, members[name], snapshot=read[name], snapshots=ids
            )
            seats[name] = party, session
        yield seats


@contextlib.contextmanager
def open_party(here: PartyHere) -> Iterator[Party]:
    """Yield a party that connects to nobody."""
    with contextlib.closing(Store.of(here.settings, here.base_dir)) as store:
        party = Party(here.settings, here.base_dir, None, store)
        with contextlib.closing(party):
            yield party


async def _open_nobody(peer: str, _address: str) -> NoReturn:
    raise LocalProtocolError(f"a party of a check does not connect to {peer}")
