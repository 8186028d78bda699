"""The folder of reports, which never mixes two jobs, and errors of the operating system that a user can mend."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.rehearsal import stamp_of
from blindfit.coordinator.job.stage import STATE, is_stage
from blindfit.parties.files.written import read_json
from blindfit.parties.settings import PARTY_NAME

#: Errors that a user can mend. Any other unexpected OSError is a bug of Blindfit.
USERS_OWN = {
    errno.EACCES,
    errno.EDQUOT,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOSPC,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}


OF_A_JOB = frozenset(
    (
        *("report.json", "model.json", "release.json", "training_rows.json", "transcript.jsonl", "party.log", "port"),
        *("test_rows.csv", "test_scores.csv", "held_out_rows.csv", "held_out_scores.csv", "held_out_predictions.csv"),
        *("scores.csv", "released_labels.csv", "true_label_predictions.csv", "linkage.json", "report.html"),
    )
)
"""Names of the files that a party and its process write for a job. All other files belong to somebody else."""

Out = Path | Callable[[], Path]
"""Folder of reports, or a function that makes it."""


def make_folder(out: Out, protocol: str, *, rehearses: bool = False) -> Path:
    """Make the folder for the reports of a job of this protocol.

    Raises:
        ConfigError: see `make_out`; or the folder has the report of a job of another kind, or it has reports of a
            rehearsal and the job is real, or the other way round.
    """
    found = out if isinstance(out, Path) else out()
    make_out(found)
    if rehearses and (real := _find_real_report(found)):
        raise ConfigError(
            f"--out {found} has {real.relative_to(found)} of a real job, and a rehearsal does not replace it",
            hint="name another folder: --out DIR",
        )
    if rehearses and os.path.lexists(found / STATE) and not is_stage(found / STATE):
        raise ConfigError(
            f"--out {found} has other files in {STATE}, where a rehearsal keeps its state",
            hint="name another folder: --out DIR",
        )
    if not rehearses and (is_stage(found / STATE) or stamp_of(_earlier_report(found))):
        raise ConfigError(
            f"--out {found} has the files of a rehearsal, and a real job does not write next to them",
            hint="name another folder: --out DIR, or remove this one first",
        )
    earlier = _earlier_report(found)
    if earlier and earlier.get("protocol") != protocol:
        raise ConfigError(
            f"--out {found} has the report of {earlier.get('session')}, a {earlier.get('protocol')} job",
            hint="name another folder, or remove this one first",
        )
    return found


@contextlib.contextmanager
def hold_folder(out: Path) -> Iterator[None]:
    """Hold the folder while a job runs: the logs of two jobs in one file would mix them up.

    Raises:
        ConfigError: another job holds the folder.
    """
    folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait until it has ended, or name another folder"
            raise ConfigError(f"--out {out}: another job writes its reports there", hint=hint) from None
        yield
    finally:
        os.close(folder)


def remove_stale(out: Path) -> None:
    """Remove files that an earlier job left in the folders of its parties, after another job has succeeded.

    Files that are newer than the earlier report are this job's.
    """
    job = _earlier_report(out).get("job")
    earlier = job.get("parties") if isinstance(job, dict) else None
    names = [name for name in earlier or () if re.fullmatch(PARTY_NAME, name)]
    before = (out / "report.json").stat().st_mtime_ns if names else 0
    for folder in (out / name for name in names):
        for file in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
            if file.name in OF_A_JOB and file.is_file() and file.stat(follow_symlinks=False).st_mtime_ns <= before:
                file.unlink()
        with contextlib.suppress(OSError):  # it has files, or does not exist
            folder.rmdir()


def _find_real_report(out: Path) -> Path | None:
    """Return a report or a model in the folder that no rehearsal has written."""
    for path in (path for name in ("report.json", "model.json") for path in (out / name, *out.glob(f"*/{name}"))):
        try:
            if path.is_file() and not stamp_of(read_json(path)):
                return path
        except DataError:
            return path
    return None


def _earlier_report(out: Path) -> dict[str, Any]:
    """Return the report that an earlier job left in the folder; an empty report if no Blindfit job did."""
    path = out / "report.json"
    try:
        found = read_json(path) if path.exists() else {}
    except DataError:
        return {}
    if not isinstance(found, dict):
        return {}
    return found if all(isinstance(found.get(name), str) for name in ("session", "protocol")) else {}


def make_out(out: Path) -> None:
    """Make the folder of reports before the job begins, so that no job ends without a report.

    Raises:
        ConfigError: the folder cannot be made, or is not writable.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ConfigError(
            f"--out {out}: nothing can be written there: {error.strerror}",
            hint="name a folder that this user may write into, or a new folder",
        ) from None


def explain_refusal(error: OSError) -> str:
    """Return a line about an error that the user can mend; an empty text for any other error."""
    if error.errno == errno.ENOSPC and error.filename is None:
        return "the disk is full: No space left on device"
    if error.errno not in USERS_OWN or not isinstance(error.filename, str | bytes | Path):
        return ""
    return f"{Path(str(error.filename))}: {error.strerror}"
