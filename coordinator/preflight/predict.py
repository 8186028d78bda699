"""The pre-flight of a joint prediction; of a model in shares also what it would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from blindfit.coordinator.job import Job
from blindfit.coordinator.preflight import shared_predict
from blindfit.coordinator.preflight.findings import Finding, caught
from blindfit.coordinator.preflight.parties import PartyHere


def leaks(job: Job[Any]) -> Iterator[Finding]:
    active = next(name for name, party in job.parties.items() if party.role == "active")
    yield Finding("note", "who learns what", f"{active} learns the scores of the rows that all data parties have")
    least = job.parameters.align.least_common
    text = f"a party that invents ids to ask who is in the others' data: once {least} of them are, it learns which"
    yield Finding("note", "out of the model", text)


def check_rows(job: Job[Any], here: Sequence[PartyHere]) -> Iterator[Finding]:
    for party in here:
        if party.dataset_name:
            yield from caught(party.name, partial(_opens, party))
    yield from caught("model", partial(shared_predict.checks, job, here))


def _opens(party: PartyHere) -> Iterator[Finding]:
    yield Finding("ok", party.name, f"{party.dataset_name} opens, with {len(party.source().feature_names)} features")
