"""Files that settings name: found, and regular, or the one line that says what is there instead.

Opening a named pipe waits for a writer that may never come, and a device may never end: neither is ever opened.
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
        DataError: it cannot be a path.
    """
    try:
        return Path(os.path.realpath(base_dir / path.expanduser()))  # Path.resolve refuses a loop in words of its own
    except RuntimeError:
        problem, hint = "there is no such user's home directory", "write the whole path instead of `~`"
    except ValueError:
        problem, hint = "a path cannot hold a NUL character", "remove it"
    raise Origin(dataset, str(path).replace("\0", "\\0")).error(problem, hint=hint)


def is_there(path: Path, origin: Origin) -> bool:
    """Return whether there is a regular file.

    Raises:
        DataError: something else is there, or nobody can tell.
    """
    try:
        with reachable(origin):
            other = other_kind(path)
    except (FileNotFoundError, NotADirectoryError):  # where a part of the path is a file, there is none below it
        return False
    if other:
        raise origin.error(f"this is {other}", hint=f"name one file in `{origin.url}`")
    return True


def require_file(path: Path, origin: Origin, made_by: str | None) -> None:
    """Raise DataError: there is no regular file."""
    if not is_there(path, origin):
        hint = f"run: {made_by}" if made_by else f"correct `{origin.url}`"
        raise origin.error("the file does not exist", hint=hint)


@contextmanager
def reachable(origin: Origin) -> Iterator[None]:
    """What the operating system refuses, as a DataError; not that it is absent."""
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
    """Yield a file that was there when it was found, and may be gone when it is read."""
    try:
        with reachable(origin):
            yield
    except (FileNotFoundError, NotADirectoryError):
        raise origin.error("the file is gone", hint="put it back, and leave it there while it is read") from None


def file_fingerprint(path: Path) -> str:
    """Size, time of change and inode: a file written anew differs in one of them."""
    state = path.stat()
    return json.dumps([str(path), state.st_size, state.st_mtime_ns, state.st_ino])
