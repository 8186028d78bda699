"""`blindfit snapshot`: the next snapshot of a party's dataset, and a list of the snapshots for its operator.

It also has the first snapshots of a job's datasets, which `blindfit run` makes: its user operates every party.
"""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.running.snapshots import snapshots_of
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.whole_table import WholeTable
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store

CHANGED = {True: "has changed since", False: "unchanged", None: "unknown for a database"}


def publish(
    settings: PartySettings,
    base_dir: Path,
    dataset: str,
    *,
    other_people: bool = False,
    skip_unreadable: bool = False,
    remove_older: bool = False,
    console: Console,
) -> Found:
    """Raise ConfigError, DataError: the dataset has an error; the newest snapshot stays."""
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
    lines = [
        f"{dataset}: snapshot {row.number}, {quantity(row.rows, 'row')}, {_size(made.size_bytes)}; later jobs read "
        "this snapshot",
        *snapshots.cautions(made),
        *snapshots.list_unknown(),
    ]
    if remove_older:
        for snapshot, size in snapshots.remove_older(dataset):
            lines += [f"removed snapshot {snapshot.row.number}, {_size(size)}; its charges stay"]
    elif older := snapshots.all_of(dataset)[:-1]:
        octets = sum(snapshot.size_bytes for snapshot in older)
        lines += [f"{quantity(len(older), 'older snapshot')}, {_size(octets)}: --remove-older removes them"]
    document = {"dataset": dataset, "snapshot": row.number, "rows": row.rows, "size_bytes": made.size_bytes}
    return Found(document, lines)


def describe(settings: PartySettings, base_dir: Path) -> Found:
    """Return every dataset, its snapshots, and whether its source has changed since."""
    columns = ("dataset", "snapshot", "made (UTC)", "rows", "on disk", "its source")
    table = WholeTable(*columns, title="Snapshots", box=SIMPLE_HEAD)
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
        since = CHANGED[snapshots.has_changed_since(current)]
        row = current.row
        found[-1] |= {"made": row.made, "rows": row.rows, "size_bytes": octets, "source": since}
        table.add_row(dataset, str(row.number), row.made[:16].replace("T", " "), f"{row.rows:,}", _size(octets), since)
    return Found({"datasets": found}, (table, *(snapshots.list_unknown() if snapshots else ())))


def _size(octets: int) -> str:
    return f"{octets / 2**20:,.1f} MiB" if octets >= 2**20 else f"{octets / 2**10:,.0f} KiB"
