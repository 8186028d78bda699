"""The folder that reports go to, and what the system has against a file that a user named."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path

from blindfit.algorithms.errors import ConfigError

#: What a user can mend. Any other OSError that nobody expected is a bug of ours.
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


Out = Path | Callable[[], Path]
"""Where reports go, or what makes a folder for them."""


def make_folder(out: Out) -> Path:
    """Raises ConfigError: see `make_out`."""
    found = out if isinstance(out, Path) else out()
    make_out(found)
    return found


def make_out(out: Path) -> None:
    """Makes the folder of reports, before a job begins whose report could not be written.

    Raises:
        ConfigError: it cannot be made, or nothing can be written into it.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ConfigError(
            f"--out {out}: nothing can be written there: {error.strerror}",
            hint="name a folder that this user may write into, or one that is not there yet",
        ) from None


def explain_refusal(error: OSError) -> str:
    """Explain in a line an error that the user can mend; return an empty text for any other error."""
    if error.errno == errno.ENOSPC and error.filename is None:
        return "there is no room for what is written: No space left on device"
    if error.errno not in USERS_OWN or not isinstance(error.filename, str | bytes | Path):
        return ""
    return f"{Path(str(error.filename))}: {error.strerror}"
