"""What a party's operator decides: which held jobs may run, under which passphrase secrets are kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.private_files import read_passphrase
from blindfit.parties.files.vault import change_passphrase
from blindfit.parties.sessions.party import vault_of
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


# --- secrets -------------------------------------------------------------------------------------------


def lock(settings: PartySettings, base_dir: Path, old_passphrase_file: Path | None, console: Console) -> None:
    """Locks what was kept before there was a passphrase; with the file of an old one, the new one takes its place.

    Raises:
        ConfigError: the party's file names no passphrase, or one does not open what it should.
    """
    file, data_dir = settings.passphrase_file, base_dir / settings.data_dir
    if file is None:
        raise ConfigError(f"{settings.name} has no passphrase", hint="set secrets.passphrase_file in its file")
    if old_passphrase_file is not None:
        change_passphrase(data_dir, read_passphrase(old_passphrase_file), read_passphrase(base_dir / file))
        console.print(f"{settings.name}'s secrets are under the passphrase of {file}", highlight=False, soft_wrap=True)
    for path in vault_of(settings, base_dir).lock_plain(data_dir):
        console.print(f"locked {path}", highlight=False, soft_wrap=True)
