"""Every party of a vertical project in this process: up to their roles, or a whole training from known secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor import DataSeat, TaylorParameters
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.coordinator.job.job import load_job
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.systems import load_party, system
from blindfit.parties.taylor import data_party, key_node
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.alignment import Alignment
from blindfit.parties.wire.channel import LocalChannel, LocalNetwork
from tests.published import published
from tests.quick_keys import quick_keys
from tests.taylor.seats import first_failure
from tests.unconnected import unconnected
from tests.world import World


class TrainingBegins(Exception):
    """Every data party has its role."""


class Seated:
    """Replacement of the training's loop, which keeps its arguments."""

    def __init__(self) -> None:
        self.seats: dict[str, DataSeat] = {}
        self.plan: RowPlan
        self.parameters: TaylorParameters

    async def run_data_party(
        self, seat: DataSeat, plan: RowPlan, parameters: TaylorParameters, *_: Any, **__: Any
    ) -> None:
        self.seats[seat.name], self.plan, self.parameters = seat, plan, parameters
        if len(self.seats) == len(parameters.data_parties):
            raise TrainingBegins
        await asyncio.Event().wait()  # until it is cancelled

    async def run_key_node(self, *_: Any, **__: Any) -> None:
        await asyncio.Event().wait()


def seated(project: World, *overrides: str, session: str = "s1") -> Seated:
    """Run the real parties until the training would begin.

    Raises:
        BlindfitError: error of the first party that fails.
    """
    made = Seated()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(taylor, "run_data_party", made.run_data_party)
        patch.setattr(taylor, "run_key_node", made.run_key_node)
        with quick_keys(), pytest.raises(TrainingBegins):
            _run(project, overrides, session)
    return made


# --- a whole training ---------------------------------------------------------------------------------------

NOISE_KEY = b"the notary's secret"
Noise = Callable[[bytes, TaylorParameters, tuple[str, int, int], int], list[int]]


@dataclass
class Finished:
    """A training between the real parties, from its first message to its last."""

    seats: dict[str, DataSeat] = field(default_factory=dict)
    plan: RowPlan = field(init=False)
    parameters: TaylorParameters = field(init=False)

    def weights(self) -> dict[str, list[float]]:
        return {name: seat.optimiser.weights.tolist() for name, seat in self.seats.items()}


def finished(project: World, *overrides: str, key: PrivateKey, session: str, noise: Noise | None = None) -> Finished:
    """Run a whole training. The rows are in the order of their ids; the key node's key and its noise are known.

    Args:
        noise: replacement for the key node's noise.
    """
    made, run = Finished(), taylor.run_data_party

    async def run_data_party(
        seat: DataSeat, plan: RowPlan, parameters: TaylorParameters, *channel: Any, **options: Any
    ) -> int:
        made.seats[seat.name], made.plan, made.parameters = seat, plan, parameters
        return await run(seat, plan, parameters, *channel, **options)

    async def by_id(_session: object, _seats: object, _source: object, rows: PartyRows, *_: object) -> Alignment:
        return Alignment(np.argsort(rows.ids.to_pylist(), kind="stable"))

    async def number_of_rows(*_: object) -> int:
        return len(pyarrow.csv.read_csv(project.root / "bank.csv"))

    async def begin(*_: object) -> key_node.Begun:
        return key_node.Begun(key)

    with quick_keys(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(taylor, "run_data_party", run_data_party)
        patch.setattr(data_party, "align_rows", by_id)
        patch.setattr(key_node, "match_ids", number_of_rows)
        patch.setattr(key_node.KeyNode, "_begin", begin)
        patch.setattr(key_node, "noise_key_of", lambda *_: NOISE_KEY)
        patch.setattr(taylor.steps, "gradient_noise", noise or taylor.gradient_noise)
        _run(project, overrides, session)
    return made


def _run(project: World, overrides: tuple[str, ...], session: str) -> None:
    loaded = load_job(project.root / "job.toml", overrides)
    job, roles = loaded.parameters, {name: party.role for name, party in loaded.parties.items()}
    chosen = system(job.protocol)
    members = {name: Member(name, role, "", "" if role == "key-node" else "rows") for name, role in roles.items()}
    network = LocalNetwork(roles, *chosen.tables())
    read: dict[str, Snapshot] = {}

    async def run(name: str, party: Party) -> None:
        seat = chosen.roles[roles[name]].open(party)
        seat.check(job, members[name])
        channel: Any = WholeChannel(network, name)
        ids = {n: snapshot.id for n, snapshot in read.items()}
        me = members[name]
        asked = Session(session, "coordinator", members, job.to_parameters(), job, channel, me, read.get(name), ids)
        await seat.run(asked)

    async def all_of_them(parties: dict[str, Party]) -> None:
        for name, party in parties.items():
            if members[name].dataset:
                read[name] = (
                    party.snapshots.of_session(job.resumes) if job.resumes else published(party.snapshots, "rows")
                )
                with party.store.transaction() as transaction:
                    transaction.put_session_snapshot(session, read[name].id)
        await first_failure(*(run(name, party) for name, party in parties.items()))

    with parties_of(project, roles) as parties:
        asyncio.run(all_of_them(parties))


class WholeChannel(LocalChannel):
    def require_all_read(self, *, but: type[object]) -> None:
        """Do nothing: a local network does not count unread messages."""


@contextmanager
def parties_of(project: World, names: Iterable[str]) -> Iterator[dict[str, Party]]:
    with ExitStack() as closing:
        parties = {}
        for name in names:
            settings = load_party(project.root / f"{name}.toml")
            parties[name] = unconnected(settings, project.root)
            closing.callback(parties[name].store.close)
            closing.callback(parties[name].close)
        yield parties
