"""Late import of Arrow in a party's process, without pandas: an idle party uses neither."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any

NAMES = ("pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet")
_lock = RLock()


def defer_arrow() -> None:
    """Let imports of Arrow load it only when one of its names is used. Call this before there are threads.

    Arrow takes 37 MiB and 0.1 s. If it is loaded already, as in a process that was forked, nothing changes.
    """
    if "pyarrow" in sys.modules:
        return
    for name in NAMES:
        spec = find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        late = module_from_spec(spec)
        late.__class__ = _Late
        sys.modules[name] = late
        package, _, last = name.rpartition(".")
        if package:
            setattr(sys.modules[package], last, late)


def load_arrow() -> None:
    """Import Arrow now, for all processes that are forked from this one."""
    import pyarrow as pa

    _leave_pandas_out(pa)


class _Late(ModuleType):
    """A module whose code runs when a name is missing in it, together with the code of all other such modules.

    If each module ran separately, the time of a job could show which module it was the first to need: a computation
    that depends on a label may use one that nothing else uses.
    """

    _is_loading = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks for such names
            raise AttributeError(name)
        with _lock:
            if self.__dict__.get("_is_loading"):  # the module's own code asks
                raise AttributeError(name)
            for each in (self.__name__, *NAMES):
                module = sys.modules[each]
                if isinstance(module, _Late) and not module._is_loading:  # another thread may have loaded it
                    module._load()
        return getattr(self, name)

    def _load(self) -> None:
        self._is_loading = True
        spec = self.__spec__
        if spec is None or spec.loader is None:
            raise ImportError(f"{self.__name__} has no loader", name=self.__name__)
        spec.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]
        del self._is_loading
        if self.__name__ == "pyarrow":
            _leave_pandas_out(self)


class _Hidden(MetaPathFinder):
    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _leave_pandas_out(arrow: Any) -> None:
    """Make Arrow's first array while pandas cannot be imported.

    If pandas is installed, Arrow imports it for the first array that it makes, in case it gets a Series: a quarter of a
    second and 40 MB. Arrow tries this only once. Other code that imports pandas later gets it; Arrow makes no arrays of
    its objects.
    """
    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        arrow.array([0])
    finally:
        sys.meta_path.remove(hidden)
