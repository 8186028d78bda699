"""Pre-flight: what would leak, fail or take too long, before any byte leaves.

Where a party's file is here, its settings, data and ledger are read here; where only its address is, it is asked who it
is and what it takes part in. Nothing of a party's data is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from blindfit.coordinator.job import Job
from blindfit.coordinator.preflight import dp_lr, label_dp, predict, vertical, walr
from blindfit.coordinator.preflight.findings import Finding, caught, show
from blindfit.coordinator.preflight.parties import PartyHere, ask_parties, check_policy

__all__ = ["Finding", "check", "show"]

HIGH_EPSILON = 4


class Kind(Protocol):
    """What the pre-flight of one protocol adds."""

    def leaks(self, job: Job, /) -> Iterable[Finding]:
        """Who learns what: from the job alone."""
        ...

    def check_rows(self, job: Job, here: Sequence[PartyHere], /) -> Iterable[Finding]:
        """What the data say, of the parties whose files are here and whose settings go with the job."""
        ...


KINDS: dict[str, Kind] = {
    "walr": walr,
    "label-dp": label_dp,
    "dp-lr": dp_lr,
    "taylor": vertical,
    "predict": predict,
}


def check(job: Job, base_dir: Path) -> list[Finding]:
    kind = KINDS[job.protocol]
    findings = list(kind.leaks(job))
    if job.epsilon > HIGH_EPSILON:
        findings.append(Finding("warning", "privacy.epsilon", f"{job.epsilon:g} promises little: e^epsilon is large"))
    if all(party.config is None for party in job.parties.values()):
        return [*findings, *asyncio.run(ask_parties(job, base_dir))]
    here: list[PartyHere] = []
    for name in job.parties:
        findings += caught(name, partial(_check_settings, job, name, base_dir, here))
    return [*findings, *kind.check_rows(job, here)]


def _check_settings(job: Job, name: str, base_dir: Path, here: list[PartyHere]) -> Iterable[Finding]:
    """Adds to `here` the party whose data can be looked at."""
    if job.parties[name].config is None:
        yield Finding("note", name, "has no config here: not looked at")
        return
    party = PartyHere.of(job, name, base_dir)
    yield from check_policy(job, party)
    if party.settings.role == job.parties[name].role and (
        not party.dataset_name or party.dataset_name in party.settings.datasets
    ):
        here.append(party)
