"""Every party of a vertical project in this process, as far as the training: their rows aligned, their seats taken."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor import DataSeat, TaylorParameters
from blindfit.coordinator.job import load_job
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.snapshots.snapshots import Snapshot
from blindfit.parties.store.store import Store
from blindfit.parties.systems import load_party, system
from blindfit.parties.wire.channel import LocalNetwork
from tests.taylor.seats import first_failure
from tests.vertical.project import ROLES, Project


class TrainingBegins(Exception):
    """Every data party has its seat."""


class Seated:
    """What stands in for the training's loop, and keeps what it is called with."""

    def __init__(self) -> None:
        self.seats: dict[str, DataSeat] = {}
        self.parameters: TaylorParameters

    async def run_data_party(
        self, seat: DataSeat, _plan: object, parameters: TaylorParameters, *_: Any, **__: Any
    ) -> None:
        self.seats[seat.name], self.parameters = seat, parameters
        if len(self.seats) == len(parameters.data_parties):
            raise TrainingBegins
        await asyncio.Event().wait()  # until it is cancelled

    async def run_key_node(self, *_: Any, **__: Any) -> None:
        await asyncio.Event().wait()


def seated(project: Project, *overrides: str, session: str = "s1") -> Seated:
    """Runs the real parties until the training would begin.

    Raises:
        BlindfitError: what the first party that fails raised.
    """
    job = load_job(project.root / "job.toml", overrides).parameters
    chosen = system(job.protocol)
    members = {name: Member(name, role, "", "" if role == "key-node" else "rows") for name, role in ROLES.items()}
    network = LocalNetwork(ROLES, *chosen.tables)
    made = Seated()
    read: dict[str, Snapshot] = {}

    async def run(name: str, party: Party) -> None:
        seat = chosen.roles[ROLES[name]].open(party)
        seat.check(job, members[name])
        channel: Any = network.channel(name)
        me = members[name]
        ids = {n: read[n].id for n in read}
        rows = read.get(name)
        await seat.run(Session(session, "coordinator", members, job.to_parameters(), job, channel, me, rows, ids))

    async def all_of_them(parties: dict[str, Party]) -> None:
        for name, party in parties.items():
            if members[name].dataset:
                read[name] = party.snapshots.of_session(job.resumes) if job.resumes else party.snapshots.newest("rows")
                with party.store.transaction() as transaction:
                    transaction.put_session_snapshot(session, read[name].id)
        await first_failure(*(run(name, party) for name, party in parties.items()))

    with parties_of(project) as parties, pytest.MonkeyPatch.context() as patch:
        patch.setattr(taylor, "run_data_party", made.run_data_party)
        patch.setattr(taylor, "run_key_node", made.run_key_node)
        with pytest.raises(TrainingBegins):
            asyncio.run(all_of_them(parties))
    return made


@contextmanager
def parties_of(project: Project) -> Iterator[dict[str, Party]]:
    with ExitStack() as closing:
        parties = {}
        for name in ROLES:
            settings = load_party(project.root / f"{name}.toml")
            store = Store(project.root / settings.data_dir / "party.sqlite")
            parties[name] = Party(settings, project.root, None, store)  # type: ignore[arg-type]
            closing.callback(store.close)
            closing.callback(parties[name].close)
        yield parties
