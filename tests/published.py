"""The snapshot that a test's jobs read, made if it is missing, as a party's operator would do."""

from __future__ import annotations

from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.snapshots.snapshots import Snapshots


def published(snapshots: Snapshots, dataset: str, *, skip_unreadable: bool = False) -> Snapshot:
    return snapshots.current(dataset) or snapshots.publish(dataset, skip_unreadable=skip_unreadable)
