"""`blindfit publish`: the next snapshot of a party's dataset; and what its operator is told of those that there are.

Also the first snapshots of a job's datasets, which `blindfit run` makes: its user is the operator of every party.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job import Job
from blindfit.coordinator.json_output import answer
from blindfit.coordinator.report.wording import counted
from blindfit.coordinator.whole_table import print_whole
from blindfit.parties.sessions.party import vault_of
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.populations import why_it_waits
from blindfit.parties.snapshots.snapshots import Snapshot, Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import snapshot_writer
from blindfit.parties.work.compute import cluster_of

CHANGED = {True: "has changed since", False: "unchanged", None: "a database cannot tell"}


def snapshots_of(settings: PartySettings, base_dir: Path, store: Store) -> Snapshots:
    writer = snapshot_writer(settings.role, vault_of(settings, base_dir), cluster_of(settings, base_dir))
    return Snapshots(settings, base_dir, store, writer)


def publish(
    settings: PartySettings,
    base_dir: Path,
    dataset: str,
    *,
    other_people: bool = False,
    skip_unreadable: bool = False,
    remove_older: bool = False,
    console: Console,
) -> None:
    """Raises ConfigError, DataError: what is wrong with the dataset; the newest snapshot stays what it was."""
    if dataset not in settings.datasets:
        known = ", ".join(settings.datasets) or "none"
        raise ConfigError(f"{settings.name} has no dataset named {dataset}", hint=f"its datasets: {known}")
    snapshots = snapshots_of(settings, base_dir, Store.of(settings, base_dir))
    made = snapshots.publish(
        dataset,
        skip_unreadable=skip_unreadable,
        other_people=other_people,
        on_waiting=lambda what: console.print(escape(what), highlight=False),
    )
    row = made.row
    answer({"dataset": dataset, "snapshot": row.number, "rows": row.rows, "size_bytes": made.size_bytes})
    _tell(made, console)
    for caution in (*snapshots.cautions(made), *snapshots.unknown()):
        console.print(escape(caution), highlight=False)
    if remove_older:
        for snapshot, size in snapshots.remove_older(dataset):
            console.print(f"removed snapshot {snapshot.row.number}, {_size(size)}; what it was charged stays charged")
    elif older := snapshots.all_of(dataset)[:-1]:
        octets = sum(snapshot.size_bytes for snapshot in older)
        console.print(f"{counted(len(older), 'older snapshot')}, {_size(octets)}: --remove-older removes them")


def datasets_of(job: Job[Any], name: str) -> tuple[str, ...]:
    """Return the datasets that a party reads in a job."""
    party = job.parties[name]
    return tuple(filter(None, (party.dataset, *job.parameters.also_reads(party.role))))


def unpublished(settings: PartySettings, base_dir: Path, datasets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each of a party's datasets that has no snapshot as its file describes it, and why only its operator
    publishes it; the reason is empty where `blindfit run` and the party's next start do so."""
    store = Store.existing(settings, base_dir)
    with contextlib.closing(store) if store else contextlib.nullcontext():
        for dataset in datasets:
            if dataset not in settings.datasets:
                continue
            if store is None or Snapshots(settings, base_dir, store).current(dataset) is None:
                yield dataset, why_it_waits(settings, dataset, store.reader().snapshots() if store else ())


def publish_first(job: Job[Any], parties: Mapping[str, tuple[Path, PartySettings]], say: Callable[[str], None]) -> None:
    """Publish what a job reads and nobody has published.

    Args:
        parties: the file of each, and what it says.
        say: prints a line.

    Raises:
        ConfigError, DataError: what is wrong with a dataset, or only its operator publishes it.
    """
    for name, (path, settings) in parties.items():
        for dataset, reason in unpublished(settings, path.parent, datasets_of(job, name)):
            if reason:
                hint = f"run `blindfit publish {path} {dataset}`, with --other-people if these are other people"
                raise ConfigError(f"{name}: {reason}", hint=hint)
            with contextlib.closing(Store.of(settings, path.parent)) as store:
                snapshots = snapshots_of(settings, path.parent, store)
                is_scored = job.parameters.scores_rows or dataset != job.parties[name].dataset
                made = snapshots.publish(dataset, skip_unreadable=is_scored, on_waiting=say)
                say(f"{name}: {dataset} is published as snapshot {made.row.number}, {counted(made.row.rows, 'row')}")
                for caution in snapshots.cautions(made):
                    say(f"{name}: {caution}")


def _tell(snapshot: Snapshot, console: Console) -> None:
    row = snapshot.row
    size = _size(snapshot.size_bytes)
    text = f"{row.dataset}: snapshot {row.number}, {counted(row.rows, 'row')}, {size}; jobs read it from now on"
    console.print(escape(text), highlight=False)


def show(settings: PartySettings, base_dir: Path, console: Console) -> None:
    """Every dataset, what of it is published, and whether its source has changed since."""
    columns = ("dataset", "snapshot", "made (UTC)", "rows", "on disk", "its source")
    table = Table(*columns, title="Snapshots", box=SIMPLE_HEAD)
    found: list[dict[str, object]] = []
    store = Store.existing(settings, base_dir)
    snapshots = snapshots_of(settings, base_dir, store) if store else None
    for dataset in settings.datasets:
        current = snapshots.current(dataset) if snapshots else None
        found.append({"dataset": dataset, "snapshot": None if current is None else current.row.number})
        if snapshots is None or current is None:
            table.add_row(dataset, "-", "", "", "", "not published")
            continue
        octets = sum(snapshot.size_bytes for snapshot in snapshots.all_of(dataset))
        since = CHANGED[snapshots.changed_since(current)]
        row = current.row
        found[-1] |= {"made": row.made, "rows": row.rows, "size_bytes": octets, "source": since}
        table.add_row(dataset, str(row.number), row.made[:16].replace("T", " "), f"{row.rows:,}", _size(octets), since)
    answer({"datasets": found})
    print_whole(console, table)
    for unknown in snapshots.unknown() if snapshots else ():
        console.print(escape(unknown), highlight=False)


def changed(settings: PartySettings, base_dir: Path) -> Iterator[Snapshot]:
    """The newest snapshots of sources that have changed since."""
    store = Store.existing(settings, base_dir)
    if store is None:
        return
    snapshots = snapshots_of(settings, base_dir, store)
    for dataset in settings.datasets:
        current = snapshots.current(dataset)
        if current is not None and snapshots.changed_since(current):
            yield current


def _size(octets: int) -> str:
    return f"{octets / 2**20:,.1f} MiB" if octets >= 2**20 else f"{octets / 2**10:,.0f} KiB"
