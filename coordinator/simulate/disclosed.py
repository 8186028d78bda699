"""Read from the databases of a rehearsal what its run added to the disclosure accounts of its parties."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.running.launcher import party_settings
from blindfit.parties.account.account import Account
from blindfit.parties.snapshots.people import join
from blindfit.parties.store.database import Store
from blindfit.parties.vertical.scored_rows import find_most

LABELS, SCORES, COLUMNS = "labels", "scores", "columns"


def bits_of(job: Job[Any]) -> Mapping[str, float]:
    """Return the bits of each limit: of all labels together, of one row's score, of all columns together.

    Args:
        job: job on its stage, with accounts that began empty with this run.
    """
    found = {LABELS: 0.0, SCORES: 0.0, COLUMNS: 0.0}
    for name, party in job.parties.items():
        file, settings = party_settings(job, name)
        if not party.dataset or settings.role == "measurement":
            continue
        store = Store.existing(settings, file.parent)
        if store is None:
            continue
        with closing(store):
            reader, account = store.reader(), Account.of(settings, party.dataset)
            if account.counts_labels:
                found[LABELS] += account.spent(reader, "labels", account.label)
            scores = account.entries(reader, "scores")
            if scores:
                people = len(join(reader.people(account.population)))
                found[SCORES] = max(found[SCORES], find_most(scores, people)[1])
            found[COLUMNS] += sum(entry.bits for entry in account.entries(reader, "columns"))
    return found
