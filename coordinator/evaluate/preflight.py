"""The pre-flight of an evaluation: its cost, what it reveals, and the width of its intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.statistics.walr.evaluation_bins import Z_95
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.measured.rows_of_unit import RowsOfUnit
from blindfit.coordinator.measured.trust import ANSWERED_BEFORE, rows_are_hidden, rows_are_in_shares
from blindfit.coordinator.measured.unknown_ids import check_ids_of
from blindfit.coordinator.preflight.findings import Finding, catch_error
from blindfit.coordinator.preflight.parties import PartyHere, check_least_rows, describe_budget
from blindfit.coordinator.preflight.seats import seat_parties
from blindfit.parties.evaluate.consumer import Evaluation, make_scored_rows
from blindfit.parties.evaluate.settings import EvaluateJob


def leaks(job: Job[EvaluateJob]) -> Iterator[Finding]:
    privacy = job.parameters.required_privacy
    (active,), servers = (job.with_role(role) for role in ("active", "measurement"))
    about = "who learns what"
    if job.parameters.shares_rows:
        yield from rows_are_in_shares(job, active, " and ".join(servers))
        servers = []
    for server in servers:
        if job.parameters.encrypts_rows:
            yield from rows_are_hidden(active, server)
            continue
        text = f"{server} sees the ids and the rounded scores of the rows that {active} evaluates on"
        yield Finding("note", about, text)
    yield Finding(
        "note", about, f"{active} learns one noisy sum; (epsilon {privacy.epsilon:g}, delta {privacy.delta:g}) label DP"
    )


def check_rows(job: Job[EvaluateJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    servers = [party for party in here if party.settings.role == "measurement"]
    for party in here:
        if party.settings.role == "measurement":
            yield from catch_error(party.name, partial(_check_labels, job, party))
        if party.settings.role == "active":
            yield from catch_error(party.name, partial(_check_scored, job, party, servers))
    yield _width(job, RowsOfUnit.of(job, here))


def _check_labels(job: Job[EvaluateJob], party: PartyHere) -> Iterator[Finding]:
    yield from _grid(job, party)
    event = job.parameters.event_at_server(UNITS["person" if party.dataset.person else "row"][1])
    yield from describe_budget(party, event, ANSWERED_BEFORE)


def _grid(job: Job[EvaluateJob], party: PartyHere) -> Iterator[Finding]:
    """Yield what the server refuses, as the server itself checks it."""
    grid = job.parameters.grid
    rows = job.parameters.required_privacy.max_rows_per_person or party.dataset.max_rows_per_person
    if job.parameters.noise_multiplier * rows * grid.norm_bound < gaussian.LEAST_STD_STEPS:
        text = f'with {grid.frac_bits} the noise is not 2^16 grid steps wide: set evaluate.frac_bits = "auto", or more'
        yield Finding("refuses", "evaluate.frac_bits", text)


def _check_scored(job: Job[EvaluateJob], party: PartyHere, servers: Sequence[PartyHere]) -> Iterator[Finding]:
    """Score the rows as the active party does, and yield what servers find about their ids and their number."""
    yield Finding("ok", party.name, f"{party.dataset_name} opens, with {len(party.kinds())} features")
    with seat_parties(job, {party.name: party}) as seats:
        own, session = seats[party.name]
        scored = Evaluation(own).score(session)
        make_scored_rows(scored, session.job)
    yield Finding("ok", party.name, f"{len(scored.ids):,} rows to evaluate on")
    for server in servers:
        yield from check_least_rows(server, len(scored.ids))
    yield from check_ids_of(party.name, pa.array(scored.ids, pa.string()), servers)


def _width(job: Job[EvaluateJob], unit: RowsOfUnit) -> Finding:
    """Return the width for a rate. Only the training knows how many rows there will be."""
    parts = len(job.parameters.evaluate.figures)
    noises = len(job.with_role("measurement"))
    reach = Z_95 * job.parameters.noise_multiplier * unit.count * (parts * noises) ** 0.5
    text = f"a rate over n rows is known to within {reach:.0f} / n, with 95% chance ({parts} figures){unit.caveat}"
    return Finding("ok", "noise", text)
