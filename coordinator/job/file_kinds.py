"""A party file given in place of a job file, or the reverse: what it is, and what to type."""

from __future__ import annotations

import tomllib
from pathlib import Path
from shlex import quote

from blindfit.algorithms.errors import ConfigError

PARTY_ALONE = ("role", "identity", "peers", "listen")
JOB_ALONE = ("protocol", "parties")


def is_party_file(path: Path) -> bool:
    return _kind(path) == "party"


def refuse_party_file(path: Path) -> None:
    """Raise ConfigError: the file is a party file, and a job file is needed."""
    if is_party_file(path):
        raise ConfigError(
            f"{path} is a party file, and this command takes a job file",
            hint=f"`blindfit party {quote(str(path))}` starts that party; a job file has `protocol` and [parties]",
        )


def refuse_job_file(path: Path) -> None:
    """Raise ConfigError: the file is a job file, and a party file is needed."""
    if _kind(path) == "job":
        raise ConfigError(
            f"{path} is a job file, and this command takes a party file",
            hint=f"`blindfit run {quote(str(path))}` runs the job; a party file has `role`, [identity] and [peers]",
        )


def _kind(path: Path) -> str:
    """Return the kind that only this kind's keys show. The caller reports a file that cannot be read."""
    try:
        values = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return ""
    of_party, of_job = any(name in values for name in PARTY_ALONE), any(name in values for name in JOB_ALONE)
    return "" if of_party == of_job else "party" if of_party else "job"
