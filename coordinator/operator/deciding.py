"""Decisions of a party's operator: which waiting jobs may run, by a digest of their description; and the passphrase."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shlex import quote

from rich.console import Console

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.operator.held import HeldJob
from blindfit.coordinator.terminal.json_output import Found
from blindfit.parties.files.private_files import read_passphrase
from blindfit.parties.files.vault import change_passphrase, vault_of
from blindfit.parties.sessions.state import State, next_state
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Reads, Store, path_of, stamp
from blindfit.parties.store.sessions import SessionRow

Confirm = Callable[[str], bool]


def open_store(settings: PartySettings, base_dir: Path) -> Store:
    store = Store.existing(settings, base_dir)
    if store is None:
        Store.check_not_lost(settings, base_dir)
        raise ConfigError(f"{path_of(settings, base_dir)} does not exist", hint="this party has not started yet")
    return store


def list_held(settings: PartySettings, file: Path) -> Found:
    """Return the jobs that wait for approval.

    Args:
        file: file of the settings, as the operator named it.
    """
    store = open_store(settings, file.parent)
    held = [HeldJob.of(row, settings, file) for row in store.reader().sessions("HELD")]
    shown = [part for job in held for part in job.describe(store)] or ["no job waits for approval"]
    return Found({"waiting": [job.document(store) for job in held]}, shown)


def approve_shown(
    settings: PartySettings, file: Path, session: str, console: Console, confirm: Confirm | None
) -> Found:
    """Show a job that waits, ask, and approve it.

    Args:
        confirm: function that asks the person at the terminal; None if nobody may be asked.

    Raises:
        ConfigError: nobody can answer the question, or the job no longer waits.
    """
    store = open_store(settings, file.parent)
    job = HeldJob.of(_waiting(store.reader(), session, file), settings, file)
    Found({}, job.describe(store)).show(console)
    if confirm is None:
        raise ConfigError("the digest is missing, and an approval needs it", hint=f"as shown: {job.command}")
    if confirm(f"Approve {job.asked.digest}?"):
        return decide(settings, file, session, job.asked.digest, refuse=False)
    return Found({"session": session, "state": "waits"}, (f"{session}: not approved, and still waiting",))


def decide(settings: PartySettings, file: Path, session: str, digest: str | None, *, refuse: bool) -> Found:
    """Approve or refuse a waiting job.

    Args:
        digest: digest of the job that the operator read; a refusal needs no digest.

    Raises:
        ConfigError: no such job waits, or another job waits.
    """
    state = next_state(State.HELD, "refuse" if refuse else "approve", session)
    with open_store(settings, file.parent).transaction() as transaction:
        row = _waiting(transaction, session, file)
        if row.digest != digest and not (refuse and digest is None):
            raise ConfigError(f"{digest} is not the digest of the job that waits here as {session}", hint=_list(file))
        transaction.change_session(session, state=state, changed=stamp())
    decision = "refused" if refuse else "approved"
    return Found({"session": session, "state": decision}, (f"{session}: {decision}",))


def _waiting(store: Reads, session: str, file: Path) -> SessionRow:
    row = store.session(session)
    if row is None or row.state != "HELD":
        raise ConfigError(f"{session} is not a job that waits here", hint=_list(file))
    return row


def _list(file: Path) -> str:
    return f"`blindfit approve {quote(str(file))}` shows the waiting jobs with their digests"


# --- secrets -------------------------------------------------------------------------------------------


def lock(settings: PartySettings, base_dir: Path, old_passphrase_file: Path | None) -> Found:
    """Encrypt secrets that were kept without a passphrase. With the file of an old passphrase, replace that passphrase.

    Raises:
        ConfigError: the party file names no passphrase, or a passphrase is wrong.
    """
    file, data_dir = settings.passphrase_file, base_dir / settings.data_dir
    if file is None:
        raise ConfigError(
            f"{settings.name} has no passphrase",
            hint="set secrets.passphrase_file in its party file to a file with a passphrase",
        )
    lines: list[str] = []
    if old_passphrase_file is not None:
        change_passphrase(data_dir, read_passphrase(old_passphrase_file), read_passphrase(base_dir / file))
        lines += [f"the secrets of {settings.name} are encrypted with the passphrase of {file}"]
    locked = list(vault_of(settings, base_dir).lock_plain(data_dir))
    lines += [f"locked {path}" for path in locked]
    return Found({"party": settings.name, "locked": locked}, lines)
