"""Another module under a name for a while, and every other module left as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType

import pytest


@contextmanager
def module_in_place(name: str, module: ModuleType | None) -> Iterator[None]:
    """Let `import name` find this module, or fail where it is None.

    `mock.patch.dict(sys.modules, ...)` also removes what is imported meanwhile. A library that is imported again is
    another one: pickle refuses the functions that the first one registered.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, name, module)
        yield


def without_main() -> AbstractContextManager[None]:
    """Return a context in which a started process finds an empty `__main__`, and not that of pytest."""
    return module_in_place("__main__", ModuleType("__main__"))
