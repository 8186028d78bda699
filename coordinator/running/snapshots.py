"""Find the datasets whose source has changed since the snapshot that jobs read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.files.vault import vault_of
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.populations import why_it_waits
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import snapshot_writer
from blindfit.parties.work.compute import cluster_of

IS_PUBLISHED = "is published as snapshot"


def snapshots_of(settings: PartySettings, base_dir: Path, store: Store) -> Snapshots:
    writer = snapshot_writer(settings.role, vault_of(settings, base_dir), cluster_of(settings, base_dir))
    return Snapshots(settings, base_dir, store, writer)


def find_changed(settings: PartySettings, base_dir: Path) -> Iterator[Snapshot]:
    """Yield the newest snapshots of sources that have changed since."""
    store = Store.existing(settings, base_dir)
    if store is None:
        return
    snapshots = snapshots_of(settings, base_dir, store)
    for dataset in settings.datasets:
        current = snapshots.current(dataset)
        if current is not None and snapshots.has_changed_since(current):
            yield current


def datasets_of(job: Job[Any], name: str) -> tuple[str, ...]:
    """Return the datasets that a party reads in a job."""
    party = job.parties[name]
    return tuple(filter(None, (party.dataset, *job.parameters.also_reads(party.role))))


def find_unpublished(settings: PartySettings, base_dir: Path, datasets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each dataset without a snapshot for its present description, and why only its operator publishes it.

    The reason is empty if `blindfit run` and the party's next start publish the dataset.
    """
    store = Store.existing(settings, base_dir)
    with contextlib.closing(store) if store else contextlib.nullcontext():
        for dataset in datasets:
            if dataset not in settings.datasets:
                continue
            if store is None or Snapshots(settings, base_dir, store).current(dataset) is None:
                yield dataset, why_it_waits(settings, dataset, store.reader().snapshots() if store else ())


def publish_first(job: Job[Any], parties: Mapping[str, tuple[Path, PartySettings]], say: Callable[[str], None]) -> None:
    """Publish datasets that a job reads and that have no snapshot.

    Args:
        parties: path and settings of each party file.
        say: function that prints a line.

    Raises:
        ConfigError, DataError: a dataset has an error, or only its operator publishes it.
    """
    for name, (path, settings) in parties.items():
        for dataset, reason in find_unpublished(settings, path.parent, datasets_of(job, name)):
            if reason:
                raise ConfigError(
                    f"{name}: {reason}",
                    hint=f"run `blindfit snapshot {quote(str(path))} {quote(dataset)}`, with --other-people if these "
                    "are other people",
                )
            with contextlib.closing(Store.of(settings, path.parent)) as store:
                snapshots = snapshots_of(settings, path.parent, store)
                is_scored = job.parameters.scores_rows or dataset != job.parties[name].dataset
                made = snapshots.publish(dataset, skip_unreadable=is_scored, on_waiting=say)
                say(f"{name}: {dataset} {IS_PUBLISHED} {made.row.number}, {quantity(made.row.rows, 'row')}")
                for caution in snapshots.cautions(made):
                    say(f"{name}: {caution}")
