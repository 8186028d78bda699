"""Kind of the file at a path, without opening it: a named pipe waits for a writer that may never come."""

from __future__ import annotations

import stat
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def other_kind(path: Path) -> str:
    """Return the kind of a file that is not regular; empty for a regular file.

    Raises:
        OSError: the file does not exist, or the operating system does not answer.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    return "" if kind == stat.S_IFREG else _KINDS.get(kind, "not a regular file")
