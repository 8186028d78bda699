"""Arrow without pandas: a party's process has no use for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa


class _Hidden(MetaPathFinder):
    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def leave_pandas_out() -> None:
    """To be called before there are threads. Where pandas is installed, pyarrow imports it for the first array that it
    makes, in case it is given a Series: a quarter of a second and 40 MB of the first job. It looks once, here; whoever
    else wants pandas later gets it, but for arrays of its objects.
    """
    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)
