"""Everything that a user and the parties keep: the names, the contents and the times of all files."""

from __future__ import annotations

import os
from pathlib import Path

Kept = dict[str, tuple[int, bytes]]


def kept_in(*folders: Path, except_for: tuple[Path, ...] = ()) -> Kept:
    """Return the time and the content of each file and folder below these folders.

    Args:
        except_for: folders of reports; the folders that contain them have another time afterwards.
    """
    found: Kept = {}
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            if any(path.is_relative_to(out) for out in except_for):
                continue
            status = path.lstat()
            is_parent = any(out.parent == path for out in except_for)
            content = path.read_bytes() if path.is_file() else b""
            found[os.fspath(path)] = (0 if is_parent else status.st_mtime_ns, content)
    return found
