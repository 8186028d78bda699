"""A party's log of each session, next to the session's other files: data_dir/logs/SESSION/party.log."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

from blindfit.parties.files.private_files import make_private, open_private
from blindfit.parties.settings import SESSION

KIND, FILE = "logs", "party.log"
MOST_BYTES = 2**20  # limit for a session: a peer's mistakes must not fill the operator's disk
MOST_NAME_CHARS = 64
Event = MutableMapping[str, Any]


def log_of(data_dir: Path, session: str) -> Path:
    return data_dir / KIND / session / FILE


def keeper(data_dir: Path) -> Callable[[Any, str, Event], Event]:
    """Return a structlog processor that writes a line of JSON for each event that names its session. A full disk stops
    no party.
    """

    def keep(_logger: Any, _method: str, event: Event) -> Event:
        session = event.get("session")
        if isinstance(session, str) and len(session) <= MOST_NAME_CHARS and re.fullmatch(SESSION, session):
            with contextlib.suppress(OSError):
                _append(log_of(data_dir, session), json.dumps(dict(event), default=str) + "\n")
        return event

    return keep


def _append(path: Path, line: str) -> None:
    make_private(path.parent)
    with open_private(path, "ab") as file:
        if file.tell() + len(line) <= MOST_BYTES:
            file.write(line.encode())


def read_log(data_dir: Path, session: str) -> list[dict[str, Any]]:
    """Return the events in order; an empty list if nothing was logged, or it was purged. A line that a crash cut is
    left out.
    """
    try:
        lines = log_of(data_dir, session).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    records = []
    for line in lines:
        with contextlib.suppress(ValueError):
            records.append(json.loads(line))
    return [record for record in records if isinstance(record, dict)]
