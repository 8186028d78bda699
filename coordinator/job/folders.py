"""The folder of a run's reports if the user names none: a new folder, so that files of two runs never mix."""

from __future__ import annotations

import itertools
from datetime import datetime
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import Job

RUNS = Path("runs")
LATEST = RUNS / "latest"  # a link to the newest folder
LATEST_REHEARSAL = RUNS / "latest-rehearsal"


def folder_of(job: Job[Any], *, rehearses: bool) -> Path:
    """Return the folder of the reports of a prediction or an evaluation."""
    return RUNS / (f"{job.protocol}-rehearsal" if rehearses else job.protocol)


def new_folder(job: str, *, rehearses: bool = False) -> Path:
    """Make a folder such as runs/walr-20261124-093000, and point runs/latest to it.

    A rehearsal has its own link: runs/latest-rehearsal.

    Raises:
        ConfigError: the folder cannot be made, or another file has the link's name.
    """
    latest = LATEST_REHEARSAL if rehearses else LATEST
    if latest.exists() and not latest.is_symlink():
        raise ConfigError(
            f"{latest} is a folder, and not the link that Blindfit keeps there",
            hint=f"rename it: mv {latest} {RUNS / 'before'}",
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
    """Change the link in one step: it always points to the folder before or to the new one."""
    link = RUNS / f".{latest.name}-{folder.name}"
    link.symlink_to(folder.name, target_is_directory=True)
    link.replace(latest)
