"""What a party's operator decides: which held jobs may run, by a digest of what was shown; its secrets' passphrase."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.operator.held import HeldJob
from blindfit.coordinator.terminal.json_output import answer
from blindfit.parties.files.private_files import read_passphrase
from blindfit.parties.files.vault import change_passphrase
from blindfit.parties.sessions.party import vault_of
from blindfit.parties.sessions.state import State, next_state
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store, path_of, stamp

Confirm = Callable[[str], bool]


def open_store(settings: PartySettings, base_dir: Path) -> Store:
    store = Store.existing(settings, base_dir)
    if store is None:
        raise ConfigError(f"{path_of(settings, base_dir)} does not exist", hint="this party has not been started yet")
    return store


def show_held(settings: PartySettings, file: Path, console: Console, session: str | None = None) -> list[HeldJob]:
    """Of all that waits, or of one session.

    Args:
        file: that the settings are in, as the operator named it.
    """
    store = open_store(settings, file.parent)
    waiting = [row for row in store.reader().sessions("HELD") if session in (None, row.session)]
    held = [HeldJob.of(row, settings, file) for row in waiting]
    answer({"waiting": [job.found(store) for job in held]})
    for job in held:
        job.show(store, console)
    return held


def list_held(settings: PartySettings, file: Path, console: Console) -> None:
    if not show_held(settings, file, console):
        console.print("no job waits for approval")


def approve_shown(settings: PartySettings, file: Path, session: str, console: Console, confirm: Confirm | None) -> None:
    """Args:
    confirm: asks whoever sits there; None where nobody does.

    Raises:
        ConfigError: nobody can say yes to what was shown, or it no longer waits.
    """
    held = show_held(settings, file, console, session)
    if not held:
        raise _waits_not(session, file)
    (job,) = held
    if confirm is None:
        raise ConfigError("the digest is missing, without which nothing is approved", hint=f"as shown: {job.command}")
    if confirm(f"Approve {job.asked.digest}?"):
        decide(settings, file, session, job.asked.digest, refuse=False, console=console)
    else:
        console.print(f"{session}: not approved, and still waiting", markup=False)


def decide(
    settings: PartySettings, file: Path, session: str, digest: str | None, *, refuse: bool, console: Console
) -> None:
    """Args:
    digest: of the job that was looked at; a refusal needs none.

    Raises:
        ConfigError: no such job waits, or another one.
    """
    state = next_state(State.HELD, "refuse" if refuse else "approve", session)
    with open_store(settings, file.parent).transaction() as transaction:
        row = transaction.session(session)
        if row is None or row.state != State.HELD:
            raise _waits_not(session, file)
        if row.digest != digest and not (refuse and digest is None):
            raise ConfigError(f"{digest} is not the digest of the job that waits here as {session}", hint=_list(file))
        transaction.change_session(session, state=state, changed=stamp())
    answer({"session": session, "state": "refused" if refuse else "approved"})
    console.print(f"{session}: {'refused' if refuse else 'approved'}", markup=False)


def _waits_not(session: str, file: Path) -> ConfigError:
    return ConfigError(f"{session} is not a job that waits here", hint=_list(file))


def _list(file: Path) -> str:
    return f"`blindfit approve {file}` shows what waits, with its digests"


# --- secrets -------------------------------------------------------------------------------------------


def lock(settings: PartySettings, base_dir: Path, old_passphrase_file: Path | None, console: Console) -> None:
    """Locks what was kept before there was a passphrase; with the file of an old one, the new one takes its place.

    Raises:
        ConfigError: the party's file names no passphrase, or one does not open what it should.
    """
    file, data_dir = settings.passphrase_file, base_dir / settings.data_dir
    if file is None:
        raise ConfigError(
            f"{settings.name} has no passphrase", hint="set secrets.passphrase_file in its file to a file that has one"
        )
    if old_passphrase_file is not None:
        change_passphrase(data_dir, read_passphrase(old_passphrase_file), read_passphrase(base_dir / file))
        text = f"{settings.name}'s secrets are under the passphrase of {file}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    locked = list(vault_of(settings, base_dir).lock_plain(data_dir))
    answer({"party": settings.name, "locked": locked})
    for path in locked:
        console.print(f"locked {path}", highlight=False, markup=False, soft_wrap=True)
