"""Pre-flight: what would leak, fail or take too long, before any byte leaves.

Where a party's file is here, its settings, data and ledger are read here; where only its address is, it is asked who it
is and what it takes part in. Nothing of a party's data is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding, catch_error, judge_epsilon
from blindfit.coordinator.preflight.parties import PartyHere, ask_parties, check_changes, note_habits
from blindfit.coordinator.preflight.rehearsal import check_together, rehearse
from blindfit.coordinator.running.scratch import scratch_folder
from blindfit.coordinator.systems import view


def check(job: Job[Any]) -> list[Finding]:
    chosen = view(job.protocol)
    findings = [*chosen.leaks(job), *judge_epsilon(job.parameters.epsilon)]
    if all(party.config is None for party in job.parties.values()):
        return [*findings, *asyncio.run(ask_parties(job))]
    with scratch_folder("blindfit check") as scratch:
        here: list[PartyHere] = []
        for name in job.parties:
            findings += catch_error(name, partial(_check_party, job, name, scratch, here))
        findings += catch_error("peers", partial(check_together, job))
        return [*findings, *chosen.check_rows(job, here)]


def _check_party(job: Job[Any], name: str, scratch: Path, here: list[PartyHere]) -> Iterable[Finding]:
    """Add to `here` the party whose data can be looked at."""
    if job.parties[name].config is None and job.parties[name].address is not None:
        yield Finding("note", name, "has no config here: not looked at")
        return
    party = PartyHere.of(job, name)
    yield from note_habits(party)
    yield from rehearse(job, name, scratch, here)
    yield from check_changes(party)
