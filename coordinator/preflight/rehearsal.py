"""Rehearse the beginning of a job at a party whose file is on this machine: what is published, started and proposed.

The party's own functions decide, so `blindfit check` refuses what `blindfit run` refuses, in the same words. Nothing of
this stays: snapshots that a job would publish first go into a folder that is removed.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import BlindfitError, LimitExceeded, PolicyRefused
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.running.launcher import check_member, coordinator_name, party_settings
from blindfit.coordinator.running.receipts import receipts_of
from blindfit.coordinator.running.session import proposal_of
from blindfit.coordinator.running.snapshots import IS_PUBLISHED, datasets_of, find_unpublished, publish_first
from blindfit.parties.files.vault import RECEIPT_KEY, vault_of
from blindfit.parties.node import open_admission
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.charging import check_chain
from blindfit.parties.store.database import Store, path_of
from blindfit.parties.store.receipts import SignedReceipt
from blindfit.parties.systems import snapshot_writer
from blindfit.parties.wire import error_codes
from blindfit.parties.work.compute import cluster_of

SESSION = "check"  # session of a proposal that nobody keeps
ANYWHERE = "127.0.0.1:1"  # an address to which nothing connects
SNAPSHOTS = "snapshots"


def rehearse(job: Job[Any], name: str, scratch: Path, here: list[PartyHere]) -> Iterator[Finding]:
    """Yield what the party would refuse, and notes for its operator. Add a party that refuses nothing to `here`.

    Args:
        scratch: folder for snapshots that the party would publish first.

    Raises:
        BlindfitError: `blindfit run` raises it before it proposes the job.
    """
    path, settings = party_settings(job, name)
    Store.check_not_lost(settings, path.parent)
    check_member(job, name)
    unpublished = list(find_unpublished(settings, path.parent, datasets_of(job, name)))
    for dataset, _ in unpublished if job.stage is None else ():
        yield Finding("note", name, f"{dataset} is not published: `blindfit run` and the party's next start publish it")
    receipts = _receipts_of(job, settings, path.parent)
    if unpublished or receipts:  # a ledger that is behind a receipt records it
        _check_kept(settings, path.parent)
    if unpublished or receipts or not path_of(settings, path.parent).exists():
        settings = _copy_kept(settings, path.parent, scratch / name)
    if unpublished:
        said: list[str] = []
        publish_first(job, {name: (path, settings)}, said.append)
        cautions = [line.removeprefix(f"{name}: ") for line in said if IS_PUBLISHED not in line]
        yield from (Finding("warning", name, caution) for caution in cautions)
    party = PartyHere(name, job.parties[name].dataset, settings, path, job.parameters.resumes)
    yield from _propose(job, party, receipts, here)


def _copy_kept(settings: PartySettings, base_dir: Path, folder: Path) -> PartySettings:
    """Return the settings with another data folder, which has a copy of the party's files.

    Large files are not copied: the copy shows them by links, and writes to none of them.
    """
    folder.mkdir(mode=0o700)
    kept = base_dir / settings.data_dir
    for entry in sorted(kept.iterdir()) if kept.is_dir() else ():
        if entry.name.startswith("party.sqlite"):
            continue
        if entry.name == SNAPSHOTS:
            (folder / SNAPSHOTS).mkdir(mode=0o700)
            for snapshot in entry.iterdir():
                (folder / SNAPSHOTS / snapshot.name).symlink_to(snapshot.resolve())
        elif entry.is_dir():
            (folder / entry.name).symlink_to(entry.resolve())
        elif entry.is_file():
            shutil.copy2(entry, folder / entry.name)
    if (kept / "party.sqlite").exists():
        with (
            contextlib.closing(sqlite3.connect(kept / "party.sqlite")) as source,
            contextlib.closing(sqlite3.connect(folder / "party.sqlite")) as copy,
        ):
            source.backup(copy)
    return settings.model_copy(update={"data_dir": folder})


def _receipts_of(job: Job[Any], settings: PartySettings, base_dir: Path) -> list[SignedReceipt]:
    """Return the party's receipts that a run presents to it: those of this user, and those of the other parties."""
    key = base_dir / settings.data_dir / RECEIPT_KEY
    if not (settings.populations and job.parameters.epsilon and key.exists()):
        return []
    own = receipts_of(job).of(settings.name, vault_of(settings, base_dir).signing_key(key).public_bytes)
    return [*own, *_receipts_at_others(job, settings)]


