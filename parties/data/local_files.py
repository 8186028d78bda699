"""Regular files that settings name; an error of one line reports anything else.

To open a named pipe waits for a writer that may never come, and a device may never end: neither is ever opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blindfit.parties.data.origin import Origin
from blindfit.parties.files.regular import other_kind

BLOCK_BYTES = 1 << 20
USE_THREADS = False  # each keeps a reserve of memory, and they save little at this size of block


def local_path(path: Path, base_dir: Path, dataset: str) -> Path:
    """Return the whole path, `~` and links followed as far as they lead.

    Raises:
            DataError: the text cannot be a path.
    """
    try:
        return Path(os.path.realpath(base_dir / path.expanduser()))  # Path.resolve refuses a loop without our message
    except RuntimeError:
        problem, hint = "there is no such user's home directory", "write the whole path instead of `~`"
    except ValueError:
        problem, hint = "a path cannot hold a NUL character", "remove it"
    raise Origin(dataset, str(path).replace("\0", "\\0")).error(problem, hint=hint)


def is_there(path: Path, origin: Origin) -> bool:
    """Return True if there is a regular file.

    Raises:
        DataError: there is something else, or the operating system does not answer.
    """
    try:
        with reachable(origin):
            other = other_kind(path)
    except (FileNotFoundError, NotADirectoryError):  # below a file there is no other file
        return False
    if other:
        raise origin.error(f"this is {other}", hint=f"name one file in `{origin.url}`")
    return True


def require_file(path: Path, origin: Origin, made_by: str | None) -> None:
    """Raise DataError if there is no regular file."""
    if not is_there(path, origin):
        hint = f"run: {made_by}" if made_by else f"correct `{origin.url}`"
        raise origin.error("the file does not exist", hint=hint)


@contextmanager
def reachable(origin: Origin) -> Iterator[None]:
    """Raise a refusal of the operating system as a DataError, except that a file is absent."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        if error.errno is None:  # Arrow's own
            raise
        raise origin.error(
            f"the file cannot be read: {error.strerror}",
            hint=f"correct `{origin.url}`, or the permissions and links on its path",
        ) from error


@contextmanager
def readable(origin: Origin) -> Iterator[None]:
    """Raise DataError if a file that was there is gone when it is read."""
    try:
        with reachable(origin):
            yield
    except (FileNotFoundError, NotADirectoryError):
        raise origin.error("the file is gone", hint="put it back, and leave it there while it is read") from None


def file_fingerprint(path: Path) -> str:
    """Return size, time of change and inode. If the file is written again, at least one of them changes."""
    state = path.stat()
    return json.dumps([str(path), state.st_size, state.st_mtime_ns, state.st_ino])
