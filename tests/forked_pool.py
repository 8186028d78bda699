"""loky's processes, forked from one that has imported all of Blindfit, as other tests' parties are.

A new start costs each process half a second, and a task that fails ends them all. `blindfit benchmark` of tests/work
starts its own from nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend.context import set_start_method

from tests import command


@pytest.fixture(scope="module", autouse=True)
def processes_are_forked() -> Iterator[None]:
    assert command.PRELOADED
    set_start_method("forkserver", force=True)
    yield
    get_reusable_executor().shutdown(wait=True, kill_workers=True)
    set_start_method("loky", force=True)
