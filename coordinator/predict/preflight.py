"""The pre-flight of a joint prediction, with the cost for a model in shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.predict import shared_predict
from blindfit.coordinator.preflight.findings import Finding, catch_error
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.parties.files.vault import vault_of
from blindfit.parties.vertical.model_store import ModelStore, SharedModels


def leaks(job: Job[Any]) -> Iterator[Finding]:
    active = next(name for name, party in job.parties.items() if party.role == "active")
    yield Finding("note", "who learns what", f"{active} learns the scores of the rows that all data parties have")
    least = job.parameters.align.min_common
    text = f"a party that invents ids to test who is in the others' data: once {least} of them are, it learns which"
    yield Finding("note", "out of the model", text)


def check_rows(job: Job[Any], here: Sequence[PartyHere]) -> Iterator[Finding]:
    for party in here:
        if party.dataset_name:
            yield from catch_error(party.name, partial(_opens, party))
    yield from catch_error("model", partial(shared_predict.checks, job, here))


def _opens(party: PartyHere) -> Iterator[Finding]:
    yield Finding("ok", party.name, f"{party.dataset_name} opens, with {len(party.kinds())} features")


def model_of(party: PartyHere, session: str) -> VerticalModelPart | SharedModelPart | None:
    """Return the part of a model that a party keeps; None if it has no part."""
    data_dir, vault = party.base_dir / party.settings.data_dir, vault_of(party.settings, party.base_dir)
    if (shared := SharedModels(data_dir, vault)).has(session):
        return shared.read(session)
    models = ModelStore(data_dir, vault)
    return models.read(session) if models.has(session) else None
