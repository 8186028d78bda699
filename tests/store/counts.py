"""Count everything in a party's database that no migration may lower."""

from __future__ import annotations

from typing import Any

from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.parties.snapshots.people import unpack

EVERYBODY = 1 << 30  # bytes of an entry that names nobody, and so counts for everybody
STATES = ("HELD", "ACCEPTED", "RUNNING", "DONE", "FAILED", "REFUSED", "ENDED")


def counts_of(reader: Any) -> dict[str, float]:
    """Return every count of a database under a name that stays, for any names of the tables.

    Args:
        reader: `Store.reader()` of any version.
    """
    counted: dict[str, float] = {}
    sessions = reader.sessions()
    for state in STATES:
        counted[f"sessions {state}"] = sum(row.state == state for row in sessions)
    for by in {row.proposed_by for row in sessions}:
        counted[f"sessions of {by}"] = reader.count_sessions(by, since="")
    counted["cancelled sessions"] = sum(reader.is_cancelled(row.session) for row in sessions)
    counted["files"] = sum(len(reader.files_of(row.session)) for row in sessions)
    counted["begun files"] = len(reader.list_begun_files())
    counted["predictions"] = sum(reader.prediction(row.session) is not None for row in sessions)
    counted |= _of_the_ledger(reader)
    counted |= _of_snapshots(reader)
    counted["uploads"] = reader.count_uploads()
    for uploads in reader.uploads():
        counted[f"uploads of {uploads.consumer} to {uploads.dataset}"] = uploads.count
    counted["losses"] = len(reader.losses())
    return counted


def _of_the_ledger(reader: Any) -> dict[str, float]:
    entries = reader.ledger()
    counted: dict[str, float] = {"entries": len(entries)}
    for population in {entry.population for entry in entries}:
        events = [ReleaseEvent.from_canonical(entry.event) for entry in reader.ledger(population)]
        counted[f"charges of {population}"] = len(events)
        counted[f"charged to {population}"] = sum(1 / event.noise_multiplier for event in events)
    for kind in ("release", "recovered", "recovered-sum"):
        counted[f"entries {kind}"] = sum(entry.kind == kind for entry in entries)
    for entry in entries:
        if entry.kind == "release":
            about = f"{entry.requester} {entry.request_id}"
            counted[f"kept bytes of {entry.requester}"] = reader.count_kept_bytes(entry.requester)
            stored = reader.answer(entry.requester, entry.request_id)
            counted[f"answers to {about}"] = stored is not None
            counted[f"bytes of the answer to {about}"] = len(stored.answer) if stored else 0
            counted[f"which rows counted for {about}"] = len(
                reader.read_kept_piece(entry.requester, entry.request_id, 0)
            )
            counted[f"fits for {about}"] = reader.block_fit(entry.requester, entry.request_id) is not None
            counted[f"receipts held of {entry.population}"] = len(reader.receipt_held("meter", entry.population)[0])
    releases = reader.label_releases()
    counted["label releases"] = len(releases)
    counted["label releases that are made"] = sum(bool(stored.labels_sha256) for stored in releases)
    counted["receipts held of patients"] = len(reader.receipt_held("clinic", "patients")[0])
    counted["rollbacks"] = len(reader.rollbacks())
    counted["acknowledged rollbacks"] = len(reader.list_acknowledged_rollbacks())
    return counted


def _of_snapshots(reader: Any) -> dict[str, float]:
    snapshots = reader.snapshots()
    counted: dict[str, float] = {"snapshots": len(snapshots)}
    counted["snapshots of other people"] = sum(bool(row.other_people) for row in snapshots)
    counted["sessions with a snapshot"] = sum(
        reader.session_snapshot(row.session) is not None for row in reader.sessions()
    )
    for row in snapshots:
        entries = [entry for entry in reader.disclosures() if entry.snapshot == row.id]
        scores = [entry for entry in entries if entry.subject == "scores"]
        counted[f"told bits of {row.id}"] = sum(entry.bits for entry in entries if entry.subject == "columns")
        counted[f"scored models of {row.id}"] = len(scores)
        counted[f"score bits of {row.id}"] = sum(entry.bits for entry in scores)
        counted[f"bytes of scored rows of {row.id}"] = sum(len(entry.people) or EVERYBODY for entry in scores)
        counted[f"label bits of {row.id}"] = sum(entry.bits for entry in entries if entry.subject == "labels")
        counted[f"linkages of {row.id}"] = sum(entry.event.startswith("linkage") for entry in entries)
    for population in reader.populations_with_people():
        people = sum(len(digests) // 8 for digests in reader.people(population))
        counted[f"people of {population}"] = people
        labelled = unpack(reader.people_with_labels(population, "label"), people)
        counted[f"labelled people of {population}"] = int(labelled.sum())
    for context in ("ef" * 32, "fe" * 32):
        begun, key = reader.draw(context)
        counted[f"draws of {context}"] = begun
        counted[f"bytes drawn of {context}"] = len(key or b"")
    return counted
