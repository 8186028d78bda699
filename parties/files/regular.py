"""What is at a path, found without opening it: a named pipe waits for a writer that may never come."""

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
    """What is there instead of a regular file, in words; empty where it is one.

    Raises:
        OSError: nothing is there, or nobody can tell.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    return "" if kind == stat.S_IFREG else _KINDS.get(kind, "no regular file")
