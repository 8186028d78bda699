"""The scripts in docs/, imported by their paths."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


@lru_cache
def script(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look their module up
    found.loader.exec_module(module)
    return module
