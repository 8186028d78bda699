"""Where the reports of a run go, when nobody says: a folder of its own, so that no run's files lie among another's."""

from __future__ import annotations

import itertools
from datetime import datetime
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job

RUNS = Path("runs")
LATEST = RUNS / "latest"  # a link to the newest
LATEST_REHEARSAL = RUNS / "latest-rehearsal"


def folder_of(job: Job[Any], *, rehearses: bool) -> Path:
    """Return the folder of the reports of a prediction or an evaluation."""
    return RUNS / (f"{job.protocol}-rehearsal" if rehearses else job.protocol)


def new_folder(job: str, *, rehearses: bool = False) -> Path:
    """Make a folder such as runs/walr-20261124-093000, and let runs/latest lead to it.

    A rehearsal has a link of its own: runs/latest-rehearsal.

    Raises:
        ConfigError: it cannot be made, or something else lies where the link belongs.
    """
    latest = LATEST_REHEARSAL if rehearses else LATEST
    if latest.exists() and not latest.is_symlink():
        raise ConfigError(
            f"{latest} is a folder, and not the link that Blindfit keeps there",
            hint=f"move it away: mv {latest} {RUNS / 'before'}",
        )
    base = f"{job}{'-rehearsal' if rehearses else ''}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    try:
        RUNS.mkdir(exist_ok=True)
        made = next(path for n in itertools.count(1) if _is_new(path := RUNS / (base if n == 1 else f"{base}-{n}")))
        _lead_to(latest, made)
    except OSError as error:
        raise ConfigError(
            f"no folder for the reports can be made in {RUNS.resolve()}: {error.strerror or error}",
            hint="name another folder: --out DIR",
        ) from None
    return made


def _is_new(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def _lead_to(latest: Path, folder: Path) -> None:
    """Change the link in one step: it always leads to the folder before or to the new one."""
    link = RUNS / f".{latest.name}-{folder.name}"
    link.symlink_to(folder.name, target_is_directory=True)
    link.replace(latest)
