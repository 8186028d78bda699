"""The pre-flight of a prediction with a model in shares: rounds, bytes and time, for data parties on this machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from blindfit.algorithms.protocols import shared_scores
from blindfit.algorithms.protocols.shared_scores import HeldRows, ScoringParameters
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.protocols.shared_scores.program import run_program
from blindfit.algorithms.sharing.kept import KeptShares, length_of_kept_share
from blindfit.algorithms.sharing.shares import Share
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.job.network import delay_in_words
from blindfit.coordinator.preflight.findings import Finding, line_of, on_the_wire
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.terminal.wording import duration
from blindfit.coordinator.vertical import preflight as joint
from blindfit.coordinator.vertical.cost_of_shares import BUSY, BYTES_PER_ELEMENT, MESSAGE_S
from blindfit.coordinator.vertical.counted import Counted, CountingSeat
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.files.vault import vault_of
from blindfit.parties.training.rows import read_rows
from blindfit.parties.vertical.model_store import SharedModels
from blindfit.parties.wire.channel import LocalNetwork
from blindfit.parties.work.compute import cores

TRIED_ROWS = (32, 288)  # for the trials


def checks(job: Job[Any], here: Sequence[PartyHere]) -> Iterator[Finding]:
    """Yield findings; nothing if the model is not in shares, or if a data party is not here."""
    roles = joint.roles_of(job)
    data = {party.name: party for party in here if party.name in roles.chain}
    if set(data) != set(roles.chain):
        return
    stores = {name: _store(party) for name, party in data.items()}
    session = job.parameters.predict.session
    lacking = [name for name in roles.chain if not stores[name].has(session)]
    if lacking == list(roles.chain):
        return
    if lacking:
        yield Finding("refuses", lacking[0], f"has no shares of the model of {session}, which other parties have")
        return
    parts = {name: stores[name].read(session) for name in roles.chain}
    yield Finding("note", "model", "is in shares: nobody has it, and scores are computed in shares")
    yield from _rounding(parts, roles)
    yield from _cost(job, parameters_of(parts, roles, _common(data, parts)))


def _store(party: PartyHere) -> SharedModels:
    return SharedModels(party.base_dir / party.settings.data_dir, vault_of(party.settings, party.base_dir))


def _common(data: Mapping[str, PartyHere], parts: Mapping[str, SharedModelPart]) -> int:
    sources = {name: party.read_scaled(parts[name].standardiser) for name, party in data.items()}
    rows = {name: read_rows(source, labels=False, report=lambda *_: None) for name, source in sources.items()}
    return len(next(iter(joint.common_positions(rows).values())))


def parameters_of(parts: Mapping[str, SharedModelPart], roles: Roles, rows: int) -> ScoringParameters:
    first = parts[roles.active]
    return ScoringParameters(
        roles.chain,
        roles.key_node,
        first.columns,
        rows,
        first.kept_bits,
        first.score_limit,
        tuple(parts[name].score_bits for name in roles.chain),
        first.kept.macs,
    )


def _rounding(parts: Mapping[str, SharedModelPart], roles: Roles) -> Iterator[Finding]:
    for name in roles.passives:
        bits = parts[name].score_bits
        how = f"is clipped and rounded in shares to {bits} bits" if bits else "goes into the sum unchanged"
        yield Finding("note", name, f"its part of a score {how}")


def _cost(job: Job[Any], parameters: ScoringParameters) -> Iterator[Finding]:
    """Raise RangeError: the numbers do not fit."""
    parameters.check()
    found, parties = count_work(parameters), len(parameters.data_parties)
    sent = BYTES_PER_ELEMENT * (found.dealt + (parties - 1) * (found.put_in + found.opened * parties))
    waits = found.rounds * parties * (parties - 1) * MESSAGE_S
    seconds = (found.dealt * measure_s_per_element(parameters) + waits) / (BUSY * min(cores(), parties + 1))
    yield Finding(
        "note",
        "time",
        f"about {seconds:,.2g} s to score {parameters.rows:,} rows, if all parties share this machine and nothing else "
        "runs",
    )
    latency_s = line_of(job).latency_s
    waited = f"{delay_in_words(latency_s)} from party to party add {duration(latency_s * found.rounds)}"
    yield Finding("note", "rounds", f"{found.rounds:,}: {waited}")
    yield Finding("note", "bytes", on_the_wire(sent, job))


def count_work(parameters: ScoringParameters) -> Counted:
    """Count the work of the program without any party's numbers."""
    seat = CountingSeat(macs=parameters.macs)
    asyncio.run(run_program(seat, parameters, None))
    return seat.counted


def measure_s_per_element(parameters: ScoringParameters) -> float:
    """Measure one core's time for all parties' work on one dealt element, by small trials on zeros."""
    few, many = (replace(parameters, rows=rows) for rows in TRIED_ROWS)
    _seconds(few)  # makes what is made once
    more = count_work(many).dealt - count_work(few).dealt
    return max(0.0, _seconds(many) - _seconds(few)) / more


def _seconds(parameters: ScoringParameters) -> float:
    started = time.thread_time()
    asyncio.run(_score_zeros(parameters))
    return time.thread_time() - started


async def _score_zeros(p: ScoringParameters) -> None:
    active, *passives = p.data_parties
    roles = {p.key_node: "key-node", active: "active", **dict.fromkeys(passives, "passive")}
    network = LocalNetwork(roles, shared_scores.TABLE)
    zeros = np.zeros(length_of_kept_share(sum(p.columns), macs=p.macs), dtype=np.uint64)
    kept = KeptShares(Share(zeros, zeros if p.macs else None), zeros[:1] if p.macs else None)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(shared_scores.run_key_node(p, "trial", network.channel(p.key_node)))
        for place, name in enumerate(p.data_parties):
            held = HeldRows(np.zeros((p.rows, p.columns[place]), dtype=np.int64), kept)
            tasks.create_task(shared_scores.run_data_party(name, held, p, "trial", network.channel(name)))
