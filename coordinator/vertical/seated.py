"""The data parties of a training that is only checked, set up as `blindfit run` sets them up.

Each party finds what its guards would refuse because of earlier jobs, from its own account, budget and remembered
draws. Nothing is sent or counted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from blindfit.algorithms.errors import BudgetExhausted, PolicyRefused
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding, catch_error
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.preflight.seats import seat_parties
from blindfit.coordinator.vertical.preflight import Trial
from blindfit.parties.account.account import Account
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.randomness import check_new_draw, find_draw, name_randomness
from blindfit.parties.vertical.alignment import Alignment
from blindfit.parties.vertical.checkpoints import common_epoch
from blindfit.parties.vertical.training import Agreed, Method, Work

M = TypeVar("M", bound=Method[Any, Any, Any, Any])


@dataclass(frozen=True, repr=False)
class Seat(Generic[M]):
    """One data party of the trial."""

    party: Party
    session: Session[Any]
    work: Work[Any]
    method: M

    def agree(
        self, trial: Trial[Any], drawn: PublicRandomness, told: Mapping[str, Ready], resumed: int
    ) -> Agreed[Any, Any]:
        """Return what the party would have after all parties reported their columns.

        Args:
            resumed: epoch after which the training goes on.
        """
        own, alignment = trial.prepared[self.session.me.name], np.arange(trial.n_rows)
        first = self.work.checkpoints.first_epoch(resumed, trial.parameters.epochs)
        named = name_randomness(drawn)
        return Agreed(None, Alignment(alignment), own, named, told, trial.parameters, resumed, first)

    def may_repeat(self) -> bool:
        """Return True if a training on the snapshot was counted before."""
        account, read = Account.of(self.party.settings, self.session.me.dataset), self.session.published.id
        with self.party.store.view() as reader:
            counted = [*account.entries(reader, "scores"), *account.entries(reader, "labels")]
            snapshots = {entry.snapshot for entry in counted}
            return read in snapshots | {entry.snapshot for entry in reader.ledger(account.population)}


@dataclass(frozen=True, repr=False)
class Seated(Generic[M]):
    """All data parties of the trial.

    Attributes:
        drawn: randomness of the held-out rows, as all parties remember it; None if a run would draw it.
    """

    seats: Mapping[str, Seat[M]]
    drawn: PublicRandomness | None

    def check_draw(self) -> Iterator[Finding]:
        """Yield which party refuses another draw of the held-out rows."""
        for name, seat in self.seats.items() if self.drawn is None else ():
            yield from catch_error(name, partial(_check_draw, seat))

    def check_earlier_jobs(
        self,
        trial: Trial[Any],
        randomness: PublicRandomness,
        added: dict[str, float],
        key_node: Mapping[str, Ready] | None = None,
        *,
        may_be_free: bool = False,
    ) -> Iterator[Finding]:
        """Yield what each party refuses because of earlier jobs.

        Args:
            randomness: randomness of the trial.
            added: receives the bits about labels that the training adds to the account of each party that accepts it.
            key_node: report that the key node would make of itself, by its name.
            may_be_free: True if only a run shows whether it repeats the draw of an earlier training, which is then
                free.
        """
        told = {name: Ready(0, seat.work.checkpoints.name_epochs()) for name, seat in self.seats.items()}
        resumed = common_epoch(told)
        for name, seat in self.seats.items():
            agreed = seat.agree(trial, randomness, {**told, **(key_node or {})}, resumed)
            check = partial(_check_earlier_jobs, seat, agreed, added, may_be_free)
            yield from catch_error(name, check)


def _check_draw(seat: Seat[M]) -> Iterator[Finding]:
    check_new_draw(seat.party, seat.session)
    yield from ()


def _check_earlier_jobs(
    seat: Seat[M], agreed: Agreed[Any, Any], added: dict[str, float], may_be_free: bool
) -> Iterator[Finding]:
    name = seat.session.me.name
    try:
        added[name] = asyncio.run(seat.method.check_earlier_jobs(agreed))
    except (PolicyRefused, BudgetExhausted) as refused:
        if not (may_be_free and seat.may_repeat()):
            raise
        yield Finding("warning", name, f"unless the training was finished before and is free: {refused}")


@contextlib.contextmanager
def seat_data_parties(job: Job[Any], data: Mapping[str, PartyHere], method: type[M]) -> Iterator[Seated[M]]:
    """Yield the data parties of a job in their own session."""
    with seat_parties(job, data) as sessions:
        works = {name: (party, Work.of(party, session)) for name, (party, session) in sessions.items()}
        seats = {name: Seat(party, work.session, work, method(work)) for name, (party, work) in works.items()}
        chain = next(iter(seats.values())).work.seats.chain
        found = [find_draw(seat.party, seat.session, chain) for seat in seats.values()]
        yield Seated(seats, found[0] if all(one == found[0] for one in found) else None)
