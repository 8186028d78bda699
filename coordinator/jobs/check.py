"""Pre-flight: what would leak, fail or take too long, before any byte leaves.

For a party whose file is on this machine, its settings, data and ledger are read. For a party with only an address, the
pre-flight asks for its name and what it takes part in. Nothing of a party's data is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding, catch_error, judge_epsilon
from blindfit.coordinator.preflight.parties import PartyHere, ask_parties, check_changes, describe_files, note_habits
from blindfit.coordinator.preflight.rehearsal import check_together, rehearse
from blindfit.coordinator.running.rehearsal import Rehearsal
from blindfit.coordinator.running.scratch import scratch_folder
from blindfit.coordinator.systems import view


def check(job: Job[Any], rehearsal: Rehearsal | None = None) -> list[Finding]:
    """Return the findings.

    Args:
        rehearsal: form of the rehearsal, if the job will be rehearsed.
    """
    if rehearsal is None:
        return _check(job)
    with scratch_folder("blindfit check") as scratch:
        stage = rehearsal.stage_in(scratch)
        try:
            staged = rehearsal.set_up(job, stage)
        except ConfigError as error:
            return [Finding("refuses", "rehearsal", str(error))]
        return [*_check(staged), *(Finding("warning", *warning) for warning in stage.warnings())]


def _check(job: Job[Any]) -> list[Finding]:
    chosen = view(job.protocol)
    findings = [*chosen.leaks(job), *judge_epsilon(job.parameters.epsilon), *_describe_network(job)]
    elsewhere = [] if job.stage else find_elsewhere(job)
    if len(elsewhere) == len(job.parties):
        return [*findings, *asyncio.run(ask_parties(job))]
    if elsewhere:
        findings += catch_error("parties", lambda: asyncio.run(ask_parties(job, elsewhere)))
    with scratch_folder("blindfit check") as scratch:
        here: list[PartyHere] = []
        for name in (name for name in job.parties if name not in elsewhere):
            findings += catch_error(name, partial(_check_party, job, name, scratch, here))
        findings += catch_error("peers", partial(check_together, job))
        return [*findings, *chosen.check_rows(job, here)]


def _describe_network(job: Job[Any]) -> Iterable[Finding]:
    if job.network is not None:
        words = f"{job.network.in_words()}: `blindfit run` simulates it, and `blindfit submit` refuses it"
        yield Finding("note", "network", f"{words}; forecasts of bytes and rounds include it, forecasts of time do not")


def find_elsewhere(job: Job[Any]) -> list[str]:
    """Return the parties whose files are on other machines: the job has only their addresses.

    If the file of a party without an address is not here, the job has an error.
    """
    nobody_is_here = all(party.config is None for party in job.parties.values())
    return [
        name
        for name, party in job.parties.items()
        if nobody_is_here
        or (party.config is not None and party.address is not None and not (job.folder / party.config).exists())
    ]


def _check_party(job: Job[Any], name: str, scratch: Path, here: list[PartyHere]) -> Iterable[Finding]:
    """Add the party to `here` if its data can be read."""
    if job.stage is None and job.parties[name].config is None and job.parties[name].address is not None:
        yield Finding("note", name, "has no config here, and was not checked")
        return
    party = PartyHere.of(job, name)
    yield from note_habits(party)
    yield from describe_files(job, party)
    yield from rehearse(job, name, scratch, here)
    yield from check_changes(party)
