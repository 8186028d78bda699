"""A party's file where a job's belongs, and the other way round: what it is, and what to type."""

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
    """Raise ConfigError: a party's file was given where a job's is wanted."""
    if is_party_file(path):
        raise ConfigError(
            f"{path} is a party's file, and this command takes a job's",
            hint=f"`blindfit party {quote(str(path))}` starts that party; a job's file has `protocol` and [parties]",
        )


def refuse_job_file(path: Path) -> None:
    """Raise ConfigError: a job's file was given where a party's is wanted."""
    if _kind(path) == "job":
        raise ConfigError(
            f"{path} is a job's file, and this command takes a party's",
            hint=f"`blindfit run {quote(str(path))}` runs the job; a party's file has `role`, [identity] and [peers]",
        )


def _kind(path: Path) -> str:
    """Of a file that says what the one kind alone says; what cannot be read is for the caller to complain of."""
    try:
        values = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return ""
    of_party, of_job = any(name in values for name in PARTY_ALONE), any(name in values for name in JOB_ALONE)
    return "" if of_party == of_job else "party" if of_party else "job"
