"""`blindfit purge`: list and remove the files that a party keeps of ended sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from rich.console import Console

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.vertical import model as vertical
from blindfit.coordinator.operator.deciding import Confirm, open_store
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.files.written import read_json
from blindfit.parties.sessions.purge import LAST, Kept, find_ended_sessions, find_kept, forget, remove
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.parties.vertical.model_store import SHARES

STAYS = (
    "What stays: names of sessions, the ledger, receipts and remembered answers. They prove what was paid, and prevent "
    "a second payment."
)


def sessions_to_purge(store: Store, session: str | None, ended_before: str | None, *, all_ended: bool) -> list[str]:
    """Return the sessions; raise ConfigError if not exactly one of the three is given, or the date is not valid."""
    if sum([session is not None, ended_before is not None, all_ended]) != 1:
        raise ConfigError("no session to purge is named", hint="give a session, --ended-before DATE or --all-ended")
    if session is not None:
        return [session]
    if ended_before is None:
        return find_ended_sessions(store)
    try:
        return find_ended_sessions(store, date.fromisoformat(ended_before))
    except ValueError:
        raise ConfigError(
            f"--ended-before {ended_before} is not a valid date", hint="write YYYY-MM-DD, such as 2026-01-31 (UTC)"
        ) from None


def purge(
    settings: PartySettings,
    base_dir: Path,
    session: str | None,
    ended_before: str | None,
    console: Console,
    confirm: Confirm | None,
    *,
    all_ended: bool,
    yes: bool,
    dry_run: bool,
) -> Found:
    """List the files, ask, and remove them.

    Args:
        confirm: function that asks the person at the terminal; None if nobody may be asked.
    """
    store, data_dir = open_store(settings, base_dir), base_dir / settings.data_dir
    chosen = sessions_to_purge(store, session, ended_before, all_ended=all_ended)
    kept = [one for name in chosen for one in _list_kept(store, data_dir, name, named=session is not None)]
    if not kept:
        none = f"{settings.name} keeps no files of {session or 'sessions that have ended'}. {STAYS}"
        return Found({"files": kept, "removed": False}, (none,))
    Found(
        {}, (*(f"{one.of}: {one.path} ({one.size_bytes:,} bytes)" for one in kept), *_describe_losses(kept, data_dir))
    ).show(console)
    if dry_run:
        return Found({"files": kept, "removed": False}, ("Nothing was removed: this was --dry-run.",))
    if not yes and confirm is None:
        raise ConfigError("with --json the command cannot ask", hint="add --yes, or --dry-run")
    if not yes and confirm and not confirm(f"Remove {_amount(kept)}?"):
        return Found({"files": kept, "removed": False})
    removed = [f"removed {one.path} ({one.size_bytes:,} bytes)" for one in remove(kept)]
    for name in chosen:
        forget(store, data_dir, name)
    return Found({"files": kept, "removed": True}, (*removed, f"Removed {_amount(kept)}."))


def _list_kept(store: Store, data_dir: Path, session: str, *, named: bool) -> list[Kept]:
    """Return a session's files. Among many sessions, files whose checkpoints a later session uses wait."""
    try:
        return find_kept(store, data_dir, session)
    except ConfigError:
        if named:
            raise
        return []


def _describe_losses(kept: Sequence[Kept], data_dir: Path) -> Iterator[str]:
    """Yield what ends with these files, and which files of the sessions stay."""
    paths = {one.path for one in kept}
    for name in dict.fromkeys(one.of for one in kept):
        if any(path.is_relative_to(data_dir / "checkpoints") for path in (one.path for one in kept if one.of == name)):
            yield f"{name} is a training that stopped: it cannot be resumed without its checkpoints."
        directory = data_dir / "models" / name
        if directory / SHARES in paths:
            yield f"{name} is a training whose model is in shares: without these shares all parties lose it."
        if (part := directory / "model.json") in paths and _is_part(part):
            yield f"{name} is a training with a model for predictions: they end, at all parties."
    for path in paths:
        where = _scores_of(path)
        if where is not None and Path(where) not in paths:
            yield f"Scores of {path.parent.name} in {where} stay: they are in your own table."
    yield STAYS


def _is_part(path: Path) -> bool:
    content = _content(path)
    return content.get("format") == vertical.FORMAT


def _scores_of(path: Path) -> str | None:
    """Return the place of a prediction's scores, as the prediction reported it."""
    scores = _content(path).get("scores") if path.name == LAST else None
    return str(scores["where"]) if isinstance(scores, dict) and "where" in scores else None


def _content(path: Path) -> dict[str, object]:
    try:
        content = read_json(path)
    except DataError:
        return {}
    return content if isinstance(content, dict) else {}


def _amount(kept: Sequence[Kept]) -> str:
    return f"{quantity(len(kept), 'file')} of {sum(one.size_bytes for one in kept):,} bytes"
