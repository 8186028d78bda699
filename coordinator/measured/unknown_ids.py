"""Rows of the active party that a measurement server does not know, if the tables of both are on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.terminal.wording import count, quantity


def check_ids(job: Job[Any], here: Sequence[PartyHere]) -> Iterator[Finding]:
    """Compare the ids of both tables; no label is read.

    Raises:
        DataError: a row of one of the tables has no usable id.
    """
    active = [party for party in here if party.name in job.with_role("active")]
    servers = [party for party in here if party.name in job.with_role("measurement")]
    if not active or not servers:
        return
    yield from check_ids_of(active[0].name, ids_of(active[0]), servers)


def check_ids_of(active: str, asked: Any, servers: Sequence[PartyHere]) -> Iterator[Finding]:
    """Compare the ids that the active party asks for with those of each server.

    Args:
        asked: ids, (rows,), as a pyarrow array.
    """
    for server in servers:
        known = pc.is_in(asked, value_set=ids_of(server))
        unknown = len(asked) - int(pc.sum(known).as_py() or 0)
        if unknown:
            yield _check_unknown(server, active, unknown, len(asked))


def ids_of(party: PartyHere) -> Any:
    """Return the ids of a party's table, (rows,)."""
    batches = party.source().batches(persons=False, labels=False, features=False)
    return pa.concat_arrays([batch.ids for batch in batches])


def _check_unknown(server: PartyHere, active: str, unknown: int, rows: int) -> Finding:
    dataset = server.dataset
    text = f"{server.dataset_name} does not have the ids of {count(unknown)} of {active}'s {quantity(rows, 'row')}"
    if dataset.unknown_rows == "zero":
        return Finding("warning", server.name, f'{text}: they count as label 0 (unknown_rows = "zero")')
    zero = ""
    if dataset.may_take_unknown_rows_as_zero:
        option = f"datasets.{server.dataset_name}.unknown_rows"
        zero = f'; or, if a missing id means label 0, set {option} = "zero" in the file of {server.name}'
    return Finding("refuses", server.name, f"{text}: take these rows out of {active}'s table{zero}")
