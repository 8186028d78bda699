"""Pre-flight: what would leak, fail or take too long, before any byte leaves.

Where a party's file is here, its settings, data and ledger are read here; where only its address is, it is asked who it
is and what it takes part in. Nothing of a party's data is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding, catch_error
from blindfit.coordinator.preflight.parties import PartyHere, ask_parties, check_policy, check_snapshot
from blindfit.coordinator.systems import view

HIGH_EPSILON = 4


def check(job: Job[Any]) -> list[Finding]:
    chosen = view(job.protocol)
    findings = list(chosen.leaks(job))
    if job.parameters.epsilon > HIGH_EPSILON:
        findings.append(
            Finding(
                "warning",
                "privacy.epsilon",
                f"{job.parameters.epsilon:g} promises little, as e^epsilon is large: set privacy.epsilon = 1, or less",
            )
        )
    elsewhere = find_elsewhere(job)
    if len(elsewhere) == len(job.parties):
        return [*findings, *asyncio.run(ask_parties(job))]
    if elsewhere:
        findings += catch_error("parties", lambda: asyncio.run(ask_parties(job, elsewhere)))
    here: list[PartyHere] = []
    for name in (name for name in job.parties if name not in elsewhere):
        findings += catch_error(name, partial(_check_settings, job, name, here))
    return [*findings, *chosen.check_rows(job, here)]


def find_elsewhere(job: Job[Any]) -> list[str]:
    """Return the parties whose files are on other machines: the job says only where they are up.

    A file that is not here, of a party without an address, is an error of the job.
    """
    nobody_is_here = all(party.config is None for party in job.parties.values())
    return [
        name
        for name, party in job.parties.items()
        if nobody_is_here
        or (party.config is not None and party.address is not None and not (job.folder / party.config).exists())
    ]


def _check_settings(job: Job[Any], name: str, here: list[PartyHere]) -> Iterable[Finding]:
    """Adds to `here` the party whose data can be looked at."""
    if job.parties[name].config is None:
        yield Finding("note", name, "has no config here: not looked at")
        return
    party = PartyHere.of(job, name)
    yield from check_policy(job, party)
    yield from check_snapshot(job, party)
    if party.settings.role == job.parties[name].role and (
        not party.dataset_name or party.dataset_name in party.settings.datasets
    ):
        here.append(party)
