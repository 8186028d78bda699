"""What a party's operator decides: which held jobs may run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.store import Store


def open_store(settings: PartySettings, base_dir: Path) -> Store:
    path = base_dir / settings.data_dir / "party.sqlite"
    if not path.exists():
        raise ConfigError(f"{path} does not exist", hint="this party has not been started yet")
    return Store(path)


def approve(settings: PartySettings, base_dir: Path, session: str | None, *, refuse: bool, console: Console) -> None:
    store = open_store(settings, base_dir)
    if session is None:
        _list(store, console)
        return
    state = "REFUSED" if refuse else "ACCEPTED"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with store.transaction() as transaction:
        changed = transaction.change_session(session, expected="HELD", state=state, changed=now)
    if not changed:
        raise ConfigError(f"{session} is not a job that waits here", hint="`blindfit approve party.toml` lists them")
    console.print(f"{session}: {'refused' if refuse else 'approved'}")


def _list(store: Store, console: Console) -> None:
    held = store.reader().sessions("HELD")
    if not held:
        console.print("no job waits for approval")
        return
    table = Table("job", "proposed by", "what", "since")
    for row in held:
        table.add_row(row.session, row.proposed_by, row.description, row.changed)
    console.print(table)