def _receipts_at_others(job: Job[Any], settings: PartySettings) -> Iterator[SignedReceipt]:
    """Yield the party's receipts that other parties, whose files are here, hold."""
    for name in job.parties:
        with contextlib.suppress(BlindfitError):  # this is a finding of that party
            path, other = party_settings(job, name)
            store = None if name == settings.name else Store.existing(other, path.parent)
            with contextlib.closing(store) if store else contextlib.nullcontext():
                held = [store.reader().receipt_held(settings.name, about) for about in settings.populations if store]
            yield from (receipt for receipt in held if receipt[0])


def _check_kept(settings: PartySettings, base_dir: Path) -> None:
    """Raise errors of the party's database, which then name its own place and not that of a copy."""
    if (store := Store.existing(settings, base_dir)) is not None:
        with contextlib.closing(store):
            check_chain(store)


def _propose(
    job: Job[Any], party_here: PartyHere, receipts: Sequence[SignedReceipt], here: list[PartyHere]
) -> Iterator[Finding]:
    """Yield what the party would refuse of the proposal. A party whose rows go with the job is added to `here`.

    Raises:
        BlindfitError: the error would end the party's start.
    """
    policy = party_here.settings.policy.model_copy(update={"accept_seed": True})  # like a start by `blindfit run`
    settings, base_dir = party_here.settings.model_copy(update={"policy": policy}), party_here.base_dir
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(contextlib.closing(Store.of(settings, base_dir)))
        check_chain(store)
        party = Party(settings, base_dir, None, store)
        stack.callback(party.close)
        party.write_snapshot = snapshot_writer(settings.role, party.vault, cluster_of(settings, base_dir))
        proposal = proposal_of(job, SESSION, dict.fromkeys(job.parties, ANYWHERE), receipts)
        admission = open_admission(party)
        try:
            admission.check(proposal, _proposer(job, settings), {})
        except BlindfitError as error:
            refused = {str(_as_told(error, party_here.name)): None}
            for field, reason in job.parameters.refusals(policy, settings.role):  # later refusals
                refused[str(PolicyRefused(party=party_here.name, field=field, reason=reason))] = None
            yield from (Finding("refuses", party_here.name, text) for text in refused)
            if (part := admission.parts.get(job.protocol)) is None or settings.role != job.parties[
                party_here.name
            ].role:
                return
            me = Member(party_here.name, settings.role, ANYWHERE, party_here.dataset_name)
            with contextlib.suppress(BlindfitError):
                part.check(job.parameters, me)
                here.append(party_here)
            return
        here.append(party_here)


def _as_told(error: BlindfitError, party: str) -> BlindfitError:
    """Return a refusal as the proposing party receives it, with the party's own words, which stay on its machine."""
    if isinstance(error, LimitExceeded):
        return error_codes.error_of(error_codes.status_of(error), peer=party)
    return error


def check_together(job: Job[Any]) -> Iterator[Finding]:
    """Raise errors that `blindfit run` finds in all party files together."""
    try:
        for name in job.parties:
            party_settings(job, name)
    except BlindfitError:  # this is a finding of that party
        return
    coordinator_name(job)
    yield from ()


def _proposer(job: Job[Any], settings: PartySettings) -> str:
    """Return a coordinator that the party knows; if possible, one that all parties know."""
    with contextlib.suppress(BlindfitError):
        return coordinator_name(job)
    return min(name for name, peer in settings.peers.items() if peer.role == "coordinator")
